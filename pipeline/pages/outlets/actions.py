"""The actions of an outlet: switch it on or off, make it a default or not, disconnect it after a confirmation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import messages
from django.http import Http404
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from accounts.pages.act_messages import offer_undo, report_errors
from accounts.pages.page_access import Place, page
from config.core.clock import utc_now
from pipeline import outlets
from pipeline.outlets.outlet_client import platform_of
from pipeline.pages.outlets.detail import find_outlet, outlet_head
from pipeline.publish import disconnect_outlet

if TYPE_CHECKING:
    from uuid import UUID

    from django.http import HttpRequest, HttpResponse


@page("edit", methods=("POST",))
def outlet_switch(request: HttpRequest, place: Place, out: UUID) -> HttpResponse:
    """Switches off, and on with `on=yes`; with `list` it leads back to the list."""
    row = find_outlet(place, out)
    is_on = request.POST.get("on") == "yes"
    by, now = place.user.email, utc_now()
    with report_errors(request):
        if is_on:
            outlets.switch_on(row, by=by, now=now)
            messages.success(request, _("%(name)s switched on.") % {"name": row.name})
        else:
            outlets.switch_off(row, by=by, now=now)
            said = _("%(name)s switched off. Scheduled posts will fail.") % {"name": row.name}
            offer_undo(request, said, place.address("outlet_switch", out=out), {"on": "yes"})
    if "list" in request.POST:
        return redirect(place.address("outlets_page"))
    return redirect(place.address("outlet_page", out=out))


@page("edit", methods=("POST",))
def outlet_default(request: HttpRequest, place: Place, out: UUID) -> HttpResponse:
    """One of the workspace's defaults with `default=yes`, else not."""
    row = find_outlet(place, out)
    is_default = request.POST.get("default") == "yes"
    with report_errors(request):
        outlets.set_default(row, is_default, by=place.user.email, now=utc_now())
        said = (
            _("%(name)s is now used by default.") if is_default else _("%(name)s is used only when selected.")
        )
        messages.success(request, said % {"name": row.name})
    return redirect(place.address("outlet_page", out=out))


@page("manage")
def outlet_disconnect(request: HttpRequest, place: Place, out: UUID) -> HttpResponse:
    """Asks first, and says what it cancels: the secrets are gone afterwards, so that nothing can be taken back."""
    row = find_outlet(place, out)
    if not platform_of(row.platform).is_connectable:
        raise Http404
    if request.method == "POST":
        with report_errors(request):
            cancelled = disconnect_outlet.disconnect_outlet(row, by=place.user.email, now=utc_now())
            said = _("%(name)s disconnected.") % {"name": row.name}
            if cancelled:
                told = ngettext(
                    "%(count)d scheduled post cancelled.",
                    "%(count)d scheduled posts cancelled.",
                    cancelled,
                )
                said += " " + told % {"count": cancelled}
            messages.success(request, said)
            return redirect(place.address("outlets_page"))
        return redirect(place.address("outlet_page", out=out))
    context = {**outlet_head(row, "disconnect"), "hit": disconnect_outlet.count_affected(row)}
    return render(request, "pages/outlets/disconnect.html", context)
