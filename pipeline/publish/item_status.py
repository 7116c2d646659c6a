"""Derives an item's status from its publications, and provides the locks this is done under."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from config.core import states
from config.core.database.prepared_queries import Prepared
from pipeline import payloads
from pipeline.models import GeneratedItem, Publication, PublicationStatus
from pipeline.states import OPEN_PUBLICATIONS, PUBLISHABLE_ITEMS, derive_status

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime
    from uuid import UUID

PUBLISHING_STATUSES: Final = PUBLISHABLE_ITEMS - {"ready"}
"""The statuses of an item that is or was scheduled at an outlet, and not cancelled."""


def lock_item(item: GeneratedItem) -> GeneratedItem:
    """Return the item, locked. Items are locked first everywhere: the order is item, publication, credits."""
    rows = _ITEM_FOR_UPDATE.ask(pk=item.pk)
    if not rows:
        raise GeneratedItem.DoesNotExist
    return rows[0]


_ITEM_FOR_UPDATE: Final[Prepared[GeneratedItem]] = Prepared(
    lambda pk: (
        GeneratedItem.everywhere.select_for_update(of=("self",)).select_related("workspace").filter(pk=pk)
    )
)


def lock_groups(groups: Sequence[UUID]) -> list[GeneratedItem]:
    """Lock and return every variant of these groups.

    They are locked in the order of ids, so that two variants published at once can't deadlock.
    """
    rows = GeneratedItem.everywhere.select_for_update(of=("self",)).filter(variant_group__in=groups)
    return list(rows.order_by("id"))


def lock_groups_of(generation: UUID) -> list[GeneratedItem]:
    """Lock and return every variant of the groups that a generation's items belong to."""
    return _GROUP_FOR_UPDATE.ask(generation=generation)


_GROUP_FOR_UPDATE: Final[Prepared[GeneratedItem]] = Prepared(
    lambda generation: (
        GeneratedItem.everywhere.select_for_update(of=("self",))
        .filter(
            variant_group__in=GeneratedItem.everywhere.filter(generation_id=generation).values(
                "variant_group"
            )
        )
        .order_by("id")
    )
)


def publications_of(item: GeneratedItem) -> list[dict[str, Any]]:
    """Return the item's publications as dicts of the fields that its JSON needs."""
    return _PUBLICATIONS.ask(item=item.pk)


_PUBLICATIONS: Final[Prepared[dict[str, Any]]] = Prepared(
    lambda item: (
        Publication.everywhere.filter(item_id=item).order_by("id").values(*payloads.PUBLICATION_FIELDS)
    )
)


def update_item(item: GeneratedItem, **changes: Any) -> None:
    """Update the item's row and the loaded object alike, whatever its version."""
    GeneratedItem.everywhere.filter(pk=item.pk).update(**changes)
    for name, value in changes.items():
        setattr(item, name, value)


def refresh_item(item: GeneratedItem, *, now: datetime, **changes: Any) -> list[dict[str, Any]]:
    """Derive a locked item's status from its publications, in the transaction that changed one of them.

    Returns those publications, as `payloads.generated_item` takes them.
    """
    rows = publications_of(item)
    status = derive_status(row["status"] for row in rows)
    published = [
        row["published_at"]
        for row in rows
        if row["status"] == PublicationStatus.PUBLISHED and row["published_at"]
    ]
    # What was handed over to a person is no longer ours to send, so it sets no time.
    waiting = [
        row["due_at"]
        for row in rows
        if row["status"] in OPEN_PUBLICATIONS and row["step"] != Publication.BY_HAND and row["due_at"]
    ]
    states.write_as(
        item,
        status,
        publish_at=min(waiting, default=None),
        published_at=min(published, default=item.published_at),
        updated_at=now,
        **changes,
    )
    return rows
