"""Leads a person to a platform's own log-in, and connects the account when they come back."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import UUID

from django.contrib import messages
from django.http import Http404
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _

from accounts.pages.page_access import Place, find_place, user_page, workspace_page
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

MAX_CODE_CHARACTERS = 4096
"""The most characters of an authorization code that are read; the rest is cut off."""


@workspace_page("manage", methods=("POST",))
def start(request: HttpRequest, place: Place, kind: str) -> HttpResponse:
    """Begin a log-in and lead the person to the platform.

    The response is a page that refreshes to the platform and no redirect, because the CSP's `form-action` lets no form
    lead to another site. Raises `Http404` if the platform has no log-in, or the outlet to reconnect doesn't exist.
    """
    platform = _find_oauth_platform(kind)
    outlet_id = request.POST.get("outlet", "")
    try:
        outlet = find_outlet(place, UUID(outlet_id)) if outlet_id else None
    except ValueError as error:
        raise Http404 from error
    try:
        login_url = oauth_connect.begin(place.workspace, kind, user=place.user, outlet=outlet, now=utc_now())
    except AppError as error:
        return _render_failure(
            request, platform, connect_failures.explain_refusal(error, platform), place=place
        )
    response = render(request, "pages/outlets/oauth_go.html", {"platform": platform, "address": login_url})
    response["Refresh"] = f"0; url={login_url}"
    response["Cache-Control"] = "no-store"
    return response


@user_page
def callback(request: HttpRequest, kind: str) -> HttpResponse:
    """Connect the account of a person whom the platform sends back with a code, or explain why there is none."""
    platform, now = _find_oauth_platform(kind), utc_now()
    query = request.GET
    try:
        attempt = oauth_connect.take_attempt(
            kind,
            state=query.get("state", ""),
            user=request.user,  # type: ignore[arg-type]  # user_page lets nobody else in
            now=now,
        )
    except AppError as error:
        return _render_failure(request, platform, connect_failures.explain_invalid_state(error), status=400)
    place = find_place(request, attempt.workspace_id)
    if place is None or not place.may("manage"):
        return _render_failure(request, platform, connect_failures.explain_missing_role(), status=403)
    request.place = place  # type: ignore[attr-defined]  # the frame's templates read it
    if "code" not in query:
        failure = connect_failures.explain_missing_code(query.get("error", ""), platform)
        return _render_failure(request, platform, failure, place=place, attempt=attempt)
    try:
        outlet = oauth_connect.complete(
            attempt, code=query["code"][:MAX_CODE_CHARACTERS], by=place.user.email, now=now
        )
    except AppError as error:
        failure = connect_failures.explain_refusal(error, platform, attempt)
        return _render_failure(request, platform, failure, place=place, attempt=attempt)
    if attempt.outlet is None:
        messages.success(request, _("%(name)s connected") % {"name": outlet.name})
    else:
        message = _("%(name)s reconnected. Waiting posts resume.")
        messages.success(request, message % {"name": outlet.name})
    return redirect(place.url_of("outlet_page", out=outlet.pk))


def _render_failure(
    request: HttpRequest,
    platform: Platform,
    failure: connect_failures.ConnectFailure,
    *,
    place: Place | None = None,
    attempt: OAuthAttempt | None = None,
    status: int = 409,
) -> HttpResponse:
    """Render the page that explains a failed log-in, with the address of the page where another one can begin."""
    outlet = attempt.outlet if attempt is not None else None
    retry_address = ""
    if outlet is not None and outlet.deleted_at is not None:
        outlet = None
    if place is not None and outlet is not None:
        retry_address = place.url_of("outlet_reconnect", out=outlet.pk)
    elif place is not None:
        retry_address = place.url_of("outlet_connect", kind=platform.kind)
    context = {
        "platform": platform,
        "failure": failure,
        "outlet": outlet,
        "again": retry_address,
        "outlets": place.url_of("outlets_page") if place is not None else "",
    }
    return render(request, "pages/outlets/oauth_failed.html", context, status=status)


def _find_oauth_platform(kind: str) -> Platform:
    """Return the platform; raises `Http404` if it is unknown or offers no log-in."""
    try:
        platform = platform_of(kind)
    except plugins.UnknownKind as error:
        raise Http404 from error
    if platform.oauth is None:
        raise Http404
    return platform
