"""Resolves mentions, uploads pictures, builds link cards, and reads results and counts of Bluesky posts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from pipeline.platforms import http_calls
from pipeline.platforms.base import Account, Sample, Sent
from pipeline.platforms.bluesky.calls import (
    SERVICE_NAME,
    BlueskySession,
    call,
    claims_of,
    error_of,
    open_session,
    raise_for_response,
    server_of,
    stored_session,
    text_field,
    unreadable_answer,
)
from pipeline.platforms.bluesky.records import mentioned_handles, record_key, uri_of
from pipeline.platforms.http_calls import json_object
from pipeline.platforms.rules import images_of
from pipeline.platforms.samples import build_samples, sum_counts

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from config.core.http_client import Client
    from pipeline.platforms.payload_types import Adapted
    from pipeline.platforms.upload_bodies import UploadFile


def handles_in(post: Adapted) -> list[str]:
    """Return the handles that the posts mention, each once."""
    return list(dict.fromkeys(handle for part in post.parts for handle in mentioned_handles(part)))


def resolve_handle(account: Account, handle: str, *, http: Client, now: datetime) -> str:
    """Return the DID of a handle, or an empty string if the handle doesn't exist.

    Raises as `raise_for_response` if the server refuses, and `TryLater` if its answer can't be read.
    """
    server = str(account.config.get("pds") or server_of(account))
    address = f"{server}/xrpc/com.atproto.identity.resolveHandle?handle={quote(handle)}"
    response = http_calls.ask(http, "GET", address, service=SERVICE_NAME)
    if response.status == 400 and error_of(response) in {"InvalidRequest", "HandleNotFound"}:
        return ""
    did = text_field(json_object(response.body), "did")
    if response.status == 200 and did.startswith("did:"):
        return did
    if response.status >= 400:
        raise_for_response(response, now=now)
    raise unreadable_answer(response)


def upload_image(account: Account, file: UploadFile, *, http: Client, now: datetime) -> dict[str, Any]:
    """Upload a picture and return its blob. Raises as `raise_for_response`, or `TryLater` without a blob."""
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
        raise_for_response(response, now=now)
    blob = (json_object(response.body) or {}).get("blob")
    if not isinstance(blob, dict) or not isinstance(blob.get("ref"), dict):
        raise unreadable_answer(response)
    return blob


def card_of(post: Adapted) -> dict[str, Any] | None:
    """Return a link card of the source, made without fetching it.

    Returns `None` if no part has the source's address, or the post has pictures.
    """
    link = post.payload.link
    if not link or images_of(post.payload.assets) or not any(link in part for part in post.parts):
        return None
    title = post.payload.title.strip() or urlsplit(link).hostname or link
    return {"$type": "app.bsky.embed.external", "external": {"uri": link, "title": title, "description": ""}}


def sent_from(post: Adapted, state: Mapping[str, Any], *, did: str, key: str) -> Sent:
    """Return the posts of the thread as `Sent`, with their URIs and the handles that don't exist."""
    details: dict[str, Any] = {"uris": [uri_of(did, key, part) for part in range(len(post.parts))]}
    unlinked = [handle for handle, did in state.get("mentions", {}).items() if not did]
    if unlinked:
        details["mentions_not_linked"] = unlinked
    return Sent(
        external_id=uri_of(did, key, 0),
        url=f"https://bsky.app/profile/{did}/post/{record_key(key, 0)}",
        details=details,
    )


def find_did_and_pds(account: Account, *, http: Client, now: datetime) -> tuple[str, str]:
    """Return the account's DID and the server of its records; sign in only if one of them isn't known."""
    did = account.profile.get("external_id") or claims_of(
        str(account.credentials.get("access_token", ""))
    ).get("sub")
    pds = account.config.get("pds")
    if isinstance(did, str) and did and pds:
        return did, str(pds)
    session: BlueskySession = open_session(account, http=http, now=now)
    return session.did, session.pds


def samples_of(counts: Mapping[str, Any]) -> tuple[Sample, ...]:
    """Return the samples of a post's counts; an older server doesn't count quotes."""
    return build_samples(
        {
            "likes": sum_counts(counts, "likeCount"),
            "comments": sum_counts(counts, "replyCount"),
            "shares": sum_counts(counts, "repostCount", "quoteCount"),
        }
    )
