"""What the frame around every page shows: the person's workspaces, the theme they chose, the service's name."""

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
"""How the URL names of a person's own pages begin: those of `layouts/manage.html`."""
_KEPT: Final = "_account_place"


def frame(request: HttpRequest) -> dict[str, Any]:
    """A context processor; it asks the database only where a template shows the list."""
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
    """The workspace whose navigation stands beside a person's own pages: the one that they looked at last.

    None on every other page, and for who belongs to none.
    """
    match = request.resolver_match
    # A request of the API has no user at all.
    if match is None or not match.view_name.startswith(_ACCOUNT_PAGES) or not request.user.is_authenticated:
        return None
    if not hasattr(request, _KEPT):
        own = last_or_first(request, memberships(request))
        setattr(request, _KEPT, find_place(request, own.workspace_id) if own is not None else None)
    place: Place | None = getattr(request, _KEPT)
    return place


def last_or_first(request: HttpRequest, own: list[Membership]) -> Membership | None:
    """Of the person's memberships that of the workspace which they looked at last in this session, else the first."""
    last = last_workspace(request)
    return next((row for row in own if last == str(row.workspace_id)), own[0] if own else None)


def memberships(request: HttpRequest) -> list[Membership]:
    """By name; of the person in front of the page."""
    if not request.user.is_authenticated:
        return []
    return workspaces.memberships_of(request.user)
