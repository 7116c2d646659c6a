"""Undoes a person's decision, unless the item was changed since."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from django.db import transaction

from config.core import states
from config.core.errors import Conflict
from config.core.ids import decode
from pipeline import publish
from pipeline.models import GeneratedItem, GeneratedItemStatus, Publication, Revision
from pipeline.models.generated_item import approval_values
from pipeline.review import asset_order, bulk_review, decisions, variants
from pipeline.review.rerender import update_locked
from pipeline.states import PUBLICATIONS_IN_FLIGHT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime


def undo(item: GeneratedItem, former: Mapping[str, Any], *, by: str, now: datetime) -> GeneratedItem:
    """Restore the item as it was before the act; `former` is the one of the act's `Decided`.

    Raises `Conflict` if the act can't be undone any more, and `states.Overtaken` if the item was changed since.
    """
    with transaction.atomic():
        return _UNDO_FUNCTIONS[former["act"]](item, former, by, now)


def _undo_approval(item: GeneratedItem, former: Mapping[str, Any], by: str, now: datetime) -> GeneratedItem:
    """Take the approval back, and restore the variants that it rejected."""
    del by
    publish.lock_groups([item.variant_group])
    row: GeneratedItem = GeneratedItem.everywhere.select_related("workspace").get(pk=item.pk)
    states.refuse_other_version(row.version, former["version"])
    if Publication.everywhere.filter(item=row, status__in=sorted(PUBLICATIONS_IN_FLIGHT)).exists():
        message = "It is being published right now. Wait for its outcome."
        raise Conflict.because(code="in_flight", message=message)
    _restore_approval(row, former, now)
    _restore_variants(row, former, now)
    return row


def _restore_variants(row: GeneratedItem, former: Mapping[str, Any], now: datetime) -> None:
    """Restore the variants that the act rejected."""
    if former["aside"]:
        variants.take_back(row, {UUID(key) for key in former["aside"]}, at=former["at"], now=now)


def _restore_approval(row: GeneratedItem, former: Mapping[str, Any], now: datetime) -> None:
    """Write approval, hold and flag as they were; the caller holds the row's lock."""
    update_locked(row, now, **approval_values(former), held=former["held"], flagged=former["flagged"])


def _undo_rejection(item: GeneratedItem, former: Mapping[str, Any], by: str, now: datetime) -> GeneratedItem:
    del by
    return decisions.restore(item, now=now, expected_version=former["version"])


def _undo_choice(item: GeneratedItem, former: Mapping[str, Any], by: str, now: datetime) -> GeneratedItem:
    del by
    _restore_variants(item, former, now)
    return item


def _undo_publish(item: GeneratedItem, former: Mapping[str, Any], by: str, now: datetime) -> GeneratedItem:
    """Cancel new publications, restore the others, the rejected variants and the approval."""
    del by
    # Lock the variants first, in the common order.
    publish.lock_groups([item.variant_group])
    expected: int | None = former["version"]
    created = {key for public_id in former["made"] if (key := decode("pub", public_id)) is not None}
    row = item
    if created:
        row = publish.cancel(item, now=now, only=created, expected_version=expected)
        expected = row.version
    if former["stood"]:
        row = publish.restore_snapshot(row, former["stood"], now=now, expected_version=expected)
    _restore_variants(row, former, now)
    _restore_approval(row, former, now)
    return row


def _undo_edit(item: GeneratedItem, former: Mapping[str, Any], by: str, now: datetime) -> GeneratedItem:
    """Restore the old content as a new revision, approved if the old one was."""
    expected: int = former["version"]
    row = item
    if former["order"] is not None:
        order = [UUID(key) for key in former["order"]]
        row = asset_order.arrange(row, order, now=now, expected_version=expected)
        expected = row.version
    changes: dict[str, Any] = {}
    if row.revision != former["revision"]:
        revision = Revision.everywhere.get(item=row, number=former["revision"])
        changes = {"title": revision.title, "content": revision.content, "overrides": revision.overrides}
        if "parts" not in revision.content:
            changes["body"] = revision.body
    if former["alt_texts"]:
        changes["alt_texts"] = {UUID(key): text for key, text in former["alt_texts"].items()}
    row = decisions.edit(row, changes, by=by, now=now, expected_version=expected)
    if former["approved_revision"] == former["revision"]:
        former = {**former, "approved_revision": row.revision}
    _restore_approval(row, former, now)
    # Publications that the edit held back are sent now if they are due.
    publish.wake_scheduled(row)
    return row


def _undo_regenerate(item: GeneratedItem, former: Mapping[str, Any], by: str, now: datetime) -> GeneratedItem:
    """Erase the requested variant. Raises `Conflict` if it was decided on or edited since."""
    del by
    # Every decision takes this lock, so the state that is read here stays true until the item is erased.
    row = next(variant for variant in publish.lock_groups([item.variant_group]) if variant.pk == item.pk)
    if (
        row.status
        not in {
            GeneratedItemStatus.QUEUED,
            GeneratedItemStatus.GENERATING,
            GeneratedItemStatus.READY,
            GeneratedItemStatus.FAILED,
        }
        or row.is_approved
    ):
        message = f"It is {row.status}; it was decided in the meantime."
        raise Conflict.because(code="decided_meanwhile", message=message)
    # The generated content is revision 1; a person wrote every later one.
    if row.revision > 1 or row.outlets != former["outlets"]:
        message = "It was edited in the meantime. Delete it if it isn't needed."
        raise Conflict.because(code="decided_meanwhile", message=message)
    decisions.erase(row, now=now)
    return row


def _undo_recovery(item: GeneratedItem, former: Mapping[str, Any], by: str, now: datetime) -> GeneratedItem:
    """Restore the retried, rescheduled or cancelled publications, failed ones too, and the approval."""
    del by
    publish.lock_groups([item.variant_group])
    write_back = publish.reschedule_from_snapshot if former["is_cancelled"] else publish.restore_snapshot
    row = write_back(item, former["stood"], now=now, expected_version=former["version"])
    if "approved_at" in former:
        _restore_approval(row, former, now)
    return row


_UNDO_FUNCTIONS: Final[Mapping[str, Callable[..., GeneratedItem]]] = {
    bulk_review.APPROVE: _undo_approval,
    bulk_review.REJECT: _undo_rejection,
    bulk_review.CHOOSE: _undo_choice,
    bulk_review.PUBLISH: _undo_publish,
    bulk_review.EDIT: _undo_edit,
    bulk_review.ANOTHER: _undo_regenerate,
    bulk_review.CLEAR: _undo_recovery,
}
