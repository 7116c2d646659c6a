"""A run begins: what it is made of is settled, and its items say so."""

from __future__ import annotations

from typing import Any, Final

from django.db import transaction

from config.ground import states
from config.ground.prepared import Prepared
from pipeline.models import GeneratedItem, Generation, Persona, RawItem
from pipeline.stages import publish

_RAW_ITEM: Final[Prepared[RawItem]] = Prepared(
    lambda pk: RawItem.everywhere.select_for_update().filter(pk=pk)
)
_VERSION: Final[Prepared[dict[str, Any]]] = Prepared(
    lambda pk: Persona.everywhere.filter(pk=pk).values("version")
)
_ITEMS: Final[Prepared[dict[str, Any]]] = Prepared(
    lambda generation: (
        GeneratedItem.everywhere.filter(generation_id=generation)
        .order_by("id")
        .values("variant_group", "variant_index", "hint", "deleted_at")
    )
)


def start(generation: Generation) -> None:
    if generation.status != "queued":
        return
    with transaction.atomic():
        raw = lock_raw_item(generation)
        # Which version speaks is settled at the start: the persona may change between two stages.
        persona = _VERSION.ask(pk=generation.persona_id) if generation.persona_id else []
        version = persona[0]["version"] if persona else None
        states.move(generation, "running", under_lease=True, persona_version=version)
        for item in items_of(generation):
            if item.status == "queued":
                states.move(item, "generating")
        if raw is None:
            return
        if raw.status == "queued":
            states.move(raw, "processing")
        if raw.content_version != generation.raw_version:
            # It was revised while it waited: the newest content is what is made into something.
            generation.raw_version = raw.content_version
            Generation.everywhere.filter(pk=generation.pk).update(raw_version=raw.content_version)


def lock_raw_item(generation: Generation) -> RawItem | None:
    """It is locked before the items made from it, everywhere."""
    if generation.raw_item_id is None:
        return None
    (raw,) = _RAW_ITEM.ask(pk=generation.raw_item_id)
    return raw


def items_of(generation: Generation) -> list[GeneratedItem]:
    """Its own items; their whole groups are locked, as by everybody who publishes one of a group."""
    groups = dict.fromkeys(item["variant_group"] for item in _ITEMS.ask(generation=generation.pk))
    return [
        item
        for item in publish.lock_groups(list(groups))
        if item.generation_id == generation.pk and item.deleted_at is None
    ]


def wanted(generation: Generation) -> tuple[int, str]:
    """How many variants: up to the highest index among its items, as a further one must differ from those before it.

    And what was asked of it when somebody wanted another one; empty for nearly all.
    """
    items = _ITEMS.ask(generation=generation.pk)
    hints = (item["hint"] for item in items if item["deleted_at"] is None)
    return max((item["variant_index"] for item in items), default=0) + 1, next(filter(None, hints), "")
