"""Lists the kinds of notices that members can choose, with each role's default."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django.utils.translation import gettext_lazy as _

from accounts.models import Membership

if TYPE_CHECKING:
    from collections.abc import Mapping

NOW: Final = "now"
DAILY: Final = "daily"
OFF: Final = "off"
_Role = Membership.Role
_OWNERS_AT_ONCE: Final[Mapping[str, str]] = {_Role.OWNER: NOW}


@dataclass(frozen=True)
class NoticeKindOption:
    """A kind of notice that a member can choose."""

    help: Any
    """The sentence below the choice."""
    defaults: Mapping[str, str]
    """When each role is notified; roles that aren't named aren't notified."""
    is_counted: bool = False
    """Whether it is counted for digests, so that it can't be sent immediately."""
    is_monthly: bool = False
    """Whether it is sent when a month is over, so that members choose only if they want it."""


KINDS: Final[Mapping[str, NoticeKindOption]] = {
    "post_failed": NoticeKindOption(
        _("Not published and not retried."),
        _OWNERS_AT_ONCE,
    ),
    "post_handed_over": NoticeKindOption(
        _("Copy its text and files, then post it."),
        {_Role.OWNER: NOW, _Role.EDITOR: NOW},
    ),
    "reviews_waiting": NoticeKindOption(
        _("Number of items and age of the oldest."),
        {_Role.OWNER: DAILY, _Role.EDITOR: DAILY},
        is_counted=True,
    ),
    "item_flagged": NoticeKindOption(
        _("Its source was edited or withdrawn after publishing."),
        {_Role.OWNER: DAILY, _Role.EDITOR: DAILY},
    ),
    "source_failing": NoticeKindOption(
        _("Three polls in a row failed, or it answered 410 Gone."),
        _OWNERS_AT_ONCE,
    ),
    "recurrence_stopped": NoticeKindOption(
        _("Its source is gone, paused or deleted."),
        {_Role.OWNER: DAILY, _Role.EDITOR: DAILY},
    ),
    "few_topics": NoticeKindOption(
        _("Fewer than seven topics available. Sent weekly."),
        _OWNERS_AT_ONCE,
    ),
    "outlet_reconnect": NoticeKindOption(
        _("Log-in expired. Posts are waiting."),
        _OWNERS_AT_ONCE,
    ),
    "webhook": NoticeKindOption(
        _("Slowed or switched off after failures."),
        _OWNERS_AT_ONCE,
    ),
    "quota": NoticeKindOption(
        _("At 80 % and 100 % of the monthly credits."),
        _OWNERS_AT_ONCE,
    ),
    "monthly": NoticeKindOption(
        _("Posts, results and delays. Sent on the 1st if anything was published."),
        {_Role.OWNER: NOW, _Role.EDITOR: NOW},
        is_monthly=True,
    ),
}
