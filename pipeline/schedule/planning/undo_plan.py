"""Undoes a plan: takes back everything it scheduled that nobody has changed since."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django.db import transaction
from django.db.models import F

from accounts import audit
from config.core.datetimes import format_utc
from config.core.errors import Conflict
from config.core.ids import decode, encode, lowest_id_at
from pipeline import limits, publish
from pipeline.models import GeneratedItem, GeneratedItemStatus, Publication, PublicationStatus, WeekPlan
from pipeline.models.generated_item import NO_APPROVAL
from pipeline.review import variants

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime
    from uuid import UUID

FORGOTTEN_AT_ONCE: Final = 500


@dataclass(frozen=True)
class PlanUndo:
    """The result; `kept` are the entries that stay, each with why: `gone`, `out` or `changed`."""

    plan: WeekPlan
    taken_back: tuple[Mapping[str, Any], ...]
    kept: tuple[tuple[Mapping[str, Any], str], ...]


def undo(plan: WeekPlan, *, by: str, now: datetime) -> PlanUndo:
    """Cancel the plan's unchanged publications, and undo its rejections of variants and its approvals.

    Raises `Conflict` if that was done before.
    """
    with transaction.atomic():
        row: WeekPlan = (
            WeekPlan.everywhere.select_for_update(of=("self",)).select_related("workspace").get(pk=plan.pk)
        )
        if row.undone_at is not None:
            raise Conflict.because(code="already_undone", message="This plan was already undone.")
        items = _lock_items(row)
        publications = {
            publication.pk: publication
            for publication in Publication.everywhere.filter(
                pk__in=[decode("pub", publication["publication"]) for publication in row.entries]
            )
        }
        taken_back, kept = [], []
        for key, entries in _group_by_item(row.entries).items():
            item = items.get(key)
            unchanged = []
            for entry in entries:
                reason = _why_kept(entry, item, publications.get(_key("pub", entry["publication"])))
                if reason:
                    kept.append((entry, reason))
                else:
                    unchanged.append(entry)
            if item is not None and unchanged:
                _take_back(row, item, unchanged, now)
                taken_back += unchanged
        WeekPlan.everywhere.filter(pk=row.pk).update(undone_at=now)
        row.undone_at = now
        audit.note(
            "plan.undone",
            workspace=row.workspace,
            actor=by,
            subject=encode("pln", row.pk),
            details={"publications": len(taken_back)},
        )
    return PlanUndo(row, tuple(taken_back), tuple(kept))


def forget(now: datetime) -> int:
    """Delete a batch of plans that are too old for an undo; return how many."""
    old = WeekPlan.everywhere.filter(pk__lt=lowest_id_at(now - limits.PLANS_KEPT)).order_by("pk")
    batch = list(old.values_list("pk", flat=True)[:FORGOTTEN_AT_ONCE])
    if batch:
        WeekPlan.everywhere.filter(pk__in=batch).delete()
    return len(batch)


def _lock_items(plan: WeekPlan) -> dict[UUID, GeneratedItem]:
    """Lock and return all items, with their variants, in one order, before any publication."""
    items = GeneratedItem.objects.of(plan.workspace_id).filter(pk__in=list(_group_by_item(plan.entries)))
    publish.lock_groups(list(items.values_list("variant_group", flat=True)))
    return {row.pk: row for row in items.select_related("workspace")}


def _group_by_item(entries: Sequence[Mapping[str, Any]]) -> dict[UUID, list[Mapping[str, Any]]]:
    entries_by_item: dict[UUID, list[Mapping[str, Any]]] = {}
    for entry in entries:
        entries_by_item.setdefault(_key("gen", entry["item"]), []).append(entry)
    return entries_by_item


def _key(prefix: str, text: str) -> UUID:
    key = decode(prefix, text)
    assert key is not None  # noqa: S101  it was written by encode
    return key


def _why_kept(entry: Mapping[str, Any], item: GeneratedItem | None, row: Publication | None) -> str:
    """Return why the entry stays; empty if the publication is still as the plan scheduled it."""
    if (
        row is None
        or item is None
        or item.deleted_at is not None
        or row.status == PublicationStatus.CANCELLED
    ):
        return "gone"
    if row.status != PublicationStatus.SCHEDULED:
        return "out"
    is_same = format_utc(row.due_at) == entry["at"] if row.due_at else False
    return "" if is_same and row.revision == entry["revision"] and not row.overrides else "changed"


def _take_back(
    plan: WeekPlan, item: GeneratedItem, entries: Sequence[Mapping[str, Any]], now: datetime
) -> None:
    """Cancel the publications of these entries and undo what the plan changed on the item."""
    only = {_key("pub", entry["publication"]) for entry in entries}
    row = publish.cancel(item, now=now, only=only)
    if row.status != GeneratedItemStatus.READY:
        # Something of it is published elsewhere: it stays approved, and its variants rejected.
        return
    if row.approved_at == plan.created_at:
        GeneratedItem.everywhere.filter(pk=row.pk).update(
            **NO_APPROVAL, version=F("version") + 1, updated_at=now
        )
    rejected_siblings = {_key("gen", public_id) for entry in entries for public_id in entry["set_aside"]}
    if rejected_siblings:
        variants.take_back(row, rejected_siblings, at=format_utc(plan.created_at), now=now)
