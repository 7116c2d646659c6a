"""Serves the pages that list, create, rotate, revoke and restore keys, and show a new key's text once."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from allauth.account.decorators import reauthentication_required
from django.conf import settings
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.cache import never_cache

from accounts.access import recent_requests, tokens
from accounts.pages import kept_forms, shown_once
from accounts.pages.act_messages import offer_undo, report_errors
from accounts.pages.keys import rows
from accounts.pages.keys.forms import KeyForm, RotateKeyForm
from accounts.pages.page_access import Place, fresh_log_in_required, workspace_page
from config.core.clock import utc_now
from config.core.ids import decode

if TYPE_CHECKING:
    from uuid import UUID

    from django.http import HttpRequest

    from accounts.models import ApiToken


_EXAMPLE_TEXT: Final = {
    "title": "The harbour ferry leaves earlier",
    "body": "The harbour ferry leaves at seven from Monday on, twenty minutes earlier than before.",
}


@workspace_page("manage", methods=("GET",))
def keys(request: HttpRequest, place: Place) -> HttpResponse:
    """List the live keys, and with `?ended=1` the ended ones too."""
    now = utc_now()
    shows_ended = request.GET.get("ended") == "1"
    ended_count = rows.count_ended(place, now)
    context = {
        "keys": rows.live_keys(place, now),
        "ended": rows.ended_keys(place, now) if shows_ended else [],
        "ended_count": ended_count,
        "is_with_ended": shows_ended,
        "ended_shown": rows.MAX_ENDED_SHOWN,
    }
    return render(request, "pages/keys/list.html", context)


@workspace_page("manage", methods=("GET",))
def key(request: HttpRequest, place: Place, token_id: UUID) -> HttpResponse:
    shown_key = rows.find_key(place, token_id)
    context = {
        "key": shown_key,
        "examples": curl_examples(shown_key.token) if shown_key.is_live else [],
    }
    return render(request, "pages/keys/detail.html", {**context, **_requests_context(shown_key)})


@workspace_page("manage", methods=("GET",))
def requests(request: HttpRequest, place: Place, token_id: UUID) -> HttpResponse:
    """Render the list of requests on a key's page, which polls it, or answer 204 if nothing has changed."""
    shown_key = rows.find_key(place, token_id)
    context = _requests_context(shown_key)
    if request.GET.get("seen") == context["seen"]:
        return HttpResponse(status=204)
    return render(request, "pages/keys/requests.html", {"key": shown_key, **context})


def _requests_context(key: rows.Key) -> dict[str, Any]:
    """Return the template's `requests`, `None` if they can't be read, and `seen`, a digest of them."""
    requests = recent_requests.read_recent_requests(key.token.pk)
    seen = hashlib.sha256(repr(requests).encode()).hexdigest()[:16]
    return {"requests": requests, "seen": seen}


@workspace_page("manage")
@reauthentication_required(allow_get=True)  # type: ignore[untyped-decorator]  # it ships no types
def create(request: HttpRequest, place: Place) -> HttpResponse:
    form = kept_forms.form_for(request, KeyForm, timezone=place.workspace.timezone)
    if request.method == "POST" and form.is_valid():
        if not kept_forms.is_first_sending(request):
            return _repeat_first_answer(request, place)
        with report_errors(request, form):
            issued = tokens.issue(
                place.workspace,
                name=form.cleaned_data["name"],
                scopes=form.chosen_scopes(),
                is_test=form.cleaned_data["kind"] == "test",
                expires_at=form.expires_at(),
                created_by=place.user,
            )
            return _redirect_to_secret(request, place, issued)
    return render(request, "pages/keys/create.html", {"form": form})


@workspace_page("manage")
@reauthentication_required(allow_get=True)  # type: ignore[untyped-decorator]  # it ships no types
def rotate(request: HttpRequest, place: Place, token_id: UUID) -> HttpResponse:
    """Replace a key by a successor with the same scopes."""
    key = rows.find_key(place, token_id)
    form = kept_forms.form_for(request, RotateKeyForm)
    if request.method == "POST" and form.is_valid():
        if not kept_forms.is_first_sending(request):
            return _repeat_first_answer(request, place)
        with report_errors(request, form):
            issued = tokens.rotate(key.token, overlap=form.cleaned_data["overlap"], by=place.user)
            return _redirect_to_secret(request, place, issued)
    return render(request, "pages/keys/rotate.html", {"form": form, "key": key})


@workspace_page("manage", methods=("GET",))
@never_cache
def secret(request: HttpRequest, place: Place, token_id: UUID) -> HttpResponse:
    """Show a new key's text once; opened again, the page says that it is gone and what to do."""
    key = rows.find_key(place, token_id)
    # A HEAD shows nothing, so it must not use up the only view.
    text = shown_once.take_secret(request, tokens.public_id(key.token)) if request.method == "GET" else None
    context = {
        "key": key,
        "secret": text,
        "examples": curl_examples(key.token, text) if text and key.is_live else [],
        "replaced": key.token.rotated_from,
    }
    return render(request, "pages/keys/secret.html", context)


def _redirect_to_secret(request: HttpRequest, place: Place, issued: tokens.IssuedToken) -> HttpResponse:
    """Store the new key's text for its one view, and redirect there."""
    shown_once.keep_secret(request, tokens.public_id(issued.token), issued.secret)
    return redirect(place.url_of("key_secret", token_id=issued.token.pk))


def _repeat_first_answer(request: HttpRequest, place: Place) -> HttpResponse:
    """Redirect to the key that the form's first sending created, or to the list if none is known."""
    public_id = shown_once.secret_of_first_sending(request)
    token_id = decode("tok", public_id) if public_id else None
    if token_id is not None:
        return redirect(place.url_of("key_secret", token_id=token_id))
    messages.info(request, _("This form was already sent. See your keys in the list."))
    return redirect(place.url_of("keys"))


@workspace_page("manage")
def revoke(request: HttpRequest, place: Place, token_id: UUID) -> HttpResponse:
    key = rows.find_key(place, token_id)
    if request.method != "POST":
        return render(request, "pages/keys/revoke.html", {"key": key})
    if key.token.revoked_at is None:
        tokens.revoke(key.token, place.user)
        text = _("%(name)s was revoked.") % {"name": key.token.name}
        offer_undo(request, text, place.url_of("key_unrevoke", token_id=token_id))
    else:
        messages.info(request, _("%(name)s was already revoked.") % {"name": key.token.name})
    return redirect(place.url_of("keys"))


@workspace_page("manage", methods=("POST",))
@fresh_log_in_required
def unrevoke(request: HttpRequest, place: Place, token_id: UUID) -> HttpResponse:
    key = rows.find_key(place, token_id)
    with report_errors(request):
        tokens.unrevoke(key.token, place.user)
        messages.success(request, _("%(name)s works again.") % {"name": key.token.name})
    return redirect(place.url_of("keys"))


@workspace_page("manage")
def revoke_all(request: HttpRequest, place: Place) -> HttpResponse:
    """Revoke all keys after a confirmation."""
    if request.method != "POST":
        return render(request, "pages/keys/revoke_all.html", {"keys": rows.live_keys(place, utc_now())})
    revoked = tokens.revoke_all(place.workspace, place.user)
    if revoked:
        text = ngettext(
            "%d key revoked.",
            "%d keys revoked.",
            revoked,
        )
        messages.success(request, text % revoked)
    else:
        messages.info(request, _("No keys to revoke."))
    return redirect(place.url_of("keys"))


@dataclass(frozen=True)
class Example:
    """A curl command; `id` is the element's on the page, `label` says what the command does."""

    id: str
    label: str
    line: str


def curl_examples(token: ApiToken, key: str = "$API_KEY") -> list[Example]:
    """Return the commands that the token's scopes allow. `key` is its secret, or a variable of the shell."""
    header_option = f'-H "Authorization: Bearer {key}"'
    examples = [
        Example(
            "line-workspace",
            _("Get the workspace"),
            f"curl {settings.PUBLIC_URL}/v1/workspace \\\n  {header_option}",
        )
    ]
    if "raw:write" in token.scopes:
        line = (
            f"curl {settings.PUBLIC_URL}/v1/raw \\\n  {header_option} \\\n"
            f"  -H \"Content-Type: application/json\" \\\n  -d '{json.dumps(_EXAMPLE_TEXT)}'"
        )
        examples.append(Example("line-raw", _("Push a text"), line))
    return examples
