"""Autopilot: what was made goes out without a person."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import transaction
from django.db.models import F

from config.ground.errors import AppError
from pipeline.models import GeneratedItem, Generation
from pipeline.stages import publish
from pipeline.stages.generate.gates import are_open

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime


def fly(generation: Generation, made: Sequence[GeneratedItem], now: datetime) -> None:
    """Autopilot publishes the best of a group: the first variant that passed its four gates; else none of them.

    Not where a person demands to approve first, and not where the group has one on its way already: a further
    variant that somebody asked for is theirs to decide about.
    """
    source = made[0].source if made else None
    if source is None or not source.autopilot or source.deleted_at is not None or made[0].held:
        return
    if generation.workspace.requires_approval or _is_out(made[0]):
        return
    best = next((item for item in made if are_open(item.present_checks)), None)
    if best is None:
        return
    try:
        # A savepoint: what autopilot can't publish must not undo the words.
        with transaction.atomic():
            publish.request(best, publish.Wish(), by="autopilot", now=now)
    except AppError as error:
        GeneratedItem.everywhere.filter(pk=best.pk).update(
            error={"code": "autopilot", "message": str(error), "stage": "publish"}, version=F("version") + 1
        )


def _is_out(item: GeneratedItem) -> bool:
    group = GeneratedItem.everywhere.filter(variant_group=item.variant_group, deleted_at=None)
    return group.filter(status__in=publish.PUBLISHING_STATUSES).exists()
