"""Forms that lose nothing: what was typed outlives an expired session, and a second click makes no second thing."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any, Final, TypeVar

from django.conf import settings
from django.contrib import messages
from django.core.cache import caches
from django.forms import BaseForm
from django.http import QueryDict
from django.utils.translation import gettext as _

from accounts import limits
from accounts.access import counter_caches
from accounts.access.authentication import sender

if TYPE_CHECKING:
    from django.http import HttpRequest
    from django.http.response import HttpResponseBase

AnyForm = TypeVar("AnyForm", bound=BaseForm)

KEPT: Final = "typed"
_KNOWN: Final = "known"
"""The cookie by which a browser shows that somebody was logged in there."""
_KNOWN_SECONDS: Final = 365 * 24 * 3600
_NEVER_KEPT: Final = ("password", "secret", "key", "code", "csrfmiddlewaretoken", "once")
_ONCE_SECONDS: Final = 24 * 3600


def vouch(request: HttpRequest, response: HttpResponseBase) -> None:
    """Let the browser of who is logged in show later that they were: only then `keep_form` keeps anything."""
    person = str(request.user.pk)
    if _known(request) != person:
        response.set_signed_cookie(
            _KNOWN,
            person,
            salt=_KNOWN,
            max_age=_KNOWN_SECONDS,
            secure=settings.SESSION_COOKIE_SECURE,
            httponly=True,
            samesite="Lax",
        )


def _known(request: HttpRequest) -> str | None:
    return request.get_signed_cookie(_KNOWN, None, salt=_KNOWN, max_age=_KNOWN_SECONDS)


def keep_form(request: HttpRequest) -> bool:
    """Keep a form that was sent after the session had ended, secrets left out, until its page is opened again.

    False where it is on the open page alone: it is too long, or comes from a browser in which nobody was logged in, or
    there were too many. It stays for an hour, in the session of somebody who isn't logged in
    (`accounts/pages/anonymous_sessions.py`).
    """
    if request.method != "POST":
        return True
    person = _known(request)
    if person is None:
        return False
    wanted = request.POST.copy()
    for name in list(wanted):
        if any(part in name for part in _NEVER_KEPT):
            del wanted[name]
    if not wanted:
        return True
    # As they were typed: encoded for an address, words in other scripts are three times as long.
    size = sum(
        len(name.encode()) + len(value.encode()) for name, values in wanted.lists() for value in values
    )
    if size > limits.TYPED_KEPT_BYTES or _is_too_much(request, person, size):
        return False
    request.session[KEPT] = {"path": request.path, "form": wanted.urlencode(), "person": person}
    return True


def _is_too_much(request: HttpRequest, person: str, size: int) -> bool:
    """Counted in this order, so that who is over their own bound uses up nobody else's."""
    within = limits.TYPED_KEPT_FOR
    return (
        counter_caches.count_one_more(f"typed:{person}", within=within) > limits.TYPED_KEPT_OF_PERSON
        or counter_caches.count_one_more(f"typed:{sender(request)}", within=within)
        > limits.TYPED_KEPT_OF_ADDRESS
        or counter_caches.count_one_more("typed", within=within, by=size) > limits.TYPED_KEPT_IN_SUM_BYTES
    )


def form_for(request: HttpRequest, form_class: type[AnyForm], **arguments: Any) -> AnyForm:
    """The form as it was sent; else a fresh one, with what was typed before the session ended."""
    if request.method == "POST":
        return form_class(request.POST, **arguments)
    form = form_class(**arguments)
    kept = request.session.get(KEPT)
    if kept and kept["path"] == request.path and kept["person"] == str(request.user.pk):
        del request.session[KEPT]
        data = QueryDict(kept["form"])
        for name, field in form.fields.items():
            prefixed = form.add_prefix(name)
            if not field.widget.value_omitted_from_data(data, {}, prefixed):
                form.initial[name] = field.widget.value_from_datadict(data, {}, prefixed)
        messages.info(request, _("You were logged out. Your changes are kept: send again."))
    return form


def once() -> str:
    """What tells one showing of a form from the next; the tag `once` puts it there."""
    return secrets.token_urlsafe(12)


def is_first_sending(request: HttpRequest) -> bool:
    """False where this showing of the form was sent before: a double click, or the back button."""
    token = request.POST.get("once", "")
    # A form without the mark can't be told from its repetition.
    return not token or caches["marks"].add(f"once:{request.user.pk}:{token[:64]}", 1, _ONCE_SECONDS)


def allow_sending_again(request: HttpRequest) -> None:
    """The form was refused after all: the same showing may be sent again."""
    if token := request.POST.get("once", ""):
        caches["marks"].delete(f"once:{request.user.pk}:{token[:64]}")
