"""What came to a webhook source and what became of it, trying and replaying it, and the secret of its sender."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from django.contrib import messages
from django.db.models.functions import Substr
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _

from accounts import limits as accounts_limits
from accounts.pages import form_recovery, shown_once
from accounts.pages.act_messages import report_errors
from accounts.pages.page_access import Place, fresh_log_in_required, page
from accounts.pages.polling import polling_fragment
from config.core.clock import utc_now
from config.core.ids import decode, encode
from pipeline import labels, limits
from pipeline.ingest.inbound_deliveries import replay, secrets
from pipeline.models import InboundDelivery, Source, Verification
from pipeline.pages.inbound.forms import RotateSecretForm, TryMappingForm
from pipeline.payloads import row_of
from pipeline.payloads import source as shown_source

if TYPE_CHECKING:
    from uuid import UUID

    from django.http import HttpRequest


_LOOKED_AT_SECONDS: Final = 5


@page("look", methods=("GET",))
def source_deliveries(request: HttpRequest, place: Place, src: UUID) -> HttpResponse:
    source = find_source(place, src)
    rows = InboundDelivery.objects.of(place.workspace).filter(source=source).order_by("-id").defer("body")
    listed = [
        {"delivery": row, "result": labels.INBOUND_DELIVERIES[row.status]}
        for row in rows[: limits.INBOUND_BODIES_KEPT]
    ]
    context = {**_context(source), "rows": listed}
    part = polling_fragment(
        request,
        "deliveries",
        "pages/inbound/deliveries_list.html",
        context,
        interval_seconds=_LOOKED_AT_SECONDS,
    )
    if isinstance(part, HttpResponse):
        return part
    return render(request, "pages/inbound/deliveries.html", {**context, "log": part})


@page("look", methods=("GET",))
def source_delivery(request: HttpRequest, place: Place, src: UUID, ind: UUID) -> HttpResponse:
    source = find_source(place, src)
    row = _find_delivery(place, source, ind)
    excerpt = row.excerpt
    context = {
        **_context(source),
        "delivery": row,
        "public_id": encode("ind", row.pk),
        "result": labels.INBOUND_DELIVERIES[row.status],
        "proof": row.get_verification_display(),
        "excerpt": None if excerpt is None else bytes(excerpt).decode(errors="replace"),
        "is_cut": row.body_bytes > limits.INBOUND_EXCERPT,
        "made": None if row.made is None else _as_text(row.made),
    }
    return render(request, "pages/inbound/delivery.html", context)


@page("edit", methods=("POST",))
def source_delivery_replay(request: HttpRequest, place: Place, src: UUID, ind: UUID) -> HttpResponse:
    row = _find_delivery(place, find_source(place, src), ind)
    if form_recovery.is_first_sending(request):
        with report_errors(request):
            received = replay.replay(row, now=utc_now())
            made_nothing = received.outcome in {"failed", "ignored"}
            tell = messages.warning if made_nothing else messages.success
            tell(request, _("No content again.") if made_nothing else _("Accepted again."))
    return redirect(place.address("source_delivery", src=src, ind=ind))


@page("edit")
def source_dry_run(request: HttpRequest, place: Place, src: UUID) -> HttpResponse:
    source = find_source(place, src)
    delivery = _named_delivery(request, place, source)
    form = form_recovery.form_for(
        request,
        TryMappingForm,
        has_delivery=delivery is not None,
        initial=TryMappingForm.values_of(source.config),
    )
    trial = None
    if request.method == "POST" and form.is_valid():
        with report_errors(request, form):
            if "save" in request.POST:
                _save(source, form, place)
                messages.success(request, _("Mapping saved."))
                return redirect(place.address("source_deliveries", src=src))
            trial = replay.try_settings(
                source,
                payload=form.cleaned_data.get("payload"),
                delivery=delivery,
                wishes=form.wishes(),
                now=utc_now(),
            )
    context = {
        **_context(source),
        "form": form,
        "delivery": delivery,
        "delivery_id": encode("ind", delivery.pk) if delivery else "",
        "trial": trial,
        "result": labels.INBOUND_DELIVERIES[trial.outcome] if trial else None,
        "made": _as_text(dict(trial.fields)) if trial and trial.fields is not None else None,
    }
    return render(request, "pages/inbound/dry_run.html", context)


def find_source(place: Place, src: UUID) -> Source:
    """One of this workspace's webhook sources with an address of its own; 404 for everything else."""
    there = Source.objects.of(place.workspace).filter(type="webhook", is_push=False, deleted_at=None)
    row: Source = get_object_or_404(there, pk=src)
    return row


def _context(source: Source) -> dict[str, Any]:
    kind = secrets.kind_of(source)
    return {
        "source": source,
        "inbound_url": shown_source(row_of(source))["inbound_url"],
        "proof": Verification(kind).label,
        "has_secret": kind != "address",
    }


def _find_delivery(place: Place, source: Source, ind: UUID) -> Any:
    found = InboundDelivery.objects.of(place.workspace).filter(source=source, pk=ind)
    return get_object_or_404(found.defer("body").annotate(excerpt=Substr("body", 1, limits.INBOUND_EXCERPT)))


def _named_delivery(request: HttpRequest, place: Place, source: Source) -> InboundDelivery | None:
    """The delivery that the address or the form names, None where neither names one."""
    named = request.POST.get("delivery") or request.GET.get("delivery", "")
    if not named:
        return None
    found = decode("ind", named)
    if found is None:
        raise Http404
    row: InboundDelivery = _find_delivery(place, source, found)
    return row


def _save(source: Source, form: TryMappingForm, place: Place) -> None:
    config = {**source.config, **form.wishes()}
    kept = {name: value for name, value in config.items() if value is not None}
    secrets.change(source, {"config": kept}, workspace=place.workspace, now=utc_now())


def _as_text(fields: dict[str, Any]) -> str:
    return json.dumps({name: value for name, value in fields.items() if value}, ensure_ascii=False, indent=2)


@page("manage", methods=("GET",))
def source_secret(request: HttpRequest, place: Place, src: UUID) -> HttpResponse:
    source = find_source(place, src)
    secret = shown_once.take_secret(request, encode("src", src))
    context = {"source": source, "secret": secret}
    answer = render(request, "pages/inbound/secret.html", context)
    if secret:
        answer["Cache-Control"] = "no-store"
    return answer


@page("manage")
@fresh_log_in_required
def source_secret_rotate(request: HttpRequest, place: Place, src: UUID) -> HttpResponse:
    source = find_source(place, src)
    form = form_recovery.form_for(request, RotateSecretForm)
    if request.method == "POST" and form.is_valid():
        if not form_recovery.is_first_sending(request):
            return redirect(place.address("source_secret", src=src))
        overlap = timedelta(0) if form.cleaned_data["stops_now"] else accounts_limits.TOKEN_OVERLAP_DEFAULT
        with report_errors(request, form):
            made = secrets.rotate(
                source, secret=form.cleaned_data["secret"] or None, overlap=overlap, actor=place.user.email
            )
            messages.success(request, _("Secret rotated."))
            if made is None:
                return redirect(place.address("source_deliveries", src=src))
            shown_once.keep_secret(request, encode("src", src), made)
            return redirect(place.address("source_secret", src=src))
    return render(request, "pages/inbound/secret_rotate.html", {"source": source, "form": form})
