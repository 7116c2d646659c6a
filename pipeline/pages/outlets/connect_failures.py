"""Explains a log-in at a platform that connected nothing: what happened there, and what to do next."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from django.utils.translation import gettext as _

if TYPE_CHECKING:
    from config.core.errors import AppError
    from pipeline.models import OAuthAttempt
    from pipeline.platforms.base import Platform

_DENIED_BY_PERSON: Final = frozenset({"access_denied", "user_cancelled_login", "user_cancelled_authorize"})
_DENIED_TO_APP: Final = frozenset({"unauthorized_client", "unauthorized_scope_error", "invalid_scope"})
_OPERATOR_CODES: Final = frozenset({"app_refused", "not_registered"})
_SAFE_CODE: Final = re.compile(r"[A-Za-z0-9_.-]{1,60}")


@dataclass(frozen=True)
class ConnectFailure:
    """Why a log-in connected nothing, and what to do next.

    `code` is the platform's own error code. With `is_for_operator`, the page names the people to contact.
    """

    message: str
    advice: str
    code: str = ""
    is_for_operator: bool = False
    can_begin_again: bool = True
    """False if another log-in would fail in the same way."""


def explain_missing_code(error: str, platform: Platform) -> ConnectFailure:
    """Explain the error with which a platform sent a person back instead of a code.

    The errors are those of RFC 6749, section 4.1.2.1, and LinkedIn's codes for a person who refuses.
    """
    names = {"platform": platform.label}
    code = error if _SAFE_CODE.fullmatch(error) else ""
    if error in _DENIED_BY_PERSON:
        return ConnectFailure(
            _("You didn't allow access at %(platform)s. Nothing was changed.") % names,
            _("Try again and allow all permissions at %(platform)s.") % names,
        )
    if error in _DENIED_TO_APP:
        return ConnectFailure(
            _("%(platform)s denies the permissions needed.") % names,
            _("Contact the people who run this service: they must apply for access there."),
            code,
            is_for_operator=True,
            can_begin_again=False,
        )
    if error in {"server_error", "temporarily_unavailable"}:
        return ConnectFailure(
            _("%(platform)s is unavailable.") % names,
            _("Try again in a few minutes."),
            code,
        )
    return ConnectFailure(
        _("%(platform)s didn't grant permission.") % names,
        _("Try again. If it fails again, contact the people who run this service."),
        code,
        is_for_operator=True,
    )


def explain_invalid_state(error: AppError) -> ConnectFailure:
    """Explain a return whose `state` isn't valid, or has expired."""
    advice = _("Start again from your outlets, in the same browser.")
    return ConnectFailure(str(error), advice)


def explain_missing_role() -> ConnectFailure:
    """Explain that the person's role no longer allows them to connect outlets."""
    return ConnectFailure(
        _("You no longer have permission to connect outlets."),
        _("Ask an owner to connect it."),
    )


def explain_refusal(
    error: AppError, platform: Platform, attempt: OAuthAttempt | None = None
) -> ConnectFailure:
    """Explain why the platform or this service refused the log-in or the account."""
    message, code = str(error), error.detail[0].code if error.detail else ""
    names = {"platform": platform.label}
    if code in _OPERATOR_CODES:
        advice = _("Contact the people who run this service.")
        return ConnectFailure(message, advice, is_for_operator=True, can_begin_again=False)
    if code == "already_connected":
        advice = _("To use another account, log in to it at %(platform)s first.")
        return ConnectFailure(message, advice % names)
    if code == "another_account" and attempt is not None and attempt.outlet is not None:
        advice = _("Log in at %(platform)s with the account of %(name)s, then try again.")
        return ConnectFailure(message, advice % {**names, "name": attempt.outlet.name})
    advice = _("Try again. If it fails again, contact the people who run this service.")
    return ConnectFailure(message, advice, is_for_operator=True)
