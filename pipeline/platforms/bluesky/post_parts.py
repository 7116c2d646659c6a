"""What a post on Bluesky is made of: whom it mentions, its pictures and its card; and what is read of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from pipeline.platforms import http_calls
from pipeline.platforms.base import METRICS, Account, Sample, Sent
from pipeline.platforms.bluesky.calls import (
    WHAT,
    BlueskySession,
    call,
    claims_of,
    error_of,
    fail,
    no_answer,
    open_session,
    server_of,
    stored_session,
    text_field,
)
from pipeline.platforms.bluesky.records import mentioned_handles, record_key, uri_of
from pipeline.platforms.http_calls import json_object
from pipeline.platforms.rules import images_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from config.core.http_client import Client
    from pipeline.platforms.payload_types import Adapted
    from pipeline.platforms.upload_bodies import UploadFile


def handles_in(post: Adapted) -> list[str]:
    return list(dict.fromkeys(handle for part in post.parts for handle in mentioned_handles(part)))


def did_of(account: Account, handle: str, *, http: Client, now: datetime) -> str:
    """Whom a handle names; empty where it names nobody."""
    server = str(account.config.get("pds") or server_of(account))
    address = f"{server}/xrpc/com.atproto.identity.resolveHandle?handle={quote(handle)}"
    response = http_calls.ask(http, "GET", address, what=WHAT)
    if response.status == 400 and error_of(response) in {"InvalidRequest", "HandleNotFound"}:
        return ""
    did = text_field(json_object(response.body), "did")
    if response.status == 200 and did.startswith("did:"):
        return did
    if response.status >= 400:
        fail(response, now=now)
    raise no_answer(response)


def upload_image(account: Account, file: UploadFile, *, http: Client, now: datetime) -> dict[str, Any]:
    response, _ = call(
        account,
        stored_session(account, now=now),
        "POST",
        "com.atproto.repo.uploadBlob",
        http=http,
        now=now,
        body=file.content,
        headers={"Content-Type": file.mime_type},
        timeout=http_calls.UPLOAD_SECONDS,
    )
    if response.status != 200:
        fail(response, now=now)
    blob = (json_object(response.body) or {}).get("blob")
    if not isinstance(blob, dict) or not isinstance(blob.get("ref"), dict):
        raise no_answer(response)
    return blob


def card_of(post: Adapted) -> dict[str, Any] | None:
    """A preview of the source, for a post that names it; made from what is known, without asking the source."""
    link = post.payload.link
    if not link or images_of(post.payload.assets) or not any(link in part for part in post.parts):
        return None
    title = post.payload.title.strip() or urlsplit(link).hostname or link
    return {
        "$type": "app.bsky.embed.external",
        "external": {"uri": link, "title": title, "description": ""},
    }


def sent_from(post: Adapted, state: Mapping[str, Any], *, did: str, key: str) -> Sent:
    details: dict[str, Any] = {"uris": [uri_of(did, key, part) for part in range(len(post.parts))]}
    plain = [handle for handle, found in state.get("mentions", {}).items() if not found]
    if plain:
        details["mentions_not_linked"] = plain
    return Sent(
        external_id=uri_of(did, key, 0),
        url=f"https://bsky.app/profile/{did}/post/{record_key(key, 0)}",
        details=details,
    )


def place_of(account: Account, *, http: Client, now: datetime) -> tuple[str, str]:
    """The account's DID and where its records are kept, without signing in where both are known."""
    did = account.profile.get("external_id") or claims_of(
        str(account.credentials.get("access_token", ""))
    ).get("sub")
    pds = account.config.get("pds")
    if isinstance(did, str) and did and pds:
        return did, str(pds)
    session: BlueskySession = open_session(account, http=http, now=now)
    return session.did, session.pds


def samples_of(counts: Mapping[str, Any]) -> tuple[Sample, ...]:
    def count(*names: str) -> int | None:
        # An older server doesn't count quotes; without the first there is nothing to tell.
        values = [counts.get(name) for name in names]
        numbers = [one for one in values if isinstance(one, int) and not isinstance(one, bool) and one >= 0]
        return sum(numbers) if values and values[0] in numbers else None

    given = {
        "likes": count("likeCount"),
        "comments": count("replyCount"),
        "shares": count("repostCount", "quoteCount"),
    }
    return tuple(
        Sample(metric, None, "unsupported")
        if metric not in given
        else Sample(metric, given[metric], "ok" if given[metric] is not None else "unavailable")
        for metric in METRICS
    )
