"""The log of a source's entries: a row for each, written only where a decision says something new."""

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

_OVER: Final = frozenset({"withdrawn", "filtered", "malformed"})
"""Decisions that an unchanged entry puts an end to; any other stays what is told of it."""
_WRITTEN: Final = (
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
_WITHDRAWN: Final = tuple(
    name for name in _WRITTEN if name not in {"external_id", "url", "title", "published_at"}
)
"""What took an entry back seldom says what it was: the log keeps that."""
AT_ONCE: Final = 500


def read(source: Source, keys: Collection[str]) -> dict[str, tuple[str, str]]:
    """Of each key that the log has: its decision and code."""
    rows = SourceEntry.everywhere.filter(source=source, key__in=keys)
    return {key: (decision, code) for key, decision, code in rows.values_list("key", "decision", "code")}


def read_raw_items(source: Source, keys: Collection[str]) -> dict[str, UUID]:
    """Of each key that the log has: the raw item that the entry is or was met as."""
    if source.last_polled_at is None:
        # Its log is still empty, or speaks of what a killed first poll has stored under these keys.
        return {}
    rows = SourceEntry.everywhere.filter(source=source, key__in=keys, raw_item__isnull=False)
    return dict(rows.values_list("key", "raw_item_id"))


def is_news(judged: ClassifiedEntry, logged: Mapping[str, tuple[str, str]]) -> bool:
    """Whether the decision says something that the log doesn't; `logged` is what `read` found of it."""
    if judged.is_repeated:
        return False
    before = logged.get(judged.key)
    if before is None or judged.decision == "revised":
        return True
    if judged.decision == "unchanged":
        return before[0] in _OVER
    return before != (judged.decision, judged.code)


def write(source: Source, decided: Iterable[tuple[ClassifiedEntry, UUID | None]], *, now: datetime) -> None:
    """Each entry with the raw item that it is or became; one statement for all of them, one more for withdrawn ones."""
    rows = [
        SourceEntry(
            workspace_id=source.workspace_id,
            source=source,
            key=judged.key,
            external_id=(judged.entry.external_id or "")[: limits.EXTERNAL_ID_CHARACTERS],
            url="" if _is_erased(judged) else judged.entry.url[: core_limits.URL_CHARACTERS],
            title="" if _is_erased(judged) else judged.entry.title[: limits.TITLE_CHARACTERS],
            published_at=judged.entry.published_at,
            decision=judged.decision,
            decided_by=judged.decided_by,
            code=judged.code[:40],
            message=judged.message[:500],
            raw_item_id=raw_item_id,
            first_seen_at=now,
            decided_at=now,
        )
        for judged, raw_item_id in decided
    ]
    _upsert([row for row in rows if row.decision != "withdrawn"], _WRITTEN)
    _upsert([row for row in rows if row.decision == "withdrawn"], _WITHDRAWN)


def _upsert(rows: Sequence[SourceEntry], update_fields: Sequence[str]) -> None:
    if rows:
        SourceEntry.everywhere.bulk_create(
            rows, update_conflicts=True, unique_fields=["source", "key"], update_fields=update_fields
        )


def _is_erased(judged: ClassifiedEntry) -> bool:
    """Somebody had its words erased here, and the source still says them."""
    return judged.there is not None and judged.there.is_deleted


def note_withdrawn(entries: Iterable[SourceEntry], message: str, *, now: datetime) -> None:
    """Note on entries that the source doesn't list them any more."""
    SourceEntry.everywhere.filter(pk__in=[entry.pk for entry in entries]).update(
        decision="withdrawn", decided_by="source", code="missing", message=message, decided_at=now
    )


def forget(now: datetime) -> int:
    """Delete entries that nothing was made of, long after the last decision, some at a time; returns how many."""
    old = SourceEntry.everywhere.filter(
        raw_item__isnull=True, decided_at__lt=now - limits.SOURCE_ENTRIES_KEPT
    )
    some = list(old.order_by("decided_at").values_list("pk", flat=True)[:AT_ONCE])
    if some:
        SourceEntry.everywhere.filter(pk__in=some).delete()
    return len(some)
