"""A person's decision is taken back: the item is as it was before, unless somebody has changed it since."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from django.db import transaction
from django.utils.dateparse import parse_datetime

from config.core import states
from config.core.errors import Conflict
from config.core.ids import decode
from pipeline import publish
from pipeline.models import GeneratedItem, GeneratedItemStatus, Publication, Revision
from pipeline.review import asset_order, bulk_review, decisions, variants
from pipeline.review.rerender import update_locked
from pipeline.states import PUBLICATIONS_IN_FLIGHT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime


def undo(item: GeneratedItem, former: Mapping[str, Any], *, by: str, now: datetime) -> GeneratedItem:
    """The item as it was before the act; `former` is what that left in `Decided`.

    Raises `Conflict` where it can't be taken back, `states.Overtaken` where something has happened to the item since.
    """
    with transaction.atomic():
        return _UNDONE[former["act"]](item, former, by, now)


def _approval(item: GeneratedItem, former: Mapping[str, Any], by: str, now: datetime) -> GeneratedItem:
    """The approval is taken back, and the variants that it set aside are ready again."""
    del by
    publish.lock_groups([item.variant_group])
    row: GeneratedItem = GeneratedItem.everywhere.select_related("workspace").get(pk=item.pk)
    states.refuse_other_version(row.version, former["version"])
    if Publication.everywhere.filter(item=row, status__in=sorted(PUBLICATIONS_IN_FLIGHT)).exists():
        message = "It is being published at this moment; wait for its outcome."
        raise Conflict.because(code="in_flight", message=message)
    _put_back(row, former, now)
    _take_back_variants(row, former, now)
    return row


def _take_back_variants(row: GeneratedItem, former: Mapping[str, Any], now: datetime) -> None:
    if former["aside"]:
        variants.take_back(row, {UUID(key) for key in former["aside"]}, at=former["at"], now=now)


def _put_back(row: GeneratedItem, former: Mapping[str, Any], now: datetime) -> None:
    """Write approval, hold and flag back as they were; the caller holds the row's lock."""
    values: dict[str, Any] = {
        "approved_by": former["approved_by"],
        "approved_at": parse_datetime(former["approved_at"]) if former["approved_at"] else None,
        "approved_revision": former["approved_revision"],
        "held": former["held"],
        "flagged": former["flagged"],
    }
    update_locked(row, now, **values)


def _rejection(item: GeneratedItem, former: Mapping[str, Any], by: str, now: datetime) -> GeneratedItem:
    del by
    return decisions.restore(item, now=now, expected_version=former["version"])


def _choice(item: GeneratedItem, former: Mapping[str, Any], by: str, now: datetime) -> GeneratedItem:
    del by
    _take_back_variants(item, former, now)
    return item


def _promise(item: GeneratedItem, former: Mapping[str, Any], by: str, now: datetime) -> GeneratedItem:
    """New promises are cancelled, those that were there stand as before, and what it set aside is ready again."""
    del by
    # The variants first, in the order in which everybody locks them.
    publish.lock_groups([item.variant_group])
    expected: int | None = former["version"]
    made = {key for public_id in former["made"] if (key := decode("pub", public_id)) is not None}
    row = item
    if made:
        row = publish.cancel(item, now=now, only=made, expected_version=expected)
        expected = row.version
    if former["stood"]:
        row = publish.restore_snapshot(row, former["stood"], now=now, expected_version=expected)
    _take_back_variants(row, former, now)
    _put_back(row, former, now)
    return row


def _edit(item: GeneratedItem, former: Mapping[str, Any], by: str, now: datetime) -> GeneratedItem:
    """The former words come back as a revision of their own, approved if they were."""
    expected: int = former["version"]
    row = item
    if former["order"] is not None:
        order = [UUID(key) for key in former["order"]]
        row = asset_order.arrange(row, order, now=now, expected_version=expected)
        expected = row.version
    changes: dict[str, Any] = {}
    if row.revision != former["revision"]:
        words = Revision.everywhere.get(item=row, number=former["revision"])
        changes = {"title": words.title, "content": words.content, "overrides": words.overrides}
        if "parts" not in words.content:
            changes["body"] = words.body
    if former["alt_texts"]:
        changes["alt_texts"] = {UUID(key): text for key, text in former["alt_texts"].items()}
    row = decisions.edit(row, changes, by=by, now=now, expected_version=expected)
    if former["approved_revision"] == former["revision"]:
        former = {**former, "approved_revision": row.revision}
    _put_back(row, former, now)
    # What the edit held back is sent now if it is due.
    publish.wake_scheduled(row)
    return row


def _another(item: GeneratedItem, former: Mapping[str, Any], by: str, now: datetime) -> GeneratedItem:
    """The variant that was asked for goes; one that somebody has decided on or edited meanwhile stays."""
    del by
    # Under the lock that everybody takes who decides on it: what is read here stays so until it is gone.
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
        message = f"It is {row.status}; somebody has decided on it meanwhile."
        raise Conflict.because(code="decided_meanwhile", message=message)
    # What was made is revision 1; whatever comes after it somebody wrote.
    if row.revision > 1 or row.outlets != former["outlets"]:
        message = "Somebody has edited it meanwhile; delete it where nobody wants it."
        raise Conflict.because(code="decided_meanwhile", message=message)
    decisions.erase(row, now=now)
    return row


def _cleared(item: GeneratedItem, former: Mapping[str, Any], by: str, now: datetime) -> GeneratedItem:
    """What was tried again, re-timed or cancelled stands as it stood: what had failed has failed again."""
    del by
    publish.lock_groups([item.variant_group])
    write_back = publish.reschedule_from_snapshot if former["is_cancelled"] else publish.restore_snapshot
    row = write_back(item, former["stood"], now=now, expected_version=former["version"])
    if "approved_at" in former:
        _put_back(row, former, now)
    return row


_UNDONE: Final[Mapping[str, Callable[..., GeneratedItem]]] = {
    bulk_review.APPROVE: _approval,
    bulk_review.REJECT: _rejection,
    bulk_review.CHOOSE: _choice,
    bulk_review.PUBLISH: _promise,
    bulk_review.EDIT: _edit,
    bulk_review.ANOTHER: _another,
    bulk_review.CLEAR: _cleared,
}
