"""Shows a webhook source's deliveries, replays one, tries a mapping, and rotates the sender's secret."""

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
from accounts.pages import kept_forms, shown_once
from accounts.pages.act_messages import report_errors
from accounts.pages.page_access import Place, fresh_log_in_required, workspace_page
from accounts.pages.poll_fragment import polling_fragment
from config.core.clock import utc_now
from config.core.ids import decode, encode
from pipeline import labels, limits
from pipeline.ingest.inbound_deliveries import secrets, try_and_replay
from pipeline.models import InboundDelivery, Source, Verification
from pipeline.pages.inbound.forms import RotateSecretForm, TryMappingForm
from pipeline.resources import Source as SourceJson

if TYPE_CHECKING:
    from uuid import UUID

    from django.http import HttpRequest


_POLL_SECONDS: Final = 5


@workspace_page("look", methods=("GET",))
def source_deliveries(request: HttpRequest, place: Place, src: UUID) -> HttpResponse:
    """List the newest deliveries, at most `INBOUND_BODIES_KEPT`; the list polls for new ones."""
    source = find_source(place, src)
    rows = InboundDelivery.objects.of(place.workspace).filter(source=source).order_by("-id").defer("body")
    delivery_rows = [
        {"delivery": row, "result": labels.INBOUND_DELIVERIES[row.status]}
        for row in rows[: limits.INBOUND_BODIES_KEPT]
    ]
    context = {**_source_context(source), "rows": delivery_rows}
    fragment = polling_fragment(
        request,
        "deliveries",
        "pages/inbound/deliveries_list.html",
        context,
        interval_seconds=_POLL_SECONDS,
    )
    if isinstance(fragment, HttpResponse):
        return fragment
    return render(request, "pages/inbound/deliveries.html", {**context, "log": fragment})


@workspace_page("look", methods=("GET",))
def source_delivery(request: HttpRequest, place: Place, src: UUID, ind: UUID) -> HttpResponse:
    """Show one delivery: how it was verified, the start of its body, and what was made of it."""
    source = find_source(place, src)
    delivery = _find_delivery(place, source, ind)
    excerpt = delivery.excerpt
    context = {
        **_source_context(source),
        "delivery": delivery,
        "public_id": encode("ind", delivery.pk),
        "result": labels.INBOUND_DELIVERIES[delivery.status],
        "proof": delivery.get_verification_display(),
        "excerpt": None if excerpt is None else bytes(excerpt).decode(errors="replace"),
        "is_cut": delivery.body_bytes > limits.INBOUND_EXCERPT,
        "made": None if delivery.made is None else _to_json_text(delivery.made),
    }
    return render(request, "pages/inbound/delivery.html", context)


@workspace_page("edit", methods=("POST",))
def source_delivery_replay(request: HttpRequest, place: Place, src: UUID, ind: UUID) -> HttpResponse:
    """Process a stored delivery again; a double click processes it once."""
    delivery = _find_delivery(place, find_source(place, src), ind)
    if kept_forms.is_first_sending(request):
        with report_errors(request):
            received = try_and_replay.replay(delivery, now=utc_now())
            made_nothing = received.outcome in {"failed", "ignored"}
            add_message = messages.warning if made_nothing else messages.success
            add_message(request, _("No content again.") if made_nothing else _("Accepted again."))
    return redirect(place.url_of("source_delivery", src=src, ind=ind))


@workspace_page("edit")
def source_dry_run(request: HttpRequest, place: Place, src: UUID) -> HttpResponse:
    """Show what a mapping makes of a payload or a stored delivery, without storing it.

    A POST with `save` saves the mapping instead.
    """
    source = find_source(place, src)
    delivery = _requested_delivery(request, place, source)
    form = kept_forms.form_for(
        request,
        TryMappingForm,
        has_delivery=delivery is not None,
        initial=TryMappingForm.values_of(source.config),
    )
    trial = None
    if request.method == "POST" and form.is_valid():
        with report_errors(request, form):
            if "save" in request.POST:
                _save_mapping(source, form, place)
                messages.success(request, _("Mapping saved."))
                return redirect(place.url_of("source_deliveries", src=src))
            trial = try_and_replay.try_settings(
                source,
                payload=form.cleaned_data.get("payload"),
                delivery=delivery,
                wishes=form.wishes(),
                now=utc_now(),
            )
    context = {
        **_source_context(source),
        "form": form,
        "delivery": delivery,
        "delivery_id": encode("ind", delivery.pk) if delivery else "",
        "trial": trial,
        "result": labels.INBOUND_DELIVERIES[trial.outcome] if trial else None,
        "made": _to_json_text(dict(trial.fields)) if trial and trial.fields is not None else None,
    }
    return render(request, "pages/inbound/dry_run.html", context)


def find_source(place: Place, src: UUID) -> Source:
    """Return the workspace's webhook source, or raise `Http404` if there is none or it was deleted.

    The source of pushed content has no address, so it isn't found either.
    """
    webhook_sources = Source.objects.of(place.workspace).filter(
        type="webhook", is_push=False, deleted_at=None
    )
    source: Source = get_object_or_404(webhook_sources, pk=src)
    return source


def _source_context(source: Source) -> dict[str, Any]:
    """Return what all pages of the source show: its address, and how senders are verified."""
    kind = secrets.kind_of(source)
    return {
        "source": source,
        "inbound_url": SourceJson.serialize(source)["inbound_url"],
        "proof": Verification(kind).label,
        "has_secret": kind != "address",
    }


def _find_delivery(place: Place, source: Source, ind: UUID) -> Any:
    """Return the source's delivery, or raise `Http404` if there is none.

    Its body isn't loaded; the attribute `excerpt` has the start of it.
    """
    deliveries = InboundDelivery.objects.of(place.workspace).filter(source=source, pk=ind)
    return get_object_or_404(
        deliveries.defer("body").annotate(excerpt=Substr("body", 1, limits.INBOUND_EXCERPT))
    )


def _requested_delivery(request: HttpRequest, place: Place, source: Source) -> InboundDelivery | None:
    """Return the delivery that the form or the address names, or `None` if neither names one.

    Raises `Http404` if the delivery doesn't exist.
    """
    public_id = request.POST.get("delivery") or request.GET.get("delivery", "")
    if not public_id:
        return None
    key = decode("ind", public_id)
    if key is None:
        raise Http404
    delivery: InboundDelivery = _find_delivery(place, source, key)
    return delivery


def _save_mapping(source: Source, form: TryMappingForm, place: Place) -> None:
    """Save the mapping in the source's config, or remove it from there if it is empty."""
    config = {**source.config, **form.wishes()}
    new_config = {name: value for name, value in config.items() if value is not None}
    secrets.change(source, {"config": new_config}, workspace=place.workspace, now=utc_now())


def _to_json_text(fields: dict[str, Any]) -> str:
    """Return the fields that have a value as indented JSON."""
    return json.dumps({name: value for name, value in fields.items() if value}, ensure_ascii=False, indent=2)


@workspace_page("manage", methods=("GET",))
def source_secret(request: HttpRequest, place: Place, src: UUID) -> HttpResponse:
    """Show a new secret the first time that the page is opened, and never again."""
    source = find_source(place, src)
    secret = shown_once.take_secret(request, encode("src", src))
    context = {"source": source, "secret": secret}
    response = render(request, "pages/inbound/secret.html", context)
    if secret:
        response["Cache-Control"] = "no-store"
    return response


@workspace_page("manage")
@fresh_log_in_required
def source_secret_rotate(request: HttpRequest, place: Place, src: UUID) -> HttpResponse:
    """Rotate the secret on POST, and show the new one if it was generated; a double click rotates once.

    The old secret stays valid for `TOKEN_OVERLAP_DEFAULT` unless `stops_now` is chosen.
    """
    source = find_source(place, src)
    form = kept_forms.form_for(request, RotateSecretForm)
    if request.method == "POST" and form.is_valid():
        if not kept_forms.is_first_sending(request):
            return redirect(place.url_of("source_secret", src=src))
        overlap = timedelta(0) if form.cleaned_data["stops_now"] else accounts_limits.TOKEN_OVERLAP_DEFAULT
        with report_errors(request, form):
            new_secret = secrets.rotate(
                source, secret=form.cleaned_data["secret"] or None, overlap=overlap, actor=place.user.email
            )
            messages.success(request, _("Secret rotated."))
            if new_secret is None:
                return redirect(place.url_of("source_deliveries", src=src))
            shown_once.keep_secret(request, encode("src", src), new_secret)
            return redirect(place.url_of("source_secret", src=src))
    return render(request, "pages/inbound/secret_rotate.html", {"source": source, "form": form})
