"""Hands due publications over to the person who posts them.

A publication that was handed over stays open until that person reports the outcome.
"""

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
from pipeline.publish.item_status_and_events import lock_item, refresh_item
from pipeline.publish.payload import keep_short_links, post_for, post_of_attempt, receipt_of

if TYPE_CHECKING:
    from datetime import datetime

    from pipeline.models import GeneratedItem, Publication
    from pipeline.platforms.payload_types import Adapted


def request_manual_post(row: Publication, post: Adapted, now: datetime) -> None:
    """Hand the due post over to a person and notify the workspace.

    If the item was held or edited meanwhile, the publication is prepared again instead.
    """
    with transaction.atomic():
        item = lock_item(row.item)
        if item.held or item.revision != row.revision:
            row.sleep_until(now, attempts=0, step="prepare", step_state={})
            return
        states.move(
            row,
            "publishing",
            under_lease=True,
            # If the worker is killed after this, no task takes it up again: only a person ends it.
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
            _notify_of_handover(row, item, now)
        crash_point("publish.recorded")


def _notify_of_handover(row: Publication, item: GeneratedItem, now: datetime) -> None:
    account_name = row.outlet.config.get("place") or row.outlet.name
    title = item.title or item.excerpt or _("An item")
    notices.record(
        "post_handed_over",
        workspace_id=row.workspace_id,
        key=f"{row.pk.hex}:{row.version}",
        title=_("Post “%(item)s” on %(place)s") % {"item": title, "place": account_name},
        text=_("Copy its text and files, then mark it posted."),
        path=f"publications/{ids.encode('pub', row.pk)}/package",
        now=now,
    )


def package_of(row: Publication) -> Adapted:
    """Return the post as it was handed over, even if the outlet's settings have changed since.

    Before the handover, return it as it would be sent now, with direct links.
    """
    direct_post = post_for(row, connect(row.outlet), counts_clicks=False)
    if row.status == PublicationStatus.SCHEDULED:
        # Its short links are stored when it is handed over; until then they lead nowhere.
        return direct_post
    link = short_links.short_url_for(direct_post.payload.link, row)
    return post_of_attempt(row, replace(direct_post, payload=replace(direct_post.payload, link=link)))


def package_files(row: Publication) -> list[dict[str, Any]]:
    """Return the item's files that aren't revoked, each with its path on this site as `address`."""
    assets = Asset.everywhere.filter(item=row.item, revoked_at=None).order_by("position", "id")
    return [
        {
            "address": f"/media/{asset.secret}/{asset.name}",
            "name": asset.name,
            "mime_type": asset.mime_type,
            "bytes": asset.bytes,
            "alt_text": asset.alt_text,
        }
        for asset in assets
    ]
