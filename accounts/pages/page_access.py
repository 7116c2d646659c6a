"""Decorates views: finds the workspace of the URL, and checks whether the user may do the view's act there."""

from __future__ import annotations

from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, Final, cast

from allauth.account.decorators import reauthentication_required
from django.contrib import messages
from django.contrib.auth.views import redirect_to_login
from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.cache import patch_cache_control
from django.utils.translation import gettext as _

from accounts import members
from accounts.access import roles
from accounts.models import Membership
from accounts.pages import kept_forms

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from uuid import UUID

    from django.http import HttpRequest
    from django.http.response import HttpResponseBase

    from accounts.models import User, Workspace

_LAST_WORKSPACE_KEY: Final = "last_workspace"


@dataclass(frozen=True)
class Place:
    """A workspace, the user who opened it, and their role there."""

    workspace: Workspace
    user: User
    role: str

    def may(self, act: str) -> bool:
        return roles.may(self.role, act)

    @property
    def may_edit(self) -> bool:
        return self.may("edit")

    @property
    def may_manage(self) -> bool:
        return self.may("manage")

    def url_of(self, name: str, **arguments: Any) -> str:
        """Return the URL of another page of this workspace."""
        return reverse(name, kwargs={"ws": self.workspace.pk, **arguments})


def workspace_page(
    act: str, *, methods: tuple[str, ...] = ("GET", "POST")
) -> Callable[[Callable[..., HttpResponseBase]], Callable[..., HttpResponseBase]]:
    """Make a view of `(request, place, …)` a page of a workspace for members whose role allows the act.

    A visitor is asked to log in, and finds what they had typed again afterwards. A user who isn't a member gets
    a 404, a member whose role doesn't allow the act a 403 with the owners' addresses, and other methods than
    `methods` a 405. If `methods` has GET, a HEAD is answered too. Raises `ValueError` for an act that
    `roles.ACTS` doesn't have.
    """
    if act not in roles.ACTS:
        message = f"There is no act {act!r} in accounts/access/roles.py."
        raise ValueError(message)

    # A HEAD is a GET without its body. Django asks it for no CSRF token, so a page that only acts must not
    # take it.
    accepted_methods = {*methods, "HEAD"} if "GET" in methods else {*methods}

    def decorate(view: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
        @cached_privately
        @wraps(view)
        def answer(request: HttpRequest, ws: UUID, **arguments: Any) -> HttpResponseBase:
            if request.method not in accepted_methods:
                return method_not_allowed(request, methods)
            return _answer_if_allowed(view, act, request, ws, arguments)

        answer.act = act  # type: ignore[attr-defined]  # the test of roles and pages reads it
        return answer

    return decorate


def _answer_if_allowed(
    view: Callable[..., HttpResponseBase],
    act: str,
    request: HttpRequest,
    workspace_id: UUID,
    arguments: Mapping[str, Any],
) -> HttpResponseBase:
    """Return the view's response, the way to the log-in, or a 403. Raises `Http404` if they aren't a member."""
    if not request.user.is_authenticated:
        return ask_to_log_in(request)
    place = find_place(request, workspace_id)
    if place is None:
        raise Http404
    request.place = place  # type: ignore[attr-defined]  # the frame's templates read it
    if not place.may(act):
        context = {"owners": members.read_owner_addresses(place.workspace)}
        return render(request, "pages/errors/not_yours.html", context, status=403)
    if request.session.get(_LAST_WORKSPACE_KEY) != str(workspace_id):
        request.session[_LAST_WORKSPACE_KEY] = str(workspace_id)
    response = view(request, place, **arguments)
    kept_forms.remember_browser(request, response)
    return response


def cached_privately(view: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
    """Let browsers revalidate the page and shared caches skip it; a view's own `Cache-Control` stays.

    With `no-store`, going back after a form was sent could only show an error. Pages that show a secret set it
    themselves.
    """

    @wraps(view)
    def answer(*args: Any, **kwargs: Any) -> HttpResponseBase:
        response = view(*args, **kwargs)
        if "Cache-Control" not in response:
            patch_cache_control(response, private=True, no_cache=True)
        return response

    return answer


def fresh_log_in_required(view: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
    """Ask users who logged in a while ago to authenticate again; what they sent is processed afterwards."""
    checked: Callable[..., HttpResponseBase] = reauthentication_required(view)
    return checked


def user_page(view: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
    """Make a view of `(request)` a page for every logged-in user, outside a workspace."""

    @cached_privately
    @wraps(view)
    def answer(request: HttpRequest, **arguments: Any) -> HttpResponseBase:
        if request.method not in {"GET", "POST", "HEAD"}:
            return method_not_allowed(request, ("GET", "POST"))
        if not request.user.is_authenticated:
            return ask_to_log_in(request)
        response = view(request, **arguments)
        kept_forms.remember_browser(request, response)
        return response

    return answer


def ask_to_log_in(request: HttpRequest) -> HttpResponse:
    """Return a redirect to the log-in, which leads back to the page, and keep what was typed for then.

    If the form can't be kept, a message warns. An HTMX request can't follow the redirect: its page is told to
    reload, or gets a 401 if the form couldn't be kept, so that the page stays open with it.
    """
    is_kept = kept_forms.keep_form(request)
    if request.headers.get("HX-Request") == "true":
        if not is_kept:
            return HttpResponse(status=401)
        # The whole page is loaded again, which leads to the log-in and back.
        return HttpResponse(headers={"HX-Refresh": "true"})
    if not is_kept:
        messages.warning(request, _("Your changes can't be kept. Go back and copy them before you log in."))
    return redirect_to_login(request.get_full_path() if request.method == "GET" else request.path)


def method_not_allowed(request: HttpRequest, methods: tuple[str, ...]) -> HttpResponse:
    """Render the 405 page; its header `Allow` names the methods."""
    response = render(request, "pages/errors/405.html", status=405)
    response["Allow"] = ", ".join(methods)
    return response


def find_place(request: HttpRequest, workspace_id: UUID) -> Place | None:
    """Return the workspace with the user's role, or `None` if they aren't a member or it was deleted."""
    user = cast("User", request.user)
    membership = (
        Membership.objects.of(workspace_id)
        .select_related("workspace__plan", "workspace__credits")
        .defer("workspace__model_key")
        .filter(user=user, workspace__deleted_at=None)
        .first()
    )
    return None if membership is None else Place(membership.workspace, user, membership.role)


def last_workspace(request: HttpRequest) -> str | None:
    """Return the UUID, as text, of the workspace last opened in this session, or `None` before the first."""
    return request.session.get(_LAST_WORKSPACE_KEY)
