"""Changes the order of an item's pictures, and reads order and alt texts for an undo."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.db import transaction

from config.core import states
from config.core.errors import Conflict, Invalid
from pipeline import publish
from pipeline.models import Asset, GeneratedItemStatus
from pipeline.review.rerender import lock_with_workspace, update_locked
from pipeline.states import EDITABLE_ITEMS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime
    from uuid import UUID

    from pipeline.models import GeneratedItem

MOVED_ROLES: Final = frozenset({"picture", "image"})
"""The roles of pictures in a sequence; a poster, a frame or another size of a picture isn't in it."""
_PDF: Final = "application/pdf"


def pictures_of(item: GeneratedItem) -> list[Asset]:
    """Return the pictures that can be reordered, or [] if there is only one or a file fixes the order."""
    assets = list(Asset.everywhere.filter(item=item, revoked_at=None).order_by("position", "id"))
    return movable(assets)


def movable(assets: Sequence[Asset]) -> list[Asset]:
    """Return the pictures of `pictures_of` from an item's files, without the revoked ones."""
    if any(asset.mime_type == _PDF or asset.mime_type.startswith("video/") for asset in assets):
        return []
    pictures = [asset for asset in assets if asset.kind == "image" and asset.role in MOVED_ROLES]
    return pictures if len(pictures) > 1 else []


def order_of(item: GeneratedItem) -> list[UUID]:
    """Return the ids of `pictures_of`, as `arrange` takes them."""
    return [picture.pk for picture in pictures_of(item)]


def alt_texts_of(item: GeneratedItem, keys: Iterable[UUID]) -> dict[str, str]:
    """Return the alt texts of these files by hex id, so that they can be restored."""
    rows = Asset.everywhere.filter(item=item, pk__in=list(keys)).values_list("pk", "alt_text")
    return {key.hex: text for key, text in rows}


def arrange(
    item: GeneratedItem, order: Sequence[UUID], *, now: datetime, expected_version: int | None = None
) -> GeneratedItem:
    """Put the item's pictures in this order, for all outlets; scheduled publications are prepared again.

    An order that is the present one changes nothing. Raises `Conflict` if the item isn't editable
    (`states.EDITABLE_ITEMS`), `Invalid` unless each picture is named once, and `states.Overtaken` if the item isn't
    at the expected version.
    """
    with transaction.atomic():
        row = lock_with_workspace(item)
        states.refuse_other_version(row.version, expected_version)
        if row.deleted_at is not None or row.status not in EDITABLE_ITEMS:
            message = f"It is {row.status}; its pictures are moved while some of it may still be sent."
            raise Conflict.because(code="not_arranged", message=message)
        positions = {picture.pk: picture.position for picture in pictures_of(row)}
        if sorted(order) != sorted(positions):
            message = "Name each of its pictures once."
            raise Invalid.one(field="order", code="not_its_pictures", message=message)
        moved = [
            (key, position)
            for key, position in zip(order, sorted(positions.values()), strict=True)
            if positions[key] != position
        ]
        if not moved:
            return row
        for key, position in moved:
            Asset.everywhere.filter(pk=key).update(position=position)
        update_locked(row, now)
        if row.status == GeneratedItemStatus.SCHEDULED:
            publish.renew_scheduled(row, now=now)
    return row
