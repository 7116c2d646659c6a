"""A publication that a person posts: handed over when it is due, open until that person says what became of it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from django.db import transaction
from django.utils.translation import gettext as _

from accounts import notices
from config.core import ids, states
from config.core.crash_points import crash_point
from pipeline.models import Asset, Attempt, PublicationStatus
from pipeline.outlets import short_links
from pipeline.outlets.outlet_client import connect
from pipeline.publish.item_status import lock_item, refresh_item
from pipeline.publish.payload import keep_short_links, post_of_attempt, receipt_of, straight_post_for

if TYPE_CHECKING:
    from datetime import datetime

    from pipeline.models import GeneratedItem, Publication
    from pipeline.platforms.payload_types import Adapted


def is_handed_over(row: Publication) -> bool:
    return row.status == PublicationStatus.PUBLISHING and row.step == row.BY_HAND


def request_manual_post(row: Publication, post: Adapted, now: datetime) -> None:
    """Tell its people that it is theirs to post; given back where the item was held or edited meanwhile."""
    with transaction.atomic():
        item = lock_item(row.item)
        if item.held or item.revision != row.revision:
            row.sleep_until(now, attempts=0, step="prepare", step_state={})
            return
        states.move(
            row,
            "publishing",
            under_lease=True,
            # A hand that is killed after this leaves it as it is: nobody's hand but a person's takes it up.
            step=row.BY_HAND,
            step_state={},
            wake_at=None,
            next_attempt_at=None,
            attempt_count=row.attempt_count + 1,
            attempts=0,
            error=None,
            updated_at=now,
        )
        Attempt.everywhere.create(
            workspace_id=row.workspace_id,
            publication=row,
            number=Attempt.everywhere.filter(publication=row).count() + 1,
            revision=item.revision,
            receipt=receipt_of(post),
            started_at=now,
        )
        if row.outlet.clicks_since is not None:
            keep_short_links(row)
        refresh_item(item, now=now)
        if not row.test:
            _tell(row, item, now)
        crash_point("publish.recorded")


def _tell(row: Publication, item: GeneratedItem, now: datetime) -> None:
    place = row.outlet.config.get("place") or row.outlet.name
    title = item.title or item.excerpt or _("An item")
    notices.record(
        "post_handed_over",
        workspace_id=row.workspace_id,
        key=f"{row.pk.hex}:{row.version}",
        title=_("Post “%(item)s” on %(place)s") % {"item": title, "place": place},
        text=_("Copy its text and files, then mark it posted."),
        path=f"publications/{ids.encode('pub', row.pk)}/package",
        now=now,
    )


def package_of(row: Publication) -> Adapted:
    """What was handed over, whatever its outlet's settings became since; before that with links that lead straight."""
    straight = straight_post_for(row, connect(row.outlet))
    if row.status == PublicationStatus.SCHEDULED:
        # No short link of it leads anywhere yet.
        return straight
    link = short_links.short_url_for(straight.payload.link, row)
    return post_of_attempt(row, replace(straight, payload=replace(straight.payload, link=link)))


def package_files(row: Publication) -> list[dict[str, Any]]:
    """The item's files, at addresses below this site's own."""
    kept = Asset.everywhere.filter(item=row.item, revoked_at=None).order_by("position", "id")
    return [
        {
            "address": f"/media/{one.secret}/{one.name}",
            "name": one.name,
            "mime_type": one.mime_type,
            "bytes": one.bytes,
            "alt_text": one.alt_text,
        }
        for one in kept
    ]
