"""The order of an item's pictures, as every outlet gets them, and their alt texts as they were."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.db import transaction

from config.core import states
from config.core.errors import Conflict, Invalid
from pipeline import publish
from pipeline.models import Asset, GeneratedItem, GeneratedItemStatus
from pipeline.states import EDITABLE_ITEMS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime
    from uuid import UUID

MOVED_ROLES: Final = frozenset({"picture", "image"})
"""Pictures that stand beside each other; a poster, a frame or another size of one has no turn."""
_PDF: Final = "application/pdf"


def pictures_of(item: GeneratedItem) -> list[Asset]:
    """Those that have a turn, in order; empty where there is one alone, or a file holds them in an order of its own."""
    there = list(Asset.everywhere.filter(item=item, revoked_at=None).order_by("position", "id"))
    return movable(there)


def movable(assets: Sequence[Asset]) -> list[Asset]:
    """Of an item's files that are still in use."""
    if any(one.mime_type == _PDF or one.mime_type.startswith("video/") for one in assets):
        return []
    found = [one for one in assets if one.kind == "image" and one.role in MOVED_ROLES]
    return found if len(found) > 1 else []


def order_of(item: GeneratedItem) -> list[UUID]:
    return [one.pk for one in pictures_of(item)]


def alt_texts_of(item: GeneratedItem, keys: Iterable[UUID]) -> dict[str, str]:
    """By hex id, so that they can be put back."""
    rows = Asset.everywhere.filter(item=item, pk__in=list(keys)).values_list("pk", "alt_text")
    return {key.hex: text for key, text in rows}


def arrange(
    item: GeneratedItem, order: Sequence[UUID], *, now: datetime, expected_version: int | None = None
) -> GeneratedItem:
    """Put its pictures in this order; what is scheduled is prepared anew with it.

    Raises `Conflict` unless it is editable (`states.EDITABLE_ITEMS`), `Invalid` unless each picture is named once, `states.Overtaken`
    where it isn't the version that was expected.
    """
    with transaction.atomic():
        row: GeneratedItem = (
            GeneratedItem.everywhere.select_for_update(of=("self",))
            .select_related("workspace")
            .get(pk=item.pk)
        )
        states.refuse_other_version(row.version, expected_version)
        if row.deleted_at is not None or row.status not in EDITABLE_ITEMS:
            message = f"It is {row.status}; its pictures are moved while some of it may still be sent."
            raise Conflict.because(code="not_arranged", message=message)
        there = pictures_of(row)
        if sorted(order) != sorted(one.pk for one in there):
            message = "Name each of its pictures once."
            raise Invalid.one(field="order", code="not_its_pictures", message=message)
        places = [one.position for one in there]
        by_key = {one.pk: one for one in there}
        moved = [
            (key, place)
            for key, place in zip(order, sorted(places), strict=True)
            if by_key[key].position != place
        ]
        if not moved:
            return row
        for key, place in moved:
            Asset.everywhere.filter(pk=key).update(position=place)
        GeneratedItem.everywhere.filter(pk=row.pk).update(version=row.version + 1, updated_at=now)
        row.version += 1
        row.updated_at = now
        if row.status == GeneratedItemStatus.SCHEDULED:
            publish.renew_scheduled(row, now=now)
    return row
