"""The daily digest: what was gathered for each person, and what is counted at that moment, as one message."""

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
from accounts.notices.preferences import preferences_of_members
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
    """Something that is counted at the moment of the digest, of a kind that people choose."""

    kind: str
    text: str


def next_morning(after: datetime, zone: str) -> datetime:
    """The next time that the clocks of that zone show the digest's hour."""
    local = after.astimezone(ZoneInfo(zone))
    morning = local.replace(hour=limits.DIGEST_HOUR, minute=0, second=0, microsecond=0)
    if morning <= local:
        # By the calendar, not by 24 hours: the clocks may be put forward or back.
        morning = (morning.replace(tzinfo=None) + timedelta(days=1)).replace(tzinfo=local.tzinfo)
    return morning.astimezone(UTC)


def open_digest(workspace: Workspace, _language: str = "") -> None:
    """Give a new workspace its digest, due the next morning."""
    morning = next_morning(utc_now(), workspace.timezone)
    NoticeDigest.everywhere.create(workspace=workspace, due_at=morning, wake_at=morning)


def send_digest(row: NoticeDigest, lines: Sequence[DigestLine], *, now: datetime | None = None) -> None:
    """Work one claimed digest; a person for whom there is nothing gets nothing. All or nothing, the next one set too.

    `lines` is what was counted now; a person sees those whose kind they chose daily.
    """
    now = now or utc_now()
    workspace = row.workspace
    if workspace.deleted_at is not None:
        row.sleep_until(None, attempts=0)
        return
    morning = next_morning(max(now, row.due_at or now), workspace.timezone)
    people = preferences_of_members(workspace.pk)
    with transaction.atomic():
        if _is_morning(row, workspace):
            for choice in people:
                _write(row, choice, lines, now)
        if not row.sleep_until(morning, due_at=morning, attempts=0):
            transaction.set_rollback(True)
            return
        crash_point("notices.gathered")


def give_up(row: NoticeDigest) -> None:
    """The digest isn't sent; what was gathered waits for the next morning's."""
    morning = next_morning(utc_now(), row.workspace.timezone)
    row.sleep_until(morning, due_at=morning, attempts=0)


def _is_morning(row: NoticeDigest, workspace: Workspace) -> bool:
    """False at the very first look, and where the workspace has moved to another time zone since."""
    due_at = row.due_at
    return due_at is not None and due_at.astimezone(ZoneInfo(workspace.timezone)).hour == limits.DIGEST_HOUR


def _write(
    row: NoticeDigest, choice: NoticePreferences, counted: Sequence[DigestLine], now: datetime
) -> None:
    gathered = list(
        NoticeMessage.objects.of(row.workspace_id)
        .filter(user=choice.user, status=NoticeMessageStatus.GATHERED)
        .select_related("notice")
        .order_by("id")
    )
    notices = {message.notice_id: message.notice for message in gathered}
    lines = [line.text for line in counted if choice.when(line.kind) == DAILY]
    lines += [_notice_text(notice) for notice in notices.values()]
    if lines:
        on = (row.due_at or now).astimezone(ZoneInfo(row.workspace.timezone)).date()
        count = ngettext("%(count)d event", "%(count)d events", len(lines)) % {"count": len(lines)}
        record(
            NoticeKind.DIGEST,
            workspace_id=row.workspace_id,
            key=f"{choice.user.pk.hex}:{on}",
            title=_("%(count)s from %(workspace)s") % {"count": count, "workspace": row.workspace.name},
            text=_body(lines),
            user_id=choice.user.pk,
            now=now,
        )
    for message in gathered:
        states.move(message, "told", sent_at=now)


def _notice_text(notice: Any) -> str:
    return f"{notice.title}\n{notice.text}".strip()


def _body(lines: Sequence[str]) -> str:
    kept = list(lines[: limits.DIGEST_LINES])
    more = len(lines) - len(kept)
    if more:
        kept.append(ngettext("And %(count)d more.", "And %(count)d more.", more) % {"count": more})
    return "\n\n".join(kept)
