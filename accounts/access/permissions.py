"""Checks every API request in the contract's order: token, whitelist, rate limit, scope."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from rest_framework.permissions import BasePermission

from accounts.access import workspace_rate_limit
from accounts.access.authentication import Caller, Unauthenticated
from config.core.datetimes import format_utc
from config.core.errors import AppError, Detail

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from rest_framework.request import Request
    from rest_framework.views import APIView

_ACTIONS_WITHOUT_ROUTE: Final = (None, "metadata")


class NotWhitelisted(AppError):
    """Raised for a token of a workspace that an operator hasn't approved."""

    code = "workspace_not_whitelisted"

    def __init__(self) -> None:
        message = (
            "This workspace isn't approved for the API: an owner can request access under Settings, Access, "
            f"or write to {settings.OPERATOR_CONTACT}."
        )
        super().__init__(Detail(None, self.code, message))


class BeingDeleted(AppError):
    """Raised for a workspace whose deletion was requested: its API is closed, as without whitelisting."""

    code = "workspace_not_whitelisted"

    def __init__(self, deletes_at: datetime) -> None:
        message = f"This workspace will be deleted at {format_utc(deletes_at)}; until then an owner can undo that in its settings."
        super().__init__(Detail(None, "workspace_being_deleted", message))


class RateLimited(AppError):
    """Raised when the workspace's allowance of requests is used up."""

    code = "rate_limited"

    def __init__(self, decision: workspace_rate_limit.Decision) -> None:
        message = (
            f"This workspace may send {workspace_rate_limit.CAPACITY} requests at once and one a second after that; "
            f"wait {decision.retry_after} s."
        )
        super().__init__(Detail(None, self.code, message), headers={"Retry-After": str(decision.retry_after)})


class InsufficientScope(AppError):
    """Raised when the token lacks the scope that the action needs."""

    code = "insufficient_scope"

    def __init__(self, scope: str) -> None:
        message = f"This needs the scope {scope}, which the token lacks; use or make a token that has it."
        super().__init__(Detail(None, self.code, message))


class HasToken(BasePermission):
    """Allows requests with a valid token. Raises `Unauthenticated` for the others."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        del view
        caller(request)
        return True


class WorkspaceIsWhitelisted(BasePermission):
    """Requires an approved workspace. Raises `NotWhitelisted`, or `BeingDeleted` if its deletion was requested."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        del view
        workspace = caller(request).workspace
        if workspace.deletes_at is not None:
            raise BeingDeleted(workspace.deletes_at)
        if not workspace.is_whitelisted:
            raise NotWhitelisted
        return True


class RateAllows(BasePermission):
    """Takes a request from the workspace's allowance. Raises `RateLimited` if the allowance is used up."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        del view
        workspace = caller(request).workspace
        decision = (
            workspace_rate_limit.unlimited_decision()
            if workspace.is_unlimited
            else workspace_rate_limit.take_request(workspace.pk)
        )
        # On Django's own request, so that every layer above sees it too.
        request._request.rate_decision = decision  # type: ignore[attr-defined]  # noqa: SLF001
        if not decision.allowed:
            raise RateLimited(decision)
        return True


class TokenHasScope(BasePermission):
    """Requires the scope that the view's `scopes` names for the action.

    Raises `InsufficientScope` if the token lacks it, and `ImproperlyConfigured`, for a programming error, if
    `scopes` doesn't name the action.
    """

    def has_permission(self, request: Request, view: APIView) -> bool:
        action: str | None = getattr(view, "action", None)
        if action in _ACTIONS_WITHOUT_ROUTE and hasattr(view, "action_map"):
            # The route doesn't have this method: let it go on to its 405.
            return True
        scopes: Mapping[str, str | None] = getattr(view, "scopes", {})
        if action is None or action not in scopes:
            message = f"{type(view).__name__}.scopes doesn't say what {action} needs."
            raise ImproperlyConfigured(message)
        scope = scopes[action]
        if scope is not None and scope not in caller(request).scopes:
            raise InsufficientScope(scope)
        return True


def caller(request: Request) -> Caller:
    """Return the caller. Raises `Unauthenticated` in a view without our authentication."""
    if not isinstance(request.auth, Caller):
        raise Unauthenticated
    return request.auth


def rate_headers(request: Request) -> dict[str, str]:
    """Return the headers of the decision that `RateAllows` took, or no headers if it wasn't reached."""
    decision = getattr(request._request, "rate_decision", None)  # noqa: SLF001
    return {} if decision is None else workspace_rate_limit.headers_of(decision)
