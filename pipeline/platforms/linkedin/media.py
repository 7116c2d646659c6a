"""Uploads files to LinkedIn: a picture in one step, a video part by part.

`state["files"]` has the progress of each file's upload, in the order of the files.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlsplit

from pipeline.platforms import http_calls
from pipeline.platforms.base import Account, Pending, Prepared, Ready
from pipeline.platforms.http_calls import ask, json_object
from pipeline.platforms.linkedin.errors import raise_for_response, request_headers
from pipeline.platforms.oauth_tokens import bearer_header
from pipeline.platforms.rules import HIDDEN_ROLES
from pipeline.platforms.upload_bodies import part_of
from pipeline.plugins import Refused, TryLater

if TYPE_CHECKING:
    from collections.abc import Mapping

    from config.core.http_client import Client, Response
    from pipeline.platforms.payload_types import Adapted, PayloadAsset

POLL_INTERVAL: Final = timedelta(seconds=5)
ASSUMED_PROCESSING: Final = timedelta(seconds=60)
"""The time after which a video counts as processed if the connection may not read its state."""


def files_of(post: Adapted) -> list[PayloadAsset]:
    """Return the post's pictures and videos, in order."""
    return [
        file
        for file in post.payload.assets
        if file.role not in HIDDEN_ROLES and file.mime_type.startswith(("image/", "video/"))
    ]


def advance_uploads(
    account: Account, post: Adapted, state: Mapping[str, Any], *, http: Client, now: datetime
) -> Prepared:
    """Take one step of the uploads: a picture, or the beginning, a part or the end of a video."""
    uploads = [dict(upload) for upload in state.get("files", [])]
    for index, asset in enumerate(files_of(post)):
        if index == len(uploads):
            uploads.append({})
        if not uploads[index].get("is_final"):
            take_step = _advance_video if asset.mime_type.startswith("video/") else _upload_image
            uploads[index] = take_step(account, asset, uploads[index], http=http, now=now)
            return Prepared({**state, "files": uploads}, is_done=False)
    return Prepared({**state, "files": uploads})


def poll_uploads(
    account: Account, state: Mapping[str, Any], *, http: Client, now: datetime
) -> Pending | Ready:
    """Ask whether LinkedIn has processed the videos, and return `Ready`, or `Pending` with the wait.

    Raises `Refused` if it couldn't process one, and as `raise_for_response` if it fails.
    """
    for upload in state.get("files", []):
        if "finalized" not in upload:
            continue
        url = f"{account.base_url}/rest/videos/{quote(upload['urn'], safe='')}"
        response = ask(http, "GET", url, service="LinkedIn", headers=request_headers(account))
        if response.status in {403, 404} and json_object(response.body) is not None:
            remaining = datetime.fromisoformat(upload["finalized"]) + ASSUMED_PROCESSING - now
            if remaining > timedelta(0):
                return Pending(remaining)
            continue
        if response.status != 200:
            raise_for_response(response, account=account, now=now, is_commit=False)
        status = (json_object(response.body) or {}).get("status")
        if status == "PROCESSING_FAILED":
            message = "LinkedIn couldn't process the video."
            raise Refused(message, code="media_refused", field="assets")
        if status != "AVAILABLE":
            return Pending(POLL_INTERVAL)
    return Ready()


def _upload_image(
    account: Account, asset: PayloadAsset, upload: Mapping[str, Any], *, http: Client, now: datetime
) -> dict[str, Any]:
    """Upload a picture in one step, and return its final state."""
    del upload
    value = _begin_upload(account, "images", {"owner": owner_of(account)}, http=http, now=now)
    urn, url = value.get("image"), value.get("uploadUrl")
    if not isinstance(urn, str) or not isinstance(url, str):
        raise _unreadable_answer()
    _put_bytes(account, url, asset.read(), http=http, now=now)
    return {"urn": urn, "is_final": True}


def _advance_video(
    account: Account, asset: PayloadAsset, upload: Mapping[str, Any], *, http: Client, now: datetime
) -> dict[str, Any]:
    """Take one step of a video's upload (begin it, send a part, or finish it), and return the new state."""
    if "urn" not in upload:
        request = {
            "owner": owner_of(account),
            "fileSizeBytes": asset.bytes,
            "uploadCaptions": False,
            "uploadThumbnail": False,
        }
        value = _begin_upload(account, "videos", request, http=http, now=now)
        return {**_parse_instructions(value, asset.bytes), "etags": []}
    parts_sent = len(upload["etags"])
    if parts_sent < len(upload["parts"]):
        url, first, last = upload["parts"][parts_sent]
        response = _put_bytes(account, url, part_of(asset, first, last - first + 1), http=http, now=now)
        etag = response.headers.get("etag", "").strip('"')
        if not etag:
            raise _unreadable_answer()
        return {**upload, "etags": [*upload["etags"], etag]}
    body = {
        "finalizeUploadRequest": {
            "video": upload["urn"],
            "uploadToken": upload["token"],
            "uploadedPartIds": upload["etags"],
        }
    }
    url = f"{account.base_url}/rest/videos?action=finalizeUpload"
    response = ask(http, "POST", url, service="LinkedIn", json=body, headers=request_headers(account))
    if response.status not in {200, 201, 204}:
        raise_for_response(response, account=account, now=now, is_commit=False)
    return {"urn": upload["urn"], "is_final": True, "finalized": now.isoformat()}


def owner_of(account: Account) -> str:
    """Return the URN of the account's member."""
    return f"urn:li:person:{account.profile.get('external_id', '')}"


def _begin_upload(
    account: Account, collection: str, request: Mapping[str, Any], *, http: Client, now: datetime
) -> dict[str, Any]:
    """Return LinkedIn's address and id for an upload; `collection` is `images` or `videos`."""
    url = f"{account.base_url}/rest/{collection}?action=initializeUpload"
    response = ask(
        http,
        "POST",
        url,
        service="LinkedIn",
        json={"initializeUploadRequest": dict(request)},
        headers=request_headers(account),
    )
    if response.status not in {200, 201}:
        raise_for_response(response, account=account, now=now, is_commit=False)
    value = (json_object(response.body) or {}).get("value")
    if not isinstance(value, dict):
        raise _unreadable_answer()
    return value


def _parse_instructions(value: Mapping[str, Any], size: int) -> dict[str, Any]:
    """Return the state of an upload with its parts. Raises `TryLater` if they aren't the whole file, in order."""
    instructions = value.get("uploadInstructions")
    parts: list[tuple[str, int, int]] = []
    for instruction in instructions if isinstance(instructions, list) else []:
        url, first, last = (instruction.get(name) for name in ("uploadUrl", "firstByte", "lastByte"))
        if not isinstance(url, str) or not isinstance(first, int) or not isinstance(last, int):
            raise _unreadable_answer()
        parts.append((url, first, last))
    starts = [first for _, first, _ in parts]
    ends = [last + 1 for _, _, last in parts]
    if not isinstance(value.get("video"), str) or starts != [0, *ends[:-1]] or ends[-1:] != [size]:
        raise _unreadable_answer()
    return {
        "urn": value["video"],
        "token": str(value.get("uploadToken") or ""),
        "parts": [list(instruction) for instruction in parts],
    }


def _put_bytes(account: Account, url: str, content: bytes, *, http: Client, now: datetime) -> Response:
    """Upload bytes to an address of LinkedIn's. Raises `TryLater` if the address isn't LinkedIn's."""
    # The token must only be sent to LinkedIn, whichever address an answer names.
    host = urlsplit(url).hostname or ""
    if host != urlsplit(account.base_url).hostname and not f".{host}".endswith(".linkedin.com"):
        message = "LinkedIn named an address for the upload that isn't its own."
        raise TryLater(message)
    response = ask(
        http,
        "PUT",
        url,
        service="LinkedIn",
        body=content,
        headers=bearer_header(account, **{"Content-Type": "application/octet-stream"}),
        timeout=http_calls.UPLOAD_SECONDS,
    )
    if not 200 <= response.status < 300:
        raise_for_response(response, account=account, now=now, is_commit=False)
    return response


def _unreadable_answer() -> TryLater:
    """Return the error for an answer that can't be read."""
    message = "LinkedIn's answer about the upload couldn't be read."
    return TryLater(message)
