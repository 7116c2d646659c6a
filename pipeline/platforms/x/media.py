"""Uploads files to X, with one call in each step.

`state["files"]` has the progress of each file's upload, in the order of the files.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from pipeline.platforms import http_calls
from pipeline.platforms.base import Account, Pending, Prepared, Ready
from pipeline.platforms.http_calls import ask, json_object
from pipeline.platforms.oauth_tokens import bearer_header, token_expiry
from pipeline.platforms.rules import HIDDEN_ROLES
from pipeline.platforms.upload_bodies import UploadFile, build_multipart, part_of
from pipeline.platforms.x import errors
from pipeline.plugins import Refused, TryLater

if TYPE_CHECKING:
    from collections.abc import Mapping

    from config.core.http_client import Client, Response
    from pipeline.platforms.payload_types import Adapted, PayloadAsset

SEGMENT_BYTES: Final = 4 * 1024 * 1024
"""The size of one segment; X takes up to 1,000 segments of up to 5 MB."""
POLL_INTERVAL: Final = timedelta(seconds=5)
MIN_LIFETIME: Final = timedelta(minutes=10)
"""The remaining life below which a file is uploaded again."""


def files_of(post: Adapted) -> list[PayloadAsset]:
    """Return the files that the post shows, in order; thumbnails aren't uploaded, because X makes its own."""
    return [asset for asset in post.payload.assets if asset.role not in HIDDEN_ROLES and _category(asset)]


def _category(asset: PayloadAsset) -> str:
    """Return X's media category of a file, or an empty string if a post can't show it."""
    if asset.mime_type == "image/gif":
        return "tweet_gif"
    if asset.mime_type.startswith("image/"):
        return "tweet_image"
    return "tweet_video" if asset.mime_type.startswith("video/") else ""


def advance_uploads(
    account: Account, post: Adapted, state: Mapping[str, Any], *, http: Client, now: datetime
) -> Prepared:
    """Make the next call for the first file that isn't finished; all files are uploaded again if one expires soon."""
    uploads = [dict(upload) for upload in state.get("files", [])]
    if any(_is_expiring(upload, now) for upload in uploads):
        uploads = []
    for index, asset in enumerate(files_of(post)):
        if index == len(uploads):
            uploads.append({})
        if not _is_done(uploads[index], asset):
            uploads[index] = _advance_file(account, asset, uploads[index], http=http, now=now)
            return Prepared({**state, "files": uploads}, is_done=False)
    return Prepared({**state, "files": uploads})


def poll_uploads(
    account: Account, state: Mapping[str, Any], *, http: Client, now: datetime
) -> Pending | Ready:
    """Ask whether X has processed the files, and return `Ready`, or `Pending` with the wait.

    Raises `Refused` if X can't use a file, and as `raise_for_response` if it fails.
    """
    for upload in state.get("files", []):
        if not upload.get("is_processed_later"):
            continue
        url = f"{account.base_url}/media/upload?command=STATUS&media_id={upload['id']}"
        response = ask(http, "GET", url, service="X", headers=bearer_header(account))
        info = _read_data(response, now).get("processing_info")
        info = info if isinstance(info, dict) else {}
        if info.get("state") == "failed":
            error = info.get("error")
            reason = str(error.get("message") or "") if isinstance(error, dict) else ""
            message = f"X couldn't use the file{http_calls.with_colon(reason.rstrip('.'))}."
            raise Refused(message, code="media_refused", field="assets", platform_message=reason)
        if info.get("state") in {"pending", "in_progress"}:
            seconds = info.get("check_after_secs")
            if isinstance(seconds, int) and not isinstance(seconds, bool) and 0 < seconds < 3600:
                return Pending(timedelta(seconds=seconds))
            return Pending(POLL_INTERVAL)
    return Ready()


def _is_expiring(upload: Mapping[str, Any], now: datetime) -> bool:
    """Return whether X deletes the file soon."""
    return "until" in upload and datetime.fromisoformat(upload["until"]) - now < MIN_LIFETIME


def _is_done(upload: Mapping[str, Any], asset: PayloadAsset) -> bool:
    """Return whether the file is uploaded, with its alt text."""
    return bool(upload.get("is_final")) and bool(upload.get("has_alt") or not asset.alt_text)


def _advance_file(
    account: Account, asset: PayloadAsset, upload: Mapping[str, Any], *, http: Client, now: datetime
) -> dict[str, Any]:
    """Return the state of a file's upload after one more call."""
    if upload.get("is_final"):
        body = {"id": upload["id"], "metadata": {"alt_text": {"text": asset.alt_text}}}
        _post_json(account, "metadata", http=http, now=now, json=body)
        return {**upload, "has_alt": True}
    if "id" not in upload:
        if _category(asset) == "tweet_image":
            return _finished_state(_upload_whole(account, asset, http=http, now=now), now)
        body = {"media_type": asset.mime_type, "total_bytes": asset.bytes, "media_category": _category(asset)}
        return {
            "id": _read_id(_post_json(account, "upload/initialize", http=http, now=now, json=body)),
            "sent": 0,
        }
    if upload["sent"] < asset.bytes:
        return _append_segment(account, asset, upload, http=http, now=now)
    answer = _post_json(account, f"upload/{upload['id']}/finalize", http=http, now=now)
    return _finished_state(answer, now)


def _append_segment(
    account: Account, asset: PayloadAsset, upload: Mapping[str, Any], *, http: Client, now: datetime
) -> dict[str, Any]:
    """Upload the file's next segment, and return the new state."""
    content = part_of(asset, upload["sent"], SEGMENT_BYTES)
    segment_index = upload["sent"] // SEGMENT_BYTES
    file = UploadFile("media", "media", "application/octet-stream", content)
    body, content_type = build_multipart({"segment_index": str(segment_index)}, [file])
    _send_body(account, f"upload/{upload['id']}/append", body, content_type, http=http, now=now)
    return {**upload, "sent": upload["sent"] + len(content)}


def _upload_whole(account: Account, asset: PayloadAsset, *, http: Client, now: datetime) -> dict[str, Any]:
    """Upload a picture in one call, and return the answer's data."""
    file = UploadFile("media", "media", asset.mime_type, asset.read())
    body, content_type = build_multipart({"media_category": _category(asset)}, [file])
    return _read_data(_send_body(account, "upload", body, content_type, http=http, now=now), now)


def _finished_state(data: Mapping[str, Any], now: datetime) -> dict[str, Any]:
    """Return the state of a finished upload, with the time until which X keeps the file."""
    upload: dict[str, Any] = {"id": _read_id(data), "is_final": True}
    expires_at = token_expiry(data.get("expires_after_secs"), now)
    if expires_at is not None:
        upload["until"] = expires_at.isoformat()
    if data.get("processing_info"):
        upload["is_processed_later"] = True
    return upload


def _send_body(
    account: Account, path: str, body: bytes, content_type: str, *, http: Client, now: datetime
) -> Response:
    """Send a form. Raises as `raise_for_response` if X refuses it."""
    response = ask(
        http,
        "POST",
        f"{account.base_url}/media/{path}",
        service="X",
        body=body,
        headers=bearer_header(account, **{"Content-Type": content_type}),
        timeout=http_calls.UPLOAD_SECONDS,
    )
    if not 200 <= response.status < 300:
        errors.raise_for_response(response, now=now, is_commit=False)
    return response


def _post_json(
    account: Account, path: str, *, http: Client, now: datetime, json: object = None
) -> dict[str, Any]:
    """Send JSON and return the answer's data. Raises as `_read_data`."""
    url = f"{account.base_url}/media/{path}"
    return _read_data(ask(http, "POST", url, service="X", json=json, headers=bearer_header(account)), now)


def _read_data(response: Response, now: datetime) -> dict[str, Any]:
    """Return the data of an answer. Raises as `raise_for_response`, or `TryLater` if there is none."""
    if not 200 <= response.status < 300:
        errors.raise_for_response(response, now=now, is_commit=False)
    data = (json_object(response.body) or {}).get("data")
    if not isinstance(data, dict):
        message = "X's answer about the file couldn't be read."
        raise TryLater(message, platform_status=response.status)
    return data


def _read_id(data: Mapping[str, Any]) -> str:
    """Return the file's id. Raises `TryLater` if the answer names none."""
    if not isinstance(data.get("id"), str) or not data["id"].isdigit():
        message = "X's answer about the file names no id."
        raise TryLater(message)
    return str(data["id"])
