"""What is done with each entry of a fetch, and why: the one judge of polls and previews."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from config.core import limits
from pipeline.ingest import push
from pipeline.ingest.collect.identify import find_known, identify
from pipeline.ingest.dedup_keys import are_close, is_same_title
from pipeline.sources.base import Note

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from pipeline.ingest.collect.identify import Identified, Known, There
    from pipeline.models import Source
    from pipeline.sources.base import Entry

SKIPPED: Final = frozenset({"too_old", "over_burst", "before_first_poll"})
"""Decisions by which a raw item is kept without being worked on; a person can have each made."""


@dataclass(frozen=True)
class Judged:
    """An entry and what becomes of it. `decision` and `decided_by` are as `SourceEntry` names them.

    `key` is the one that the log and the raw item have, `there` the raw item that is met. `content` is None where
    nothing is stored.
    """

    entry: Entry
    key: str
    decision: str
    decided_by: str
    code: str = ""
    message: str = ""
    there: There | None = None
    content: push.RawContent | None = None
    is_repeated: bool = False
    """The same entry stands further up in the document."""

    @property
    def skip(self) -> push.Skip | None:
        return push.Skip(self.code, self.message) if self.decision in SKIPPED else None


def judge(source: Source, entries: Sequence[Entry], *, now: datetime) -> list[Judged]:
    """For each entry, newest first, what becomes of it. Reads, writes nothing; `source` may be not stored yet."""
    found = identify(source.pk, entries)
    return decide(source, found, find_known(source, found), now=now)


def notes_on(judged: Sequence[Judged]) -> tuple[Note, ...]:
    """What to know of all entries together: that a source brings nothing which isn't there by another one."""
    entries = [one for one in judged if not one.is_repeated and one.decision != "withdrawn"]
    if not entries or any(one.code != "other_source" for one in entries):
        return ()
    message = ngettext(
        "Its one entry is there already: another source of the workspace brought it, so nothing is made of it here.",
        "All %(count)d of its entries are there already: other sources of the workspace brought them, so nothing is made "
        "of them here.",
        len(entries),
    )
    return (Note("all_known", message % {"count": len(entries)}),)


def decide(source: Source, found: Sequence[Identified], known: Known, *, now: datetime) -> list[Judged]:
    """As `judge`, of what was read: a pure function."""
    judged: list[Judged] = []
    seen: set[str] = set()
    fresh = 0
    allowed = _allowance(source)
    for each in found:
        one, there, by = _look_up(source, each, known)
        decided = _of_itself(one) or _met(source, one, there, by) or _of_age(source, one, now)
        if decided is None:
            decided = (
                _judged(one, "new") if allowed is None or fresh < allowed else _over(source, one, allowed)
            )
        if decided.key in seen:
            decided = replace(_repeated(decided), is_repeated=True, content=None)
        elif decided.decision in {"new", "over_burst", "before_first_poll"}:
            fresh += 1
        seen.add(decided.key)
        judged.append(decided)
    return judged


def _judged(one: Identified, decision: str, message: str = "", *, code: str = "") -> Judged:
    """One that is stored under its own key."""
    content = replace(one.content, has_second_key=one.second is not None)
    return Judged(one.entry, one.key, decision, one.by, code or decision, message, content=content)


def _of_itself(one: Identified) -> Judged | None:
    """What the source says of the entry, or that it says nothing at all."""
    entry = one.entry
    if not (entry.title or entry.body or entry.url or entry.media or entry.withdrawn or entry.left_out):
        message = _("It has neither a title nor a text, an address or a file.")
        return Judged(entry, one.key, "malformed", "source", "empty", message)
    return None


def _look_up(source: Source, one: Identified, known: Known) -> tuple[Identified, There | None, str]:
    """The raw item that is there, and by what it was found; by its key first."""
    there = known.by_key.get(one.key)
    if there is not None or one.second is None or one.second not in known.by_second:
        return one, there, one.by
    there = known.by_second[one.second]
    if _is_the_same(source, one, there):
        return one, there, "url" if one.content.url else "content"
    # The address belongs to something else: it is nothing to recognise this one by.
    return replace(one, second=None), None, one.by


def _met(source: Source, one: Identified, there: There | None, by: str) -> Judged | None:
    entry = one.entry
    is_own = there is not None and there.source_id == source.pk
    key = there.key if there is not None and is_own else one.key
    if entry.withdrawn:
        message = _("The source took it back.")
        return Judged(entry, key, "withdrawn", "source", "withdrawn", message, there)
    if entry.left_out is not None:
        return Judged(entry, key, "filtered", "source", entry.left_out.code, entry.left_out.message, there)
    if there is None:
        return None
    if there.is_deleted:
        message = _("It was taken in before and deleted here.")
        return Judged(entry, key, "unchanged", by, "deleted", message, there)
    if not is_own:
        # Two sources tell the same page in different words; taking both in turn would revise it at each poll.
        message = _("It is there already: another source of the workspace brought it.")
        return Judged(entry, key, "unchanged", by, "other_source", message, there)
    if there.content_hash == one.body_hash:
        message = _("It was taken in before, and is as it was.")
        return Judged(entry, key, "unchanged", by, "same", message, there)
    message = _("It was taken in before and has changed: its raw item gets a new version.")
    content = replace(one.content, key=there.key)
    return Judged(entry, key, "revised", by, "revised", message, there, content)


def _is_the_same(source: Source, one: Identified, there: There) -> bool:
    """Of something that has the same address, or the same content, under another id."""
    if there.is_deleted or there.source_id != source.pk:
        return True
    if not is_same_title(one.content.title[: limits.TITLE_CHARACTERS], there.title):
        return False
    return are_close(one.content.published_at, there.published_at)


def _of_age(source: Source, one: Identified, now: datetime) -> Judged | None:
    published_at = one.entry.published_at
    if not source.max_age_days or published_at is None:
        return None
    if published_at >= now - timedelta(days=source.max_age_days):
        return None
    message = _("It is older than %(days)s days.") % {"days": source.max_age_days}
    return _judged(one, "too_old", message)


def _allowance(source: Source) -> int | None:
    if source.last_polled_at is not None:
        return source.max_burst or limits.MAX_BURST_DEFAULT
    first_poll: Any = source.first_poll
    if first_poll is None:
        return limits.FIRST_POLL_NEWEST
    if first_poll == "all":
        return None
    return 0 if first_poll == "none" else int(first_poll["newest"])


def _over(source: Source, one: Identified, allowed: int) -> Judged:
    if source.last_polled_at is None:
        message = _("It was there before the first poll, which took the newest %(count)s.")
        return _judged(one, "before_first_poll", message % {"count": allowed})
    message = _("One poll brought more than %(count)s new entries; retry it to have it made.")
    return _judged(one, "over_burst", message % {"count": allowed})


def _repeated(judged: Judged) -> Judged:
    message = _("The same entry stands further up in the document.")
    return replace(judged, decision="unchanged", code="repeated", message=message)
