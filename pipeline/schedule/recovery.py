"""What failed or is late is cleared: tried again, given another time or cancelled, one or many, with what takes it back."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django.db import transaction

from config.core import states
from config.core.errors import AppError, Conflict
from config.core.ids import encode
from pipeline import publish
from pipeline.ingest import collect, replan
from pipeline.models import GeneratedItem, PersonaDraft, Publication, PublicationStatus, RawItem, Source
from pipeline.personas import drafts
from pipeline.review import regenerate
from pipeline.review.bulk_review import AT_ONCE, CLEAR, Former
from pipeline.schedule import planning

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime
    from uuid import UUID

    from accounts.models import Workspace
    from pipeline.text.local_time import WallClock

RETRY, NEXT, AT, CANCEL = "retry", "next", "at", "cancel"

Chosen = tuple[str, "UUID", int]
"""The prefix of its public id, its key, and the version that was looked at; 0 of what has no versions."""


@dataclass(frozen=True)
class BulkRecoveryInput:
    """Who acts and when; `retry_at` is when what is tried again goes out, `at` the new time for `AT`."""

    workspace: Workspace
    by: str
    now: datetime
    retry_at: datetime
    at: datetime | None = None
    clock: WallClock | None = None


@dataclass(frozen=True)
class Cleared:
    """One thing and what came of it: `error` None where it was done. Of an item's publications, done at once, the last
    has the item and the `former` that takes all of them back; what is made or fetched again can't be taken back.
    """

    prefix: str
    key: UUID
    error: AppError | None = None
    item: GeneratedItem | None = None
    former: Former | None = None


def clear(act: str, chosen: Sequence[Chosen], given: BulkRecoveryInput) -> list[Cleared]:
    """Each thing by itself, with the version that was looked at: one that has changed since hinders no other.

    What isn't there in this workspace is left out. What is more than `AT_ONCE` stays, with that as its error.
    """
    by_prefix: defaultdict[str, dict[UUID, int]] = defaultdict(dict)
    for prefix, key, version in chosen[:AT_ONCE]:
        by_prefix[prefix][key] = version
    found = _publications(act, by_prefix.pop("pub", {}), given)
    for prefix, versions in by_prefix.items():
        if prefix in _AGAIN:
            found += _others(act, prefix, versions, given)
    message = f"At most {AT_ONCE} are cleared at once; the others wait as they were. Do it again for them."
    too_many = Conflict.because(code="too_many", message=message)
    return found + [Cleared(prefix, key, too_many) for prefix, key, _version in chosen[AT_ONCE:]]


# --- Publications ----------------------------------------------------------------------------------------------------


def _publications(act: str, versions: Mapping[UUID, int], given: BulkRecoveryInput) -> list[Cleared]:
    rows = Publication.objects.of(given.workspace).filter(
        pk__in=list(versions), test=False, item__deleted_at=None
    )
    by_item: defaultdict[UUID, list[Publication]] = defaultdict(list)
    for row in rows.select_related("item", "outlet").order_by("id"):
        by_item[row.item_id].append(row)
    return [one for own in by_item.values() for one in _of_item(act, own, versions, given)]


def _of_item(
    act: str, rows: Sequence[Publication], versions: Mapping[UUID, int], given: BulkRecoveryInput
) -> list[Cleared]:
    """All that was chosen of one item: its version is one, so they are taken back together."""
    found: list[Cleared] = []
    done: set[str] = set()
    with transaction.atomic():
        publish.lock_groups([rows[0].item.variant_group])
        publish.lock_outlets([row.outlet for row in rows])
        stood = publish.take_snapshot(rows[0].item)
        for row in rows:
            try:
                with transaction.atomic():
                    _act_on(act, row, versions[row.pk], given)
            except AppError as error:
                found.append(Cleared("pub", row.pk, error))
            else:
                found.append(Cleared("pub", row.pk))
                done.add(encode("pub", row.pk))
        kept = {name: one for name, one in stood.items() if name in done}
        if kept:
            item: GeneratedItem = GeneratedItem.everywhere.get(pk=rows[0].item_id)
            former = {
                "act": CLEAR,
                "version": item.version,
                "stood": kept,
                "is_cancelled": act == CANCEL,
            }
            last = next(number for number in reversed(range(len(found))) if found[number].error is None)
            found[last] = Cleared("pub", found[last].key, item=item, former=former)
    return found


def _act_on(act: str, row: Publication, version: int, given: BulkRecoveryInput) -> None:
    fresh: Publication = (
        Publication.everywhere.select_for_update(of=("self",)).select_related("item", "outlet").get(pk=row.pk)
    )
    states.refuse_other_version(fresh.version, version)
    if act == RETRY:
        _try_again(fresh, given)
    elif act == CANCEL and fresh.status == PublicationStatus.FAILED:
        publish.cancel_failed(fresh, now=given.now)
    elif act == CANCEL:
        publish.cancel(fresh.item, now=given.now, only={fresh.pk})
    else:
        _give_time(act, fresh, given)


def _try_again(row: Publication, given: BulkRecoveryInput) -> None:
    """What is unknown is asked for, and not sent: the platform may have it."""
    if row.status == PublicationStatus.UNKNOWN:
        publish.reconcile_now(row, now=given.now)
        return
    if row.status == PublicationStatus.SCHEDULED:
        message = "It hasn't failed: take away what it waits for, or give it another time."
        raise Conflict.because(code="not_failed", message=message)
    publish.retry(row, by=given.by, now=given.now, at=given.retry_at)


def _give_time(act: str, row: Publication, given: BulkRecoveryInput) -> None:
    """What failed is promised anew with the words, settings and late policy that it had."""
    if row.status == PublicationStatus.FAILED:
        row = publish.retry(row, by=given.by, now=given.now)
    if act == NEXT or given.at is None:
        planning.to_next_slot(row, by=given.by, now=given.now, expected_version=row.version)
    else:
        planning.move(
            row, at=given.at, clock=given.clock, by=given.by, now=given.now, expected_version=row.version
        )


# --- The others ------------------------------------------------------------------------------------------------------


def _others(act: str, prefix: str, versions: Mapping[UUID, int], given: BulkRecoveryInput) -> list[Cleared]:
    model, again = _AGAIN[prefix]
    found = []
    rows: Any = model.objects.of(given.workspace).filter(pk__in=list(versions))
    for row in rows.order_by("id"):
        if getattr(row, "test", False) or getattr(row, "deleted_at", None) is not None:
            continue
        try:
            if act != RETRY:
                message = "Only publications have a time and can be cancelled; this can be tried again."
                raise Conflict.because(code="not_a_publication", message=message)
            again(row, versions[row.pk], given)
        except AppError as error:
            found.append(Cleared(prefix, row.pk, error))
        else:
            found.append(Cleared(prefix, row.pk))
    return found


def _item_again(row: GeneratedItem, version: int, given: BulkRecoveryInput) -> None:
    regenerate.retry(row, workspace=given.workspace, now=given.now, expected_version=version)


def _raw_again(row: RawItem, version: int, given: BulkRecoveryInput) -> None:
    with transaction.atomic():
        fresh = RawItem.everywhere.select_for_update(of=("self",)).get(pk=row.pk)
        states.refuse_other_version(fresh.version, version)
        replan.retry(fresh, workspace=given.workspace, now=given.now)


def _source_again(row: Source, version: int, given: BulkRecoveryInput) -> None:
    """Switched on, which polls it at once."""
    collect.change(
        row, {"status": "active"}, workspace=given.workspace, now=given.now, expected_version=version
    )


def _draft_again(row: PersonaDraft, version: int, given: BulkRecoveryInput) -> None:
    del version
    with transaction.atomic():
        drafts.retry(row, now=given.now)


_AGAIN: Final[Mapping[str, tuple[Any, Callable[..., None]]]] = {
    "gen": (GeneratedItem, _item_again),
    "raw": (RawItem, _raw_again),
    "src": (Source, _source_again),
    "pdr": (PersonaDraft, _draft_again),
}
PREFIXES: Final = frozenset({"pub", *_AGAIN})
