"""Pauses and resumes all publishing of a workspace, and shows first what will happen to each publication."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import messages
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _

from accounts.pages import kept_forms
from accounts.pages.act_messages import report_errors
from accounts.pages.page_access import Place, workspace_page
from config.core.clock import utc_now
from config.core.errors import NotFound
from pipeline.pages.queues import display
from pipeline.pages.queues.forms import HoldForm
from pipeline.publish import workspace_hold

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse


@workspace_page("edit")
def queues_hold(request: HttpRequest, place: Place) -> HttpResponse:
    """Show the form, and pause all publishing on POST; if it is paused already, change the reason."""
    hold = workspace_hold.read_hold(place.workspace)
    initial = {"reason": hold.reason if hold else ""}
    form = kept_forms.form_for(request, HoldForm, initial=initial)
    if request.method == "POST" and form.is_valid():
        with report_errors(request, form):
            workspace_hold.hold_workspace(
                place.workspace, reason=form.cleaned_data["reason"], by=place.user.email
            )
            message = _("Publishing paused. Posts already being sent will finish.")
            messages.success(request, message)
            return redirect(place.url_of("queues_page"))
    coming, has_more = workspace_hold.coming_publications(place.workspace, test=False, now=utc_now())
    context = {
        "form": form,
        "hold": hold,
        "rows": [display.hold_row(publication) for publication in coming],
        "has_more": has_more,
    }
    return render(request, "pages/queues/hold.html", context)


@workspace_page("edit")
def queues_release(request: HttpRequest, place: Place) -> HttpResponse:
    """Show what will happen, and resume publishing on POST; if it is on already, say so."""
    hold, now = workspace_hold.read_hold(place.workspace), utc_now()
    if request.method == "POST":
        try:
            workspace_hold.release_workspace(place.workspace, by=place.user.email, now=now)
        except NotFound:
            hold = None
        else:
            message = _("Publishing resumed.")
            messages.success(request, message)
            return redirect(place.url_of("queues_page"))
    if hold is None:
        messages.info(request, _("Publishing is already on."))
        return redirect(place.url_of("queues_page"))
    coming, has_more = workspace_hold.coming_publications(place.workspace, test=False, now=now)
    context = {
        "hold": hold,
        "rows": [display.release_row(publication) for publication in coming],
        "counts": display.count_outcomes(coming),
        "has_more": has_more,
    }
    return render(request, "pages/queues/release.html", context)
