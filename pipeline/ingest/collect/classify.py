"""Identifies each entry of a fetch and decides what becomes of it, the same way for polls and previews."""

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
"""Decisions that keep a raw item without generating anything of it; a person can have each one made."""


@dataclass(frozen=True)
class Identified:
    """An entry with its dedup keys. `second` is `None` where the address identifies nothing of its own."""

    entry: Entry
    content: raw_content.RawContent
    key: str
    second: int | None
    body_hash: str
    by: str
    """The field that the key was made of: `external_id`, `url` or `content`."""


@dataclass(frozen=True)
class KnownRawItem:
    """A raw item that the workspace already has."""

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
    """The raw items that match a fetch's entries, by `dedup_key` and second key (`raw_content`).

    `by_log` has those of entries that the source's log met under another key: what was a duplicate once stays
    one, though by then several entries of the document have its address.
    """

    by_key: Mapping[str, KnownRawItem]
    by_second: Mapping[int, KnownRawItem]
    by_log: Mapping[str, KnownRawItem] = field(default_factory=dict)


def content_of(entry: Entry) -> raw_content.RawContent:
    """Return the entry as content to store, its fields cut to the lengths of the columns."""
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
    """Give each entry keys that hold within its document; a shared id is extended by address or content."""
    contents = [content_of(entry) for entry in entries]
    hashes = [content_hash(content.title, content.body) for content in contents]
    shared = _shared_ids(contents, hashes)
    identified = []
    for entry, content, body_hash in zip(entries, contents, hashes, strict=True):
        external_id = content.external_id
        if external_id in shared:
            external_id = raw_content.id_of_twin(external_id, content.url, body_hash)
        key = raw_content.dedup_key(source_id, external_id=external_id, url=content.url, body_hash=body_hash)
        second = raw_content.second_key(source_id, url=content.url, body_hash=body_hash)
        by = "external_id" if external_id else "url" if content.url else "content"
        identified.append(
            Identified(entry, replace(content, key=key, body_hash=body_hash), key, second, body_hash, by)
        )
    # An address that leads to several entries is no entry's own.
    keys: defaultdict[int, set[str]] = defaultdict(set)
    for entry_keys in identified:
        if entry_keys.second is not None:
            keys[entry_keys.second].add(entry_keys.key)
    return [each if len(keys[each.second or 0]) < 2 else replace(each, second=None) for each in identified]


def _shared_ids(contents: Iterable[raw_content.RawContent], hashes: Iterable[str]) -> set[str]:
    """Return the ids of entries with different addresses, or with different content where they have none."""
    id_addresses = {
        (content.external_id, content.url or body_hash)
        for content, body_hash in zip(contents, hashes, strict=True)
        if content.external_id
    }
    address_counts = Counter(external_id for external_id, _ in id_addresses)
    return {external_id for external_id, count in address_counts.items() if count > 1}


def find_known(source: Source, identified: Sequence[Identified]) -> KnownEntries:
    """Return what the workspace has of these, in four statements, or one where all keys are known."""
    workspace_items = RawItem.everywhere.filter(workspace_id=source.workspace_id, test=source.test)
    by_key = {
        item.key: item
        for item in _load_raw_items(workspace_items.filter(dedup_key__in=[each.key for each in identified]))
    }
    unknown = [each for each in identified if each.key not in by_key]
    if not unknown:
        return KnownEntries(by_key, {})
    logged = entry_log.read_raw_items(source, [each.key for each in unknown])
    second_keys = {each.second for each in unknown if each.second is not None}
    second_key_by_item = (
        dict(
            RawPrint.everywhere.filter(
                workspace_id=source.workspace_id, test=source.test, second_key__in=second_keys
            ).values_list("pk", "second_key")
        )
        if second_keys
        else {}
    )
    item_ids = {*second_key_by_item, *logged.values()}
    items_by_id = (
        {item.id: item for item in _load_raw_items(workspace_items.filter(pk__in=item_ids))}
        if item_ids
        else {}
    )
    return KnownEntries(
        by_key,
        {
            second_key: items_by_id[key]
            for key, second_key in second_key_by_item.items()
            if key in items_by_id
        },
        {name: items_by_id[key] for name, key in logged.items() if key in items_by_id},
    )


def _load_raw_items(rows: Iterable[RawItem]) -> list[KnownRawItem]:
    """Return the rows of a queryset as `KnownRawItem`s."""
    values = rows.values_list(  # type: ignore[attr-defined]  # a queryset
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
        for pk, key, source_id, url, title, published_at, body_hash, deleted_at, withdrawn_at in values
    ]


@dataclass(frozen=True)
class ClassifiedEntry:
    """An entry and the decision on it. `decision` and `decided_by` are named as in `SourceEntry`.

    `key` is the one that the log and the raw item have, `there` the raw item that the entry matches.
    `content` is `None` where nothing is stored.
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
    """Whether the same entry stands further up in the document."""
    other_key: str = ""
    """The entry's own key where it is a place within another entry's page.

    The log has that key too, so that the entry stays a duplicate.
    """

    @property
    def skip(self) -> raw_content.Skip | None:
        """The reason why the raw item is kept without being worked on; `None` where it is worked on."""
        return raw_content.Skip(self.code, self.message) if self.decision in SKIPPED else None


def classify_entries(source: Source, entries: Sequence[Entry], *, now: datetime) -> list[ClassifiedEntry]:
    """Decide on each entry, newest first. Writes nothing; `source` may be a row that isn't saved yet."""
    identified = identify(source.pk, entries)
    return decide(source, identified, find_known(source, identified), now=now)


def notes_on(judged: Sequence[ClassifiedEntry]) -> tuple[Note, ...]:
    """Return a note where the source brings only entries that other sources brought before; else none."""
    entries = [entry for entry in judged if not entry.is_repeated and entry.decision != "withdrawn"]
    if not entries or any(entry.code != "other_source" for entry in entries):
        return ()
    message = ngettext(
        "Its one entry is there already: another source of the workspace brought it, so nothing is made of it here.",
        "All %(count)d of its entries are there already: other sources of the workspace brought them, so nothing is made "
        "of them here.",
        len(entries),
    )
    return (Note("all_known", message % {"count": len(entries)}),)


def decide(
    source: Source, identified: Sequence[Identified], known: KnownEntries, *, now: datetime
) -> list[ClassifiedEntry]:
    """Decide on each identified entry; a pure function. See `classify_entries`."""
    classified: list[ClassifiedEntry] = []
    seen_keys: set[str] = set()
    new_count = 0
    allowed = _max_new_entries(source)
    for found_entry in identified:
        entry, known_item, matched_by = _match_known(source, found_entry, known)
        result = (
            _malformed(entry)
            or _classify_known(source, entry, known_item, matched_by)
            or _too_old(source, entry, now)
        )
        if result is None:
            result = (
                _stored_as(entry, "new")
                if allowed is None or new_count < allowed
                else _past_limit(source, entry, allowed)
            )
        if (
            known_item is not None
            and result.key != entry.key
            and _is_same_page(entry.content.url, known_item.url)
        ):
            result = replace(result, other_key=entry.key)
        if result.key in seen_keys:
            result = replace(_as_repeated(result), is_repeated=True, content=None)
        elif result.decision in {"new", "over_burst", "before_first_poll"}:
            new_count += 1
        seen_keys.add(result.key)
        classified.append(result)
    return classified


def _stored_as(
    identified: Identified, decision: str, message: str = "", *, code: str = ""
) -> ClassifiedEntry:
    """Return the decision to store the entry under its own key."""
    content = replace(identified.content, has_second_key=identified.second is not None)
    return ClassifiedEntry(
        identified.entry, identified.key, decision, identified.by, code or decision, message, content=content
    )


def _malformed(identified: Identified) -> ClassifiedEntry | None:
    """Return the decision on an entry that says nothing at all; `None` for every other one."""
    entry = identified.entry
    if not (entry.title or entry.body or entry.url or entry.media or entry.withdrawn or entry.left_out):
        message = _("It has neither a title nor a text, an address or a file.")
        return ClassifiedEntry(entry, identified.key, "malformed", "source", "empty", message)
    return None


def _match_known(
    source: Source, identified: Identified, known: KnownEntries
) -> tuple[Identified, KnownRawItem | None, str]:
    """Return the entry, the raw item that it matches, and the field by which; its key goes first."""
    item = known.by_key.get(identified.key)
    if item is None and identified.key in known.by_log:
        return identified, known.by_log[identified.key], "url" if identified.content.url else "content"
    if item is not None or identified.second is None or identified.second not in known.by_second:
        return identified, item, identified.by
    item = known.by_second[identified.second]
    if _is_same_content(source, identified, item):
        return identified, item, "url" if identified.content.url else "content"
    # The address belongs to something else, so it can't identify this entry.
    return replace(identified, second=None), None, identified.by


def _classify_known(
    source: Source, identified: Identified, item: KnownRawItem | None, matched_by: str
) -> ClassifiedEntry | None:
    """Return the decision on an entry that is known, left out or withdrawn; `None` for a new one."""
    entry = identified.entry
    is_own = item is not None and item.source_id == source.pk
    key = item.key if item is not None and is_own else identified.key
    if entry.withdrawn:
        message = _("The source took it back.")
        return ClassifiedEntry(entry, key, "withdrawn", "source", "withdrawn", message, item)
    if entry.left_out is not None:
        return ClassifiedEntry(
            entry, key, "filtered", "source", entry.left_out.code, entry.left_out.message, item
        )
    if item is None:
        return None
    if item.is_deleted:
        message = _("It was taken in before and deleted here.")
        return ClassifiedEntry(entry, key, "unchanged", matched_by, "deleted", message, item)
    if not is_own:
        # Two sources word the same page differently; taking both in turn would revise it at each poll.
        message = _("It is there already: another source of the workspace brought it.")
        return ClassifiedEntry(entry, key, "unchanged", matched_by, "other_source", message, item)
    if item.content_hash == identified.body_hash:
        message = _("It was taken in before, and is as it was.")
        return ClassifiedEntry(entry, key, "unchanged", matched_by, "same", message, item)
    message = _("It was taken in before and has changed: its raw item gets a new version.")
    content = replace(identified.content, key=item.key)
    return ClassifiedEntry(entry, key, "revised", matched_by, "revised", message, item, content)


def _is_same_content(source: Source, identified: Identified, item: KnownRawItem) -> bool:
    """Return whether an item with the same address or content, but another id, is the same thing."""
    if item.is_deleted or item.source_id != source.pk:
        return True
    if not raw_content.have_same_title_words(identified.content.title[: limits.TITLE_CHARACTERS], item.title):
        return False
    return raw_content.are_published_close(identified.content.published_at, item.published_at)


def _is_same_page(url: str, other: str) -> bool:
    """Return whether two different addresses differ in nothing but the fragment."""
    return url != other and url.partition("#")[0] == other.partition("#")[0]


def _too_old(source: Source, identified: Identified, now: datetime) -> ClassifiedEntry | None:
    """Return the decision on an entry older than the source's `max_age_days`; `None` for every other one."""
    published_at = identified.entry.published_at
    if not source.max_age_days or published_at is None:
        return None
    if published_at >= now - timedelta(days=source.max_age_days):
        return None
    days = source.max_age_days
    message = ngettext("It is older than a day.", "It is older than %(days)s days.", days) % {"days": days}
    return _stored_as(identified, "too_old", message)


def _max_new_entries(source: Source) -> int | None:
    """Return how many new entries this poll takes; `None` for all of them."""
    if source.last_polled_at is not None:
        return source.max_burst or limits.MAX_BURST_DEFAULT
    first_poll: Any = source.first_poll
    if first_poll is None:
        return limits.FIRST_POLL_NEWEST
    if first_poll == "all":
        return None
    return 0 if first_poll == "none" else int(first_poll["newest"])


def _past_limit(source: Source, identified: Identified, allowed: int) -> ClassifiedEntry:
    """Return the decision on a new entry beyond the poll's limit of `allowed` entries."""
    if source.last_polled_at is None:
        message = _("It was there before the first poll, which took the newest %(count)s.")
        return _stored_as(identified, "before_first_poll", message % {"count": allowed})
    message = ngettext(
        "One poll brought more than one new entry; retry it to have it made.",
        "One poll brought more than %(count)s new entries; retry it to have it made.",
        allowed,
    )
    return _stored_as(identified, "over_burst", message % {"count": allowed})


def _as_repeated(classified: ClassifiedEntry) -> ClassifiedEntry:
    """Return the decision on an entry that stands further up in the document already."""
    message = _("The same entry stands further up in the document.")
    return replace(classified, decision="unchanged", code="repeated", message=message)
