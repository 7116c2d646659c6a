"""Serves the pages that list, add, change, pause, test and delete endpoints, and rotate their secrets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import messages
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.cache import never_cache

from accounts.pages import kept_forms, shown_once
from accounts.pages.act_messages import offer_undo, report_errors
from accounts.pages.page_access import Place, fresh_log_in_required, workspace_page
from config.core.clock import utc_now
from config.core.ids import decode, encode
from webhooks import endpoints
from webhooks.models import Delivery, Endpoint
from webhooks.pages import labels
from webhooks.pages.delivery_log import outcome_fragment
from webhooks.pages.forms import AddEndpointForm, EndpointForm, RotateEndpointSecretForm, initial_values
from webhooks.pages.parts import find_endpoint, has_answered_gone, read_next_tries

if TYPE_CHECKING:
    from uuid import UUID

    from django.http import HttpRequest, HttpResponse


@workspace_page("manage", methods=("GET",))
def webhooks(request: HttpRequest, place: Place) -> HttpResponse:
    """List the endpoints."""
    rows_of_workspace = (
        Endpoint.objects.of(place.workspace).filter(deleted_at=None).defer("secret", "previous_secret")
    )
    newest_first = list(rows_of_workspace.order_by("-id"))
    tries = read_next_tries(place, [endpoint.pk for endpoint in newest_first])
    rows = [
        {
            "endpoint": endpoint,
            "name": labels.name_of(endpoint),
            "events": labels.events_of(endpoint),
            "state": labels.state_of(endpoint),
            "next_try": tries.get(endpoint.pk),
        }
        for endpoint in newest_first
    ]
    return render(request, "pages/webhooks/list.html", {"rows": rows})


@workspace_page("manage")
@fresh_log_in_required
def webhook_add(request: HttpRequest, place: Place) -> HttpResponse:
    form = kept_forms.form_for(request, AddEndpointForm)
    if request.method == "POST" and form.is_valid():
        if not kept_forms.is_first_sending(request):
            return redirect(place.url_of("webhooks"))
        with report_errors(request, form):
            added = endpoints.add(
                place.workspace,
                form.cleaned_data["url"],
                events=form.chosen_events(),
                test=form.cleaned_data["mode"] == "test",
                description=form.cleaned_data["description"],
                rate=form.cleaned_data["rate"],
                is_tried=True,
                actor=place.user.email,
            )
            shown_once.keep_secret(request, encode("whe", added.endpoint.pk), added.secret)
            query = f"?sent={encode('dlv', added.test.pk)}" if added.test else ""
            return redirect(place.url_of("webhook_secret", whe=added.endpoint.pk) + query)
    return render(request, "pages/webhooks/add.html", {"form": form})


@workspace_page("manage", methods=("GET",))
@fresh_log_in_required
@never_cache
def webhook_secret(request: HttpRequest, place: Place, whe: UUID) -> HttpResponse:
    """Show a new secret once; with `?sent=` also the outcome of the test event."""
    endpoint = find_endpoint(place, whe)
    dlv = decode("dlv", request.GET.get("sent", ""))
    # The outcome is read before the secret is taken, because it may end in a 404.
    outcome = None if dlv is None else outcome_fragment(request, place, endpoint, dlv)
    context = {
        "endpoint": endpoint,
        "name": labels.name_of(endpoint),
        "outcome": outcome,
        # A HEAD shows nothing, so it must not use up the only view.
        "secret": shown_once.take_secret(request, encode("whe", whe)) if request.method == "GET" else None,
    }
    return render(request, "pages/webhooks/secret.html", context)


@workspace_page("manage")
def webhook_edit(request: HttpRequest, place: Place, whe: UUID) -> HttpResponse:
    """Change an endpoint; a new address gets a test event."""
    endpoint = find_endpoint(place, whe)
    form = kept_forms.form_for(request, EndpointForm, initial=initial_values(endpoint))
    if request.method == "POST" and form.is_valid():
        with report_errors(request, form):
            test_delivery = endpoints.change(
                endpoint,
                url=form.cleaned_data["url"],
                events=form.chosen_events(),
                description=form.cleaned_data["description"],
                rate=form.cleaned_data["rate"],
                actor=place.user.email,
            )
            if test_delivery is None:
                messages.success(request, _("Saved."))
                return redirect(place.url_of("webhook_edit", whe=whe))
            messages.success(request, _("Saved. Test event sent to the new URL."))
            return redirect(place.url_of("webhook_delivery", whe=whe, dlv=test_delivery.pk))
    context = {
        "endpoint": endpoint,
        "name": labels.name_of(endpoint),
        "state": labels.state_of(endpoint),
        "form": form,
        "tab": "edit",
        "overlaps_now": _has_two_secrets(endpoint),
    }
    return render(request, "pages/webhooks/edit.html", context)


def _has_two_secrets(endpoint: Endpoint) -> bool:
    """Return whether the old secret still signs together with the new one."""
    until = endpoint.previous_secret_until
    return until is not None and until > utc_now()


@workspace_page("manage")
@fresh_log_in_required
def webhook_rotate(request: HttpRequest, place: Place, whe: UUID) -> HttpResponse:
    """Ask how long the old secret signs (GET), or rotate the secret and show the new one (POST)."""
    endpoint = find_endpoint(place, whe)
    form = kept_forms.form_for(request, RotateEndpointSecretForm)
    if request.method == "POST" and form.is_valid():
        if not kept_forms.is_first_sending(request):
            return redirect(place.url_of("webhook_secret", whe=whe))
        with report_errors(request, form):
            secret = endpoints.rotate_secret(endpoint, form.overlap_duration(), actor=place.user.email)
            shown_once.keep_secret(request, encode("whe", whe), secret)
            messages.success(request, _("Secret rotated."))
            return redirect(place.url_of("webhook_secret", whe=whe))
    context = {
        "endpoint": endpoint,
        "name": labels.name_of(endpoint),
        "form": form,
        "overlaps_now": _has_two_secrets(endpoint),
    }
    return render(request, "pages/webhooks/rotate.html", context)


@workspace_page("manage", methods=("POST",))
def webhook_pause(request: HttpRequest, place: Place, whe: UUID) -> HttpResponse:
    with report_errors(request):
        endpoints.switch_off(find_endpoint(place, whe), actor=place.user.email)
        offer_undo(request, _("Paused. Events are held."), place.url_of("webhook_resume", whe=whe))
    return redirect(place.url_of("webhook", whe=whe))


@workspace_page("manage")
def webhook_resume(request: HttpRequest, place: Place, whe: UUID) -> HttpResponse:
    """Ask what to do with held events (GET), or switch the endpoint on (POST), by default with held events."""
    endpoint = find_endpoint(place, whe)
    if request.method == "POST":
        sends_held = request.POST.get("held", "send") == "send"
        with report_errors(request):
            released = endpoints.switch_on(endpoint, actor=place.user.email, release=sends_held)
            sent_text = ngettext("Sending %(count)d held event.", "Sending %(count)d held events.", released)
            messages.success(
                request, _("Switched on.") + (f" {sent_text % {'count': released}}" if released else "")
            )
        return redirect(place.url_of("webhook", whe=whe))
    held = Delivery.objects.of(place.workspace).held().filter(endpoint=endpoint).count()
    context = {"endpoint": endpoint, "name": labels.name_of(endpoint), "held": held}
    return render(
        request, "pages/webhooks/resume.html", {**context, "is_gone": has_answered_gone(place, endpoint)}
    )


@workspace_page("manage", methods=("POST",))
def webhook_test(request: HttpRequest, place: Place, whe: UUID) -> HttpResponse:
    """Send a test event and show its delivery; a second sending of the form shows the log."""
    endpoint = find_endpoint(place, whe)
    if not kept_forms.is_first_sending(request):
        return redirect(place.url_of("webhook", whe=whe))
    with report_errors(request):
        test_delivery = endpoints.send_test(endpoint, actor=place.user.email)
        return redirect(place.url_of("webhook_delivery", whe=whe, dlv=test_delivery.pk))
    return redirect(place.url_of("webhook", whe=whe))


@workspace_page("manage")
def webhook_delete(request: HttpRequest, place: Place, whe: UUID) -> HttpResponse:
    """Delete an endpoint after a confirmation."""
    endpoint = find_endpoint(place, whe)
    name = labels.name_of(endpoint)
    if request.method == "POST":
        with report_errors(request):
            endpoints.remove(endpoint, actor=place.user.email)
            messages.success(request, _("%(name)s deleted.") % {"name": name})
        return redirect(place.url_of("webhooks"))
    waiting = Delivery.objects.of(place.workspace).open().filter(endpoint=endpoint)
    context = {"endpoint": endpoint, "name": name, "waiting": waiting.count()}
    return render(request, "pages/webhooks/delete.html", context)
