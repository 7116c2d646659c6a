"""What browsers in which nobody is logged in may leave here, and the second factor that the admin asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from allauth.account.internal.flows.login import AUTHENTICATION_METHODS_SESSION_KEY
from allauth.mfa.utils import is_mfa_enabled
from django.conf import settings
from django.contrib import messages
from django.contrib.auth import SESSION_KEY
from django.contrib.sessions.middleware import SessionMiddleware
from django.http import HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _

from accounts import limits
from accounts.access import counter_caches
from accounts.access.authentication import sender
from accounts.pages import form_recovery
from config.core.middleware import pages_only

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.contrib.sessions.backends.base import SessionBase
    from django.http import HttpRequest
    from django.http.response import HttpResponseBase

    GetResponse = Callable[[HttpRequest], HttpResponseBase]


_STRANGERS_SECONDS: Final = int(limits.STRANGERS_SESSION_KEPT.total_seconds())


class BoundedSessions(SessionMiddleware):
    """A session in which nobody is logged in is small and short, and there are only so many of them.

    Whoever signs up, or asks for a code, has one: without a bound anybody could fill the database with them.
    """

    def process_response(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        session: SessionBase | None = getattr(request, "session", None)
        if session is not None and session.modified and not session.is_empty():
            if SESSION_KEY in session:
                if session.get("_session_expiry") == _STRANGERS_SECONDS:
                    # They have logged in by now.
                    session.set_expiry(None)
            elif (refusal := _refusal(request, session)) is not None:
                return refusal
            else:
                session.set_expiry(_STRANGERS_SECONDS)
        answer: HttpResponse = super().process_response(request, response)
        return answer


Session = pages_only(BoundedSessions)


def _refusal(request: HttpRequest, session: SessionBase) -> HttpResponse | None:
    """Why it isn't stored; who has given a right password is no stranger any more."""
    beside = {name: value for name, value in session.items() if name != form_recovery.KEPT}
    if len(session.encode(beside)) > limits.STRANGERS_SESSION_BYTES:
        said = _("Too much data. Reload the page and send less.")
        return HttpResponse(f"{said}\n", status=413, content_type="text/plain; charset=utf-8")
    if session.session_key is not None or AUTHENTICATION_METHODS_SESSION_KEY in session:
        return None
    within = limits.STRANGERS_SESSION_KEPT
    if (
        counter_caches.one_more(f"sessions:{sender(request)}", within=within)
        > limits.STRANGERS_SESSIONS_OF_ADDRESS
        or counter_caches.one_more("sessions", within=within) > limits.STRANGERS_SESSIONS
    ):
        said = _("Too many attempts. Try again in an hour.")
        return HttpResponse(f"{said}\n", status=429, content_type="text/plain; charset=utf-8")
    return None


class SecondFactor:
    """`ADMIN_REQUIRES_MFA`: staff without a second factor are led to the page that sets one up."""

    def __init__(self, get_response: GetResponse) -> None:
        self._next = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if (
            settings.ADMIN_REQUIRES_MFA
            and request.path_info.startswith("/admin/")
            and request.user.is_authenticated
            and request.user.is_staff
            and not is_mfa_enabled(request.user)
        ):
            messages.warning(request, _("Operator pages need two-factor authentication. Set it up first."))
            return redirect("mfa_index")
        return self._next(request)
