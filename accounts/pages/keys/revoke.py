"""End a key, all of them, and take the last click back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import messages
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from accounts.access import tokens
from accounts.pages.feedback import offer_undo, report_errors
from accounts.pages.keys import labels
from accounts.pages.workspace_view import Place, fresh_log_in_required, page

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
        said = _("%(name)s was revoked.") % {"name": key.token.name}
        offer_undo(request, said, place.address("key_unrevoke", token_id=token_id))
    else:
        messages.info(request, _("%(name)s had been revoked already.") % {"name": key.token.name})
    return redirect(place.address("keys"))


@page("manage", methods=("POST",))
@fresh_log_in_required
def unrevoke(request: HttpRequest, place: Place, token_id: UUID) -> HttpResponse:
    key = labels.find(place, token_id)
    with report_errors(request):
        tokens.unrevoke(key.token, place.user)
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
