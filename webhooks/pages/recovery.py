"""Sending again what an endpoint missed: the question, how far it is, and its end."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _

from accounts.pages import form_recovery
from accounts.pages.act_messages import report_errors
from accounts.pages.auto_refresh import is_poll_for, polling_fragment
from accounts.pages.page_access import Place, page
from config.core.clock import utc_now
from webhooks import limits, recovery
from webhooks.models import RecoveryStatus
from webhooks.pages import labels
from webhooks.pages.forms import RecoverForm
from webhooks.pages.parts import find_endpoint

if TYPE_CHECKING:
    from uuid import UUID

    from django.http import HttpRequest

    from webhooks.models import Endpoint, Recovery

_SECONDS: Final = 1
_BEFORE: Final = timedelta(minutes=1)
_SHOWN_AFTERWARDS: Final = timedelta(hours=1)


@page("manage")
def webhook_recover(request: HttpRequest, place: Place, whe: UUID) -> HttpResponse:
    """Asks since when; while one is under way, how far it is and whether it is to stop."""
    endpoint = find_endpoint(place, whe)
    running = _newest(endpoint, is_running=True)
    form = form_recovery.form_for(
        request, RecoverForm, initial=_beginning(endpoint, place), zone=place.workspace.timezone
    )
    if request.method == "POST" and form.is_valid():
        if not form_recovery.is_first_sending(request):
            return redirect(place.address("webhook", whe=whe))
        with report_errors(request, form):
            recovery.start(
                endpoint,
                form.moment(),
                is_everything=form.cleaned_data["what"] == "all",
                actor=place.user.email,
            )
            return redirect(place.address("webhook", whe=whe))
    context = {
        "endpoint": endpoint,
        "name": labels.name_of(endpoint),
        "form": form,
        "running": running,
        "days": limits.EVENT_PAYLOADS_KEPT.days,
    }
    return render(request, "pages/webhooks/recover.html", context)


@page("manage", methods=("POST",))
def webhook_recover_stop(request: HttpRequest, place: Place, whe: UUID) -> HttpResponse:
    running = _newest(find_endpoint(place, whe), is_running=True)
    if running is not None:
        with report_errors(request):
            recovery.stop(running, actor=place.user.email)
            messages.success(request, _("Stopped. Queued events are still sent."))
    return redirect(place.address("webhook", whe=whe))


def progress_part(request: HttpRequest, endpoint: Endpoint) -> HttpResponse | str:
    """How far the newest one is, for an hour after its end; empty where there is none."""
    newest = _newest(endpoint)
    if newest is not None and newest.ended_at and utc_now() - newest.ended_at > _SHOWN_AFTERWARDS:
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
        interval_seconds=_SECONDS if is_running else 0,
    )


def _newest(endpoint: Endpoint, *, is_running: bool = False) -> Recovery | None:
    found = recovery.newest(endpoint)
    return None if found is not None and is_running and found.status != RecoveryStatus.RUNNING else found


def _beginning(endpoint: Endpoint, place: Place) -> dict[str, object]:
    """Since it failed, as far as that is known; else since its last success, and a day at least."""
    since = utc_now() - timedelta(days=1)
    if endpoint.failing_since:
        # What failed first had happened before it failed.
        since = endpoint.failing_since - _BEFORE
    elif endpoint.last_success_at:
        # Switching it on has wiped since when it failed; a success that came afterwards says nothing of
        # before.
        since = min(since, endpoint.last_success_at)
    return {"since": RecoverForm.on_the_clocks_of(place.workspace.timezone, since)}
