"""A newsletter's list and its mailings, as the workspace sees them."""

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
from accounts.pages.page_access import Place, page
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
MAILINGS: Final = 10


class AddSubscribersForm(forms.Form):
    email = forms.CharField(label=gettext_lazy("Email address"), max_length=254, widget=forms.EmailInput())


class ImportForm(forms.Form):
    file = forms.FileField(
        label=gettext_lazy("CSV file"),
        help_text=gettext_lazy("One address per line; up to 10,000"),
    )
    consent = forms.BooleanField(
        label=gettext_lazy("All of them agreed to this newsletter, and I can prove it")
    )


def _outlet(place: Place, out: UUID) -> Outlet:
    row: Outlet = get_object_or_404(
        Outlet.objects.of(place.workspace).select_related("workspace"),
        pk=out,
        platform=subscribing.KIND,
        deleted_at=None,
    )
    return row


def _back(place: Place, out: UUID) -> HttpResponse:
    return redirect(place.address("subscribers", out=out))


@page("edit", methods=("GET",))
def subscribers(request: HttpRequest, place: Place, out: UUID) -> HttpResponse:
    outlet = _outlet(place, out)
    return render(
        request,
        "pages/newsletters/subscribers.html",
        _shown(request, place, outlet, AddSubscribersForm(), ImportForm()),
    )


def _shown(
    request: HttpRequest, place: Place, outlet: Outlet, add: AddSubscribersForm, imports: ImportForm
) -> dict[str, Any]:
    there = Subscriber.objects.of(place.workspace).filter(outlet=outlet)
    counts = {one["status"]: one["n"] for one in there.values("status").annotate(n=Count("pk"))}
    wanted, words = request.GET.get("status", ""), request.GET.get("search", "").strip()[:254]
    rows = there.filter(status=wanted) if wanted in labels.SUBSCRIBERS else there
    rows = rows.filter(email__contains=words.lower()) if words else rows
    before = decode("sub", request.GET.get("before", ""))
    rows = rows.filter(pk__lt=before) if before is not None else rows
    found = list(rows.order_by("-id")[: ROWS + 1])
    older = (
        {"status": wanted, "search": words, "before": encode("sub", found[ROWS - 1].pk)}
        if found[ROWS:]
        else {}
    )
    queue = stage.mail_queue_of(outlet)
    base = settings.PUBLIC_URL.rstrip("/")
    return {
        **outlet_head(outlet, "subscribers"),
        "rows": [{"subscriber": one, "state": labels.SUBSCRIBERS[one.status]} for one in found[:ROWS]],
        "filters": [(key, badge.label, counts.get(key, 0)) for key, badge in labels.SUBSCRIBERS.items()],
        "total": sum(counts.values()),
        "wanted": wanted,
        "search": words,
        "older": urlencode(older),
        "is_filtered": bool(wanted or words or before),
        "mailings": [_mailing(one) for one in _mailings(place, outlet)],
        "queue": queue,
        "form_url": f"{base}/subscribe/{outlet.secret}",
        "hook_url": f"{base}/hooks/mail/{queue.bounce_secret}" if place.may_manage else "",
        "add": add,
        "imports": imports,
    }


def _mailings(place: Place, outlet: Outlet) -> list[Mailing]:
    rows = Mailing.objects.of(place.workspace).filter(outlet=outlet).defer("html", "text")
    return list(rows.order_by("-id")[:MAILINGS])


def _mailing(row: Mailing) -> dict[str, Any]:
    counts = stage.counts_of(row)
    return {
        "mailing": row,
        "state": labels.MAILINGS[row.status],
        "sent": counts.get("sent", 0),
        "failed": counts.get("failed", 0),
        "unknown": counts.get("unknown", 0),
        "left": counts.get("pending", 0) + counts.get("sending", 0),
        "can_stop": row.status in {MailingStatus.SPREADING, MailingStatus.SENDING},
        "can_resume": row.status == MailingStatus.STOPPED,
    }


@page("edit")
def subscriber_add(request: HttpRequest, place: Place, out: UUID) -> HttpResponse:
    outlet, form = _outlet(place, out), AddSubscribersForm(request.POST or None)
    if request.method != "POST":
        return _back(place, out)
    if form.is_valid():
        with report_errors(request, form):
            subscribing.add(outlet, form.cleaned_data["email"], by=place.user.email, now=utc_now())
            messages.success(request, _("New addresses get a mail to confirm."))
            return _back(place, out)
    return render(
        request,
        "pages/newsletters/subscribers.html",
        _shown(request, place, outlet, form, ImportForm()),
        status=400,
    )


@page("edit")
def subscribers_import(request: HttpRequest, place: Place, out: UUID) -> HttpResponse:
    outlet = _outlet(place, out)
    if request.method != "POST":
        return _back(place, out)
    form = ImportForm(request.POST, request.FILES)
    if form.is_valid():
        file = form.cleaned_data["file"]
        if file.size > limits.SUBSCRIBERS_IMPORT_BYTES:
            form.add_error("file", _("The file is too large; split it."))
        else:
            with report_errors(request, form):
                done = subscribing.import_file(outlet, file.read(), by=place.user.email, now=utc_now())
                messages.success(request, _told(done))
                return _back(place, out)
    return render(
        request,
        "pages/newsletters/subscribers.html",
        _shown(request, place, outlet, AddSubscribersForm(), form),
        status=400,
    )


def _told(done: subscribing.Imported) -> str:
    words = ngettext("%(n)s address was added.", "%(n)s addresses were added.", done.added) % {
        "n": done.added
    }
    if done.known:
        words += " " + ngettext(
            "%(n)s was already known.",
            "%(n)s were already known.",
            done.known,
        ) % {"n": done.known}
    if done.refused:
        quoted = " · ".join(done.refused[: subscribing.QUOTED_LINES])
        words += " " + ngettext(
            "%(n)s line without an address: %(quoted)s",
            "%(n)s lines without an address: %(quoted)s",
            len(done.refused),
        ) % {"n": len(done.refused), "quoted": quoted}
    return words


@page("edit", methods=("GET",))
def subscribers_export(request: HttpRequest, place: Place, out: UUID) -> StreamingHttpResponse:
    del request
    outlet = _outlet(place, out)
    rows = (
        Subscriber.objects.of(place.workspace).filter(outlet=outlet).order_by("id").iterator(chunk_size=500)
    )
    answer = StreamingHttpResponse(subscribing.as_csv(rows), content_type="text/csv; charset=utf-8")
    answer["Content-Disposition"] = f'attachment; filename="subscribers-{encode("out", outlet.pk)}.csv"'
    answer["X-Content-Type-Options"] = "nosniff"
    return answer


@page("edit", methods=("POST",))
def subscriber_remove(request: HttpRequest, place: Place, out: UUID, sub: UUID) -> HttpResponse:
    outlet = _outlet(place, out)
    found = get_object_or_404(
        Subscriber.objects.of(place.workspace).filter(outlet=outlet, pk=sub).select_related("outlet")
    )
    subscribing.remove(found, by=place.user.email)
    messages.success(request, _("%(email)s was removed.") % {"email": found.email})
    return _back(place, out)


@page("edit", methods=("POST",))
def mailing_stop(request: HttpRequest, place: Place, out: UUID, mlg: UUID) -> HttpResponse:
    return _turn(request, place, out, mlg, stage.stop)


@page("edit", methods=("POST",))
def mailing_resume(request: HttpRequest, place: Place, out: UUID, mlg: UUID) -> HttpResponse:
    return _turn(request, place, out, mlg, stage.resume)


def _turn(request: HttpRequest, place: Place, out: UUID, mlg: UUID, act: Any) -> HttpResponse:
    outlet = _outlet(place, out)
    found = get_object_or_404(Mailing.objects.of(place.workspace), outlet=outlet, pk=mlg)
    with report_errors(request):
        act(found, by=place.user.email, now=utc_now())
    return _back(place, out)
