"""What stands in a workspace's way right now, for every page of it; the wiring, because several apps know a part."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django import template
from django.urls import NoReverseMatch
from django.utils.timesince import timesince
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from accounts.ledger import reports
from config.core.clock import utc_now
from pipeline.dashboard import counts
from pipeline.switches import kill_switch
from webhooks import endpoints

if TYPE_CHECKING:
    from accounts.pages.page_access import Place

register = template.Library()


@dataclass(frozen=True)
class Banner:
    title: str
    text: str
    link: str = ""
    link_text: str = ""
    tone: str = "warn"


@register.simple_tag
def standing_banners(place: Place | None) -> list[Banner]:
    """Three statements, whatever stands; the operator's switches are read once a second for all pages together."""
    if place is None:
        return []
    found = [*_stopped(place), *_publishing(place), *_used_up(place), *_outlets(place), *_endpoints(place)]
    return [banner for banner in found if banner]


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
    """The workspace's own hold or, without one, what is late: by the clock alone, so that it shows without a worker."""
    now = utc_now()
    reason, late = counts.publishing_obstacles(place.workspace.pk, now=now)
    if reason is not None:
        text = f"{reason.rstrip('.')}."
        link = _address(place, "queues_page")
        return [Banner(_("Publishing is paused."), text, link, _("View"))]
    if late is None:
        return []
    title = ngettext(
        "%(count)d post late (%(span)s)",
        "%(count)d posts late (up to %(span)s)",
        late.count,
    )
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
    """One banner for each cause. Whoever can't manage them sees no paths: some receivers' are secrets."""
    found = endpoints.disabled(place.workspace.pk)
    address = _address(place, "webhooks") if place.may_manage else ""
    banners = []
    for is_gone in (True, False):
        there = [one for one in found if one.is_gone is is_gone]
        names = list(dict.fromkeys(one.address if place.may_manage else one.host for one in there))
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


def _address(place: Place, name: str, **more: Any) -> str:
    try:
        return place.address(name, **more)
    except NoReverseMatch:
        return ""
