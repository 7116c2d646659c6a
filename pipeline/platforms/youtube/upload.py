"""Uploads videos in resumable sessions: the state has the session's address, and the last bytes make the video.

It follows "Resumable Uploads" of the YouTube Data API, read on 20 November 2026. The address alone allows uploads,
so it is in no message.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from pipeline.platforms import http_calls
from pipeline.platforms.base import Account, Prepared, Sent
from pipeline.platforms.http_calls import ask, json_object
from pipeline.platforms.oauth_tokens import bearer_header
from pipeline.platforms.upload_bodies import part_of
from pipeline.platforms.youtube.errors import raise_for_response
from pipeline.plugins import TryLater

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from config.core.http_client import Client, Response
    from pipeline.platforms.payload_types import PayloadAsset

CHUNK_BYTES: Final = 8 * 1024 * 1024
"""The bytes of one call, a multiple of 256 KiB; at most as many are left for the commit."""
RESUME_INCOMPLETE: Final = 308
GONE_STATUSES: Final = frozenset({404, 410})
_RANGE: Final = re.compile(r"bytes=0-([0-9]{1,15})")
_VIDEO_ID: Final = re.compile(r"[A-Za-z0-9_-]{6,20}")


def advance_upload(
    account: Account,
    asset: PayloadAsset,
    body: Mapping[str, Any],
    state: Mapping[str, Any],
    *,
    query: str,
    http: Client,
    now: datetime,
) -> Prepared:
    """Take one step: open the session, send a chunk that isn't the last, or ask for the session's progress.

    The session is asked last, because an earlier commit may have sent some bytes. A session that is gone is begun
    again, which is safe, because a publication is prepared only while it is proven that it isn't public.
    """
    session = state.get("session")
    if not isinstance(session, str):
        new_session = _open_session(account, asset, body, query=query, http=http, now=now)
        return Prepared({"session": new_session, "sent": 0}, is_done=False)
    sent = int(state.get("sent", 0))
    is_last_chunk = asset.bytes - sent <= CHUNK_BYTES
    if is_last_chunk:
        response = ask_progress(account, session, asset, http=http)
    else:
        response = send_bytes(account, session, asset, sent, CHUNK_BYTES, http=http)
    if response.status in GONE_STATUSES:
        return Prepared({}, is_done=False)
    video = video_of(response)
    if video is not None:
        return Prepared({**state, "video": video.external_id})
    if response.status != RESUME_INCOMPLETE:
        raise_for_response(response, now=now, is_commit=False)
    sent = received_bytes(response)
    return Prepared({**state, "sent": sent}, is_done=is_last_chunk and asset.bytes - sent <= CHUNK_BYTES)


def ask_progress(account: Account, session: str, asset: PayloadAsset, *, http: Client) -> Response:
    """Ask the session for the number of bytes that it has, and return its answer."""
    return ask(
        http,
        "PUT",
        session,
        service="YouTube",
        headers=bearer_header(account, **{"Content-Range": f"bytes */{asset.bytes}"}),
    )


def send_bytes(
    account: Account, session: str, asset: PayloadAsset, start: int, size: int, *, http: Client
) -> Response:
    """Send bytes that aren't the last ones, so that no video is made yet."""
    content = part_of(asset, start, size)
    return ask(
        http,
        "PUT",
        session,
        service="YouTube",
        body=content,
        headers=part_headers(account, asset, start, len(content)),
        timeout=http_calls.UPLOAD_SECONDS,
    )


def part_headers(account: Account, asset: PayloadAsset, start: int, size: int) -> dict[str, str]:
    """Return the headers of a part: its type and range."""
    headers = {
        "Content-Type": asset.mime_type,
        "Content-Range": f"bytes {start}-{start + size - 1}/{asset.bytes}",
    }
    return bearer_header(account, **headers)


def received_bytes(response: Response) -> int:
    """Return the number of bytes that the session says it has, or 0 if it doesn't say."""
    match = _RANGE.fullmatch(response.headers.get("range", "").strip())
    return int(match[1]) + 1 if match else 0


def video_of(response: Response) -> Sent | None:
    """Return the video that the session made, or `None` if it made none yet."""
    if response.status not in {200, 201}:
        return None
    video = json_object(response.body) or {}
    external_id = video.get("id")
    if not isinstance(external_id, str) or _VIDEO_ID.fullmatch(external_id) is None:
        return None
    status = video.get("status")
    privacy = status.get("privacyStatus") if isinstance(status, dict) else None
    details = {"privacy": privacy} if isinstance(privacy, str) else {}
    return Sent(external_id, f"https://www.youtube.com/watch?v={external_id}", details)


def _open_session(
    account: Account, asset: PayloadAsset, body: Mapping[str, Any], *, query: str, http: Client, now: datetime
) -> str:
    """Open a session and return its address.

    Raises as `raise_for_response` if YouTube refuses, and `TryLater` if the address isn't Google's.
    """
    response = ask(
        http,
        "POST",
        f"{account.base_url}/upload/youtube/v3/videos?uploadType=resumable&part=snippet,status{query}",
        service="YouTube",
        json=dict(body),
        headers=bearer_header(
            account, **{"X-Upload-Content-Length": str(asset.bytes), "X-Upload-Content-Type": asset.mime_type}
        ),
    )
    if response.status != 200:
        raise_for_response(response, now=now, is_commit=False)
    session = response.headers.get("location", "").strip()
    host = urlsplit(session).hostname or ""
    # Each part is sent with the token, which must only be sent to Google.
    if host != urlsplit(account.base_url).hostname and not host.endswith(".googleapis.com"):
        message = "YouTube named no address of its own for the upload."
        raise TryLater(message)
    return session
