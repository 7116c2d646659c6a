"""The secret of a webhook source's sender: shown once, exchanged for another."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from django.contrib import messages
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _

from accounts.pages import form_recovery, shown_once
from accounts.pages.feedback import report_errors
from accounts.pages.workspace_view import Place, fresh_log_in_required, page
from config.core import limits
from config.core.ids import encode
from pipeline.ingest.inbound_deliveries import secrets
from pipeline.pages.inbound.deliveries import find_source
from pipeline.pages.inbound.forms import RotateSecretForm

if TYPE_CHECKING:
    from uuid import UUID

    from django.http import HttpRequest, HttpResponse


@page("manage", methods=("GET",))
def source_secret(request: HttpRequest, place: Place, src: UUID) -> HttpResponse:
    source = find_source(place, src)
    secret = shown_once.take(request, encode("src", src))
    context = {"place": place, "source": source, "secret": secret}
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
        if not form_recovery.is_first(request):
            return redirect(place.address("source_secret", src=src))
        overlap = timedelta(0) if form.cleaned_data["stops_now"] else limits.TOKEN_OVERLAP_DEFAULT
        with report_errors(request, form):
            made = secrets.rotate(
                source, secret=form.cleaned_data["secret"] or None, overlap=overlap, actor=place.user.email
            )
            messages.success(request, _("There is a new secret."))
            if made is None:
                return redirect(place.address("source_deliveries", src=src))
            shown_once.keep(request, encode("src", src), made)
            return redirect(place.address("source_secret", src=src))
    return render(
        request, "pages/inbound/secret_rotate.html", {"place": place, "source": source, "form": form}
    )
