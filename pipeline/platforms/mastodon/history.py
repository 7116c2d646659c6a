"""Asks a server for an account's newest posts, to find what an earlier call left there."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from config.core import ids
from pipeline.platforms.answers import json_object
from pipeline.platforms.base import Account, Adapted, CannotTell, Found, Sent
from pipeline.platforms.mastodon.calls import call, read_list, text
from pipeline.platforms.mastodon.lookup import PAGE, Status, alike, chain_of, order, read_statuses, since
from pipeline.platforms.mastodon.posts import file_ids, files_of
from pipeline.plugins import TryLater

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from config.core.http_client import Client

CLOCKS_DIFFER: Final = timedelta(minutes=5)


def asked_for(key: str, now: datetime) -> datetime:
    """No earlier than this can a publication have been posted."""
    made = ids.decode("pub", key)
    asked = datetime.fromtimestamp((made.int >> 80) / 1000, now.tzinfo) if made else now
    return asked - CLOCKS_DIFFER


def begin(account: Account, post: Adapted, *, http: Client, key: str, now: datetime) -> dict[str, Any]:
    """What is there before anything is posted; and what an earlier round of tries left of a thread."""
    newest = newest_of(account, http=http, now=now)
    sent: list[Status] = []
    if len(post.parts) > 1:
        recent = since(newest, asked_for(key, now))
        sent = chain_of(recent, post.parts, frozenset(), is_alone=True)
        if sent and len(sent[0].files) != len(files_of(post)):
            sent = []
    before = [one for one in newest if not sent or order(one.id) < order(sent[0].id)]
    return {"after": before[-1].id if before else "", "uploads": [], "sent": sent_of(sent)}


def newest_of(account: Account, *, http: Client, now: datetime) -> list[Status]:
    response = call(account, "GET", f"{_statuses_of(account)}?limit={PAGE}&exclude_reblogs=true", http=http)
    return read_statuses(read_list(response, now=now))


def listed(account: Account, after: str, *, http: Client, now: datetime) -> list[Status]:
    """The account's posts that followed this one; the ones next to it where there are many."""
    if not after:
        return newest_of(account, http=http, now=now)
    query = f"?limit={PAGE}&exclude_reblogs=true&min_id={quote(after, safe='')}"
    response = call(account, "GET", f"{_statuses_of(account)}{query}", http=http)
    # Not every server knows that parameter.
    return [one for one in read_statuses(read_list(response, now=now)) if order(one.id) > order(after)]


def look_closely(
    account: Account, post: Adapted, statuses: Sequence[Status], files: frozenset[str], *, http: Client
) -> Found | CannotTell | None:
    """What posts with nearly the same words say of this one; None where they are others."""
    words = post.parts[0].strip()
    for one in alike(statuses, words, files):
        written = _words_given(account, one, http=http)
        if written == words and len(post.parts) == 1:
            return Found(as_sent(sent_of([one])))
        if written is None or written == words:
            return CannotTell("A post with nearly the same words is there.")
    return None


def _words_given(account: Account, status: Status, *, http: Client) -> str | None:
    """The words of a post as they were given to the server; None where it doesn't say."""
    try:
        response = call(account, "GET", f"/api/v1/statuses/{quote(status.id, safe='')}/source", http=http)
    except TryLater:
        return None
    answer = json_object(response.body) if response.status == 200 else None
    return text(answer, "text").strip() or None


def _statuses_of(account: Account) -> str:
    return f"/api/v1/accounts/{quote(str(account.profile.get('external_id', '')), safe='')}/statuses"


def chain_there(
    account: Account, post: Adapted, state: Mapping[str, Any], *, http: Client, now: datetime
) -> list[Status]:
    statuses = listed(account, state["after"], http=http, now=now)
    return chain_of(statuses, post.parts, file_ids(state))


def sent_of(chain: Sequence[Status]) -> list[dict[str, str]]:
    return [{"id": one.id, "url": one.url} for one in chain]


def as_sent(sent: Sequence[Mapping[str, str]]) -> Sent:
    return Sent(sent[0]["id"], sent[0]["url"], {"ids": [one["id"] for one in sent]})
