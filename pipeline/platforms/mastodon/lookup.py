"""Recognizes our own posts among an account's newest ones: by their files, else by their words.

A server shows words as HTML, with links shortened for the eye and mentions without their server; some read the words
as Markdown. So letters and digits alone are compared, and what is merely alike proves nothing either way.
"""

from __future__ import annotations

import html
import re
import unicodedata
from dataclasses import dataclass
from datetime import UTC, datetime
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any, Final

from pipeline.platforms.mastodon.calls import text
from pipeline.platforms.mastodon.rules import without_domains

if TYPE_CHECKING:
    from collections.abc import Sequence

PAGE: Final = 40
"""The most posts that a server lists at once."""
_ALIKE: Final = 0.9
_TAG: Final = re.compile(r"<[^<>]*>")


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
            url=text(one, "url") or text(one, "uri"),
            words=_letters(html.unescape(_TAG.sub(" ", text(one, "content")))),
            answers=text(one, "in_reply_to_id"),
            files=frozenset(text(file, "id") for file in one.get("media_attachments") or []),
            made_at=_moment(text(one, "created_at")),
        )
        for one in answer
        if text(one, "id") and not one.get("reblog")
    ]
    return sorted(found, key=lambda one: order(one.id))


def order(status_id: str) -> tuple[int, str]:
    """Later posts have greater ids, on every kind of server: numbers, or letters of a fixed length."""
    return len(status_id), status_id


def since(statuses: Sequence[Status], moment: datetime) -> list[Status]:
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


def alike(statuses: Sequence[Status], part: str, files: frozenset[str]) -> list[Status]:
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
