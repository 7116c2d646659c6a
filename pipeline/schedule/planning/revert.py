"""Take back everything that a plan scheduled and that nobody has changed since."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django.db import transaction
from django.db.models import F

from accounts import audit
from config.core.datetimes import as_z
from config.core.errors import Conflict
from config.core.ids import decode, encode, first_of
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
class Undone:
    """`kept` are the entries that stay, each with why: `gone`, `out` or `changed`."""

    plan: WeekPlan
    taken_back: tuple[Mapping[str, Any], ...]
    kept: tuple[tuple[Mapping[str, Any], str], ...]


def undo(plan: WeekPlan, *, by: str, now: datetime) -> Undone:
    """Cancel its publications that are still as it promised them, bring back the variants that were set aside for
    them, and take back the approvals that it stood for. Raises `Conflict` where that was done before.
    """
    with transaction.atomic():
        row: WeekPlan = (
            WeekPlan.everywhere.select_for_update(of=("self",)).select_related("workspace").get(pk=plan.pk)
        )
        if row.undone_at is not None:
            raise Conflict.because(code="already_undone", message="This plan was taken back before.")
        items = _lock(row)
        there = {
            one.pk: one
            for one in Publication.everywhere.filter(
                pk__in=[decode("pub", one["publication"]) for one in row.entries]
            )
        }
        taken, kept = [], []
        for key, entries in _by_item(row.entries).items():
            item = items.get(key)
            standing = []
            for entry in entries:
                why = _changed(entry, item, there.get(_key("pub", entry["publication"])))
                if why:
                    kept.append((entry, why))
                else:
                    standing.append(entry)
            if item is not None and standing:
                _take_back(row, item, standing, now)
                taken += standing
        WeekPlan.everywhere.filter(pk=row.pk).update(undone_at=now)
        row.undone_at = now
        audit.note(
            "plan.undone",
            workspace=row.workspace,
            actor=by,
            subject=encode("pln", row.pk),
            details={"publications": len(taken)},
        )
    return Undone(row, tuple(taken), tuple(kept))


def forget(now: datetime) -> int:
    """Plans that are too old for an undo."""
    old = WeekPlan.everywhere.filter(pk__lt=first_of(now - limits.PLANS_KEPT)).order_by("pk")
    some = list(old.values_list("pk", flat=True)[:FORGOTTEN_AT_ONCE])
    if some:
        WeekPlan.everywhere.filter(pk__in=some).delete()
    return len(some)


def _lock(plan: WeekPlan) -> dict[UUID, GeneratedItem]:
    """All items with their variants, in one order, before any publication."""
    own = GeneratedItem.objects.of(plan.workspace_id).filter(pk__in=list(_by_item(plan.entries)))
    publish.lock_groups(list(own.values_list("variant_group", flat=True)))
    return {row.pk: row for row in own.select_related("workspace")}


def _by_item(entries: Sequence[Mapping[str, Any]]) -> dict[UUID, list[Mapping[str, Any]]]:
    found: dict[UUID, list[Mapping[str, Any]]] = {}
    for entry in entries:
        found.setdefault(_key("gen", entry["item"]), []).append(entry)
    return found


def _key(prefix: str, text: str) -> UUID:
    found = decode(prefix, text)
    assert found is not None  # noqa: S101  it was written by encode
    return found


def _changed(entry: Mapping[str, Any], item: GeneratedItem | None, row: Publication | None) -> str:
    """Why the entry stays as it is; empty where it is still what the plan promised."""
    if (
        row is None
        or item is None
        or item.deleted_at is not None
        or row.status == PublicationStatus.CANCELLED
    ):
        return "gone"
    if row.status != PublicationStatus.SCHEDULED:
        return "out"
    is_same = as_z(row.due_at) == entry["at"] if row.due_at else False
    return "" if is_same and row.revision == entry["revision"] and not row.overrides else "changed"


def _take_back(
    plan: WeekPlan, item: GeneratedItem, entries: Sequence[Mapping[str, Any]], now: datetime
) -> None:
    only = {_key("pub", entry["publication"]) for entry in entries}
    row = publish.cancel(item, now=now, only=only)
    if row.status != GeneratedItemStatus.READY:
        # Something of it goes out elsewhere: it stays approved, and its variants set aside.
        return
    if row.approved_at == plan.created_at:
        GeneratedItem.everywhere.filter(pk=row.pk).update(
            **NO_APPROVAL, version=F("version") + 1, updated_at=now
        )
    aside = {_key("gen", one) for entry in entries for one in entry["set_aside"]}
    if aside:
        variants.take_back(row, aside, at=as_z(plan.created_at), now=now)
