"""To a platform's own log-in, and back from it."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from django.contrib import messages
from django.http import Http404
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.pages.place import Place, find, page, person_page
from config.ground.errors import AppError
from pipeline import plugins
from pipeline.connection import platform_of
from pipeline.pages.outlets.one import find_outlet
from pipeline.stages import oauth

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from pipeline.models import OAuthAttempt
    from pipeline.platforms.base import Platform

CODE_CHARACTERS = 4096


@page("manage", methods=("POST",))
def start(request: HttpRequest, place: Place, kind: str) -> HttpResponse:
    """Leads on by a page instead of a redirect: a browser lets no form lead to another site (CSP, `form-action`)."""
    platform = _platform(kind)
    given = request.POST.get("outlet", "")
    try:
        outlet = find_outlet(place, UUID(given)) if given else None
    except ValueError as error:
        raise Http404 from error
    try:
        address = oauth.begin(place.workspace, kind, user=place.user, outlet=outlet, now=timezone.now())
    except AppError as error:
        return _failed(request, platform, str(error), place=place, status=409)
    answer = render(request, "pages/outlet_oauth_go.html", {"platform": platform, "address": address})
    answer["Refresh"] = f"0; url={address}"
    answer["Cache-Control"] = "no-store"
    return answer


@person_page
def callback(request: HttpRequest, kind: str) -> HttpResponse:
    """Where the platform sends the person back to, with a code or with its reason for giving none."""
    platform, now = _platform(kind), timezone.now()
    given = request.GET
    try:
        attempt = oauth.take_back(
            kind,
            state=given.get("state", ""),
            user=request.user,  # type: ignore[arg-type]  # person_page lets nobody else in
            now=now,
        )
    except AppError as error:
        return _failed(request, platform, str(error), status=400)
    place = find(request, attempt.workspace_id)
    if place is None or not place.may("manage"):
        message = _("You no longer may connect outlets of that workspace; ask one of its owners.")
        return _failed(request, platform, message, status=403)
    request.place = place  # type: ignore[attr-defined]  # the frame's templates read it
    if "code" not in given:
        return _failed(
            request, platform, _why_none(given.get("error", ""), platform), place=place, attempt=attempt
        )
    try:
        outlet = oauth.complete(attempt, code=given["code"][:CODE_CHARACTERS], by=place.user.email, now=now)
    except AppError as error:
        return _failed(request, platform, str(error), place=place, attempt=attempt)
    if attempt.outlet is None:
        messages.success(request, _("%(name)s is connected.") % {"name": outlet.name})
    else:
        said = _("%(name)s is connected again. What waited for it goes on.")
        messages.success(request, said % {"name": outlet.name})
    return redirect(place.address("outlet_page", out=outlet.pk))


def _why_none(error: str, platform: Platform) -> str:
    """RFC 6749, section 4.1.2.1; LinkedIn has words of its own for a person who says no."""
    label = {"platform": platform.label}
    if error in {"access_denied", "user_cancelled_login", "user_cancelled_authorize"}:
        return _("You didn't allow it at %(platform)s, so nothing was connected or changed.") % label
    if error in {"unauthorized_client", "unauthorized_scope_error", "invalid_scope"}:
        return (
            _("%(platform)s doesn't let this service ask for all that it needs; tell its operator.") % label
        )
    if error in {"server_error", "temporarily_unavailable"}:
        return _("%(platform)s couldn't answer at this moment. Try it again.") % label
    return _("%(platform)s sent you back without its permission. Try it again.") % label


def _failed(
    request: HttpRequest,
    platform: Platform,
    message: str,
    *,
    place: Place | None = None,
    attempt: OAuthAttempt | None = None,
    status: int = 409,
) -> HttpResponse:
    again = ""
    if place is not None and attempt is not None and attempt.outlet_id is not None:
        again = place.address("outlet_reconnect", out=attempt.outlet_id)
    elif place is not None:
        again = place.address("outlet_connect", kind=platform.kind)
    context = {"platform": platform, "message": message, "again": again}
    return render(request, "pages/outlet_oauth_failed.html", context, status=status)


def _platform(kind: str) -> Platform:
    try:
        platform = platform_of(kind)
    except plugins.UnknownKind as error:
        raise Http404 from error
    if platform.oauth is None:
        raise Http404
    return platform
