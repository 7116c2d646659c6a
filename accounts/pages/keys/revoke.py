"""End a key, all of them, and take the last click back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from allauth.account.decorators import reauthentication_required
from django.contrib import messages
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from accounts.access import tokens
from accounts.pages.keys import labels
from accounts.pages.workspace_view import Place, page
from config.core.errors import AppError

if TYPE_CHECKING:
    from uuid import UUID

    from django.http import HttpRequest, HttpResponse


@page("manage")
def revoke(request: HttpRequest, place: Place, token_id: UUID) -> HttpResponse:
    key = labels.find(place, token_id)
    if request.method != "POST":
        return render(request, "pages/keys/revoke.html", {"key": key})
    if key.token.revoked_at is None:
        tokens.revoke(key.token, place.user)
        undo = render_to_string("pages/keys/revoked.html", {"key": key, "place": place}, request)
        messages.success(request, undo, extra_tags="lasting")
    else:
        messages.info(request, _("%(name)s had been revoked already.") % {"name": key.token.name})
    return redirect(place.address("keys"))


@page("manage", methods=("POST",))
@reauthentication_required  # type: ignore[untyped-decorator]  # it ships no types
def unrevoke(request: HttpRequest, place: Place, token_id: UUID) -> HttpResponse:
    key = labels.find(place, token_id)
    try:
        tokens.unrevoke(key.token, place.user)
    except AppError as error:
        messages.error(request, error.detail[0].message)
    else:
        messages.success(request, _("%(name)s works again.") % {"name": key.token.name})
    return redirect(place.address("keys"))


@page("manage")
def revoke_all(request: HttpRequest, place: Place) -> HttpResponse:
    if request.method != "POST":
        return render(request, "pages/keys/revoke_all.html", {"keys": labels.live_now(place)})
    revoked = tokens.revoke_all(place.workspace, place.user)
    if revoked:
        text = ngettext(
            "%d key was revoked. Calls with it are refused from now on.",
            "%d keys were revoked. Calls with them are refused from now on.",
            revoked,
        )
        messages.success(request, text % revoked)
    else:
        messages.info(request, _("There was no key to revoke."))
    return redirect(place.address("keys"))
