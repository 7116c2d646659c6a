"""Adds the template context of every page's frame: workspaces, theme, and the service's name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from django.utils.functional import SimpleLazyObject

from accounts import workspaces
from accounts.pages.page_access import find_place, last_workspace

if TYPE_CHECKING:
    from django.http import HttpRequest

    from accounts.models import Membership
    from accounts.pages.page_access import Place

THEMES: Final = ("light", "dark")
_ACCOUNT_PAGES: Final = (
    "profile",
    "account_email",
    "account_change_password",
    "account_set_password",
    "mfa_",
    "usersessions_",
)
"""The beginnings of the URL names of the user's own pages, which use `layouts/manage.html`."""
_CACHE_ATTRIBUTE: Final = "_account_place"


def frame(request: HttpRequest) -> dict[str, Any]:
    """Return the context of every page's frame; memberships are read only if a template shows them."""
    theme = request.COOKIES.get("theme", "")
    return {
        "site_name": settings.SITE_NAME,
        "operator_contact": settings.OPERATOR_CONTACT,
        "theme": theme if theme in THEMES else "",
        "place": getattr(request, "place", None) or _place_of_account_page(request),
        "memberships": SimpleLazyObject(lambda: memberships(request)),
        "is_dialog": request.headers.get("X-Dialog") == "1",
    }


def _place_of_account_page(request: HttpRequest) -> Place | None:
    """Return the workspace whose navigation the user's own pages show, which is the last one opened.

    Returns `None` on every other page, and for a user who isn't logged in or has no workspace.
    """
    match = request.resolver_match
    # A request of the API has no user at all.
    if match is None or not match.view_name.startswith(_ACCOUNT_PAGES) or not request.user.is_authenticated:
        return None
    if not hasattr(request, _CACHE_ATTRIBUTE):
        membership = last_or_first(request, memberships(request))
        setattr(
            request,
            _CACHE_ATTRIBUTE,
            find_place(request, membership.workspace_id) if membership is not None else None,
        )
    place: Place | None = getattr(request, _CACHE_ATTRIBUTE)
    return place


def last_or_first(request: HttpRequest, user_memberships: list[Membership]) -> Membership | None:
    """Return the membership of the workspace last opened in this session, or else the first, if any."""
    last_id = last_workspace(request)
    first = user_memberships[0] if user_memberships else None
    return next((row for row in user_memberships if last_id == str(row.workspace_id)), first)


def memberships(request: HttpRequest) -> list[Membership]:
    """Return the user's memberships, by the workspaces' names; none if nobody is logged in."""
    if not request.user.is_authenticated:
        return []
    return workspaces.memberships_of(request.user)
