"""Views of a newsletter's subscribers and mailings, for the workspace's members."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django import forms
from django.conf import settings
from django.contrib import messages
from django.db.models import Count
from django.http import StreamingHttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from accounts.pages.act_messages import report_errors
from accounts.pages.page_access import Place, workspace_page
from config.core.clock import utc_now
from config.core.ids import decode, encode
from pipeline import labels, limits
from pipeline import mailing as stage
from pipeline.mailing import subscribers as subscribing
from pipeline.models import Mailing, MailingStatus, Outlet, Subscriber
from pipeline.pages.outlets.detail import outlet_head

if TYPE_CHECKING:
    from uuid import UUID

    from django.http import HttpRequest, HttpResponse

ROWS: Final = 50
"""Subscribers on a page."""
MAILINGS: Final = 10
"""Newest mailings that are shown."""


class AddSubscribersForm(forms.Form):
    """The address of one new subscriber."""

    email = forms.CharField(label=gettext_lazy("Email address"), max_length=254, widget=forms.EmailInput())


class ImportForm(forms.Form):
    """A CSV file of addresses, with the declaration of their consent."""

    file = forms.FileField(
        label=gettext_lazy("CSV file"),
        help_text=gettext_lazy("One address per line; up to 10,000"),
    )
    consent = forms.BooleanField(
        label=gettext_lazy("All of them agreed to this newsletter, and I can prove it")
    )


def _find_newsletter(place: Place, out: UUID) -> Outlet:
    """Return the newsletter outlet. Raises `Http404` if the workspace has none with that id."""
    row: Outlet = get_object_or_404(
        Outlet.objects.of(place.workspace).select_related("workspace"),
        pk=out,
        platform=subscribing.KIND,
        deleted_at=None,
    )
    return row


def _redirect_to_list(place: Place, out: UUID) -> HttpResponse:
    """Redirect to the list of subscribers."""
    return redirect(place.url_of("subscribers", out=out))


@workspace_page("edit", methods=("GET",))
def subscribers(request: HttpRequest, place: Place, out: UUID) -> HttpResponse:
    """Show a page of subscribers, newest first, filtered by `status` and `search`, and the last mailings."""
    outlet = _find_newsletter(place, out)
    return render(
        request,
        "pages/newsletters/subscribers.html",
        _list_context(request, place, outlet, AddSubscribersForm(), ImportForm()),
    )


def _list_context(
    request: HttpRequest, place: Place, outlet: Outlet, add_form: AddSubscribersForm, import_form: ImportForm
) -> dict[str, Any]:
    """Return the context of the list; the secret address for bounces is shown to managers only."""
    subscribers_of_list = Subscriber.objects.of(place.workspace).filter(outlet=outlet)
    counts = {row["status"]: row["n"] for row in subscribers_of_list.values("status").annotate(n=Count("pk"))}
    wanted_status, search_text = request.GET.get("status", ""), request.GET.get("search", "").strip()[:254]
    rows = (
        subscribers_of_list.filter(status=wanted_status)
        if wanted_status in labels.SUBSCRIBERS
        else subscribers_of_list
    )
    rows = rows.filter(email__contains=search_text.lower()) if search_text else rows
    before = decode("sub", request.GET.get("before", ""))
    rows = rows.filter(pk__lt=before) if before is not None else rows
    page_rows = list(rows.order_by("-id")[: ROWS + 1])
    older_query = (
        {"status": wanted_status, "search": search_text, "before": encode("sub", page_rows[ROWS - 1].pk)}
        if page_rows[ROWS:]
        else {}
    )
    queue = stage.get_or_create_queue(outlet)
    base = settings.PUBLIC_URL.rstrip("/")
    return {
        **outlet_head(outlet, "subscribers"),
        "rows": [{"subscriber": row, "state": labels.SUBSCRIBERS[row.status]} for row in page_rows[:ROWS]],
        "filters": [(key, badge.label, counts.get(key, 0)) for key, badge in labels.SUBSCRIBERS.items()],
        "total": sum(counts.values()),
        "wanted": wanted_status,
        "search": search_text,
        "older": urlencode(older_query),
        "is_filtered": bool(wanted_status or search_text or before),
        "mailings": [_mailing_row(row) for row in _newest_mailings(place, outlet)],
        "queue": queue,
        "form_url": f"{base}/subscribe/{outlet.secret}",
        "hook_url": f"{base}/hooks/mail/{queue.bounce_secret}" if place.may_manage else "",
        "add": add_form,
        "imports": import_form,
    }


def _newest_mailings(place: Place, outlet: Outlet) -> list[Mailing]:
    """Return the newest mailings without their texts."""
    rows = Mailing.objects.of(place.workspace).filter(outlet=outlet).defer("html", "text")
    return list(rows.order_by("-id")[:MAILINGS])


def _mailing_row(mailing: Mailing) -> dict[str, Any]:
    """Return a mailing with its numbers of mails by outcome; `left` are those not sent yet."""
    counts = stage.count_deliveries(mailing)
    return {
        "mailing": mailing,
        "state": labels.MAILINGS[mailing.status],
        "sent": counts.get("sent", 0),
        "failed": counts.get("failed", 0),
        "unknown": counts.get("unknown", 0),
        "left": counts.get("pending", 0) + counts.get("sending", 0),
        "can_stop": mailing.status in {MailingStatus.SPREADING, MailingStatus.SENDING},
        "can_resume": mailing.status == MailingStatus.STOPPED,
    }


@workspace_page("edit")
def subscriber_add(request: HttpRequest, place: Place, out: UUID) -> HttpResponse:
    """Add one address; a new one gets a mail to confirm."""
    outlet, form = _find_newsletter(place, out), AddSubscribersForm(request.POST or None)
    if request.method != "POST":
        return _redirect_to_list(place, out)
    if form.is_valid():
        with report_errors(request, form):
            subscribing.add(outlet, form.cleaned_data["email"], by=place.user.email, now=utc_now())
            messages.success(request, _("New addresses get a mail to confirm."))
            return _redirect_to_list(place, out)
    return render(
        request,
        "pages/newsletters/subscribers.html",
        _list_context(request, place, outlet, form, ImportForm()),
        status=400,
    )


@workspace_page("edit")
def subscribers_import(request: HttpRequest, place: Place, out: UUID) -> HttpResponse:
    """Import the addresses of a CSV file, and report how many were added."""
    outlet = _find_newsletter(place, out)
    if request.method != "POST":
        return _redirect_to_list(place, out)
    form = ImportForm(request.POST, request.FILES)
    if form.is_valid():
        file = form.cleaned_data["file"]
        if file.size > limits.SUBSCRIBERS_IMPORT_BYTES:
            form.add_error("file", _("The file is too large; split it."))
        else:
            with report_errors(request, form):
                result = subscribing.import_file(outlet, file.read(), by=place.user.email, now=utc_now())
                messages.success(request, _import_summary(result))
                return _redirect_to_list(place, out)
    return render(
        request,
        "pages/newsletters/subscribers.html",
        _list_context(request, place, outlet, AddSubscribersForm(), form),
        status=400,
    )


def _import_summary(result: subscribing.ImportResult) -> str:
    """Return what an import did, with the first lines that had no address."""
    summary = ngettext("%(n)s address was added.", "%(n)s addresses were added.", result.added) % {
        "n": result.added
    }
    if result.known:
        summary += " " + ngettext(
            "%(n)s was already known.",
            "%(n)s were already known.",
            result.known,
        ) % {"n": result.known}
    if result.refused:
        quoted = " · ".join(result.refused[: subscribing.MAX_QUOTED_LINES])
        summary += " " + ngettext(
            "%(n)s line without an address: %(quoted)s",
            "%(n)s lines without an address: %(quoted)s",
            len(result.refused),
        ) % {"n": len(result.refused), "quoted": quoted}
    return summary


@workspace_page("edit", methods=("GET",))
def subscribers_export(request: HttpRequest, place: Place, out: UUID) -> StreamingHttpResponse:
    """Stream all subscribers as CSV."""
    del request
    outlet = _find_newsletter(place, out)
    rows = (
        Subscriber.objects.of(place.workspace).filter(outlet=outlet).order_by("id").iterator(chunk_size=500)
    )
    response = StreamingHttpResponse(subscribing.as_csv(rows), content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="subscribers-{encode("out", outlet.pk)}.csv"'
    response["X-Content-Type-Options"] = "nosniff"
    return response


@workspace_page("edit", methods=("POST",))
def subscriber_remove(request: HttpRequest, place: Place, out: UUID, sub: UUID) -> HttpResponse:
    """Remove a subscriber from the list."""
    outlet = _find_newsletter(place, out)
    subscriber = get_object_or_404(
        Subscriber.objects.of(place.workspace).filter(outlet=outlet, pk=sub).select_related("outlet")
    )
    subscribing.remove(subscriber, by=place.user.email)
    messages.success(request, _("%(email)s was removed.") % {"email": subscriber.email})
    return _redirect_to_list(place, out)


@workspace_page("edit", methods=("POST",))
def mailing_stop(request: HttpRequest, place: Place, out: UUID, mlg: UUID) -> HttpResponse:
    """Stop a mailing that is being sent."""
    return _change_mailing(request, place, out, mlg, stage.stop)


@workspace_page("edit", methods=("POST",))
def mailing_resume(request: HttpRequest, place: Place, out: UUID, mlg: UUID) -> HttpResponse:
    """Resume a stopped mailing."""
    return _change_mailing(request, place, out, mlg, stage.resume)


def _change_mailing(request: HttpRequest, place: Place, out: UUID, mlg: UUID, change: Any) -> HttpResponse:
    """Call `change` with the mailing, report its errors, and return to the list."""
    outlet = _find_newsletter(place, out)
    mailing = get_object_or_404(Mailing.objects.of(place.workspace), outlet=outlet, pk=mlg)
    with report_errors(request):
        change(mailing, by=place.user.email, now=utc_now())
    return _redirect_to_list(place, out)
