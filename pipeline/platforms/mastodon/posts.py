"""What a post on Mastodon is made of: its files, its fields; and what becomes of a thread that can't go on."""

from __future__ import annotations

import hashlib
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from pipeline.platforms import http_calls
from pipeline.platforms.base import METRICS, Account, Sample
from pipeline.platforms.http_calls import json_object
from pipeline.platforms.mastodon.calls import call, fail, read_object, text_of
from pipeline.platforms.rules import images_of
from pipeline.platforms.upload_bodies import build_multipart, file_of
from pipeline.plugins import OutcomeUnknown, PluginError, Refused, TryLater
from pipeline.text.prose.verbatim_edits import counted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from config.core.http_client import Client, Response
    from pipeline.platforms.payload_types import Adapted, PayloadAsset

REMEMBERS_KEYS: Final = timedelta(hours=1)


def warning_of(account: Account) -> str:
    return str(account.config.get("content_warning") or "")


def files_of(post: Adapted) -> list[PayloadAsset]:
    """A post has pictures or one video: a server takes no mixture."""
    assets = post.payload.assets
    if post.payload.bucket == "video":
        return [one for one in assets if one.mime_type.startswith("video/")]
    return images_of(assets)


def file_ids(state: Mapping[str, Any]) -> frozenset[str]:
    return frozenset(one["id"] for one in state.get("uploads", []))


def upload_file(
    account: Account, asset: PayloadAsset, index: int, *, http: Client, now: datetime
) -> dict[str, Any]:
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
        fail(response, now=now)
    is_ready = response.status == 200 and bool(text_of(answer, "url"))
    return {"id": text_of(answer, "id"), "is_ready": is_ready, "at": now.isoformat()}


def form_of(
    account: Account, post: Adapted, state: Mapping[str, Any], part: int, answers: str
) -> dict[str, Any]:
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
        form["media_ids"] = [one["id"] for one in state["uploads"]]
    if answers:
        form["in_reply_to_id"] = answers
    return form


def key_of(key: str, part: int, words: str) -> str:
    """The same for each try of a part; another once its words were changed, which makes it another post."""
    return f"{key}-{part}-{hashlib.sha256(words.encode('utf-8', 'replace')).hexdigest()[:16]}"


def read_accepted(response: Response, now: datetime, *, is_first: bool) -> dict[str, str]:
    if is_first and response.status == 404 and json_object(response.body) is not None:
        # It answers no other post, so that only the one remembered under its key can be missing.
        message = "The Mastodon server still remembers this post, which was taken back, and will for an hour."
        raise TryLater(message, code="still_remembered", after=REMEMBERS_KEYS, platform_status=404)
    if response.status != 200:
        fail(response, now=now, is_commit=True)
    answer = json_object(response.body)
    if not text_of(answer, "id"):
        message = "The Mastodon server answered with something that can't be read."
        raise OutcomeUnknown(message, platform_status=response.status)
    return {"id": text_of(answer, "id"), "url": text_of(answer, "url") or text_of(answer, "uri")}


def unfinished_thread(there: int, parts: int, why: str) -> OutcomeUnknown:
    message = f"{there} of {parts} posts of the thread are public; it goes on after them. {why}"
    return OutcomeUnknown(message, code="thread_unfinished")


def remove_thread(
    account: Account, sent: Sequence[Mapping[str, str]], refused: Refused, *, http: Client, now: datetime
) -> None:
    """A thread is there as a whole or not at all. Raises `OutcomeUnknown` where a part of it stays."""
    for number, one in enumerate(reversed(sent)):
        try:
            delete_status(account, one["id"], http=http, now=now)
        except PluginError as error:
            message = (
                f"{refused.message} {counted(len(sent) - number, 'post of the thread is', 'posts of the thread are')} "
                f"public and couldn't be taken back. "
                f"{error.message}"
            )
            raise OutcomeUnknown(message, code="thread_unfinished") from error


def delete_status(account: Account, status_id: str, *, http: Client, now: datetime) -> None:
    """Take one post back; one that is gone already is as good. Raises what any other answer means."""
    response = call(account, "DELETE", f"/api/v1/statuses/{quote(status_id, safe='')}", http=http)
    if response.status != 200 and not is_gone(account, response, http=http):
        fail(response, now=now)


def is_gone(account: Account, response: Response, *, http: Client) -> bool:
    """Whether a 404 says that the post isn't there.

    Mastodon says so in JSON. A 404 without it may be Takahē's page for a removed post, or that of a proxy which lets
    nothing through: a call that needs the account then tells which.
    """
    if response.status != 404:
        return False
    if json_object(response.body) is not None:
        return True
    own = call(account, "GET", "/api/v1/accounts/verify_credentials", http=http)
    return own.status == 200 and bool(text_of(json_object(own.body), "id"))


def counts_of(account: Account, status_id: str, *, http: Client, now: datetime) -> Mapping[str, Any]:
    if not status_id:
        return {}
    response = call(account, "GET", f"/api/v1/statuses/{quote(status_id, safe='')}", http=http)
    if is_gone(account, response, http=http):
        return {}
    return read_object(response, now=now)


def samples_of(counts: Mapping[str, Any]) -> tuple[Sample, ...]:
    def count(*names: str) -> int | None:
        # An older server doesn't count quotes; without the first there is nothing to tell.
        values = [counts.get(name) for name in names]
        numbers = [one for one in values if isinstance(one, int) and not isinstance(one, bool) and one >= 0]
        return sum(numbers) if values[0] in numbers else None

    given = {
        "likes": count("favourites_count"),
        "comments": count("replies_count"),
        "shares": count("reblogs_count", "quotes_count"),
    }
    return tuple(
        Sample(metric, None, "unsupported")
        if metric not in given
        else Sample(metric, given[metric], "ok" if given[metric] is not None else "unavailable")
        for metric in METRICS
    )
