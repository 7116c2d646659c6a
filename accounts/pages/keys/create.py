"""Make a key, replace one, and show its text once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from allauth.account.decorators import reauthentication_required
from django.contrib import messages
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache

from accounts.access import tokens
from accounts.pages import form_recovery, shown_once
from accounts.pages.feedback import report_errors
from accounts.pages.keys import labels
from accounts.pages.keys.forms import KeyForm, RotateForm
from accounts.pages.workspace_view import Place, page
from config.core.ids import decode

if TYPE_CHECKING:
    from uuid import UUID

    from django.http import HttpRequest, HttpResponse


@page("manage")
@reauthentication_required(allow_get=True)  # type: ignore[untyped-decorator]  # it ships no types
def create(request: HttpRequest, place: Place) -> HttpResponse:
    form = form_recovery.form_for(request, KeyForm, timezone=place.workspace.timezone)
    if request.method == "POST" and form.is_valid():
        if not form_recovery.is_first(request):
            return _as_the_first_time(request, place)
        with report_errors(request, form):
            minted = tokens.mint(
                place.workspace,
                name=form.cleaned_data["name"],
                scopes=form.chosen_scopes(),
                is_test=form.cleaned_data["kind"] == "test",
                expires_at=form.expires_at(),
                created_by=place.user,
            )
            return _show(request, place, minted)
    return render(request, "pages/keys/create.html", {"form": form})


@page("manage")
@reauthentication_required(allow_get=True)  # type: ignore[untyped-decorator]  # it ships no types
def rotate(request: HttpRequest, place: Place, token_id: UUID) -> HttpResponse:
    key = labels.find(place, token_id)
    form = form_recovery.form_for(request, RotateForm)
    if request.method == "POST" and form.is_valid():
        if not form_recovery.is_first(request):
            return _as_the_first_time(request, place)
        with report_errors(request, form):
            minted = tokens.rotate(key.token, overlap=form.cleaned_data["overlap"], by=place.user)
            return _show(request, place, minted)
    return render(request, "pages/keys/rotate.html", {"form": form, "key": key})


@page("manage", methods=("GET",))
@never_cache
def secret(request: HttpRequest, place: Place, token_id: UUID) -> HttpResponse:
    """The text of a new key, once; opened again, the page says that it is gone and what to do."""
    key = labels.find(place, token_id)
    # A HEAD shows nothing, so it must not use up the one time.
    text = shown_once.take(request, tokens.public_id(key.token)) if request.method == "GET" else None
    context = {
        "key": key,
        "secret": text,
        "examples": labels.examples(key.token, text) if text and key.is_live else [],
        "replaced": key.token.rotated_from,
    }
    return render(request, "pages/keys/secret.html", context)


def _show(request: HttpRequest, place: Place, minted: tokens.Minted) -> HttpResponse:
    shown_once.keep(request, tokens.public_id(minted.token), minted.secret)
    return redirect(place.address("key_secret", token_id=minted.token.pk))


def _as_the_first_time(request: HttpRequest, place: Place) -> HttpResponse:
    made = shown_once.repeated(request)
    token_id = decode("tok", made) if made else None
    if token_id is not None:
        return redirect(place.address("key_secret", token_id=token_id))
    messages.info(
        request, _("This form was sent before, so nothing more was made. Your keys are in the list.")
    )
    return redirect(place.address("keys"))
