"""Logs a source's entries in one row each, which is written only if the decision on the entry changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from config.core import limits as core_limits
from pipeline import limits
from pipeline.models import SourceEntry

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from datetime import datetime
    from uuid import UUID

    from pipeline.ingest.collect.classify import ClassifiedEntry
    from pipeline.models import Source

_ENDED_BY_UNCHANGED: Final = frozenset({"withdrawn", "filtered", "malformed"})
"""Decisions that an unchanged entry replaces; any other stays in the log."""
_UPDATED_FIELDS: Final = (
    "external_id",
    "url",
    "title",
    "published_at",
    "decision",
    "decided_by",
    "code",
    "message",
    "raw_item",
    "decided_at",
)
_WITHDRAWN_FIELDS: Final = tuple(
    name for name in _UPDATED_FIELDS if name not in {"external_id", "url", "title", "published_at"}
)
"""A withdrawal seldom repeats the entry's content, so the log keeps the content that it has."""
AT_ONCE: Final = 500
"""The most rows that one run of `forget` deletes."""


def read(source: Source, keys: Collection[str]) -> dict[str, tuple[str, str]]:
    """Return the logged decision and code of each key that the log has."""
    rows = SourceEntry.everywhere.filter(source=source, key__in=keys)
    return {key: (decision, code) for key, decision, code in rows.values_list("key", "decision", "code")}


def read_raw_items(source: Source, keys: Collection[str]) -> dict[str, UUID]:
    """Return the ids of logged raw items by key; there are none before the first poll has ended."""
    if source.last_polled_at is None:
        # The log is empty, or only has what a killed first poll stored under these same keys.
        return {}
    rows = SourceEntry.everywhere.filter(source=source, key__in=keys, raw_item__isnull=False)
    return dict(rows.values_list("key", "raw_item_id"))


def is_news(classified: ClassifiedEntry, logged: Mapping[str, tuple[str, str]]) -> bool:
    """Return whether the decision on an entry is to be logged. `logged` is the result of `read`.

    It is if it is a revision or differs from the logged decision, but `unchanged` replaces only some.
    """
    if classified.is_repeated:
        return False
    previous = logged.get(classified.key)
    if previous is None or classified.decision == "revised":
        return True
    if classified.decision == "unchanged":
        return previous[0] in _ENDED_BY_UNCHANGED
    return previous != (classified.decision, classified.code)


def write(source: Source, decided: Iterable[tuple[ClassifiedEntry, UUID | None]], *, now: datetime) -> None:
    """Log each entry with its raw item in one statement, and withdrawn entries in a second one."""
    rows = [
        SourceEntry(
            workspace_id=source.workspace_id,
            source=source,
            key=classified.key,
            external_id=(classified.entry.external_id or "")[: limits.EXTERNAL_ID_CHARACTERS],
            url="" if _is_item_erased(classified) else classified.entry.url[: core_limits.URL_CHARACTERS],
            title="" if _is_item_erased(classified) else classified.entry.title[: limits.TITLE_CHARACTERS],
            published_at=classified.entry.published_at,
            decision=classified.decision,
            decided_by=classified.decided_by,
            code=classified.code[:40],
            message=classified.message[:500],
            raw_item_id=raw_item_id,
            first_seen_at=now,
            decided_at=now,
        )
        for classified, raw_item_id in decided
    ]
    _upsert([row for row in rows if row.decision != "withdrawn"], _UPDATED_FIELDS)
    _upsert([row for row in rows if row.decision == "withdrawn"], _WITHDRAWN_FIELDS)


def _upsert(rows: Sequence[SourceEntry], update_fields: Sequence[str]) -> None:
    """Insert the rows, or update these fields of rows with the same key."""
    if rows:
        SourceEntry.everywhere.bulk_create(
            rows, update_conflicts=True, unique_fields=["source", "key"], update_fields=update_fields
        )


def _is_item_erased(classified: ClassifiedEntry) -> bool:
    """Return whether the entry's raw item was erased here while the source still lists it."""
    return classified.there is not None and classified.there.is_deleted


def note_withdrawn(entries: Iterable[SourceEntry], message: str, *, now: datetime) -> None:
    """Log that the source doesn't list these entries any more."""
    SourceEntry.everywhere.filter(pk__in=[entry.pk for entry in entries]).update(
        decision="withdrawn", decided_by="source", code="missing", message=message, decided_at=now
    )


def forget(now: datetime) -> int:
    """Delete up to `AT_ONCE` old entries without a raw item. Return the number of deleted rows."""
    old = SourceEntry.everywhere.filter(
        raw_item__isnull=True, decided_at__lt=now - limits.SOURCE_ENTRIES_KEPT
    )
    row_ids = list(old.order_by("decided_at").values_list("pk", flat=True)[:AT_ONCE])
    if row_ids:
        SourceEntry.everywhere.filter(pk__in=row_ids).delete()
    return len(row_ids)
