"""Uploads a Mastodon post's files, builds its fields, deletes posts, and reads their counts."""

from __future__ import annotations

import hashlib
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from pipeline.platforms import http_calls
from pipeline.platforms.http_calls import json_object
from pipeline.platforms.mastodon.calls import call, raise_for_response, read_object, text_of
from pipeline.platforms.rules import images_of
from pipeline.platforms.samples import build_samples, sum_counts
from pipeline.platforms.upload_bodies import build_multipart, file_of
from pipeline.plugins import OutcomeUnknown, PluginError, Refused, TryLater
from pipeline.text.prose.verbatim_edits import counted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from config.core.http_client import Client, Response
    from pipeline.platforms.base import Account, Sample
    from pipeline.platforms.payload_types import Adapted, PayloadAsset

KEY_MEMORY: Final = timedelta(hours=1)
"""The time for which a server remembers an `Idempotency-Key`."""


def warning_of(account: Account) -> str:
    """Return the outlet's content warning, or an empty string without one."""
    return str(account.config.get("content_warning") or "")


def files_of(post: Adapted) -> list[PayloadAsset]:
    """Return a video post's videos, or the pictures of any other post, because a server takes no mixture."""
    assets = post.payload.assets
    if post.payload.bucket == "video":
        return [asset for asset in assets if asset.mime_type.startswith("video/")]
    return images_of(assets)


def file_ids(state: Mapping[str, Any]) -> frozenset[str]:
    """Return the ids of the uploaded files."""
    return frozenset(upload["id"] for upload in state.get("uploads", []))


def upload_file(
    account: Account, asset: PayloadAsset, index: int, *, http: Client, now: datetime
) -> dict[str, Any]:
    """Upload a file and return its entry for the state. Raises the plug-in error if the server refuses it."""
    fields = {"description": asset.alt_text} if asset.alt_text else {}
    body, content_type = build_multipart(fields, [file_of("file", asset, index)])
    response = call(
        account,
        "POST",
        "/api/v2/media",
        http=http,
        body=body,
        headers={"Content-Type": content_type},
        timeout=http_calls.UPLOAD_SECONDS,
    )
    answer = json_object(response.body)
    if response.status not in {200, 202} or not text_of(answer, "id"):
        raise_for_response(response, now=now)
    is_ready = response.status == 200 and bool(text_of(answer, "url"))
    return {"id": text_of(answer, "id"), "is_ready": is_ready, "at": now.isoformat()}


def form_of(
    account: Account, post: Adapted, state: Mapping[str, Any], part: int, parent_id: str
) -> dict[str, Any]:
    """Return the fields of one part of the post; `parent_id` is the post that it replies to, or empty."""
    form: dict[str, Any] = {
        "status": post.parts[part],
        "visibility": account.config.get("visibility") or "public",
    }
    warning = warning_of(account)
    if warning:
        form |= {"spoiler_text": warning, "sensitive": True}
    language = str(account.config.get("language") or post.payload.language)
    if language:
        form["language"] = language
    if part == 0 and state["uploads"]:
        form["media_ids"] = [upload["id"] for upload in state["uploads"]]
    if parent_id:
        form["in_reply_to_id"] = parent_id
    return form


def key_of(key: str, part: int, text: str) -> str:
    """Return the `Idempotency-Key` of a part, the same for each try; a changed text is another post."""
    return f"{key}-{part}-{hashlib.sha256(text.encode('utf-8', 'replace')).hexdigest()[:16]}"


def read_accepted(response: Response, now: datetime, *, is_first: bool) -> dict[str, str]:
    """Return the id and address of a post that was accepted.

    Raises `TryLater` if the server still remembers the first post, which was deleted, `OutcomeUnknown` if the
    answer can't be read, and as `raise_for_response` for any other answer.
    """
    if is_first and response.status == 404 and json_object(response.body) is not None:
        # It replies to no post, so the missing post can only be the one remembered under its key.
        message = "The Mastodon server still remembers this post, which was deleted, and will for an hour."
        raise TryLater(message, code="still_remembered", after=KEY_MEMORY, platform_status=404)
    if response.status != 200:
        raise_for_response(response, now=now, is_commit=True)
    answer = json_object(response.body)
    if not text_of(answer, "id"):
        message = "The Mastodon server answered with something that can't be read."
        raise OutcomeUnknown(message, platform_status=response.status)
    return {"id": text_of(answer, "id"), "url": text_of(answer, "url") or text_of(answer, "uri")}


def unfinished_thread(public_parts: int, parts: int, reason: str) -> OutcomeUnknown:
    """Return the error for a thread of which `public_parts` of `parts` posts are public."""
    message = f"{public_parts} of {parts} posts of the thread are public. The rest follow. {reason}"
    return OutcomeUnknown(message, code="thread_unfinished")


def remove_thread(
    account: Account, sent: Sequence[Mapping[str, str]], refused: Refused, *, http: Client, now: datetime
) -> None:
    """Delete the public posts of a thread whose next part was refused, because a thread is whole or absent.

    Raises `OutcomeUnknown` if a post can't be deleted.
    """
    for deleted_count, post in enumerate(reversed(sent)):
        try:
            delete_status(account, post["id"], http=http, now=now)
        except PluginError as error:
            message = (
                f"{refused.message} "
                f"{counted(len(sent) - deleted_count, 'post of the thread is', 'posts of the thread are')} "
                f"public and couldn't be deleted. {error.message}"
            )
            raise OutcomeUnknown(message, code="thread_unfinished") from error


def delete_status(account: Account, status_id: str, *, http: Client, now: datetime) -> None:
    """Delete a post, which may be gone already. Raises as `raise_for_response` if the server refuses."""
    response = call(account, "DELETE", f"/api/v1/statuses/{quote(status_id, safe='')}", http=http)
    if response.status != 200 and not is_gone(account, response, http=http):
        raise_for_response(response, now=now)


def is_gone(account: Account, response: Response, *, http: Client) -> bool:
    """Return whether a response is a 404 that says that the post isn't there.

    Mastodon says so in JSON. A 404 without JSON may be Takahē's page for a removed post, or a proxy's that blocks
    all calls: then a call for the account shows which.
    """
    if response.status != 404:
        return False
    if json_object(response.body) is not None:
        return True
    account_response = call(account, "GET", "/api/v1/accounts/verify_credentials", http=http)
    return account_response.status == 200 and bool(text_of(json_object(account_response.body), "id"))


def read_counts(account: Account, status_id: str, *, http: Client, now: datetime) -> Mapping[str, Any]:
    """Return the post with its counts, or an empty dict if it is gone or has no id."""
    if not status_id:
        return {}
    response = call(account, "GET", f"/api/v1/statuses/{quote(status_id, safe='')}", http=http)
    if is_gone(account, response, http=http):
        return {}
    return read_object(response, now=now)


def samples_of(counts: Mapping[str, Any]) -> tuple[Sample, ...]:
    """Return the samples of a post's counts; an older server doesn't count quotes."""
    return build_samples(
        {
            "likes": sum_counts(counts, "favourites_count"),
            "comments": sum_counts(counts, "replies_count"),
            "shares": sum_counts(counts, "reblogs_count", "quotes_count"),
        }
    )
