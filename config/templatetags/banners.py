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

from accounts import credits as credit_account
from config.core.clock import utc_now
from pipeline.dashboard import counts
from pipeline.switches import kill_switch
from webhooks import endpoints

if TYPE_CHECKING:
    from accounts.pages.workspace_view import Place

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
        _("The operator has stopped publishing to %(platform)s.") % {"platform": switch.platform}
        if switch.platform
        else _("The operator has stopped publishing.")
    )
    text = _("%(reason)s What is due waits, and goes out by itself afterwards.") % {
        "reason": f"{switch.reason.rstrip('.')}."
    }
    return [Banner(title, text)]


def _publishing(place: Place) -> list[Banner]:
    """The workspace's own hold or, without one, what is late: by the clock alone, so that it shows without a worker."""
    now = utc_now()
    reason, late = counts.publishing_obstacles(place.workspace.pk, now=now)
    if reason is not None:
        text = _("%(reason)s Nothing goes out until somebody lets go.") % {"reason": f"{reason.rstrip('.')}."}
        link = _address(place, "queues_page")
        return [Banner(_("All publishing is on hold."), text, link, _("See who holds it, and what waits"))]
    if late is None:
        return []
    title = ngettext(
        "%(count)d post is late, by %(span)s.",
        "%(count)d posts are late, the earliest by %(span)s.",
        late.count,
    )
    span = timesince(now - timedelta(minutes=late.minutes), now, depth=1).replace("\xa0", " ")
    text = ngettext(
        "It says why it waits: for its outlet, for an approval, or for the service itself.",
        "Each says why it waits: for its outlet, for an approval, or for the service itself.",
        late.count,
    )
    link = _address(place, "failures")
    return [Banner(title % {"count": late.count, "span": span}, text, link, _("See which, and what helps"))]


def _used_up(place: Place) -> list[Banner]:
    if not credit_account.is_used_up(place.workspace):
        return []
    title = _("This month's credits are used up.")
    text = _("Pushes are refused and what sources bring waits until the next month, or until you get more.")
    return [Banner(title, text, _address(place, "usage"), _("See the usage"))]


def _outlets(place: Place) -> list[Banner]:
    names = counts.outlets_to_reconnect(place.workspace.pk)
    if not names:
        return []
    title = ngettext("%(names)s has to be reconnected.", "%(names)s have to be reconnected.", len(names))
    text = _("The platform refuses the log-in, so nothing is published there.")
    address = _address(place, "outlets_page")
    return [Banner(title % {"names": ", ".join(names)}, text, address, _("See what it says"), "bad")]


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
            ngettext("It answered 410: it is gone.", "They answered 410: they are gone.", len(names))
            if is_gone
            else ngettext("It failed for days.", "They failed for days.", len(names))
        )
        after = ngettext(
            "Its events are held until an owner switches it on again.",
            "Their events are held until an owner switches them on again.",
            len(names),
        )
        banners.append(
            Banner(title % {"names": ", ".join(names)}, f"{cause} {after}", address, _("See the endpoints"))
        )
    return banners


def _address(place: Place, name: str, **more: Any) -> str:
    try:
        return place.address(name, **more)
    except NoReverseMatch:
        return ""
