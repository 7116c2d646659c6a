"""Serves the form that resends what an endpoint missed, the recovery's progress, and its stop."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _

from accounts.pages import kept_forms
from accounts.pages.act_messages import report_errors
from accounts.pages.page_access import Place, workspace_page
from accounts.pages.poll_fragment import is_poll_for, polling_fragment
from config.core.clock import utc_now
from webhooks import limits, recovery
from webhooks.models import RecoveryStatus
from webhooks.pages import labels
from webhooks.pages.forms import ResendForm
from webhooks.pages.parts import find_endpoint

if TYPE_CHECKING:
    from uuid import UUID

    from django.http import HttpRequest

    from webhooks.models import Endpoint, Recovery

_POLL_SECONDS: Final = 1
_BEFORE_FIRST_FAILURE: Final = timedelta(minutes=1)
"""How long before its first failure the suggested time is."""
_SHOWN_AFTER_END: Final = timedelta(hours=1)
"""How long the progress of an ended recovery is shown."""


@workspace_page("manage")
def webhook_recover(request: HttpRequest, place: Place, whe: UUID) -> HttpResponse:
    """Ask since when to resend (GET), or start the recovery (POST); show a recovery that runs."""
    endpoint = find_endpoint(place, whe)
    running = _running_recovery(endpoint)
    form = kept_forms.form_for(
        request, ResendForm, initial=_initial_values(endpoint, place), zone=place.workspace.timezone
    )
    if request.method == "POST" and form.is_valid():
        if not kept_forms.is_first_sending(request):
            return redirect(place.url_of("webhook", whe=whe))
        with report_errors(request, form):
            recovery.start(
                endpoint,
                form.moment(),
                is_everything=form.cleaned_data["what"] == "all",
                actor=place.user.email,
            )
            return redirect(place.url_of("webhook", whe=whe))
    context = {
        "endpoint": endpoint,
        "name": labels.name_of(endpoint),
        "form": form,
        "running": running,
        "days": limits.EVENT_PAYLOADS_KEPT.days,
    }
    return render(request, "pages/webhooks/recover.html", context)


@workspace_page("manage", methods=("POST",))
def webhook_recover_stop(request: HttpRequest, place: Place, whe: UUID) -> HttpResponse:
    running = _running_recovery(find_endpoint(place, whe))
    if running is not None:
        with report_errors(request):
            recovery.stop(running, actor=place.user.email)
            messages.success(request, _("Stopped. Queued events are still sent."))
    return redirect(place.url_of("webhook", whe=whe))


def progress_fragment(request: HttpRequest, endpoint: Endpoint) -> HttpResponse | str:
    """Return the progress of the newest recovery, until `_SHOWN_AFTER_END` after its end.

    Without a recovery it returns an empty text for the page, and a 204 for a poll, which changes nothing there.
    """
    newest = recovery.find_newest(endpoint)
    if newest is not None and newest.ended_at and utc_now() - newest.ended_at > _SHOWN_AFTER_END:
        newest = None
    if newest is None:
        return HttpResponse(status=204) if is_poll_for(request, "recovery") else ""
    context = {"endpoint": endpoint, "recovery": newest}
    is_running = newest.status == RecoveryStatus.RUNNING
    return polling_fragment(
        request,
        "recovery",
        "pages/webhooks/recovery.html",
        context,
        interval_seconds=_POLL_SECONDS if is_running else 0,
    )


def _running_recovery(endpoint: Endpoint) -> Recovery | None:
    """Return the recovery that runs, or `None` if the newest has ended or there is none."""
    newest = recovery.find_newest(endpoint)
    return newest if newest is not None and newest.status == RecoveryStatus.RUNNING else None


def _initial_values(endpoint: Endpoint, place: Place) -> dict[str, object]:
    """Suggest the time since which the endpoint has failed, or a day ago, or its last success if that is earlier."""
    since = utc_now() - timedelta(days=1)
    if endpoint.failing_since:
        # The event of the first failure happened before that failure.
        since = endpoint.failing_since - _BEFORE_FIRST_FAILURE
    elif endpoint.last_success_at:
        # Switching it on has deleted when it began to fail; a success afterwards says nothing about the time
        # before.
        since = min(since, endpoint.last_success_at)
    return {"since": ResendForm.to_wall_time(place.workspace.timezone, since)}
