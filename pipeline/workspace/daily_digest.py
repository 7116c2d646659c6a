"""Sends the daily digest, which counts the items that wait for review."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.utils.timesince import timesince
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from accounts import notices
from accounts.models import Workspace
from config.core.clock import utc_now
from pipeline.dashboard import counts

if TYPE_CHECKING:
    from datetime import datetime

    from accounts.models import NoticeDigest


def send_digest(row: NoticeDigest, *, now: datetime | None = None) -> None:
    """Send one claimed digest."""
    now = now or utc_now()
    row.workspace = Workspace.everywhere.get(pk=row.workspace_id)
    notices.send_digest(row, _build_lines(row.workspace, now), now=now)


def _build_lines(workspace: Workspace, now: datetime) -> list[notices.DigestLine]:
    """Return a line about the items to review; no line if there are none."""
    waiting = counts.waiting_for_review(workspace.pk)
    if not waiting.count:
        return []
    text = ngettext("%(count)s item to review.", "%(count)s items to review.", waiting.count) % {
        "count": waiting.text
    }
    if waiting.oldest_at is not None:
        text += " " + _("Oldest: %(span)s.") % {
            # `timesince` uses non-breaking spaces, which mails don't need.
            "span": timesince(waiting.oldest_at, now).replace("\xa0", " ")
        }
    return [notices.DigestLine("reviews_waiting", text)]
