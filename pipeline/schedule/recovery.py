"""Retries, reschedules or cancels many failed and late things at once, and returns what an undo needs."""

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
"""One selected row: the prefix of its public id, its key, and the version that the person saw, 0 without one."""


@dataclass(frozen=True)
class BulkRecoveryInput:
    """The person, the workspace and the times; `retry_at` is when retries are sent, `at` the new time for `AT`."""

    workspace: Workspace
    by: str
    now: datetime
    retry_at: datetime
    at: datetime | None = None
    clock: WallClock | None = None


@dataclass(frozen=True)
class Cleared:
    """One row and its outcome; `error` is `None` if the act succeeded.

    Of an item's publications, which are handled together, the last that succeeded has the item and the
    `former` that undoes all of them. Other rows can't be undone.
    """

    prefix: str
    key: UUID
    error: AppError | None = None
    item: GeneratedItem | None = None
    former: Former | None = None


def clear(act: str, chosen: Sequence[Chosen], recovery: BulkRecoveryInput) -> list[Cleared]:
    """Apply the act to each row at the version that the person saw; a row that fails doesn't stop the others.

    Test rows, deleted ones and those that don't exist in this workspace are left out. Rows beyond `AT_ONCE`
    stay, with that as their error.
    """
    by_prefix: defaultdict[str, dict[UUID, int]] = defaultdict(dict)
    for prefix, key, version in chosen[:AT_ONCE]:
        by_prefix[prefix][key] = version
    outcomes = _clear_publications(act, by_prefix.pop("pub", {}), recovery)
    for prefix, versions in by_prefix.items():
        if prefix in _RETRIES:
            outcomes += _retry_others(act, prefix, versions, recovery)
    message = f"At most {AT_ONCE} are cleared at once. The others are unchanged; repeat it for them."
    too_many = Conflict.because(code="too_many", message=message)
    return outcomes + [Cleared(prefix, key, too_many) for prefix, key, _version in chosen[AT_ONCE:]]


# --- Publications ----------------------------------------------------------------------------------------------------


def _clear_publications(act: str, versions: Mapping[UUID, int], recovery: BulkRecoveryInput) -> list[Cleared]:
    rows = Publication.objects.of(recovery.workspace).filter(
        pk__in=list(versions), test=False, item__deleted_at=None
    )
    by_item: defaultdict[UUID, list[Publication]] = defaultdict(list)
    for row in rows.select_related("item", "outlet").order_by("id"):
        by_item[row.item_id].append(row)
    return [
        outcome
        for publications in by_item.values()
        for outcome in _clear_publications_of_item(act, publications, versions, recovery)
    ]


def _clear_publications_of_item(
    act: str, rows: Sequence[Publication], versions: Mapping[UUID, int], recovery: BulkRecoveryInput
) -> list[Cleared]:
    """Apply the act to all chosen publications of one item together, because they share the item's version."""
    outcomes: list[Cleared] = []
    handled: set[str] = set()
    with transaction.atomic():
        publish.lock_groups([rows[0].item.variant_group])
        publish.lock_outlets([row.outlet for row in rows])
        snapshots = publish.take_snapshot(rows[0].item)
        for row in rows:
            try:
                with transaction.atomic():
                    _apply_to_publication(act, row, versions[row.pk], recovery)
            except AppError as error:
                outcomes.append(Cleared("pub", row.pk, error))
            else:
                outcomes.append(Cleared("pub", row.pk))
                handled.add(encode("pub", row.pk))
        snapshots_done = {name: snapshot for name, snapshot in snapshots.items() if name in handled}
        if snapshots_done:
            item: GeneratedItem = GeneratedItem.everywhere.get(pk=rows[0].item_id)
            former = {
                "act": CLEAR,
                "version": item.version,
                "stood": snapshots_done,
                "is_cancelled": act == CANCEL,
            }
            last = next(number for number in reversed(range(len(outcomes))) if outcomes[number].error is None)
            outcomes[last] = Cleared("pub", outcomes[last].key, item=item, former=former)
    return outcomes


def _apply_to_publication(act: str, row: Publication, version: int, recovery: BulkRecoveryInput) -> None:
    """Lock the publication and apply the act to it.

    Raises `Overtaken` if it isn't the version that the person saw, and `Conflict` if the act isn't possible.
    """
    locked: Publication = (
        Publication.everywhere.select_for_update(of=("self",)).select_related("item", "outlet").get(pk=row.pk)
    )
    states.refuse_other_version(locked.version, version)
    if act == RETRY:
        _retry_publication(locked, recovery)
    elif act == CANCEL and locked.status == PublicationStatus.FAILED:
        publish.cancel_failed(locked, now=recovery.now)
    elif act == CANCEL:
        publish.cancel(locked.item, now=recovery.now, only={locked.pk})
    else:
        _reschedule(act, locked, recovery)


def _retry_publication(row: Publication, recovery: BulkRecoveryInput) -> None:
    """Retry a failed publication; one of unknown outcome is only looked up, because the platform may have it.

    Raises `Conflict` for a scheduled publication, which hasn't failed, and as `publish.retry` does.
    """
    if row.status == PublicationStatus.UNKNOWN:
        publish.reconcile_now(row, now=recovery.now)
        return
    if row.status == PublicationStatus.SCHEDULED:
        message = "It hasn't failed: take away what it waits for, or give it another time."
        raise Conflict.because(code="not_failed", message=message)
    publish.retry(row, by=recovery.by, now=recovery.now, at=recovery.retry_at)


def _reschedule(act: str, row: Publication, recovery: BulkRecoveryInput) -> None:
    """Reschedule the publication, for the next free slot unless the act is `AT` and has a time.

    A failed one is first retried with the item's newest content; it keeps its settings and late policy.
    """
    if row.status == PublicationStatus.FAILED:
        row = publish.retry(row, by=recovery.by, now=recovery.now)
    if act == NEXT or recovery.at is None:
        planning.to_next_slot(row, by=recovery.by, now=recovery.now, expected_version=row.version)
    else:
        planning.move(
            row,
            at=recovery.at,
            clock=recovery.clock,
            by=recovery.by,
            now=recovery.now,
            expected_version=row.version,
        )


# --- The others ------------------------------------------------------------------------------------------------------


def _retry_others(
    act: str, prefix: str, versions: Mapping[UUID, int], recovery: BulkRecoveryInput
) -> list[Cleared]:
    """Retry rows that aren't publications; any other act is refused."""
    model, retry = _RETRIES[prefix]
    outcomes = []
    rows: Any = model.objects.of(recovery.workspace).filter(pk__in=list(versions))
    for row in rows.order_by("id"):
        if getattr(row, "test", False) or getattr(row, "deleted_at", None) is not None:
            continue
        try:
            if act != RETRY:
                message = "Only publications have a time and can be cancelled; this can be tried again."
                raise Conflict.because(code="not_a_publication", message=message)
            retry(row, versions[row.pk], recovery)
        except AppError as error:
            outcomes.append(Cleared(prefix, row.pk, error))
        else:
            outcomes.append(Cleared(prefix, row.pk))
    return outcomes


def _retry_item(row: GeneratedItem, version: int, recovery: BulkRecoveryInput) -> None:
    regenerate.retry(row, workspace=recovery.workspace, now=recovery.now, expected_version=version)


def _retry_raw_item(row: RawItem, version: int, recovery: BulkRecoveryInput) -> None:
    with transaction.atomic():
        locked = RawItem.everywhere.select_for_update(of=("self",)).get(pk=row.pk)
        states.refuse_other_version(locked.version, version)
        replan.retry(locked, workspace=recovery.workspace, now=recovery.now)


def _resume_source(row: Source, version: int, recovery: BulkRecoveryInput) -> None:
    """Switch the source on, which polls it at once."""
    collect.change(
        row, {"status": "active"}, workspace=recovery.workspace, now=recovery.now, expected_version=version
    )


def _retry_draft(row: PersonaDraft, version: int, recovery: BulkRecoveryInput) -> None:
    del version
    with transaction.atomic():
        drafts.retry(row, now=recovery.now)


_RETRIES: Final[Mapping[str, tuple[Any, Callable[..., None]]]] = {
    "gen": (GeneratedItem, _retry_item),
    "raw": (RawItem, _retry_raw_item),
    "src": (Source, _resume_source),
    "pdr": (PersonaDraft, _retry_draft),
}
PREFIXES: Final = frozenset({"pub", *_RETRIES})
