"""Sends the daily digest of the messages gathered for each member and of what is counted at that moment."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from django.db import transaction
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from accounts import limits
from accounts.models import NoticeDigest, NoticeKind, NoticeMessage, NoticeMessageStatus
from accounts.notices.kinds import DAILY
from accounts.notices.preferences import read_members_preferences
from accounts.notices.record import record
from config.core import states
from config.core.clock import utc_now
from config.core.crash_points import crash_point

if TYPE_CHECKING:
    from collections.abc import Sequence

    from accounts.models import Workspace
    from accounts.notices.preferences import NoticePreferences


@dataclass(frozen=True)
class DigestLine:
    """A line that is counted at the time of the digest, for members who chose its kind."""

    kind: str
    text: str


def next_morning(after: datetime, zone: str) -> datetime:
    """Return the next time after `after` at which clocks in the zone show the digest's hour, in UTC."""
    local = after.astimezone(ZoneInfo(zone))
    morning = local.replace(hour=limits.DIGEST_HOUR, minute=0, second=0, microsecond=0)
    if morning <= local:
        # Add a calendar day instead of 24 hours, because the clocks may change.
        morning = (morning.replace(tzinfo=None) + timedelta(days=1)).replace(tzinfo=local.tzinfo)
    return morning.astimezone(UTC)


def open_digest(workspace: Workspace, _language: str = "") -> None:
    """Create a new workspace's digest, due the next morning."""
    morning = next_morning(utc_now(), workspace.timezone)
    NoticeDigest.everywhere.create(workspace=workspace, due_at=morning, wake_at=morning)


def send_digest(row: NoticeDigest, lines: Sequence[DigestLine], *, now: datetime | None = None) -> None:
    """Record one claimed digest for each member who has lines in it, and schedule the next, all or nothing.

    `lines` were counted just now; a member gets those whose kind they chose daily. A digest that isn't due at
    its hour is only scheduled, one of a deleted workspace ends, and nothing is written if the lease is lost.
    """
    now = now or utc_now()
    workspace = row.workspace
    if workspace.deleted_at is not None:
        row.sleep_until(None, attempts=0)
        return
    morning = next_morning(max(now, row.due_at or now), workspace.timezone)
    members_preferences = read_members_preferences(workspace.pk)
    with transaction.atomic():
        if _is_morning(row, workspace):
            for preferences in members_preferences:
                _record_digest(row, preferences, lines, now)
        if not row.sleep_until(morning, due_at=morning, attempts=0):
            transaction.set_rollback(True)
            return
        crash_point("notices.gathered")


def give_up(row: NoticeDigest) -> None:
    """Skip a digest whose workers died again and again; gathered messages wait for the next morning."""
    morning = next_morning(utc_now(), row.workspace.timezone)
    row.sleep_until(morning, due_at=morning, attempts=0)


def _is_morning(row: NoticeDigest, workspace: Workspace) -> bool:
    """Return whether the digest is due at its hour by the workspace's clocks.

    It isn't if the workspace has moved to another time zone since the digest was scheduled.
    """
    due_at = row.due_at
    return due_at is not None and due_at.astimezone(ZoneInfo(workspace.timezone)).hour == limits.DIGEST_HOUR


def _record_digest(
    row: NoticeDigest, preferences: NoticePreferences, counted: Sequence[DigestLine], now: datetime
) -> None:
    """Record the digest of one member, if it has lines, and mark the gathered messages as told."""
    gathered = list(
        NoticeMessage.objects.of(row.workspace_id)
        .filter(user=preferences.user, status=NoticeMessageStatus.GATHERED)
        .select_related("notice")
        .order_by("id")
    )
    notices = {message.notice_id: message.notice for message in gathered}
    lines = [line.text for line in counted if preferences.when(line.kind) == DAILY]
    lines += [_notice_text(notice) for notice in notices.values()]
    if lines:
        day = (row.due_at or now).astimezone(ZoneInfo(row.workspace.timezone)).date()
        count = ngettext("%(count)d event", "%(count)d events", len(lines)) % {"count": len(lines)}
        record(
            NoticeKind.DIGEST,
            workspace_id=row.workspace_id,
            key=f"{preferences.user.pk.hex}:{day}",
            title=_("%(count)s from %(workspace)s") % {"count": count, "workspace": row.workspace.name},
            text=_join_lines(lines),
            user_id=preferences.user.pk,
            now=now,
        )
    for message in gathered:
        states.move(message, "told", sent_at=now)


def _notice_text(notice: Any) -> str:
    return f"{notice.title}\n{notice.text}".strip()


def _join_lines(lines: Sequence[str]) -> str:
    """Return the first `DIGEST_LINES` lines as one text, which ends with how many more there are, if any."""
    kept_lines = list(lines[: limits.DIGEST_LINES])
    hidden_count = len(lines) - len(kept_lines)
    if hidden_count:
        kept_lines.append(
            ngettext("And %(count)d more.", "And %(count)d more.", hidden_count) % {"count": hidden_count}
        )
    return "\n\n".join(kept_lines)
