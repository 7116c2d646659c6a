"""Defines the template tag of the banners on a workspace's pages, which say what keeps it from working.

It belongs to no app, because several apps contribute.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final
from zoneinfo import ZoneInfo

from django import template
from django.urls import NoReverseMatch
from django.utils.text import Truncator
from django.utils.timesince import timesince
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from accounts import limits, whitelist_requests
from accounts.ledger import reports
from accounts.models import WhitelistRequest
from config.core.clock import utc_now
from pipeline.dashboard import counts
from pipeline.switches import kill_switch
from webhooks import endpoints

if TYPE_CHECKING:
    from datetime import datetime

    from accounts.pages.page_access import Place

register = template.Library()
_ITEM_PAGES: Final = frozenset({"item", "made", "publication", "review"})
"""The first words of the URL names of pages that show one item, or one after the other."""
_MAX_REASON_CHARACTERS: Final = 300
"""A longer reason of an operator is truncated."""
_APPROVED_ON_CREATION: Final = timedelta(minutes=1)
"""A workspace that was approved within this time after its creation gets no banner about it."""


@dataclass(frozen=True)
class Banner:
    """A message at the top of the page; `tone` is a class of the style sheet, `icon` the name of an icon."""

    title: str
    text: str
    link: str = ""
    link_text: str = ""
    tone: str = "warn"
    icon: str = "triangle-alert"


@register.simple_tag
def standing_banners(place: Place | None, view_name: str | None = "") -> list[Banner]:
    """Return the banners that apply now; `view_name` is the name of the open page's URL.

    It takes three queries, whichever banners apply, and one more for a workspace without access. The operator's
    switches are read once a second for all pages together.
    """
    if place is None:
        return []
    banners = [
        *_access(place, view_name or ""),
        *_stopped(place),
        *_publishing(place),
        *_used_up(place),
        *_outlets(place),
        *_endpoints(place),
    ]
    return [banner for banner in banners if banner]


def _access(place: Place, view_name: str) -> list[Banner]:
    """Return the banner about the access request and the operator's decision, if this page needs one.

    The access page and workspaces that are about to be deleted have none.
    """
    workspace = place.workspace
    if workspace.deletes_at is not None or view_name == "access":
        return []
    if workspace.is_whitelisted:
        return _approved(place) if view_name == "home" else []
    revoked_at = workspace.delisted_at
    is_revoked = revoked_at is not None
    # Items can be made and reviewed before the approval, so their pages don't repeat the banner.
    if not is_revoked and view_name.partition("_")[0] in _ITEM_PAGES:
        return []
    last = whitelist_requests.last_request(workspace)
    link = (_address(place, "access"), _("Request access")) if place.may_manage else ("", "")
    if last is not None and last.status == WhitelistRequest.Status.PENDING:
        if view_name == "home" and not is_revoked:
            # The first steps on the home page say the same.
            return []
        text = _("Access requested on %(day)s; an operator decides.") % {
            "day": _format_day(place, last.created_at)
        }
        title, tone = (_("Access revoked."), "bad") if is_revoked else ("", "")
        return [Banner(title, text, tone=tone, icon="lock")]
    is_newer = last is not None and (revoked_at is None or last.created_at > revoked_at)
    if last is not None and is_newer and last.status == WhitelistRequest.Status.REFUSED:
        title = _("Access refused on %(day)s.") % {
            "day": _format_day(place, last.decided_at or last.created_at)
        }
        return [
            Banner(
                title, Truncator(last.reason).chars(_MAX_REASON_CHARACTERS), *link, tone="bad", icon="lock"
            )
        ]
    if revoked_at is not None:
        title = _("Access revoked on %(day)s.") % {"day": _format_day(place, revoked_at)}
        text = _("Sources, publishing and the API are paused.")
        return [Banner(title, text, *link, tone="bad", icon="lock")]
    if view_name == "home":
        return []
    text = _(
        "Create, review, and publish to the workspace feed and the test channel. "
        "Sources, other outlets and the API open on approval."
    )
    return [Banner(_("Not approved yet."), text, *link, tone="", icon="lock")]


def _approved(place: Place) -> list[Banner]:
    """Return the banner about a new approval, for some days, unless the workspace was approved on creation."""
    approved_at = place.workspace.whitelisted_at
    is_new = approved_at is not None and utc_now() - approved_at < limits.APPROVAL_SHOWN
    if approved_at is None or not is_new or approved_at - place.workspace.created_at < _APPROVED_ON_CREATION:
        return []
    title = _("Access approved on %(day)s.") % {"day": _format_day(place, approved_at)}
    text = _("Sources, your own outlets, AI and API keys work now.")
    link = (_address(place, "outlet_add"), _("Connect an outlet")) if place.may_manage else ("", "")
    return [Banner(title, text, *link, tone="good", icon="circle-check")]


def _stopped(place: Place) -> list[Banner]:
    switch = kill_switch.stopped_anywhere("publishing", workspace_id=place.workspace.pk)
    if switch is None:
        return []
    title = (
        _("The people who run this service paused publishing to %(platform)s.")
        % {"platform": switch.platform}
        if switch.platform
        else _("The people who run this service paused publishing.")
    )
    text = _("%(reason)s Posts publish when it resumes.") % {"reason": f"{switch.reason.rstrip('.')}."}
    return [Banner(title, text)]


def _publishing(place: Place) -> list[Banner]:
    """Return the banner about the workspace's own hold or, without one, about late publications.

    They are late by the clock, so the banner appears even if no worker runs.
    """
    now = utc_now()
    reason, late = counts.publishing_blockers(place.workspace.pk, now=now)
    if reason is not None:
        text = f"{reason.rstrip('.')}."
        link = _address(place, "queues_page")
        return [Banner(_("Publishing is paused."), text, link, _("View"))]
    if late is None:
        return []
    title = ngettext("%(count)d post late (%(span)s)", "%(count)d posts late (up to %(span)s)", late.count)
    span = timesince(now - timedelta(minutes=late.minutes), now, depth=1).replace("\xa0", " ")
    link = _address(place, "failures")
    return [Banner(title % {"count": late.count, "span": span}, "", link, _("Fix"))]


def _used_up(place: Place) -> list[Banner]:
    if not reports.is_used_up(place.workspace):
        return []
    title = _("This month's credits are used up.")
    text = _("New items wait until credits renew.")
    return [Banner(title, text, _address(place, "usage"), _("View usage"))]


def _outlets(place: Place) -> list[Banner]:
    names = counts.outlets_to_reconnect(place.workspace.pk)
    if not names:
        return []
    title = ngettext("%(names)s needs reconnecting.", "%(names)s need reconnecting.", len(names))
    text = _("Log-in expired. Posts are waiting.")
    address = _address(place, "outlets_page")
    return [Banner(title % {"names": ", ".join(names)}, text, address, _("View"), "bad")]


def _endpoints(place: Place) -> list[Banner]:
    """Return a banner for each cause of endpoints that the service has switched off.

    People who can't manage endpoints see no paths, because some receivers' paths are secrets.
    """
    disabled = endpoints.find_disabled(place.workspace.pk)
    address = _address(place, "webhooks") if place.may_manage else ""
    banners = []
    for is_gone in (True, False):
        affected = [endpoint for endpoint in disabled if endpoint.is_gone is is_gone]
        names = list(
            dict.fromkeys(endpoint.address if place.may_manage else endpoint.host for endpoint in affected)
        )
        if not names:
            continue
        title = ngettext(
            "The webhook endpoint at %(names)s is switched off.",
            "The webhook endpoints at %(names)s are switched off.",
            len(names),
        )
        cause = (
            ngettext("It answered 410 Gone.", "They answered 410 Gone.", len(names))
            if is_gone
            else _("Failing for days.")
        )
        after = ngettext(
            "Its events are held until an owner switches it on again.",
            "Their events are held until an owner switches them on again.",
            len(names),
        )
        banners.append(
            Banner(title % {"names": ", ".join(names)}, f"{cause} {after}", address, _("View endpoints"))
        )
    return banners


def _format_day(place: Place, moment: datetime) -> str:
    """Return the day as `29 Nov`, in the workspace's time zone."""
    local = moment.astimezone(ZoneInfo(place.workspace.timezone))
    return f"{local.day} {local:%b}"


def _address(place: Place, name: str, **arguments: Any) -> str:
    try:
        return place.url_of(name, **arguments)
    except NoReverseMatch:
        return ""
