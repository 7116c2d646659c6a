"""A log-in at a platform that connected nothing: what happened there, and what to do next."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from django.utils.translation import gettext as _

if TYPE_CHECKING:
    from config.core.errors import AppError
    from pipeline.models import OAuthAttempt
    from pipeline.platforms.base import Platform

_NO: Final = frozenset({"access_denied", "user_cancelled_login", "user_cancelled_authorize"})
_OF_THE_APP: Final = frozenset({"unauthorized_client", "unauthorized_scope_error", "invalid_scope"})
_FOR_THE_OPERATOR: Final = frozenset({"app_refused", "not_registered"})
_CODE: Final = re.compile(r"[A-Za-z0-9_.-]{1,60}")


@dataclass(frozen=True)
class ConnectFailure:
    """`code` is the platform's own name for it. Where `is_for_operator`, the page says who that is."""

    message: str
    advice: str
    code: str = ""
    is_for_operator: bool = False
    can_begin_again: bool = True
    """False where that would end in the same way."""


def without_code(error: str, platform: Platform) -> ConnectFailure:
    """RFC 6749, section 4.1.2.1; LinkedIn has words of its own for a person who says no."""
    label = {"platform": platform.label}
    code = error if _CODE.fullmatch(error) else ""
    if error in _NO:
        return ConnectFailure(
            _("You didn't allow it at %(platform)s, so nothing was connected or changed.") % label,
            _("Begin again, and allow at %(platform)s all that it asks for: posting needs it.") % label,
        )
    if error in _OF_THE_APP:
        return ConnectFailure(
            _("%(platform)s doesn't let this service ask for all that it needs.") % label,
            _(
                "Tell the operator of this service, who has to apply for it there. Until then it ends the same."
            ),
            code,
            is_for_operator=True,
            can_begin_again=False,
        )
    if error in {"server_error", "temporarily_unavailable"}:
        return ConnectFailure(
            _("%(platform)s couldn't answer at this moment.") % label,
            _("Wait some minutes, then begin again."),
            code,
        )
    return ConnectFailure(
        _("%(platform)s sent you back without its permission.") % label,
        _("Begin again. Where it ends in the same way, tell the operator of this service what stands here."),
        code,
        is_for_operator=True,
    )


def over(error: AppError) -> ConnectFailure:
    """A way back that isn't good, or no longer."""
    advice = _("Open the outlets of your workspace and begin there, in the browser that you stay in.")
    return ConnectFailure(str(error), advice)


def of_role() -> ConnectFailure:
    return ConnectFailure(
        _("You no longer may connect outlets of that workspace."),
        _("Ask one of its owners to connect it, or to make you an owner."),
    )


def refused(error: AppError, platform: Platform, attempt: OAuthAttempt | None = None) -> ConnectFailure:
    """What the platform, or the workspace itself, has against the account."""
    message, code = str(error), error.detail[0].code if error.detail else ""
    label = {"platform": platform.label}
    if code in _FOR_THE_OPERATOR:
        advice = _("Tell the operator of this service. Until then it ends the same.")
        return ConnectFailure(message, advice, is_for_operator=True, can_begin_again=False)
    if code == "already_connected":
        advice = _("For another account, log in as that one at %(platform)s first, then begin again.")
        return ConnectFailure(message, advice % label)
    if code == "another_account" and attempt is not None and attempt.outlet is not None:
        advice = _("Log in at %(platform)s as the account of %(name)s, then begin again.")
        return ConnectFailure(message, advice % {**label, "name": attempt.outlet.name})
    advice = _(
        "Begin again. Where it ends in the same way, tell the operator of this service what stands here."
    )
    return ConnectFailure(message, advice, is_for_operator=True)
