"""Schedules items for publishing, and cancels, retries or reconciles their publications."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import transaction
from django.db.models import F

from config.core import dispatcher, states, work_queue
from config.core.clock import utc_now
from config.core.datetimes import format_utc
from config.core.errors import Conflict, Detail
from config.core.middleware import request_id
from pipeline.models import (
    GeneratedItem,
    GeneratedItemStatus,
    HoldReason,
    Publication,
    PublicationStatus,
    WorkspaceDefaults,
)
from pipeline.publish.item_status_and_events import lock_groups, lock_item, refresh_item, update_item
from pipeline.publish.timing.postpone import next_wake_at
from pipeline.publish.timing.reschedule import NO_CLOCK, columns_of
from pipeline.publish.validation import (
    OutletVerdict,
    PublishWish,
    audit_overruled_checks,
    refuse_unless_publishable,
    validate_outlets,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from datetime import datetime
    from uuid import UUID

    from pipeline.text.local_time import WallClock


def request(
    item: GeneratedItem,
    wish: PublishWish,
    *,
    by: str,
    now: datetime | None = None,
    expected_version: int | None = None,
) -> tuple[GeneratedItem, list[Publication]]:
    """Schedule an item at its outlets: one publication for each, due now or at the time asked for.

    Raises `CannotPublish` naming each outlet that can't take it, `Conflict` if the item's state doesn't allow
    it or every outlet has it already, and `states.Overtaken` if it isn't the expected version.
    """
    now = now or utc_now()
    with transaction.atomic():
        siblings = [] if wish.keep_siblings else lock_groups([item.variant_group])
        row = lock_item(item)
        states.refuse_other_version(row.version, expected_version)
        refuse_unless_publishable(row)
        verdicts = validate_outlets(row, wish, now=now)
        publications = _schedule_publications(row, verdicts, wish, by=by, now=now)
        if not row.is_approved_as_it_is:
            # An item that lacks a required approval was refused; elsewhere publishing is itself the approval.
            update_item(row, **row.approval(by, now))
            audit_overruled_checks(row, by=by)
        if row.held == HoldReason.APPROVAL_STALE:
            update_item(row, held="")
            # Publications that waited for this approval at other outlets may go out now.
            wake_scheduled(row)
        _supersede(siblings, row, by=by, now=now)
        refresh_item(row, now=now, error=None)
        dispatcher.wake()
    return row, publications


def _schedule_publications(
    item: GeneratedItem, verdicts: Sequence[OutletVerdict], wish: PublishWish, *, by: str, now: datetime
) -> list[Publication]:
    """Create a publication for each verdict, or reschedule the one that stands at its outlet."""
    publications = []
    late_policy, max_lateness = _late_policy_of(wish, item)
    for verdict in verdicts:
        existing = (
            Publication.everywhere.select_for_update()
            .filter(item=item, outlet=verdict.outlet)
            .standing()
            .first()
        )
        values: dict[str, Any] = {
            "revision": item.revision,
            "overrides": dict(verdict.overrides),
            "late_policy": late_policy,
            "max_lateness_minutes": max_lateness,
            "due_at": verdict.due_at,
            "wake_at": verdict.due_at,
            "next_attempt_at": None,
            **_clock_columns(verdict.clock),
            "queue": verdict.queue,
            "waits_for": None,
            "step": "prepare",
            "step_state": {},
            # A new time that is missed is reported again.
            "overdue_told_at": None,
            "requested_by": by,
            "request_id": request_id(),
            "updated_at": now,
        }
        if existing is None:
            row = Publication(
                workspace_id=item.workspace_id,
                test=item.test,
                item=item,
                outlet=verdict.outlet,
                platform=verdict.outlet.platform,
                created_at=now,
                **values,
            )
            row.save(force_insert=True)
        else:
            row = _reschedule(existing, values)
        publications.append(row)
    return publications


def _late_policy_of(wish: PublishWish, item: GeneratedItem) -> tuple[str, int | None]:
    """Return the late policy and its minutes: the request's, or the workspace's defaults."""
    if wish.late_policy is not None:
        return wish.late_policy, wish.max_lateness_minutes
    defaults: WorkspaceDefaults = WorkspaceDefaults.objects.of(item.workspace_id).get()
    return defaults.late_policy, defaults.max_lateness_minutes


def _clock_columns(clock: WallClock | None) -> dict[str, Any]:
    """Return the columns of the local time asked for, or empty strings without one."""
    return NO_CLOCK if clock is None else columns_of(clock)


def _reschedule(row: Publication, values: Mapping[str, Any]) -> Publication:
    """Reschedule what is scheduled, or retry what failed; a task that holds its lease loses it."""
    changes = {**values, "error": None, "attempt_count": 0, "attempts": 0, "lease_token": row.lease_token + 1}
    if row.status == PublicationStatus.FAILED:
        states.move(row, "scheduled", under_lease=False, **changes)
        return row
    Publication.everywhere.filter(pk=row.pk).update(**changes, version=row.version + 1)
    reloaded: Publication = Publication.everywhere.select_related("outlet").get(pk=row.pk)
    return reloaded


def _supersede(siblings: Sequence[GeneratedItem], item: GeneratedItem, *, by: str, now: datetime) -> None:
    """Reject the item's unpublished siblings, as another variant was published."""
    message = "Another variant of the same group was published; restore it to use it too."
    for sibling in siblings:
        if (
            sibling.pk == item.pk
            or sibling.status != GeneratedItemStatus.READY
            or sibling.deleted_at is not None
        ):
            continue
        reason = {"code": "superseded", "message": message, "by": by, "at": format_utc(now)}
        states.move(sibling, "rejected", rejection=reason, updated_at=now)


def cancel(
    item: GeneratedItem,
    *,
    now: datetime,
    only: Collection[UUID] | None = None,
    expected_version: int | None = None,
) -> GeneratedItem:
    """Cancel the item's scheduled publications; with `only`, none but these.

    Raises `Conflict` if none of them is scheduled, and `states.Overtaken` if it isn't the expected version.
    """
    with transaction.atomic():
        row = lock_item(item)
        states.refuse_other_version(row.version, expected_version)
        rows = Publication.everywhere.scheduled().select_for_update().filter(item=row)
        scheduled = list((rows if only is None else rows.filter(pk__in=only)).order_by("id"))
        if not scheduled:
            message = f"It is {row.status}; there is no schedule to cancel."
            raise Conflict.because(code="nothing_scheduled", message=message)
        for publication in scheduled:
            states.move(
                publication,
                "cancelled",
                wake_at=None,
                next_attempt_at=None,
                waits_for=None,
                attempts=0,
                lease_token=publication.lease_token + 1,
                updated_at=now,
            )
        refresh_item(row, now=now)
    return row


def retry(
    publication: Publication,
    *,
    by: str,
    now: datetime,
    at: datetime | None = None,
    expected_version: int | None = None,
) -> Publication:
    """Try a failed publication again with the item's newest content, at once or at the later moment `at`.

    Raises `Conflict` if the publication hasn't failed or the item can't be published, and `states.Overtaken` if
    the publication isn't the expected version.
    """
    at = at or now
    with transaction.atomic():
        item = lock_item(publication.item)
        row: Publication = (
            Publication.everywhere.select_for_update(of=("self",))
            .select_related("outlet")
            .get(pk=publication.pk)
        )
        states.refuse_other_version(row.version, expected_version)
        _refuse_unless_failed(row)
        refuse_unless_publishable(item)
        states.move(
            row,
            "scheduled",
            revision=item.revision,
            due_at=at,
            wake_at=at,
            next_attempt_at=None,
            **_clock_columns(None),
            queue=None,
            waits_for=None,
            step="prepare",
            step_state={},
            overdue_told_at=None,
            error=None,
            attempts=0,
            attempt_count=0,
            lease_token=row.lease_token + 1,
            requested_by=by,
            request_id=request_id(),
            updated_at=now,
        )
        refresh_item(item, now=now)
        dispatcher.wake()
    return row


def cancel_failed(publication: Publication, *, now: datetime) -> Publication:
    """Cancel a failed publication. Raises `Conflict` if it hasn't failed."""
    with transaction.atomic():
        item = lock_item(publication.item)
        row: Publication = (
            Publication.everywhere.select_for_update(of=("self",))
            .select_related("outlet")
            .get(pk=publication.pk)
        )
        _refuse_unless_failed(row)
        states.move(
            row, "cancelled", wake_at=None, lease_token=row.lease_token + 1, attempts=0, updated_at=now
        )
        refresh_item(item, now=now)
    return row


def _refuse_unless_failed(row: Publication) -> None:
    """Raise `Conflict` unless the publication has failed: a post that may be under way is never sent twice."""
    if row.status == PublicationStatus.PUBLISHING:
        message = "It is being published right now. Wait for its outcome."
        raise Conflict.because(code="in_flight", message=message)
    if row.status == PublicationStatus.UNKNOWN:
        message = "Its outcome is not known, so it isn't sent again: reconcile it first."
        raise Conflict.because(code="outcome_unknown", message=message)
    if row.status != PublicationStatus.FAILED:
        message = f"It is {row.status}; only a failed publication is retried."
        detail = Detail("status", "not_failed", message, {"status": row.status, "allowed": ["failed"]})
        raise Conflict(detail)


def reconcile_now(
    publication: Publication, *, now: datetime, expected_version: int | None = None
) -> Publication:
    """Have an unknown outcome looked up at once.

    Raises `Conflict` if the outcome isn't unknown, and `states.Overtaken` if it isn't the expected version.
    """
    with transaction.atomic():
        item = lock_item(publication.item)
        states.lock_expected_version(publication, expected_version)
        changed = (
            Publication.everywhere.unknown()
            .filter(pk=publication.pk)
            .update(
                wake_at=now,
                next_attempt_at=now,
                request_id=request_id(),
                version=F("version") + 1,
                updated_at=now,
                **work_queue.overtake(),
            )
        )
        publication.refresh_from_db()
        if not changed:
            message = f"It is {publication.status}; only an unknown outcome is looked up."
            raise Conflict.because(code="not_unknown", message=message)
        refresh_item(item, now=now)
        dispatcher.wake()
    return publication


def wake_scheduled(item: GeneratedItem) -> None:
    """Wake the item's scheduled publications after a hold: at their time, or at once if they are due.

    The caller holds the item's lock.
    """
    # In the order of ids, as every other path that locks several publications.
    for row in Publication.everywhere.scheduled().filter(item=item).order_by("id"):
        Publication.everywhere.scheduled().filter(pk=row.pk).update(
            wake_at=next_wake_at(row), **work_queue.overtake()
        )
    dispatcher.wake()


def renew_scheduled(item: GeneratedItem, *, now: datetime) -> None:
    """Have the item's scheduled publications prepared again, because its content has changed.

    The caller holds the item's lock.
    """
    Publication.everywhere.scheduled().filter(item=item).update(
        revision=item.revision, step="prepare", step_state={}, version=F("version") + 1, updated_at=now
    )
    wake_scheduled(item)
