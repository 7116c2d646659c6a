"""To a platform's own log-in, and back from it."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from django.contrib import messages
from django.http import Http404
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _

from accounts.pages.page_access import Place, find_place, page, person_page
from config.core.clock import utc_now
from config.core.errors import AppError
from pipeline import plugins
from pipeline.outlets import oauth_connect
from pipeline.outlets.outlet_client import platform_of
from pipeline.pages.outlets import connect_failures
from pipeline.pages.outlets.detail import find_outlet

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from pipeline.models import OAuthAttempt
    from pipeline.platforms.base import Platform

CODE_CHARACTERS = 4096


@page("manage", methods=("POST",))
def start(request: HttpRequest, place: Place, kind: str) -> HttpResponse:
    """Leads on by a page instead of a redirect: a browser lets no form lead to another site (CSP,
    `form-action`).
    """
    platform = _platform(kind)
    given = request.POST.get("outlet", "")
    try:
        outlet = find_outlet(place, UUID(given)) if given else None
    except ValueError as error:
        raise Http404 from error
    try:
        address = oauth_connect.begin(place.workspace, kind, user=place.user, outlet=outlet, now=utc_now())
    except AppError as error:
        return _failed(request, platform, connect_failures.refused(error, platform), place=place)
    answer = render(request, "pages/outlets/oauth_go.html", {"platform": platform, "address": address})
    answer["Refresh"] = f"0; url={address}"
    answer["Cache-Control"] = "no-store"
    return answer


@person_page
def callback(request: HttpRequest, kind: str) -> HttpResponse:
    """Where the platform sends the person back to, with a code or with its reason for giving none."""
    platform, now = _platform(kind), utc_now()
    given = request.GET
    try:
        attempt = oauth_connect.take_attempt(
            kind,
            state=given.get("state", ""),
            user=request.user,  # type: ignore[arg-type]  # person_page lets nobody else in
            now=now,
        )
    except AppError as error:
        return _failed(request, platform, connect_failures.over(error), status=400)
    place = find_place(request, attempt.workspace_id)
    if place is None or not place.may("manage"):
        return _failed(request, platform, connect_failures.of_role(), status=403)
    request.place = place  # type: ignore[attr-defined]  # the frame's templates read it
    if "code" not in given:
        failure = connect_failures.without_code(given.get("error", ""), platform)
        return _failed(request, platform, failure, place=place, attempt=attempt)
    try:
        outlet = oauth_connect.complete(
            attempt, code=given["code"][:CODE_CHARACTERS], by=place.user.email, now=now
        )
    except AppError as error:
        failure = connect_failures.refused(error, platform, attempt)
        return _failed(request, platform, failure, place=place, attempt=attempt)
    if attempt.outlet is None:
        messages.success(request, _("%(name)s connected") % {"name": outlet.name})
    else:
        said = _("%(name)s reconnected. Waiting posts resume.")
        messages.success(request, said % {"name": outlet.name})
    return redirect(place.address("outlet_page", out=outlet.pk))


def _failed(
    request: HttpRequest,
    platform: Platform,
    failure: connect_failures.ConnectFailure,
    *,
    place: Place | None = None,
    attempt: OAuthAttempt | None = None,
    status: int = 409,
) -> HttpResponse:
    again, outlet = "", attempt.outlet if attempt is not None else None
    if outlet is not None and outlet.deleted_at is not None:
        outlet = None
    if place is not None and outlet is not None:
        again = place.address("outlet_reconnect", out=outlet.pk)
    elif place is not None:
        again = place.address("outlet_connect", kind=platform.kind)
    context = {
        "platform": platform,
        "failure": failure,
        "outlet": outlet,
        "again": again,
        "outlets": place.address("outlets_page") if place is not None else "",
    }
    return render(request, "pages/outlets/oauth_failed.html", context, status=status)


def _platform(kind: str) -> Platform:
    try:
        platform = platform_of(kind)
    except plugins.UnknownKind as error:
        raise Http404 from error
    if platform.oauth is None:
        raise Http404
    return platform
