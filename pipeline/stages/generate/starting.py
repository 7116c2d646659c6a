"""A run begins: what it is made of is settled, and its items say so."""

from __future__ import annotations

from django.db import transaction

from config.ground import states
from pipeline.models import GeneratedItem, Generation, Persona, RawItem
from pipeline.stages import publish


def start(generation: Generation) -> None:
    if generation.status != "queued":
        return
    with transaction.atomic():
        # The raw item is locked before the items made from it, everywhere.
        raw = (
            RawItem.everywhere.select_for_update().get(pk=generation.raw_item_id)
            if generation.raw_item_id
            else None
        )
        # Which version speaks is settled at the start: the persona may change between two stages.
        persona = Persona.everywhere.filter(pk=generation.persona_id).first()
        version = persona.version if persona is not None else None
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


def items_of(generation: Generation) -> list[GeneratedItem]:
    """Its own items; their whole groups are locked, as by everybody who publishes one of a group."""
    groups = GeneratedItem.everywhere.filter(generation=generation).values_list("variant_group", flat=True)
    return [
        item
        for item in publish.lock_groups(list(dict.fromkeys(groups)))
        if item.generation_id == generation.pk and item.deleted_at is None
    ]


def variants_wanted(generation: Generation) -> int:
    """Up to the highest index among its items: a further variant must differ from those before it."""
    indexes = GeneratedItem.everywhere.filter(generation=generation).values_list("variant_index", flat=True)
    return max(indexes, default=0) + 1
