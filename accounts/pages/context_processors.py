"""What the frame around every page shows: the person's workspaces, the theme they chose, the service's name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from django.utils.functional import SimpleLazyObject

from accounts import workspaces

if TYPE_CHECKING:
    from django.http import HttpRequest

    from accounts.models import Membership

THEMES: Final = ("light", "dark")


def frame(request: HttpRequest) -> dict[str, Any]:
    """A context processor; it asks the database only where a template shows the list."""
    theme = request.COOKIES.get("theme", "")
    return {
        "site_name": settings.SITE_NAME,
        "operator_contact": settings.OPERATOR_CONTACT,
        "theme": theme if theme in THEMES else "",
        "place": getattr(request, "place", None),
        "memberships": SimpleLazyObject(lambda: memberships(request)),
        "is_dialog": request.headers.get("X-Dialog") == "1",
    }


def memberships(request: HttpRequest) -> list[Membership]:
    """By name; of the person in front of the page."""
    if not request.user.is_authenticated:
        return []
    return workspaces.memberships_of(request.user)
