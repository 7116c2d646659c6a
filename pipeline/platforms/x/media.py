"""Uploads to X, one call a step: `state["files"]` keeps of each file what X has of it."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from pipeline.platforms import http_calls
from pipeline.platforms.base import Account, Pending, Prepared, Ready
from pipeline.platforms.http_calls import ask, json_object
from pipeline.platforms.oauth_tokens import bearer_header, end_of
from pipeline.platforms.rules import UNSEEN
from pipeline.platforms.upload_bodies import UploadFile, build_multipart, part_of
from pipeline.platforms.x import errors
from pipeline.plugins import Refused, TryLater

if TYPE_CHECKING:
    from collections.abc import Mapping

    from config.core.http_client import Client, Response
    from pipeline.platforms.payload_types import Adapted, PayloadAsset

SEGMENT: Final = 4 * 1024 * 1024
"""Bytes of one append; X takes up to 1,000 segments of up to 5 MB."""
LOOK_AFTER: Final = timedelta(seconds=5)
EARLIER: Final = timedelta(minutes=10)
"""A file that ends sooner than this is uploaded anew."""


def files_of(post: Adapted) -> list[PayloadAsset]:
    """What the post shows, in its order; a thumbnail is X's own."""
    return [one for one in post.payload.assets if one.role not in UNSEEN and _category(one)]


def _category(one: PayloadAsset) -> str:
    if one.mime_type == "image/gif":
        return "tweet_gif"
    if one.mime_type.startswith("image/"):
        return "tweet_image"
    return "tweet_video" if one.mime_type.startswith("video/") else ""


def advance_uploads(
    account: Account, post: Adapted, state: Mapping[str, Any], *, http: Client, now: datetime
) -> Prepared:
    kept = [dict(one) for one in state.get("files", [])]
    if any(_has_ended(one, now) for one in kept):
        kept = []
    for position, asset in enumerate(files_of(post)):
        if position == len(kept):
            kept.append({})
        if not _is_done(kept[position], asset):
            kept[position] = _next(account, asset, kept[position], http=http, now=now)
            return Prepared({**state, "files": kept}, is_done=False)
    return Prepared({**state, "files": kept})


def poll_uploads(
    account: Account, state: Mapping[str, Any], *, http: Client, now: datetime
) -> Pending | Ready:
    for one in state.get("files", []):
        if not one.get("is_processed_later"):
            continue
        url = f"{account.base_url}/media/upload?command=STATUS&media_id={one['id']}"
        response = ask(http, "GET", url, what="X", headers=bearer_header(account))
        info = _data(response, now).get("processing_info")
        info = info if isinstance(info, dict) else {}
        if info.get("state") == "failed":
            error = info.get("error")
            words = str(error.get("message") or "") if isinstance(error, dict) else ""
            message = f"X couldn't use the file{http_calls.with_colon(words.rstrip('.'))}."
            raise Refused(message, code="media_refused", field="assets", platform_message=words)
        if info.get("state") in {"pending", "in_progress"}:
            seconds = info.get("check_after_secs")
            if isinstance(seconds, int) and not isinstance(seconds, bool) and 0 < seconds < 3600:
                return Pending(timedelta(seconds=seconds))
            return Pending(LOOK_AFTER)
    return Ready()


def _has_ended(one: Mapping[str, Any], now: datetime) -> bool:
    return "until" in one and datetime.fromisoformat(one["until"]) - now < EARLIER


def _is_done(kept: Mapping[str, Any], asset: PayloadAsset) -> bool:
    return bool(kept.get("is_final")) and bool(kept.get("has_alt") or not asset.alt_text)


def _next(
    account: Account, asset: PayloadAsset, kept: Mapping[str, Any], *, http: Client, now: datetime
) -> dict[str, Any]:
    """The file after one more call."""
    if kept.get("is_final"):
        body = {"id": kept["id"], "metadata": {"alt_text": {"text": asset.alt_text}}}
        _post(account, "metadata", http=http, now=now, json=body)
        return {**kept, "has_alt": True}
    if "id" not in kept:
        if _category(asset) == "tweet_image":
            return _finished(_upload_whole(account, asset, http=http, now=now), now)
        body = {
            "media_type": asset.mime_type,
            "total_bytes": asset.bytes,
            "media_category": _category(asset),
        }
        return {"id": _id_of(_post(account, "upload/initialize", http=http, now=now, json=body)), "sent": 0}
    if kept["sent"] < asset.bytes:
        return _append(account, asset, kept, http=http, now=now)
    return _finished(_post(account, f"upload/{kept['id']}/finalize", http=http, now=now), now)


def _append(
    account: Account, asset: PayloadAsset, kept: Mapping[str, Any], *, http: Client, now: datetime
) -> dict[str, Any]:
    content = part_of(asset, kept["sent"], SEGMENT)
    number = kept["sent"] // SEGMENT
    file = UploadFile("media", "media", "application/octet-stream", content)
    body, content_type = build_multipart({"segment_index": str(number)}, [file])
    _send(account, f"upload/{kept['id']}/append", body, content_type, http=http, now=now)
    return {**kept, "sent": kept["sent"] + len(content)}


def _upload_whole(account: Account, asset: PayloadAsset, *, http: Client, now: datetime) -> dict[str, Any]:
    file = UploadFile("media", "media", asset.mime_type, asset.read())
    body, content_type = build_multipart({"media_category": _category(asset)}, [file])
    return _data(_send(account, "upload", body, content_type, http=http, now=now), now)


def _finished(data: Mapping[str, Any], now: datetime) -> dict[str, Any]:
    kept: dict[str, Any] = {"id": _id_of(data), "is_final": True}
    until = end_of(data.get("expires_after_secs"), now)
    if until is not None:
        kept["until"] = until.isoformat()
    if data.get("processing_info"):
        kept["is_processed_later"] = True
    return kept


def _send(
    account: Account, path: str, body: bytes, content_type: str, *, http: Client, now: datetime
) -> Response:
    response = ask(
        http,
        "POST",
        f"{account.base_url}/media/{path}",
        what="X",
        body=body,
        headers=bearer_header(account, **{"Content-Type": content_type}),
        timeout=http_calls.UPLOAD_SECONDS,
    )
    if not 200 <= response.status < 300:
        errors.fail(response, now=now, is_commit=False)
    return response


def _post(account: Account, path: str, *, http: Client, now: datetime, json: object = None) -> dict[str, Any]:
    url = f"{account.base_url}/media/{path}"
    return _data(ask(http, "POST", url, what="X", json=json, headers=bearer_header(account)), now)


def _data(response: Response, now: datetime) -> dict[str, Any]:
    if not 200 <= response.status < 300:
        errors.fail(response, now=now, is_commit=False)
    data = (json_object(response.body) or {}).get("data")
    if not isinstance(data, dict):
        message = "X's answer about the file couldn't be read."
        raise TryLater(message, platform_status=response.status)
    return data


def _id_of(data: Mapping[str, Any]) -> str:
    if not isinstance(data.get("id"), str) or not data["id"].isdigit():
        message = "X's answer about the file names no id."
        raise TryLater(message)
    return str(data["id"])
