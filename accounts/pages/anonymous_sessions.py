"""Limits the sessions of browsers in which nobody is logged in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from allauth.account.internal.flows.login import AUTHENTICATION_METHODS_SESSION_KEY
from django.contrib.auth import SESSION_KEY
from django.contrib.sessions.middleware import SessionMiddleware
from django.http import HttpResponse
from django.utils.translation import gettext as _

from accounts import limits
from accounts.access import counter_caches
from accounts.access.authentication import client_network
from accounts.pages import kept_forms
from config.core.middleware import pages_only

if TYPE_CHECKING:
    from django.contrib.sessions.backends.base import SessionBase
    from django.http import HttpRequest

_ANONYMOUS_SECONDS: Final = int(limits.STRANGERS_SESSION_KEPT.total_seconds())


class BoundedSessions(SessionMiddleware):
    """Middleware that keeps anonymous sessions small, short and limited in number.

    Each visitor who signs up or asks for a code has one, so without limits anybody could fill the database.
    """

    def process_response(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        session: SessionBase | None = getattr(request, "session", None)
        if session is not None and session.modified and not session.is_empty():
            if SESSION_KEY in session:
                if session.get("_session_expiry") == _ANONYMOUS_SECONDS:
                    # The user has logged in by now, so the session lasts as long as others.
                    session.set_expiry(None)
            elif (refusal := _refuse_storing(request, session)) is not None:
                return refusal
            else:
                session.set_expiry(_ANONYMOUS_SECONDS)
        processed: HttpResponse = super().process_response(request, response)
        return processed


Session = pages_only(BoundedSessions)


def _refuse_storing(request: HttpRequest, session: SessionBase) -> HttpResponse | None:
    """Return a 413 if the session is too large, a 429 if there are too many new ones, or else `None`.

    A kept form doesn't count as size, and a session in which a password was verified doesn't count as new.
    """
    values = {name: value for name, value in session.items() if name != kept_forms.KEPT_FORM_KEY}
    if len(session.encode(values)) > limits.STRANGERS_SESSION_BYTES:
        text = _("Too much data. Reload the page and send less.")
        return HttpResponse(f"{text}\n", status=413, content_type="text/plain; charset=utf-8")
    if session.session_key is not None or AUTHENTICATION_METHODS_SESSION_KEY in session:
        return None
    within = limits.STRANGERS_SESSION_KEPT
    if (
        counter_caches.add_to_count(f"sessions:{client_network(request)}", within=within)
        > limits.STRANGERS_SESSIONS_OF_ADDRESS
        or counter_caches.add_to_count("sessions", within=within) > limits.STRANGERS_SESSIONS
    ):
        text = _("Too many attempts. Try again in an hour.")
        return HttpResponse(f"{text}\n", status=429, content_type="text/plain; charset=utf-8")
    return None
