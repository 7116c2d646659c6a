"""Uploads to LinkedIn: a picture in a step, a video part by part; `state["files"]` keeps what LinkedIn has."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlsplit

from pipeline.platforms import http_calls
from pipeline.platforms.base import Account, Pending, Prepared, Ready
from pipeline.platforms.http_calls import ask, json_object
from pipeline.platforms.linkedin.errors import fail, request_headers
from pipeline.platforms.oauth_tokens import bearer_header
from pipeline.platforms.rules import UNSEEN
from pipeline.platforms.upload_bodies import part_of
from pipeline.plugins import Refused, TryLater

if TYPE_CHECKING:
    from collections.abc import Mapping

    from config.core.http_client import Client, Response
    from pipeline.platforms.payload_types import Adapted, PayloadAsset

LOOK_AFTER: Final = timedelta(seconds=5)
GRACE: Final = timedelta(seconds=60)
"""After this long a video counts as processed where the connection may not read how far it is."""


def files_of(post: Adapted) -> list[PayloadAsset]:
    return [
        one
        for one in post.payload.assets
        if one.role not in UNSEEN and one.mime_type.startswith(("image/", "video/"))
    ]


def advance_uploads(
    account: Account, post: Adapted, state: Mapping[str, Any], *, http: Client, now: datetime
) -> Prepared:
    kept = [dict(one) for one in state.get("files", [])]
    for position, asset in enumerate(files_of(post)):
        if position == len(kept):
            kept.append({})
        if not kept[position].get("is_final"):
            next_step = _next_of_video if asset.mime_type.startswith("video/") else _image
            kept[position] = next_step(account, asset, kept[position], http=http, now=now)
            return Prepared({**state, "files": kept}, is_done=False)
    return Prepared({**state, "files": kept})


def poll_uploads(
    account: Account, state: Mapping[str, Any], *, http: Client, now: datetime
) -> Pending | Ready:
    for one in state.get("files", []):
        if "finalized" not in one:
            continue
        url = f"{account.base_url}/rest/videos/{quote(one['urn'], safe='')}"
        response = ask(http, "GET", url, what="LinkedIn", headers=request_headers(account))
        if response.status in {403, 404} and json_object(response.body) is not None:
            left = datetime.fromisoformat(one["finalized"]) + GRACE - now
            if left > timedelta(0):
                return Pending(left)
            continue
        if response.status != 200:
            fail(response, account=account, now=now, is_commit=False)
        status = (json_object(response.body) or {}).get("status")
        if status == "PROCESSING_FAILED":
            message = "LinkedIn couldn't process the video."
            raise Refused(message, code="media_refused", field="assets")
        if status != "AVAILABLE":
            return Pending(LOOK_AFTER)
    return Ready()


def _image(
    account: Account, asset: PayloadAsset, kept: Mapping[str, Any], *, http: Client, now: datetime
) -> dict[str, Any]:
    del kept
    value = _begin(account, "images", {"owner": owner_of(account)}, http=http, now=now)
    urn, url = value.get("image"), value.get("uploadUrl")
    if not isinstance(urn, str) or not isinstance(url, str):
        raise _unreadable()
    _put(account, url, asset.read(), http=http, now=now)
    return {"urn": urn, "is_final": True}


def _next_of_video(
    account: Account, asset: PayloadAsset, kept: Mapping[str, Any], *, http: Client, now: datetime
) -> dict[str, Any]:
    if "urn" not in kept:
        wish = {
            "owner": owner_of(account),
            "fileSizeBytes": asset.bytes,
            "uploadCaptions": False,
            "uploadThumbnail": False,
        }
        value = _begin(account, "videos", wish, http=http, now=now)
        return {**_instructions(value, asset.bytes), "etags": []}
    done = len(kept["etags"])
    if done < len(kept["parts"]):
        url, first, last = kept["parts"][done]
        response = _put(account, url, part_of(asset, first, last - first + 1), http=http, now=now)
        etag = response.headers.get("etag", "").strip('"')
        if not etag:
            raise _unreadable()
        return {**kept, "etags": [*kept["etags"], etag]}
    body = {
        "finalizeUploadRequest": {
            "video": kept["urn"],
            "uploadToken": kept["token"],
            "uploadedPartIds": kept["etags"],
        }
    }
    url = f"{account.base_url}/rest/videos?action=finalizeUpload"
    response = ask(http, "POST", url, what="LinkedIn", json=body, headers=request_headers(account))
    if response.status not in {200, 201, 204}:
        fail(response, account=account, now=now, is_commit=False)
    return {"urn": kept["urn"], "is_final": True, "finalized": now.isoformat()}


def owner_of(account: Account) -> str:
    return f"urn:li:person:{account.profile.get('external_id', '')}"


def _begin(
    account: Account, what: str, wish: Mapping[str, Any], *, http: Client, now: datetime
) -> dict[str, Any]:
    url = f"{account.base_url}/rest/{what}?action=initializeUpload"
    response = ask(
        http,
        "POST",
        url,
        what="LinkedIn",
        json={"initializeUploadRequest": dict(wish)},
        headers=request_headers(account),
    )
    if response.status not in {200, 201}:
        fail(response, account=account, now=now, is_commit=False)
    value = (json_object(response.body) or {}).get("value")
    if not isinstance(value, dict):
        raise _unreadable()
    return value


def _instructions(value: Mapping[str, Any], size: int) -> dict[str, Any]:
    """The parts that LinkedIn asks for, if together they are the whole file."""
    given = value.get("uploadInstructions")
    parts: list[tuple[str, int, int]] = []
    for one in given if isinstance(given, list) else []:
        url, first, last = (one.get(name) for name in ("uploadUrl", "firstByte", "lastByte"))
        if not isinstance(url, str) or not isinstance(first, int) or not isinstance(last, int):
            raise _unreadable()
        parts.append((url, first, last))
    starts = [first for _, first, _ in parts]
    ends = [last + 1 for _, _, last in parts]
    if not isinstance(value.get("video"), str) or starts != [0, *ends[:-1]] or ends[-1:] != [size]:
        raise _unreadable()
    return {
        "urn": value["video"],
        "token": str(value.get("uploadToken") or ""),
        "parts": [list(one) for one in parts],
    }


def _put(account: Account, url: str, content: bytes, *, http: Client, now: datetime) -> Response:
    # The token goes to LinkedIn alone, whatever address an answer names.
    host = urlsplit(url).hostname or ""
    if host != urlsplit(account.base_url).hostname and not f".{host}".endswith(".linkedin.com"):
        message = "LinkedIn named an address for the upload that isn't its own."
        raise TryLater(message)
    response = ask(
        http,
        "PUT",
        url,
        what="LinkedIn",
        body=content,
        headers=bearer_header(account, **{"Content-Type": "application/octet-stream"}),
        timeout=http_calls.UPLOAD_SECONDS,
    )
    if not 200 <= response.status < 300:
        fail(response, account=account, now=now, is_commit=False)
    return response


def _unreadable() -> TryLater:
    message = "LinkedIn's answer about the upload couldn't be read."
    return TryLater(message)
