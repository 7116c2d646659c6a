"""Switches an outlet on or off, makes it a default or not, and disconnects it after a confirmation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import messages
from django.http import Http404
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from accounts.pages.act_messages import offer_undo, report_errors
from accounts.pages.page_access import Place, workspace_page
from config.core.clock import utc_now
from pipeline import outlets
from pipeline.outlets.outlet_client import platform_of
from pipeline.pages.outlets.detail import find_outlet, outlet_head
from pipeline.publish import disconnect_outlet

if TYPE_CHECKING:
    from uuid import UUID

    from django.http import HttpRequest, HttpResponse


@workspace_page("edit", methods=("POST",))
def outlet_switch(request: HttpRequest, place: Place, out: UUID) -> HttpResponse:
    """Switch the outlet off, or on with `on=yes`; with the field `list`, redirect to the list of outlets."""
    outlet = find_outlet(place, out)
    is_on = request.POST.get("on") == "yes"
    by, now = place.user.email, utc_now()
    with report_errors(request):
        if is_on:
            outlets.switch_on(outlet, by=by, now=now)
            messages.success(request, _("%(name)s switched on.") % {"name": outlet.name})
        else:
            outlets.switch_off(outlet, by=by, now=now)
            message = _("%(name)s switched off. Scheduled posts will fail.") % {"name": outlet.name}
            offer_undo(request, message, place.url_of("outlet_switch", out=out), {"on": "yes"})
    if "list" in request.POST:
        return redirect(place.url_of("outlets_page"))
    return redirect(place.url_of("outlet_page", out=out))


@workspace_page("edit", methods=("POST",))
def outlet_default(request: HttpRequest, place: Place, out: UUID) -> HttpResponse:
    """Make the outlet a default one of the workspace with `default=yes`, else make it none."""
    outlet = find_outlet(place, out)
    is_default = request.POST.get("default") == "yes"
    with report_errors(request):
        outlets.set_default(outlet, is_default, by=place.user.email, now=utc_now())
        message = (
            _("%(name)s is now used by default.") if is_default else _("%(name)s is used only when selected.")
        )
        messages.success(request, message % {"name": outlet.name})
    return redirect(place.url_of("outlet_page", out=out))


@workspace_page("manage")
def outlet_disconnect(request: HttpRequest, place: Place, out: UUID) -> HttpResponse:
    """Disconnect the outlet on POST; before that, show a page that asks and says what is cancelled.

    The page asks because the outlet's secrets are erased, so that a disconnection can't be undone.
    """
    outlet = find_outlet(place, out)
    if not platform_of(outlet.platform).is_connectable:
        raise Http404
    if request.method == "POST":
        with report_errors(request):
            cancelled_count = disconnect_outlet.disconnect_outlet(outlet, by=place.user.email, now=utc_now())
            message = _("%(name)s disconnected.") % {"name": outlet.name}
            if cancelled_count:
                cancelled_message = ngettext(
                    "%(count)d scheduled post cancelled.",
                    "%(count)d scheduled posts cancelled.",
                    cancelled_count,
                )
                message += " " + cancelled_message % {"count": cancelled_count}
            messages.success(request, message)
            return redirect(place.url_of("outlets_page"))
        return redirect(place.url_of("outlet_page", out=out))
    context = {**outlet_head(outlet, "disconnect"), "hit": disconnect_outlet.count_affected(outlet)}
    return render(request, "pages/outlets/disconnect.html", context)
