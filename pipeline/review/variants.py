"""Chooses one variant of a group: the others that still wait are rejected, which can be undone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import transaction

from config.core import states
from config.core.datetimes import format_utc
from config.core.errors import Conflict
from pipeline.models import GeneratedItemStatus
from pipeline.publish import lock_groups

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from datetime import datetime
    from uuid import UUID

    from pipeline.models import GeneratedItem

SUPERSEDED = "superseded"


def choose(
    item: GeneratedItem, *, by: str, now: datetime, expected_versions: Mapping[UUID, int] | None = None
) -> list[GeneratedItem]:
    """Reject the ready siblings of an item and return them.

    Siblings that are scheduled somewhere stay as they are.

    With `expected_versions` only the variants that were seen are rejected: one that came meanwhile stays.
    Raises `Conflict` if the item itself is rejected, failed, deleted or not made yet, and `states.Overtaken`
    if one of the group isn't in the version that was seen.
    """
    with transaction.atomic():
        group = lock_groups([item.variant_group])
        chosen = next(variant for variant in group if variant.pk == item.pk)
        for variant in group:
            states.refuse_other_version(variant.version, (expected_versions or {}).get(variant.pk))
        if chosen.deleted_at is not None or chosen.status in {
            GeneratedItemStatus.QUEUED,
            GeneratedItemStatus.GENERATING,
            GeneratedItemStatus.FAILED,
            GeneratedItemStatus.REJECTED,
        }:
            message = f"It is {chosen.status}; choose a variant that is ready."
            raise Conflict.because(code="not_ready", message=message)
        message = "Another variant of the same group was chosen; restore it to use it too."
        others = [
            variant
            for variant in group
            if variant.pk != item.pk
            and variant.status == GeneratedItemStatus.READY
            and not variant.deleted_at
        ]
        if expected_versions is not None:
            others = [variant for variant in others if variant.pk in expected_versions]
        for variant in others:
            rejection = {"code": SUPERSEDED, "message": message, "by": by, "at": format_utc(now)}
            states.move(variant, "rejected", rejection=rejection, updated_at=now)
    return others


def take_back(item: GeneratedItem, others: Collection[UUID], *, at: str, now: datetime) -> int:
    """Undo the choice made `at`: those of `others` that it rejected are ready again. Return how many."""
    with transaction.atomic():
        group = lock_groups([item.variant_group])
        restored = 0
        for variant in group:
            rejection = variant.rejection or {}
            # A decision since then stands.
            is_set_aside = variant.status == GeneratedItemStatus.REJECTED and (
                rejection.get("code"),
                rejection.get("at"),
            ) == (SUPERSEDED, at)
            if variant.pk in others and is_set_aside and variant.deleted_at is None:
                states.move(variant, "ready", rejection=None, updated_at=now)
                restored += 1
    return restored
