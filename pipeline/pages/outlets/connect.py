"""Connects or reconnects an account; the platform confirms the account before anything is saved."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import messages
from django.http import Http404
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters

from accounts.pages import kept_forms, shown_once
from accounts.pages.act_messages import report_errors
from accounts.pages.page_access import Place, workspace_page
from config.core.clock import utc_now
from config.core.ids import encode
from pipeline import outlets, plugins
from pipeline.outlets import oauth_connect
from pipeline.outlets.outlet_client import platform_of
from pipeline.pages.outlets import account
from pipeline.pages.outlets.detail import find_outlet, outlet_head
from pipeline.pages.outlets.forms import ConnectForm, ReconnectForm

if TYPE_CHECKING:
    from uuid import UUID

    from django.http import HttpRequest, HttpResponse

    from pipeline.models import Outlet
    from pipeline.pages.outlets.forms import PlatformSettingsForm
    from pipeline.platforms.base import Platform


@sensitive_post_parameters()
@workspace_page("manage")
def outlet_connect(request: HttpRequest, place: Place, kind: str) -> HttpResponse:
    """Connect a new account of the platform with the form's settings and secrets; a double click connects one."""
    platform = _find_connectable_platform(kind)
    form = kept_forms.form_for(request, ConnectForm, platform=platform)
    if request.method == "POST" and form.is_valid():
        if not kept_forms.is_first_sending(request):
            return redirect(place.url_of("outlets_page"))
        with report_errors(request, form):
            outlet = outlets.connect_outlet(
                place.workspace,
                kind,
                name=form.cleaned_data["name"],
                config=form.config(),
                credentials=form.credentials(),
                by=place.user.email,
                now=utc_now(),
            )
            messages.success(request, _("%(name)s connected.") % {"name": outlet.name})
            return _redirect_connected(request, place, outlet, form)
    context = {
        "platform": platform,
        "takes": account.bucket_names_of(platform),
        "form": form,
        "oauth": platform.oauth is not None,
        "oauth_address": oauth_address(place, platform),
    }
    return render(request, "pages/outlets/connect.html", context)


@sensitive_post_parameters()
@workspace_page("manage")
def outlet_reconnect(request: HttpRequest, place: Place, out: UUID) -> HttpResponse:
    """Give the outlet new secrets, so that posts that wait for them resume."""
    outlet = find_outlet(place, out)
    platform = _find_connectable_platform(outlet.platform)
    form = kept_forms.form_for(request, ReconnectForm, outlet=outlet, platform=platform)
    if request.method == "POST" and form.is_valid():
        if not kept_forms.is_first_sending(request):
            return redirect(place.url_of("outlet_page", out=out))
        with report_errors(request, form):
            reconnected = outlets.reconnect(
                outlet,
                config=form.config(),
                credentials=form.credentials(),
                by=place.user.email,
                now=utc_now(),
            )
            message = _("%(name)s reconnected. Waiting posts resume.")
            messages.success(request, message % {"name": outlet.name})
            return _redirect_connected(request, place, reconnected, form)
    context = {
        **outlet_head(outlet, "reconnect"),
        "form": form,
        "oauth": platform.oauth is not None,
        "oauth_address": oauth_address(place, platform),
    }
    return render(request, "pages/outlets/reconnect.html", context)


@workspace_page("manage", methods=("GET",))
@never_cache
def outlet_secret(request: HttpRequest, place: Place, out: UUID) -> HttpResponse:
    """Show a secret that this service made the first time that the page is opened, and never again."""
    outlet = find_outlet(place, out)
    # A HEAD request shows nothing, so it must not use up the secret.
    secret = shown_once.take_secret(request, encode("out", out)) if request.method == "GET" else None
    return render(request, "pages/outlets/secret.html", {"outlet": outlet, "secret": secret})


def _redirect_connected(
    request: HttpRequest, place: Place, outlet: Outlet, form: PlatformSettingsForm
) -> HttpResponse:
    """Redirect to the outlet, or to the page that shows its secret if this service made one."""
    secret = outlets.generated_secret_of(outlet, form.credentials())
    if secret is None:
        return redirect(place.url_of("outlet_page", out=outlet.pk))
    shown_once.keep_secret(request, encode("out", outlet.pk), secret)
    return redirect(place.url_of("outlet_secret", out=outlet.pk))


def oauth_address(place: Place, platform: Platform) -> str:
    """Return the address that starts a log-in at the platform, or an empty text if no app is registered for it."""
    if not oauth_connect.is_registered(platform.kind):
        return ""
    return place.url_of("outlet_oauth_start", kind=platform.kind)


def _find_connectable_platform(kind: str) -> Platform:
    """Return the platform; raises `Http404` if it is unknown or can't be connected."""
    try:
        platform = platform_of(kind)
    except plugins.UnknownKind as error:
        raise Http404 from error
    if not platform.is_connectable:
        raise Http404
    return platform
