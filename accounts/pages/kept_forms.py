"""Keeps what was typed when a session expires, and detects a form that is sent twice."""

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
from accounts.access.authentication import client_network

if TYPE_CHECKING:
    from django.http import HttpRequest
    from django.http.response import HttpResponseBase

AnyForm = TypeVar("AnyForm", bound=BaseForm)

KEPT_FORM_KEY: Final = "typed"
"""The session key of the kept form."""
_KNOWN_COOKIE: Final = "known"
"""The cookie by which a browser shows that somebody was logged in there."""
_KNOWN_COOKIE_SECONDS: Final = 365 * 24 * 3600
_SECRET_NAME_PARTS: Final = ("password", "secret", "key", "code", "csrfmiddlewaretoken", "once")
_ONCE_SECONDS: Final = 24 * 3600
"""Seconds for which a second sending of a form is recognized."""


def remember_browser(request: HttpRequest, response: HttpResponseBase) -> None:
    """Set a cookie that proves later that this user was logged in; without it `keep_form` keeps nothing."""
    user_id = str(request.user.pk)
    if _read_known_cookie(request) != user_id:
        response.set_signed_cookie(
            _KNOWN_COOKIE,
            user_id,
            salt=_KNOWN_COOKIE,
            max_age=_KNOWN_COOKIE_SECONDS,
            secure=settings.SESSION_COOKIE_SECURE,
            httponly=True,
            samesite="Lax",
        )


def _read_known_cookie(request: HttpRequest) -> str | None:
    return request.get_signed_cookie(_KNOWN_COOKIE, None, salt=_KNOWN_COOKIE, max_age=_KNOWN_COOKIE_SECONDS)


def keep_form(request: HttpRequest) -> bool:
    """Keep a form that was sent after the session had ended, without secrets, until its page is opened again.

    Returns `False` if the form is lost: it is too long, there were too many, or nobody was logged in with this
    browser; `True` also if there is nothing to keep. It stays in the anonymous session, which lasts an hour
    (`accounts/pages/anonymous_sessions.py`).
    """
    if request.method != "POST":
        return True
    user_id = _read_known_cookie(request)
    if user_id is None:
        return False
    fields = request.POST.copy()
    for name in list(fields):
        if any(part in name for part in _SECRET_NAME_PARTS):
            del fields[name]
    if not fields:
        return True
    # The size as typed: in URL encoding, text in other scripts is three times as long.
    size = sum(
        len(name.encode()) + len(value.encode()) for name, values in fields.lists() for value in values
    )
    if size > limits.TYPED_KEPT_BYTES or _is_over_limits(request, user_id, size):
        return False
    request.session[KEPT_FORM_KEY] = {"path": request.path, "form": fields.urlencode(), "person": user_id}
    return True


def _is_over_limits(request: HttpRequest, user_id: str, size: int) -> bool:
    """Count the form, and return whether its user, its network or all forms are above their limit.

    The order of the counts lets somebody who is over their own limit use up nobody else's.
    """
    within = limits.TYPED_KEPT_FOR
    return (
        counter_caches.add_to_count(f"typed:{user_id}", within=within) > limits.TYPED_KEPT_OF_PERSON
        or counter_caches.add_to_count(f"typed:{client_network(request)}", within=within)
        > limits.TYPED_KEPT_OF_ADDRESS
        or counter_caches.add_to_count("typed", within=within, amount=size) > limits.TYPED_KEPT_IN_SUM_BYTES
    )


def form_for(request: HttpRequest, form_class: type[AnyForm], **arguments: Any) -> AnyForm:
    """Return the form as it was sent, or a new one with what was kept for this page and user, and a message."""
    if request.method == "POST":
        return form_class(request.POST, **arguments)
    form = form_class(**arguments)
    kept_form = request.session.get(KEPT_FORM_KEY)
    if kept_form and kept_form["path"] == request.path and kept_form["person"] == str(request.user.pk):
        del request.session[KEPT_FORM_KEY]
        data = QueryDict(kept_form["form"])
        for name, field in form.fields.items():
            prefixed = form.add_prefix(name)
            if not field.widget.value_omitted_from_data(data, {}, prefixed):
                form.initial[name] = field.widget.value_from_datadict(data, {}, prefixed)
        messages.info(request, _("You were logged out. Your changes are kept: send again."))
    return form


def once() -> str:
    """Return a random mark of one rendering of a form; the template tag `once` puts it into the form."""
    return secrets.token_urlsafe(12)


def is_first_sending(request: HttpRequest) -> bool:
    """Mark the form as sent; return `False` if it was before, by a double click or the back button."""
    token = request.POST.get("once", "")
    # Without the mark a repetition can't be recognized.
    return not token or caches["marks"].add(f"once:{request.user.pk}:{token[:64]}", 1, _ONCE_SECONDS)


def allow_sending_again(request: HttpRequest) -> None:
    """Let the same rendering of the form be sent again, because it was refused."""
    if token := request.POST.get("once", ""):
        caches["marks"].delete(f"once:{request.user.pk}:{token[:64]}")
