"""Locks items, and writes what a publication's change entails: item status, event, and notice of a failure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.utils.translation import gettext as _

from accounts import notices
from config.core import states
from config.core.database.prepared_queries import Prepared
from config.core.datetimes import format_utc
from config.core.ids import encode
from pipeline import events, resources
from pipeline.media import draw_pictures
from pipeline.models import GeneratedItem, Publication, PublicationStatus
from pipeline.states import OPEN_PUBLICATIONS, PUBLISHABLE_ITEMS, derive_status

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime
    from uuid import UUID

PUBLISHING_STATUSES: Final = PUBLISHABLE_ITEMS - {"ready"}
"""The statuses of an item that is or was scheduled at an outlet, and not cancelled."""


def lock_item(item: GeneratedItem) -> GeneratedItem:
    """Lock the item and return it as stored, with its workspace.

    Items are locked first everywhere: the order is item, publication, credits. Raises
    `GeneratedItem.DoesNotExist` if the item was deleted.
    """
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
    """Lock every variant of these groups in the order of ids, and return them.

    The order keeps two variants that are published at once from a deadlock.
    """
    rows = GeneratedItem.everywhere.select_for_update(of=("self",)).filter(variant_group__in=groups)
    return list(rows.order_by("id"))


def lock_groups_of(generation: UUID) -> list[GeneratedItem]:
    """Lock every variant of the groups that a generation's items belong to, and return them."""
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


def read_publications(item: GeneratedItem) -> list[dict[str, Any]]:
    """Return the item's publications as dicts of the fields that its JSON needs."""
    return _PUBLICATIONS.ask(item=item.pk)


_PUBLICATIONS: Final[Prepared[dict[str, Any]]] = Prepared(
    lambda item: (
        Publication.everywhere.filter(item_id=item).order_by("id").values(*resources.Publication.columns())
    )
)


def update_item(item: GeneratedItem, **changes: Any) -> None:
    """Update the item's row and the loaded object alike, whatever its version."""
    GeneratedItem.everywhere.filter(pk=item.pk).update(**changes)
    for name, value in changes.items():
        setattr(item, name, value)


def refresh_item(item: GeneratedItem, *, now: datetime, **changes: Any) -> list[dict[str, Any]]:
    """Write a locked item's status as its publications determine it, in the transaction that changed them.

    `changes` are further columns to write. Returns the publications as `GeneratedItem.serialize` takes them.
    """
    rows = read_publications(item)
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


# --- Events and notices ----------------------------------------------------------------------------------------------


def record_publication_event(
    row: Publication,
    item: GeneratedItem,
    event_type: str,
    now: datetime,
    *,
    will_retry: bool | None = None,
    publications: Sequence[Mapping[str, Any]] | None = None,
) -> None:
    """Record an event of the publication; a final failure also notifies the workspace, except for tests.

    `publications` are the item's publications, if they were already read in this transaction.
    """
    data: dict[str, Any] = {
        "generated_item": resources.GeneratedItem.serialize(
            item,
            publications=read_publications(item) if publications is None else publications,
            assets=draw_pictures.files_of(item),
            requires_approval=item.workspace.requires_approval,
            now=now,
        ),
        "publication": resources.Publication.serialize(row, now=now),
    }
    if event_type == "published.failed":
        data["error"] = row.error
        data["will_retry"] = will_retry
        data["next_attempt_at"] = (
            format_utc(row.next_attempt_at) if will_retry and row.next_attempt_at else None
        )
    events.record(
        event_type,
        workspace_id=row.workspace_id,
        test=row.test,
        data=data,
        generated_item_id=row.item_id,
        publication_id=row.pk,
        source_id=item.source_id,
        will_retry=will_retry,
        request=row.request_id,
        now=now,
    )
    if event_type == "published.failed" and will_retry is False and not row.test:
        _notify_of_failure(row, item, now)


def _notify_of_failure(row: Publication, item: GeneratedItem, now: datetime) -> None:
    """Notify the workspace of a final failure, or of an outcome that stays unknown."""
    names = {"item": item.title or item.excerpt or _("An item"), "outlet": row.outlet.name}
    if row.status == PublicationStatus.UNKNOWN:
        title = _("Status of “%(item)s” on %(outlet)s is unknown") % names
    else:
        title = _("“%(item)s” was not published on %(outlet)s") % names
    notices.record(
        "post_failed",
        workspace_id=row.workspace_id,
        # With the version in it, the key lets a person's failed retry notify again.
        key=f"{row.pk.hex}:{row.version}",
        title=title,
        text=str((row.error or {}).get("message", "")),
        path="#failed",
        now=now,
    )


def notify_of_late_answer(row: Publication, item: GeneratedItem, now: datetime) -> None:
    """Notify the workspace, except for tests, that a late answer showed a post published more than once."""
    if row.test:
        return
    error: Mapping[str, Any] = row.error or {}
    names = {"item": item.title or item.excerpt or _("An item"), "outlet": row.outlet.name}
    notices.record(
        "post_failed",
        workspace_id=row.workspace_id,
        key=f"{row.pk.hex}:{row.version}",
        title=_("“%(item)s” was published more than once on %(outlet)s") % names,
        text=f"{error['message']} {error['action']}",
        path=f"items/{encode('gen', item.pk)}",
        now=now,
    )
