"""What people can be told of, when, and by which channel; what holds for a role until its person chooses."""

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
    """What a person can choose to be told. `defaults` by role; a role that isn't named is told nothing.

    `is_counted` ones exist in digests alone.

    `is_monthly` ones come by themselves when a month is over, so that they are either wanted or not.
    """

    help: Any
    defaults: Mapping[str, str]
    is_counted: bool = False
    is_monthly: bool = False


KINDS: Final[Mapping[str, NoticeKindOption]] = {
    "post_failed": NoticeKindOption(
        _("It was not published, and is not tried again by itself."),
        _OWNERS_AT_ONCE,
    ),
    "post_handed_over": NoticeKindOption(
        _("Its place has no interface for programs: its words and files are ready to copy."),
        {_Role.OWNER: NOW, _Role.EDITOR: NOW},
    ),
    "reviews_waiting": NoticeKindOption(
        _("How many, and for how long the oldest has waited."),
        {_Role.OWNER: DAILY, _Role.EDITOR: DAILY},
        is_counted=True,
    ),
    "item_flagged": NoticeKindOption(
        _("The entry that it was made of was edited or withdrawn after it was published."),
        {_Role.OWNER: DAILY, _Role.EDITOR: DAILY},
    ),
    "source_failing": NoticeKindOption(
        _("Three polls in a row failed, or its server says that it is gone."),
        _OWNERS_AT_ONCE,
    ),
    "recurrence_stopped": NoticeKindOption(
        _("Its source is gone or paused, or what it was made of was erased; it says why."),
        {_Role.OWNER: DAILY, _Role.EDITOR: DAILY},
    ),
    "few_topics": NoticeKindOption(
        _("Fewer than seven topics of its pool may be taken; told once a week."),
        _OWNERS_AT_ONCE,
    ),
    "outlet_reconnect": NoticeKindOption(
        _("Its platform refuses the log-in, so nothing is published there."),
        _OWNERS_AT_ONCE,
    ),
    "webhook": NoticeKindOption(
        _("It was slowed down after failures, or switched off."),
        _OWNERS_AT_ONCE,
    ),
    "quota": NoticeKindOption(
        _("80 % of the month's credits are used, and when all of them are."),
        _OWNERS_AT_ONCE,
    ),
    "monthly": NoticeKindOption(
        _(
            "On the first of the month: what was published, what became of it, and how punctual it was. Left out when "
            "nothing was published."
        ),
        {_Role.OWNER: NOW, _Role.EDITOR: NOW},
        is_monthly=True,
    ),
}
