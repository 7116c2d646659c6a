"""Records the events of publications and the notices of their failures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext as _

from accounts import notices
from config.core.datetimes import as_z
from config.core.ids import encode
from pipeline import events, payloads
from pipeline.media import draw_pictures
from pipeline.models import GeneratedItem, Publication, PublicationStatus
from pipeline.publish.item_status import publications_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime


def notify_of_late_answer(row: Publication, item: GeneratedItem, now: datetime) -> None:
    """Notify the workspace that a post was published more than once, as a late answer of its platform showed."""
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


def record_publication_event(
    row: Publication,
    item: GeneratedItem,
    event_type: str,
    now: datetime,
    *,
    will_retry: bool | None = None,
    publications: Sequence[Mapping[str, Any]] | None = None,
) -> None:
    """Record an event of the publication.

    `publications` are the item's publications, where they were already read in this transaction.
    """
    data: dict[str, Any] = {
        "generated_item": payloads.generated_item(
            payloads.row_of(item),
            publications=publications_of(item) if publications is None else publications,
            assets=draw_pictures.files_of(item),
            requires_approval=item.workspace.requires_approval,
            now=now,
        ),
        "publication": payloads.publication(payloads.row_of(row), now=now),
    }
    if event_type == "published.failed":
        data["error"] = row.error
        data["will_retry"] = will_retry
        data["next_attempt_at"] = as_z(row.next_attempt_at) if will_retry and row.next_attempt_at else None
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
    """Notify of a final failure.

    The key holds the row's version, so a failed retry by a person notifies again.
    """
    names = {"item": item.title or item.excerpt or _("An item"), "outlet": row.outlet.name}
    if row.status == PublicationStatus.UNKNOWN:
        title = _("Status of “%(item)s” on %(outlet)s is unknown") % names
    else:
        title = _("“%(item)s” was not published on %(outlet)s") % names
    notices.record(
        "post_failed",
        workspace_id=row.workspace_id,
        key=f"{row.pk.hex}:{row.version}",
        title=title,
        text=str((row.error or {}).get("message", "")),
        path="#failed",
        now=now,
    )
