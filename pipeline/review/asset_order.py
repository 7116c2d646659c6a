"""The order of an item's pictures, as every outlet gets them, and their alt texts as they were."""

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
"""Pictures that stand beside each other; a poster, a frame or another size of one has no turn."""
_PDF: Final = "application/pdf"


def pictures_of(item: GeneratedItem) -> list[Asset]:
    """Those that have a turn, in order; empty where there is one alone, or a file holds them in an order of its own."""
    assets = list(Asset.everywhere.filter(item=item, revoked_at=None).order_by("position", "id"))
    return movable(assets)


def movable(assets: Sequence[Asset]) -> list[Asset]:
    """The same out of an item's files, which are those still in use."""
    if any(asset.mime_type == _PDF or asset.mime_type.startswith("video/") for asset in assets):
        return []
    pictures = [asset for asset in assets if asset.kind == "image" and asset.role in MOVED_ROLES]
    return pictures if len(pictures) > 1 else []


def order_of(item: GeneratedItem) -> list[UUID]:
    """The ids of `pictures_of`, as `arrange` takes them."""
    return [picture.pk for picture in pictures_of(item)]


def alt_texts_of(item: GeneratedItem, keys: Iterable[UUID]) -> dict[str, str]:
    """Alt texts of these files by hex id, so that they can be put back."""
    rows = Asset.everywhere.filter(item=item, pk__in=list(keys)).values_list("pk", "alt_text")
    return {key.hex: text for key, text in rows}


def arrange(
    item: GeneratedItem, order: Sequence[UUID], *, now: datetime, expected_version: int | None = None
) -> GeneratedItem:
    """Put its pictures in this order; what is scheduled is prepared anew with it.

    Raises `Conflict` unless it is editable (`states.EDITABLE_ITEMS`), `Invalid` unless each picture is named once,
    `states.Overtaken` where it isn't the version that was expected.
    """
    with transaction.atomic():
        row = lock_with_workspace(item)
        states.refuse_other_version(row.version, expected_version)
        if row.deleted_at is not None or row.status not in EDITABLE_ITEMS:
            message = f"It is {row.status}; its pictures are moved while some of it may still be sent."
            raise Conflict.because(code="not_arranged", message=message)
        places = {picture.pk: picture.position for picture in pictures_of(row)}
        if sorted(order) != sorted(places):
            message = "Name each of its pictures once."
            raise Invalid.one(field="order", code="not_its_pictures", message=message)
        moved = [
            (key, place)
            for key, place in zip(order, sorted(places.values()), strict=True)
            if places[key] != place
        ]
        if not moved:
            return row
        for key, place in moved:
            Asset.everywhere.filter(pk=key).update(position=place)
        update_locked(row, now)
        if row.status == GeneratedItemStatus.SCHEDULED:
            publish.renew_scheduled(row, now=now)
    return row
