"""What an item says of its publications, and the locks under which it is told."""

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
"""Of an item that was promised to an outlet, and whose promise was not cancelled."""


def lock_item(item: GeneratedItem) -> GeneratedItem:
    """The item, locked first of all: the order is item, publication, credits, everywhere."""
    found = _ITEM.ask(pk=item.pk)
    if not found:
        raise GeneratedItem.DoesNotExist
    return found[0]


_ITEM: Final[Prepared[GeneratedItem]] = Prepared(
    lambda pk: (
        GeneratedItem.everywhere.select_for_update(of=("self",)).select_related("workspace").filter(pk=pk)
    )
)


def lock_groups(groups: Sequence[UUID]) -> list[GeneratedItem]:
    """Every variant of these groups, locked in the order of ids: two that are published at once must not wait for
    each other in a circle.
    """
    rows = GeneratedItem.everywhere.select_for_update(of=("self",)).filter(variant_group__in=groups)
    return list(rows.order_by("id"))


def lock_groups_of(generation: UUID) -> list[GeneratedItem]:
    """The same of the groups that a generation's items belong to."""
    return _GROUPS.ask(generation=generation)


_GROUPS: Final[Prepared[GeneratedItem]] = Prepared(
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
    """As its JSON needs them."""
    return _PUBLICATIONS.ask(item=item.pk)


_PUBLICATIONS: Final[Prepared[dict[str, Any]]] = Prepared(
    lambda item: (
        Publication.everywhere.filter(item_id=item).order_by("id").values(*payloads.PUBLICATION_FIELDS)
    )
)


def set_on(item: GeneratedItem, **changes: Any) -> None:
    GeneratedItem.everywhere.filter(pk=item.pk).update(**changes)
    for name, value in changes.items():
        setattr(item, name, value)


def refresh_item(item: GeneratedItem, *, now: datetime, **changes: Any) -> list[dict[str, Any]]:
    """Derive a locked item's status from its publications, in the transaction that changed one of them; returns
    those, as `payloads.generated_item` takes them.
    """
    rows = publications_of(item)
    to = derive_status(row["status"] for row in rows)
    published = [
        row["published_at"]
        for row in rows
        if row["status"] == PublicationStatus.PUBLISHED and row["published_at"]
    ]
    # What was handed over to a person is no promise of ours any more.
    waiting = [
        row["due_at"]
        for row in rows
        if row["status"] in OPEN_PUBLICATIONS and row["step"] != Publication.BY_HAND and row["due_at"]
    ]
    states.write_as(
        item,
        to,
        publish_at=min(waiting, default=None),
        published_at=min(published, default=item.published_at),
        updated_at=now,
        **changes,
    )
    return rows
