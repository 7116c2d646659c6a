"""Resumable uploads: the session's address is kept in the state, and the last bytes make the video exist.

"Resumable Uploads", YouTube Data API, read on 20 November 2026. The address lets whoever has it upload: it stands in
no message.
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
from pipeline.platforms.youtube.errors import fail
from pipeline.plugins import TryLater

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from config.core.http_client import Client, Response
    from pipeline.platforms.payload_types import PayloadAsset

CHUNK: Final = 8 * 1024 * 1024
"""Bytes of one call, a multiple of 256 KiB; at most as many are left for the commit."""
UNFINISHED: Final = 308
GONE: Final = frozenset({404, 410})
_RANGE: Final = re.compile(r"bytes=0-([0-9]{1,15})")
_ID: Final = re.compile(r"[A-Za-z0-9_-]{6,20}")


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
    """Open the session, bring the bytes but the last, then ask where it stands: a former commit may have brought some.

    A session that is gone is begun anew. That is safe because a publication is prepared only while it is proven that
    it isn't public.
    """
    session = state.get("session")
    if not isinstance(session, str):
        opened = _open(account, asset, body, query=query, http=http, now=now)
        return Prepared({"session": opened, "sent": 0}, is_done=False)
    sent = int(state.get("sent", 0))
    is_probe = asset.bytes - sent <= CHUNK
    response = (
        ask_progress(account, session, asset, http=http)
        if is_probe
        else send_bytes(account, session, asset, sent, CHUNK, http=http)
    )
    if response.status in GONE:
        return Prepared({}, is_done=False)
    video = video_of(response)
    if video is not None:
        return Prepared({**state, "video": video.external_id})
    if response.status != UNFINISHED:
        fail(response, now=now, is_commit=False)
    sent = received_bytes(response)
    return Prepared({**state, "sent": sent}, is_done=is_probe and asset.bytes - sent <= CHUNK)


def ask_progress(account: Account, session: str, asset: PayloadAsset, *, http: Client) -> Response:
    """Ask the session how much it has."""
    return ask(
        http,
        "PUT",
        session,
        what="YouTube",
        headers=bearer_header(account, **{"Content-Range": f"bytes */{asset.bytes}"}),
    )


def send_bytes(
    account: Account, session: str, asset: PayloadAsset, start: int, size: int, *, http: Client
) -> Response:
    """Some bytes that aren't the last, so that nothing comes of them yet."""
    content = part_of(asset, start, size)
    return ask(
        http,
        "PUT",
        session,
        what="YouTube",
        body=content,
        headers=part_headers(account, asset, start, len(content)),
        timeout=http_calls.UPLOAD_SECONDS,
    )


def part_headers(account: Account, asset: PayloadAsset, start: int, size: int) -> dict[str, str]:
    given = {
        "Content-Type": asset.mime_type,
        "Content-Range": f"bytes {start}-{start + size - 1}/{asset.bytes}",
    }
    return bearer_header(account, **given)


def received_bytes(response: Response) -> int:
    """Bytes that the session has, by its own word; none without a word."""
    match = _RANGE.fullmatch(response.headers.get("range", "").strip())
    return int(match[1]) + 1 if match else 0


def video_of(response: Response) -> Sent | None:
    if response.status not in {200, 201}:
        return None
    video = json_object(response.body) or {}
    external_id = video.get("id")
    if not isinstance(external_id, str) or _ID.fullmatch(external_id) is None:
        return None
    status = video.get("status")
    privacy = status.get("privacyStatus") if isinstance(status, dict) else None
    details = {"privacy": privacy} if isinstance(privacy, str) else {}
    return Sent(external_id, f"https://www.youtube.com/watch?v={external_id}", details)


def _open(
    account: Account, asset: PayloadAsset, body: Mapping[str, Any], *, query: str, http: Client, now: datetime
) -> str:
    response = ask(
        http,
        "POST",
        f"{account.base_url}/upload/youtube/v3/videos?uploadType=resumable&part=snippet,status{query}",
        what="YouTube",
        json=dict(body),
        headers=bearer_header(
            account,
            **{"X-Upload-Content-Length": str(asset.bytes), "X-Upload-Content-Type": asset.mime_type},
        ),
    )
    if response.status != 200:
        fail(response, now=now, is_commit=False)
    session = response.headers.get("location", "").strip()
    host = urlsplit(session).hostname or ""
    # The token goes along with each part: to Google alone.
    if host != urlsplit(account.base_url).hostname and not host.endswith(".googleapis.com"):
        message = "YouTube named no address of its own for the upload."
        raise TryLater(message)
    return session
