"""Stores when and where each member is notified: the role's defaults, changed by the member."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.db import transaction

from accounts import audit
from accounts.models import Membership, NoticeChoice
from accounts.notices.kinds import KINDS, OFF
from config.core.clock import utc_now

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from accounts.models import User, Workspace


@dataclass(frozen=True)
class NoticePreferences:
    """When and where one member is notified; no page shows the secrets in it."""

    user: User
    kinds: Mapping[str, str]
    """For each kind of notice `now`, `daily` or `off`."""
    by_mail: bool = True
    slack_url: str = ""
    telegram_token: str = ""
    telegram_chat: str = ""

    def when(self, kind: str) -> str:
        """Return when the member is notified of a kind: `now`, `daily` or `off`, which stands for unknown kinds."""
        return self.kinds.get(kind, OFF)

    @property
    def channels(self) -> list[str]:
        """The names of the channels that are set up."""
        is_set_up = {
            "mail": self.by_mail,
            "slack": bool(self.slack_url),
            "telegram": bool(self.telegram_token and self.telegram_chat),
        }
        return [name for name, is_ready in is_set_up.items() if is_ready]


def read_members_preferences(workspace_id: UUID) -> list[NoticePreferences]:
    """Return the preferences of all members who can log in, by time of joining; none if the workspace is deleted."""
    members = (
        Membership.objects.of(workspace_id)
        .filter(user__is_active=True, workspace__deleted_at=None)
        .select_related("user")
        .order_by("created_at", "id")
    )
    choices = {row.user_id: row for row in NoticeChoice.objects.of(workspace_id)}
    return [_merge_defaults(member, choices.get(member.user_id)) for member in members]


def find_preferences(workspace_id: UUID, user_id: UUID) -> NoticePreferences | None:
    """Return a member's preferences, or `None` if they have left or can't log in, or the workspace was deleted."""
    member = (
        Membership.objects.of(workspace_id)
        .filter(user_id=user_id, user__is_active=True, workspace__deleted_at=None)
        .select_related("user")
        .first()
    )
    if member is None:
        return None
    return _merge_defaults(member, NoticeChoice.objects.of(workspace_id).filter(user_id=user_id).first())


def save_preferences(
    workspace: Workspace,
    user: User,
    kinds: Mapping[str, str],
    *,
    by_mail: bool,
    slack_url: str,
    telegram_token: str,
    telegram_chat: str,
) -> None:
    """Save one member's choices and audit them without secrets; an empty address or token deletes the stored one."""
    values: dict[str, Any] = {
        "kinds": dict(kinds),
        "by_mail": by_mail,
        "slack_url": slack_url or None,
        "telegram_token": telegram_token or None,
        "telegram_chat": telegram_chat,
        "updated_at": utc_now(),
    }
    with transaction.atomic():
        NoticeChoice.everywhere.update_or_create(workspace=workspace, user=user, defaults=values)
        channels = NoticePreferences(
            user,
            kinds,
            by_mail=by_mail,
            slack_url=slack_url,
            telegram_token=telegram_token,
            telegram_chat=telegram_chat,
        ).channels
        audit.note(
            "notices.chosen",
            workspace=workspace,
            actor=user.email,
            subject=user.email,
            details={"kinds": dict(kinds), "channels": channels},
        )


def _merge_defaults(member: Membership, row: NoticeChoice | None) -> NoticePreferences:
    """Return the role's defaults, changed by the member's choices in `row`, if any."""
    kinds = {name: kind.defaults.get(member.role, OFF) for name, kind in KINDS.items()}
    if row is None:
        return NoticePreferences(member.user, kinds)
    kinds |= {name: when for name, when in row.kinds.items() if name in KINDS}
    return NoticePreferences(
        member.user,
        kinds,
        by_mail=row.by_mail,
        slack_url=row.slack_url or "",
        telegram_token=row.telegram_token or "",
        telegram_chat=row.telegram_chat,
    )
