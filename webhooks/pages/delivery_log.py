"""Serves an endpoint's log and a delivery with its attempts, and resends a delivery."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from django.contrib import messages
from django.db.models import OuterRef, Subquery
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _

from accounts.pages import kept_forms
from accounts.pages.act_messages import report_errors
from accounts.pages.page_access import Place, workspace_page
from accounts.pages.poll_fragment import polling_fragment
from config.core import limits as core_limits
from config.core import logs
from config.core.clock import utc_now
from config.core.ids import decode, encode, lowest_id_at
from webhooks import endpoints, limits
from webhooks.models import Delivery, DeliveryAttempt, DeliveryStatus
from webhooks.pages import labels
from webhooks.pages.forms import LogFilter
from webhooks.pages.parts import find_endpoint, has_answered_gone, read_next_tries
from webhooks.pages.recovery import progress_fragment
from webhooks.results import is_open

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID

    from django.db.models import QuerySet
    from django.http import HttpRequest
    from django.utils.safestring import SafeString

    from webhooks.models import Endpoint

_MAX_ATTEMPTS_SHOWN: Final = 30
_SLOW_POLL_SECONDS: Final = 5
_FAST_POLL_SECONDS: Final = 1
_MAX_ANSWER_LINES: Final = 6
"""Lines of an answer that a test event's outcome shows."""
_MAX_CLOCK_DIFFERENCE: Final = timedelta(minutes=5)
"""How far a process's clock, which makes ids, may differ from the database's."""


@dataclass(frozen=True)
class DeliveryRow:
    """A delivery as a row of the log."""

    delivery: Delivery
    outcome: labels.DeliveryOutcome
    when: SafeString
    """When it was created, in HTML."""
    took: str
    """The duration of the last attempt, or empty before the first."""
    next_try: SafeString | str
    """When it is tried again, in HTML, or empty if no time is set."""

    @property
    def result(self) -> str:
        return labels.status_line(self.delivery.last_status) or self.delivery.last_error


@workspace_page("manage", methods=("GET",))
def webhook(request: HttpRequest, place: Place, whe: UUID) -> HttpResponse:
    """Show an endpoint with the log of its deliveries."""
    endpoint = find_endpoint(place, whe)
    form = LogFilter(request.GET)
    before = request.GET.get("before", "")
    # Older pages don't change; only the newest one polls.
    log_fragment = polling_fragment(
        request,
        "deliveries",
        "pages/webhooks/log.html",
        _log_context(request, place, endpoint, form, before),
        interval_seconds=0 if before or not form.is_valid() else _SLOW_POLL_SECONDS,
    )
    if isinstance(log_fragment, HttpResponse):
        return log_fragment
    progress = progress_fragment(request, endpoint)
    if isinstance(progress, HttpResponse):
        return progress
    state = labels.state_of(endpoint)
    context = {
        "endpoint": endpoint,
        "name": labels.name_of(endpoint),
        "state": state,
        "is_gone": state == "disabled" and has_answered_gone(place, endpoint),
        "next_try": read_next_tries(place, [whe]).get(whe),
        "filter": form,
        "log": log_fragment,
        "progress": progress,
        "is_open": is_open(endpoint),
        "tab": "log",
    }
    return render(request, "pages/webhooks/detail.html", context)


def _log_context(
    request: HttpRequest, place: Place, endpoint: Endpoint, form: LogFilter, before: str
) -> dict[str, Any]:
    """Return the log's template context; an invalid filter shows no rows. Raises `Http404` for a bad `before`."""
    now = utc_now()
    rows: list[Delivery] = []
    if form.is_valid():
        rows = list(
            _filtered_deliveries(place, endpoint, form, before, now)[: core_limits.PAGE_ROWS_DEFAULT + 1]
        )
    page_rows = rows[: core_limits.PAGE_ROWS_DEFAULT]
    query = request.GET.copy()
    for name in ("seen", "before"):
        query.pop(name, None)
    newest_query = query.urlencode()
    if len(rows) > len(page_rows):
        query["before"] = encode("dlv", page_rows[-1].pk)
    return {
        "endpoint": endpoint,
        "rows": [_to_row(delivery, now, place.workspace.timezone) for delivery in page_rows],
        "older": query.urlencode() if len(rows) > len(page_rows) else "",
        "newest": newest_query,
        "before": before,
        "is_filtered": any(form.data.get(name) for name in form.fields),
        "is_understood": form.is_valid(),
        "is_open": is_open(endpoint),
    }


def _filtered_deliveries(
    place: Place, endpoint: Endpoint, form: LogFilter, before: str, now: datetime
) -> QuerySet[Delivery]:
    """Return the filtered deliveries that are older than the one with the id `before`, newest first.

    They are read by the index of the endpoint's log, so each page costs the same. Raises `Http404` if `before` is
    neither empty nor the id of a delivery.
    """
    deliveries: QuerySet[Delivery] = Delivery.objects.of(place.workspace).filter(endpoint=endpoint)
    if form.cleaned_data["outcome"]:
        deliveries = deliveries.filter(status=form.cleaned_data["outcome"])
    if form.cleaned_data["event"]:
        deliveries = deliveries.filter(event__type=form.cleaned_data["event"])
    max_age = form.max_age()
    if max_age is not None:
        # Ids rise with time too, so the index scan can stop at the lowest id of this time.
        since = now - max_age
        deliveries = deliveries.filter(
            created_at__gte=since, pk__gte=lowest_id_at(since - _MAX_CLOCK_DIFFERENCE)
        )
    if before:
        before_id = decode("dlv", before)
        if before_id is None:
            raise Http404
        deliveries = deliveries.filter(pk__lt=before_id)
    last_attempt = (
        DeliveryAttempt.objects.of(place.workspace).filter(delivery=OuterRef("pk")).order_by("-number")
    )
    rows: QuerySet[Delivery] = (
        deliveries.select_related("event")
        .defer("event__body")
        .annotate(last_took=Subquery(last_attempt.values("duration_ms")[:1]))
        .order_by("-id")
    )
    return rows


def _to_row(delivery: Delivery, now: datetime, zone: str) -> DeliveryRow:
    outcome = labels.outcome_of(delivery, now=now)
    is_waiting = delivery.status == DeliveryStatus.PENDING and not outcome.is_under_way
    return DeliveryRow(
        delivery,
        outcome,
        labels.format_exact_time(delivery.created_at, zone),
        labels.format_duration(getattr(delivery, "last_took", None)),
        _format_time_or_empty(delivery.wake_at if is_waiting else None, zone),
    )


def _poll_seconds(outcome: labels.DeliveryOutcome) -> int:
    """Return the polling interval in seconds, or 0 if nothing will change soon."""
    if not outcome.is_live:
        return 0
    return _SLOW_POLL_SECONDS if outcome.is_stuck else _FAST_POLL_SECONDS


def _find_delivery(place: Place, endpoint: Endpoint, dlv: UUID) -> Delivery:
    rows = Delivery.objects.of(place.workspace).select_related("event").filter(endpoint=endpoint, pk=dlv)
    row: Delivery = get_object_or_404(rows)
    return row


def _format_time_or_empty(moment: datetime | None, zone: str) -> str:
    return "" if moment is None else labels.format_exact_time(moment, zone)


def _attempt_rows(place: Place, delivery: Delivery) -> list[dict[str, Any]]:
    """Return the newest attempts for the template, up to `_MAX_ATTEMPTS_SHOWN`."""
    attempts = DeliveryAttempt.objects.of(place.workspace).filter(delivery=delivery).order_by("-number")
    zone = place.workspace.timezone
    return [
        {
            "attempt": attempt,
            "is_success": attempt.status_code is not None and 200 <= attempt.status_code < 300,
            "status_line": labels.status_line(attempt.status_code),
            "when": labels.format_exact_time(attempt.started_at, zone),
            "took": labels.format_duration(attempt.duration_ms),
            "next": _format_time_or_empty(attempt.next_attempt_at, zone),
            # A receiver may repeat what it was sent, including secrets.
            "answer": logs.redact(attempt.response_body),
        }
        for attempt in attempts[:_MAX_ATTEMPTS_SHOWN]
    ]


@workspace_page("manage", methods=("GET",))
def webhook_delivery(request: HttpRequest, place: Place, whe: UUID, dlv: UUID) -> HttpResponse:
    """Show a delivery with its attempts."""
    endpoint = find_endpoint(place, whe)
    delivery = _find_delivery(place, endpoint, dlv)
    row = _to_row(delivery, utc_now(), place.workspace.timezone)
    body = delivery.event.body
    context = {
        "endpoint": endpoint,
        "name": labels.name_of(endpoint),
        "row": row,
        "delivery": delivery,
        "attempts": _attempt_rows(place, delivery),
        "most": _MAX_ATTEMPTS_SHOWN,
        "event_id": encode("evt", delivery.event_id),
        "body": None if body is None else bytes(body).decode(),
        "days": limits.EVENT_PAYLOADS_KEPT.days,
        "log_days": limits.DELIVERY_ATTEMPTS_KEPT.days,
        "is_open": is_open(endpoint),
    }
    fragment = polling_fragment(
        request,
        "delivery",
        "pages/webhooks/attempts.html",
        context,
        css_class="stack",
        interval_seconds=_poll_seconds(row.outcome),
    )
    if isinstance(fragment, HttpResponse):
        return fragment
    return render(request, "pages/webhooks/delivery.html", {**context, "live": fragment})


@workspace_page("manage", methods=("GET",))
def webhook_outcome(request: HttpRequest, place: Place, whe: UUID, dlv: UUID) -> HttpResponse:
    """Render a test event's outcome for the page that polls it, or redirect other requests to the delivery."""
    endpoint = find_endpoint(place, whe)
    fragment = outcome_fragment(request, place, endpoint, dlv)
    if isinstance(fragment, HttpResponse):
        return fragment
    return redirect(place.url_of("webhook_delivery", whe=whe, dlv=dlv))


def outcome_fragment(request: HttpRequest, place: Place, endpoint: Endpoint, dlv: UUID) -> HttpResponse | str:
    """Render a test event's outcome, which polls while it may change. Raises `Http404` if there is none."""
    delivery = _find_delivery(place, endpoint, dlv)
    row = _to_row(delivery, utc_now(), place.workspace.timezone)
    attempt = next(iter(_attempt_rows(place, delivery)), None)
    context = {
        "endpoint": endpoint,
        "row": row,
        "delivery": delivery,
        "attempt": attempt,
        "first_lines": "\n".join(attempt["answer"].splitlines()[:_MAX_ANSWER_LINES]) if attempt else "",
    }
    return polling_fragment(
        request,
        "outcome",
        "pages/webhooks/outcome.html",
        context,
        css_class="body",
        url=place.url_of("webhook_outcome", whe=endpoint.pk, dlv=dlv),
        interval_seconds=_poll_seconds(row.outcome),
    )


@workspace_page("manage", methods=("POST",))
def webhook_resend(request: HttpRequest, place: Place, whe: UUID, dlv: UUID) -> HttpResponse:
    delivery = _find_delivery(place, find_endpoint(place, whe), dlv)
    if kept_forms.is_first_sending(request):
        with report_errors(request):
            endpoints.resend(delivery, actor=place.user.email)
            messages.success(request, _("Resending."))
    return redirect(place.url_of("webhook_delivery", whe=whe, dlv=dlv))
