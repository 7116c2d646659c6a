"""Public views for subscribers: sign up, confirm, unsubscribe and come back.

Search engines must not index any of them.
"""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any

import structlog
from django import forms
from django.db import OperationalError
from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext_lazy as _
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_http_methods
from django_ratelimit.core import is_ratelimited  # type: ignore[import-untyped]
from redis import RedisError

from accounts.access.authentication import client_network
from config.core.clock import utc_now
from pipeline import limits
from pipeline.mailing import subscribers
from pipeline.models import SubscriberStatus
from pipeline.states import WANTED_SUBSCRIBERS

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpRequest

    from pipeline.models import Outlet, Subscriber

log = structlog.get_logger(__name__)
ONE_CLICK = "List-Unsubscribe"
"""The form field of a one-click unsubscribe (RFC 8058)."""


def _public_page(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Return the view without caching or indexing, for GET, HEAD and POST only."""

    @never_cache
    @require_http_methods(["GET", "HEAD", "POST"])
    @wraps(view)
    def wrapper(request: HttpRequest, **arguments: Any) -> HttpResponse:
        response = view(request, **arguments)
        response["X-Robots-Tag"] = "noindex, nofollow"
        return response

    return wrapper


class SignUpForm(forms.Form):
    """The address of somebody who subscribes."""

    email = forms.CharField(
        label=_("Your email address"),
        max_length=254,
        widget=forms.EmailInput(attrs={"autocomplete": "email"}),
    )

    def clean_email(self) -> str:
        """Return the normalized address."""
        email = subscribers.normalize_address(self.cleaned_data["email"])
        if email is None:
            raise forms.ValidationError(_("Enter a valid email address."))
        return email


@_public_page
def subscribe(request: HttpRequest, secret: str) -> HttpResponse:
    """Show the form, and on POST mail a question for confirmation.

    The answer is the same whether or not the address is
    on the list, so that nobody can probe for subscribers.
    """
    outlet = subscribers.find_newsletter(secret)
    if outlet is None:
        raise Http404
    form = SignUpForm(request.POST if request.method == "POST" else None)
    state = "form"
    if request.method == "POST" and _is_rate_limited(request, outlet):
        state = "too_much"
    elif request.method == "POST" and form.is_valid():
        subscribers.sign_up(outlet, form.cleaned_data["email"], now=utc_now())
        state = "asked"
    context = {"name": _newsletter_name(outlet), "form": form, "state": state, "outlet": outlet}
    status = {"too_much": 429, "form": 400 if form.is_bound else 200}.get(state, 200)
    return render(request, "pages/newsletters/subscribe.html", context, status=status)


def _is_rate_limited(request: HttpRequest, outlet: Outlet) -> bool:
    """Count the request, and return whether the client's network or the list had too many."""

    def by_client(_group: str, request: HttpRequest) -> str:
        return client_network(request)

    def by_list(_group: str, _request: HttpRequest) -> str:
        return str(outlet.pk)

    try:
        limits_exceeded = [
            is_ratelimited(request, group=f"pipeline.{name}", key=key, rate=rate, increment=True)
            for name, key, rate in (
                ("subscribe", by_client, limits.SUBSCRIBE_CALLS),
                ("subscribe_list", by_list, limits.SUBSCRIBE_CALLS_OF_LIST),
            )
        ]
    # Without the cache nothing can be counted. Each address still gets at most one mail an hour.
    except (RedisError, OSError, OperationalError) as error:
        log.warning("subscribe_not_counted", error=str(error))
        return False
    return any(limits_exceeded)


@_public_page
def confirm(request: HttpRequest, token: str) -> HttpResponse:
    """Ask on GET and confirm on POST, so that a mail program that prefetches links confirms nothing."""
    subscriber = subscribers.find_subscriber(token)
    if subscriber is None or subscriber.status not in WANTED_SUBSCRIBERS:
        return render(request, "pages/newsletters/over.html", status=404)
    is_on = subscriber.status == SubscriberStatus.ACTIVE
    if request.method == "POST":
        is_on = subscribers.confirm(subscriber, now=utc_now())
    context = {"name": _newsletter_name(subscriber.outlet), "subscriber": subscriber, "is_on": is_on}
    return render(request, "pages/newsletters/confirm.html", context)


@csrf_exempt
@_public_page
def unsubscribe(request: HttpRequest, token: str) -> HttpResponse:
    """Show a button on GET and unsubscribe on POST.

    POST works without cookies, because the one click of a mailbox provider (RFC 8058) has none.
    """
    subscriber = subscribers.find_subscriber(token)
    if subscriber is None:
        return render(request, "pages/newsletters/over.html", status=404)
    if request.method == "POST":
        if ONE_CLICK in request.POST:
            subscribers.unsubscribe(subscriber, now=utc_now())
            return HttpResponse("Unsubscribed.\n", content_type="text/plain; charset=utf-8")
        _apply_action(request, subscriber)
    context = {
        "name": _newsletter_name(subscriber.outlet),
        "subscriber": subscriber,
        "is_on": subscriber.status in WANTED_SUBSCRIBERS,
    }
    return render(request, "pages/newsletters/unsubscribe.html", context)


def _apply_action(request: HttpRequest, subscriber: Subscriber) -> None:
    """Unsubscribe, or undo that, as the form requests."""
    if request.POST.get("act") == "unsubscribe":
        subscribers.unsubscribe(subscriber, now=utc_now())
    elif request.POST.get("act") == "come_back":
        subscribers.come_back(subscriber, now=utc_now())


def _newsletter_name(outlet: Outlet) -> str:
    """Return the sender's name of the newsletter, or else the name of its outlet."""
    return str(outlet.config.get("from_name") or outlet.name)
