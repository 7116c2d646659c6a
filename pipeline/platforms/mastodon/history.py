"""Asks a server for an account's newest posts, to find what an earlier call left there.

A server shows words as HTML, with links shortened for the eye and mentions without their server; some read the words
as Markdown. So letters and digits alone are compared, and what is merely alike proves nothing either way.
"""

from __future__ import annotations

import html
import re
import unicodedata
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from config.core import ids
from pipeline.platforms.base import Account, CannotTell, Found, Sent
from pipeline.platforms.http_calls import json_object
from pipeline.platforms.mastodon.calls import call, read_list, text_of
from pipeline.platforms.mastodon.posts import file_ids, files_of
from pipeline.platforms.mastodon.rules import without_domains
from pipeline.plugins import TryLater

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from config.core.http_client import Client
    from pipeline.platforms.payload_types import Adapted

PAGE: Final = 40
"""The most posts that a server lists at once."""
_ALIKE: Final = 0.9
_TAG: Final = re.compile(r"<[^<>]*>")
CLOCKS_DIFFER: Final = timedelta(minutes=5)


@dataclass(frozen=True)
class Status:
    id: str
    url: str
    words: str
    answers: str
    """The id of the post that it answers; empty for none."""
    files: frozenset[str]
    made_at: datetime | None


def read_statuses(answer: Sequence[dict[str, Any]]) -> list[Status]:
    """Oldest first; boosts are left out."""
    found = [
        Status(
            id=one["id"],
            url=text_of(one, "url") or text_of(one, "uri"),
            words=_letters(html.unescape(_TAG.sub(" ", text_of(one, "content")))),
            answers=text_of(one, "in_reply_to_id"),
            files=frozenset(text_of(file, "id") for file in one.get("media_attachments") or []),
            made_at=_moment(text_of(one, "created_at")),
        )
        for one in answer
        if text_of(one, "id") and not one.get("reblog")
    ]
    return sorted(found, key=lambda one: sort_key(one.id))


def sort_key(status_id: str) -> tuple[int, str]:
    """Later posts have greater ids, on every kind of server: numbers, or letters of a fixed length."""
    return len(status_id), status_id


def read_since(statuses: Sequence[Status], moment: datetime) -> list[Status]:
    return [one for one in statuses if one.made_at is not None and one.made_at >= moment]


def chain_of(
    statuses: Sequence[Status], parts: Sequence[str], files: frozenset[str], *, is_alone: bool = False
) -> list[Status]:
    """The posts that are there of a thread of these parts: as many as follow on one another, from the first.

    With `is_alone` a post whose own answers are other words doesn't count: it began another thread by the same words.
    """
    best: list[Status] = []
    for first in statuses:
        if first.answers or not _is(first, parts[0], files):
            continue
        chain = [first]
        is_ours = True
        while is_ours and len(chain) < len(parts):
            answers = [one for one in statuses if one.answers == chain[-1].id]
            following = [one for one in answers if _is(one, parts[len(chain)], frozenset())]
            is_ours = bool(following) or not answers or not is_alone
            if not following:
                break
            chain.append(following[0])
        if is_ours and len(chain) > len(best):
            best = chain
    return best


def similar_statuses(statuses: Sequence[Status], part: str, files: frozenset[str]) -> list[Status]:
    """Those that may be this post, changed by the server on its way."""
    if files:
        return []
    words = _letters(part)
    found = []
    for one in statuses:
        matcher = SequenceMatcher(None, words, one.words, autojunk=False)
        if not one.answers and matcher.quick_ratio() >= _ALIKE and matcher.ratio() >= _ALIKE:
            found.append(one)
    return found


def _is(status: Status, part: str, files: frozenset[str]) -> bool:
    if files:
        return bool(status.files & files)
    return status.words == _letters(part)


def _letters(words: str) -> str:
    folded = unicodedata.normalize("NFKC", without_domains(words)).casefold()
    # Emoji alone are words, too.
    return "".join(sign for sign in folded if sign.isalnum()) or "".join(folded.split())


def _moment(value: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def earliest_post_at(key: str, now: datetime) -> datetime:
    """No earlier than this can a publication have been posted."""
    made = ids.decode("pub", key)
    asked = datetime.fromtimestamp((made.int >> 80) / 1000, now.tzinfo) if made else now
    return asked - CLOCKS_DIFFER


def read_before_posting(
    account: Account, post: Adapted, *, http: Client, key: str, now: datetime
) -> dict[str, Any]:
    """What is there before anything is posted; and what an earlier round of tries left of a thread."""
    newest = newest_of(account, http=http, now=now)
    sent: list[Status] = []
    if len(post.parts) > 1:
        recent = read_since(newest, earliest_post_at(key, now))
        sent = chain_of(recent, post.parts, frozenset(), is_alone=True)
        if sent and len(sent[0].files) != len(files_of(post)):
            sent = []
    before = [one for one in newest if not sent or sort_key(one.id) < sort_key(sent[0].id)]
    return {"after": before[-1].id if before else "", "uploads": [], "sent": sent_of(sent)}


def newest_of(account: Account, *, http: Client, now: datetime) -> list[Status]:
    response = call(account, "GET", f"{_statuses_of(account)}?limit={PAGE}&exclude_reblogs=true", http=http)
    return read_statuses(read_list(response, now=now))


def posts_after(account: Account, after: str, *, http: Client, now: datetime) -> list[Status]:
    """The account's posts that followed this one; the ones next to it where there are many."""
    if not after:
        return newest_of(account, http=http, now=now)
    query = f"?limit={PAGE}&exclude_reblogs=true&min_id={quote(after, safe='')}"
    response = call(account, "GET", f"{_statuses_of(account)}{query}", http=http)
    # Not every server knows that parameter.
    return [one for one in read_statuses(read_list(response, now=now)) if sort_key(one.id) > sort_key(after)]


def compare_similar(
    account: Account, post: Adapted, statuses: Sequence[Status], files: frozenset[str], *, http: Client
) -> Found | CannotTell | None:
    """What posts with nearly the same words say of this one; None where they are others."""
    words = post.parts[0].strip()
    for one in similar_statuses(statuses, words, files):
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
    return text_of(answer, "text").strip() or None


def _statuses_of(account: Account) -> str:
    return f"/api/v1/accounts/{quote(str(account.profile.get('external_id', '')), safe='')}/statuses"


def find_posted_chain(
    account: Account, post: Adapted, state: Mapping[str, Any], *, http: Client, now: datetime
) -> list[Status]:
    statuses = posts_after(account, state["after"], http=http, now=now)
    return chain_of(statuses, post.parts, file_ids(state))


def sent_of(chain: Sequence[Status]) -> list[dict[str, str]]:
    return [{"id": one.id, "url": one.url} for one in chain]


def as_sent(sent: Sequence[Mapping[str, str]]) -> Sent:
    return Sent(sent[0]["id"], sent[0]["url"], {"ids": [one["id"] for one in sent]})
