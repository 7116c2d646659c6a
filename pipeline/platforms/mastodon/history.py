"""Reads an account's newest posts, to find the posts that an earlier call made.

A server shows a post's text as HTML, with shortened links and mentions without their server; some interpret the
text as Markdown. Therefore only letters and digits are compared, and a similar text proves neither that the post
is there nor that it isn't.
"""

from __future__ import annotations

import html
import re
import unicodedata
from dataclasses import dataclass
from datetime import datetime, timedelta
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from config.core import ids
from pipeline.platforms.base import Account, CannotTell, Found, Sent
from pipeline.platforms.http_calls import json_object, parse_iso_datetime
from pipeline.platforms.mastodon.calls import call, read_list, text_of
from pipeline.platforms.mastodon.posts import file_ids, files_of
from pipeline.platforms.mastodon.rules import without_domains
from pipeline.plugins import TryLater

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from config.core.http_client import Client
    from pipeline.platforms.payload_types import Adapted

PAGE_SIZE: Final = 40
"""The number of posts that a server lists at most in one answer."""
_MIN_SIMILARITY: Final = 0.9
_HTML_TAG: Final = re.compile(r"<[^<>]*>")
CLOCK_TOLERANCE: Final = timedelta(minutes=5)
"""The most by which the server's clock may be behind ours."""


@dataclass(frozen=True)
class Status:
    """A post as its server lists it."""

    id: str
    url: str
    words: str
    """The letters and digits of the text."""
    answers: str
    """The id of the post that it replies to, or an empty string."""
    files: frozenset[str]
    """The ids of its files."""
    made_at: datetime | None


def read_statuses(answer: Sequence[dict[str, Any]]) -> list[Status]:
    """Return the listed posts, oldest first, without boosts."""
    statuses = [
        Status(
            id=entry["id"],
            url=text_of(entry, "url") or text_of(entry, "uri"),
            words=_comparable_text(html.unescape(_HTML_TAG.sub(" ", text_of(entry, "content")))),
            answers=text_of(entry, "in_reply_to_id"),
            files=frozenset(text_of(file, "id") for file in entry.get("media_attachments") or []),
            made_at=parse_iso_datetime(text_of(entry, "created_at")),
        )
        for entry in answer
        if text_of(entry, "id") and not entry.get("reblog")
    ]
    return sorted(statuses, key=lambda status: sort_key(status.id))


def sort_key(status_id: str) -> tuple[int, str]:
    """Return a key that orders posts by time: later ids are greater numbers, or letters of a fixed length."""
    return len(status_id), status_id


def select_since(statuses: Sequence[Status], moment: datetime) -> list[Status]:
    """Return the posts made at that moment or later."""
    return [status for status in statuses if status.made_at is not None and status.made_at >= moment]


def find_chain(
    statuses: Sequence[Status],
    parts: Sequence[str],
    files: frozenset[str],
    *,
    skips_other_threads: bool = False,
) -> list[Status]:
    """Return the longest chain of a thread's posts, each a reply to the one before it, from the first part on.

    With `skips_other_threads`, a post whose replies from the account have other texts doesn't count: it began
    another thread with the same text.
    """
    best: list[Status] = []
    for first in statuses:
        if first.answers or not _is_part(first, parts[0], files):
            continue
        chain = [first]
        is_match = True
        while is_match and len(chain) < len(parts):
            replies = [status for status in statuses if status.answers == chain[-1].id]
            next_parts = [reply for reply in replies if _is_part(reply, parts[len(chain)], frozenset())]
            is_match = bool(next_parts) or not replies or not skips_other_threads
            if not next_parts:
                break
            chain.append(next_parts[0])
        if is_match and len(chain) > len(best):
            best = chain
    return best


def find_similar(statuses: Sequence[Status], part: str, files: frozenset[str]) -> list[Status]:
    """Return the posts that may be this one, changed by the server, or none if its files identify it."""
    if files:
        return []
    text = _comparable_text(part)
    similar = []
    for status in statuses:
        matcher = SequenceMatcher(None, text, status.words, autojunk=False)
        if (
            not status.answers
            and matcher.quick_ratio() >= _MIN_SIMILARITY
            and matcher.ratio() >= _MIN_SIMILARITY
        ):
            similar.append(status)
    return similar


def _is_part(status: Status, part: str, files: frozenset[str]) -> bool:
    """Return whether a post is this part, by its files or, if the part has none, by its text."""
    if files:
        return bool(status.files & files)
    return status.words == _comparable_text(part)


def _comparable_text(text: str) -> str:
    """Return the letters and digits of a text in lower case, or all its characters if it has neither."""
    folded = unicodedata.normalize("NFKC", without_domains(text)).casefold()
    # A post that is nothing but emoji is compared by these.
    return "".join(character for character in folded if character.isalnum()) or "".join(folded.split())


def earliest_post_at(key: str, now: datetime) -> datetime:
    """Return the earliest moment at which the publication can have been posted: when it was requested."""
    publication_id = ids.decode("pub", key)
    # The first 48 bits of a UUID of version 7 are its milliseconds since 1970.
    requested_at = (
        datetime.fromtimestamp((publication_id.int >> 80) / 1000, now.tzinfo) if publication_id else now
    )
    return requested_at - CLOCK_TOLERANCE


def read_before_posting(
    account: Account, post: Adapted, *, http: Client, key: str, now: datetime
) -> dict[str, Any]:
    """Return the state before posting: the newest post before it, and parts of its thread from earlier tries."""
    newest = read_newest_posts(account, http=http, now=now)
    sent: list[Status] = []
    if len(post.parts) > 1:
        recent = select_since(newest, earliest_post_at(key, now))
        sent = find_chain(recent, post.parts, frozenset(), skips_other_threads=True)
        if sent and len(sent[0].files) != len(files_of(post)):
            sent = []
    before = [status for status in newest if not sent or sort_key(status.id) < sort_key(sent[0].id)]
    return {"after": before[-1].id if before else "", "uploads": [], "sent": sent_of(sent)}


def read_newest_posts(account: Account, *, http: Client, now: datetime) -> list[Status]:
    """Return the account's newest posts, up to `PAGE_SIZE`, oldest first."""
    response = call(
        account, "GET", f"{_statuses_path(account)}?limit={PAGE_SIZE}&exclude_reblogs=true", http=http
    )
    return read_statuses(read_list(response, now=now))


def read_posts_after(account: Account, after: str, *, http: Client, now: datetime) -> list[Status]:
    """Return the first `PAGE_SIZE` posts of the account that followed this one, or its newest if `after` is empty."""
    if not after:
        return read_newest_posts(account, http=http, now=now)
    query = f"?limit={PAGE_SIZE}&exclude_reblogs=true&min_id={quote(after, safe='')}"
    response = call(account, "GET", f"{_statuses_path(account)}{query}", http=http)
    # Not every server obeys `min_id`.
    statuses = read_statuses(read_list(response, now=now))
    return [status for status in statuses if sort_key(status.id) > sort_key(after)]


def compare_similar(
    account: Account, post: Adapted, statuses: Sequence[Status], files: frozenset[str], *, http: Client
) -> Found | CannotTell | None:
    """Return what posts with nearly the same text prove about this one, by the texts that the server was given.

    Returns `None` if there are no such posts, or each was given another text.
    """
    text = post.parts[0].strip()
    for status in find_similar(statuses, text, files):
        source_text = _read_source_text(account, status, http=http)
        if source_text == text and len(post.parts) == 1:
            return Found(as_sent(sent_of([status])))
        if source_text is None or source_text == text:
            return CannotTell("A post with nearly the same words is there.")
    return None


def _read_source_text(account: Account, status: Status, *, http: Client) -> str | None:
    """Return a post's text as the server was given it, or `None` if the server doesn't say."""
    try:
        response = call(account, "GET", f"/api/v1/statuses/{quote(status.id, safe='')}/source", http=http)
    except TryLater:
        return None
    answer = json_object(response.body) if response.status == 200 else None
    return text_of(answer, "text").strip() or None


def _statuses_path(account: Account) -> str:
    """Return the API's path of the account's posts."""
    return f"/api/v1/accounts/{quote(str(account.profile.get('external_id', '')), safe='')}/statuses"


def find_posted_chain(
    account: Account, post: Adapted, state: Mapping[str, Any], *, http: Client, now: datetime
) -> list[Status]:
    """Return the posts of the thread that were made since `state["after"]`."""
    statuses = read_posts_after(account, state["after"], http=http, now=now)
    return find_chain(statuses, post.parts, file_ids(state))


def sent_of(chain: Sequence[Status]) -> list[dict[str, str]]:
    """Return the ids and addresses of posts, as `state["sent"]` has them."""
    return [{"id": status.id, "url": status.url} for status in chain]


def as_sent(sent: Sequence[Mapping[str, str]]) -> Sent:
    """Return the posts of a thread as `Sent`."""
    return Sent(sent[0]["id"], sent[0]["url"], {"ids": [post["id"] for post in sent]})
