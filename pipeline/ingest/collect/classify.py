"""What each entry of a fetch is called, what is done with it, and why: the one judge of polls and previews."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from config.core import limits as core_limits
from pipeline import limits
from pipeline.ingest import raw_content
from pipeline.ingest.collect import entry_log
from pipeline.ingest.raw_item_identity import are_close, is_same_title, key_of, second_key, twin_of
from pipeline.models import RawItem, RawPrint
from pipeline.sources.base import Note
from pipeline.text.plain_text import content_hash

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime
    from uuid import UUID

    from pipeline.models import Source
    from pipeline.sources.base import Entry

SKIPPED: Final = frozenset({"too_old", "over_burst", "before_first_poll"})
"""Decisions by which a raw item is kept without being worked on; a person can have each made."""


@dataclass(frozen=True)
class Identified:
    """An entry with its names. `second` is None where it identifies nothing: a front page, a shared address."""

    entry: Entry
    content: raw_content.RawContent
    key: str
    second: int | None
    body_hash: str
    by: str
    """By what the key is: `external_id`, `url` or `content`."""


@dataclass(frozen=True)
class KnownRawItem:
    """A raw item that the workspace has already."""

    id: UUID
    key: str
    source_id: UUID
    url: str
    title: str
    published_at: datetime | None
    content_hash: str
    is_deleted: bool
    is_withdrawn: bool


@dataclass(frozen=True)
class KnownEntries:
    """What the workspace has of a fetch: by `dedup_key`, and by the second key of `raw_item_identity`.

    `by_log` is what the source's log says of entries that were met under another key: what was a duplicate once stays
    one, though by then several entries of the document have its address.
    """

    by_key: Mapping[str, KnownRawItem]
    by_second: Mapping[int, KnownRawItem]
    by_log: Mapping[str, KnownRawItem] = field(default_factory=dict)


def content_of(entry: Entry) -> raw_content.RawContent:
    """The entry as content to be taken in, its fields as long as the columns are."""
    return raw_content.RawContent(
        external_id=(entry.external_id or "")[: limits.EXTERNAL_ID_CHARACTERS],
        url=entry.url[: core_limits.URL_CHARACTERS],
        title=entry.title,
        body=entry.body,
        body_format=entry.body_format,
        language=entry.language[:35],
        author=entry.author,
        published_at=entry.published_at,
        media=[{"url": file.url, "type": file.type} for file in entry.media[: limits.MEDIA_PER_ITEM]],
        metadata=entry.metadata,
        is_fetched=True,
    )


def identify(source_id: UUID, entries: Sequence[Entry]) -> list[Identified]:
    """Names that hold within one document: an id that several entries share is told apart by address or content."""
    contents = [content_of(entry) for entry in entries]
    hashes = [content_hash(content.title, content.body) for content in contents]
    shared = _shared_ids(contents, hashes)
    found = []
    for entry, content, body_hash in zip(entries, contents, hashes, strict=True):
        external_id = content.external_id
        if external_id in shared:
            external_id = twin_of(external_id, content.url, body_hash)
        key = key_of(source_id, external_id=external_id, url=content.url, body_hash=body_hash)
        second = second_key(source_id, url=content.url, body_hash=body_hash)
        by = "external_id" if external_id else "url" if content.url else "content"
        found.append(
            Identified(entry, replace(content, key=key, body_hash=body_hash), key, second, body_hash, by)
        )
    # An address that leads to several entries is no entry's own.
    keys: defaultdict[int, set[str]] = defaultdict(set)
    for one in found:
        if one.second is not None:
            keys[one.second].add(one.key)
    return [one if len(keys[one.second or 0]) < 2 else replace(one, second=None) for one in found]


def _shared_ids(contents: Iterable[raw_content.RawContent], hashes: Iterable[str]) -> set[str]:
    """Ids that stand in entries of different addresses, or of different content where they have none."""
    places = {
        (content.external_id, content.url or body_hash)
        for content, body_hash in zip(contents, hashes, strict=True)
        if content.external_id
    }
    counted = Counter(external_id for external_id, _ in places)
    return {external_id for external_id, count in counted.items() if count > 1}


def find_known(source: Source, found: Sequence[Identified]) -> KnownEntries:
    """What of it the workspace has, whichever source brought it; four statements, one where all is known by key."""
    mine = RawItem.everywhere.filter(workspace_id=source.workspace_id, test=source.test)
    by_key = {there.key: there for there in _read(mine.filter(dedup_key__in=[one.key for one in found]))}
    unknown = [one for one in found if one.key not in by_key]
    if not unknown:
        return KnownEntries(by_key, {})
    logged = entry_log.read_raw_items(source, [one.key for one in unknown])
    second = {one.second for one in unknown if one.second is not None}
    prints = (
        dict(
            RawPrint.everywhere.filter(
                workspace_id=source.workspace_id, test=source.test, second_key__in=second
            ).values_list("pk", "second_key")
        )
        if second
        else {}
    )
    wanted = {*prints, *logged.values()}
    rows = {there.id: there for there in _read(mine.filter(pk__in=wanted))} if wanted else {}
    return KnownEntries(
        by_key,
        {second_key: rows[key] for key, second_key in prints.items() if key in rows},
        {name: rows[key] for name, key in logged.items() if key in rows},
    )


def _read(rows: Iterable[RawItem]) -> list[KnownRawItem]:
    read = rows.values_list(  # type: ignore[attr-defined]  # a queryset
        "id",
        "dedup_key",
        "source_id",
        "url",
        "title",
        "published_at",
        "content_hash",
        "deleted_at",
        "withdrawn_at",
    )
    return [
        KnownRawItem(
            pk,
            key,
            source_id,
            url,
            title,
            published_at,
            body_hash,
            deleted_at is not None,
            withdrawn_at is not None,
        )
        for pk, key, source_id, url, title, published_at, body_hash, deleted_at, withdrawn_at in read
    ]


@dataclass(frozen=True)
class ClassifiedEntry:
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
    there: KnownRawItem | None = None
    content: raw_content.RawContent | None = None
    is_repeated: bool = False
    """The same entry stands further up in the document."""
    other_key: str = ""
    """Its own key, where it is another entry's place in one page: the log has it, so that it stays a duplicate."""

    @property
    def skip(self) -> raw_content.Skip | None:
        return raw_content.Skip(self.code, self.message) if self.decision in SKIPPED else None


def classify_entries(source: Source, entries: Sequence[Entry], *, now: datetime) -> list[ClassifiedEntry]:
    """For each entry, newest first, what becomes of it. Reads, writes nothing; `source` may be not stored yet."""
    found = identify(source.pk, entries)
    return decide(source, found, find_known(source, found), now=now)


def notes_on(judged: Sequence[ClassifiedEntry]) -> tuple[Note, ...]:
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


def decide(
    source: Source, found: Sequence[Identified], known: KnownEntries, *, now: datetime
) -> list[ClassifiedEntry]:
    """As `classify_entries`, of what was read: a pure function."""
    judged: list[ClassifiedEntry] = []
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
        if there is not None and decided.key != one.key and _is_place_in(one.content.url, there.url):
            decided = replace(decided, other_key=one.key)
        if decided.key in seen:
            decided = replace(_repeated(decided), is_repeated=True, content=None)
        elif decided.decision in {"new", "over_burst", "before_first_poll"}:
            fresh += 1
        seen.add(decided.key)
        judged.append(decided)
    return judged


def _judged(one: Identified, decision: str, message: str = "", *, code: str = "") -> ClassifiedEntry:
    """One that is stored under its own key."""
    content = replace(one.content, has_second_key=one.second is not None)
    return ClassifiedEntry(one.entry, one.key, decision, one.by, code or decision, message, content=content)


def _of_itself(one: Identified) -> ClassifiedEntry | None:
    """What the source says of the entry, or that it says nothing at all."""
    entry = one.entry
    if not (entry.title or entry.body or entry.url or entry.media or entry.withdrawn or entry.left_out):
        message = _("It has neither a title nor a text, an address or a file.")
        return ClassifiedEntry(entry, one.key, "malformed", "source", "empty", message)
    return None


def _look_up(
    source: Source, one: Identified, known: KnownEntries
) -> tuple[Identified, KnownRawItem | None, str]:
    """The raw item that is there, and by what it was found; by its key first."""
    there = known.by_key.get(one.key)
    if there is None and one.key in known.by_log:
        return one, known.by_log[one.key], "url" if one.content.url else "content"
    if there is not None or one.second is None or one.second not in known.by_second:
        return one, there, one.by
    there = known.by_second[one.second]
    if _is_the_same(source, one, there):
        return one, there, "url" if one.content.url else "content"
    # The address belongs to something else: it is nothing to recognise this one by.
    return replace(one, second=None), None, one.by


def _met(source: Source, one: Identified, there: KnownRawItem | None, by: str) -> ClassifiedEntry | None:
    """Of an entry that is there already, or that its source leaves out or took back; None for a new one."""
    entry = one.entry
    is_own = there is not None and there.source_id == source.pk
    key = there.key if there is not None and is_own else one.key
    if entry.withdrawn:
        message = _("The source took it back.")
        return ClassifiedEntry(entry, key, "withdrawn", "source", "withdrawn", message, there)
    if entry.left_out is not None:
        return ClassifiedEntry(
            entry, key, "filtered", "source", entry.left_out.code, entry.left_out.message, there
        )
    if there is None:
        return None
    if there.is_deleted:
        message = _("It was taken in before and deleted here.")
        return ClassifiedEntry(entry, key, "unchanged", by, "deleted", message, there)
    if not is_own:
        # Two sources tell the same page in different words; taking both in turn would revise it at each poll.
        message = _("It is there already: another source of the workspace brought it.")
        return ClassifiedEntry(entry, key, "unchanged", by, "other_source", message, there)
    if there.content_hash == one.body_hash:
        message = _("It was taken in before, and is as it was.")
        return ClassifiedEntry(entry, key, "unchanged", by, "same", message, there)
    message = _("It was taken in before and has changed: its raw item gets a new version.")
    content = replace(one.content, key=there.key)
    return ClassifiedEntry(entry, key, "revised", by, "revised", message, there, content)


def _is_the_same(source: Source, one: Identified, there: KnownRawItem) -> bool:
    """Of something that has the same address, or the same content, under another id."""
    if there.is_deleted or there.source_id != source.pk:
        return True
    if not is_same_title(one.content.title[: limits.TITLE_CHARACTERS], there.title):
        return False
    return are_close(one.content.published_at, there.published_at)


def _is_place_in(url: str, other: str) -> bool:
    """Whether two addresses differ only in the place within the page."""
    return url != other and url.partition("#")[0] == other.partition("#")[0]


def _of_age(source: Source, one: Identified, now: datetime) -> ClassifiedEntry | None:
    """Of an entry that is older than the source takes; None for every other one."""
    published_at = one.entry.published_at
    if not source.max_age_days or published_at is None:
        return None
    if published_at >= now - timedelta(days=source.max_age_days):
        return None
    days = source.max_age_days
    message = ngettext("It is older than a day.", "It is older than %(days)s days.", days) % {"days": days}
    return _judged(one, "too_old", message)


def _allowance(source: Source) -> int | None:
    """How many new entries a poll takes; None for all of them."""
    if source.last_polled_at is not None:
        return source.max_burst or limits.MAX_BURST_DEFAULT
    first_poll: Any = source.first_poll
    if first_poll is None:
        return limits.FIRST_POLL_NEWEST
    if first_poll == "all":
        return None
    return 0 if first_poll == "none" else int(first_poll["newest"])


def _over(source: Source, one: Identified, allowed: int) -> ClassifiedEntry:
    if source.last_polled_at is None:
        message = _("It was there before the first poll, which took the newest %(count)s.")
        return _judged(one, "before_first_poll", message % {"count": allowed})
    message = ngettext(
        "One poll brought more than one new entry; retry it to have it made.",
        "One poll brought more than %(count)s new entries; retry it to have it made.",
        allowed,
    )
    return _judged(one, "over_burst", message % {"count": allowed})


def _repeated(judged: ClassifiedEntry) -> ClassifiedEntry:
    message = _("The same entry stands further up in the document.")
    return replace(judged, decision="unchanged", code="repeated", message=message)
