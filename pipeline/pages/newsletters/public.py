"""What subscribers see: the form, the question whether it was they, the way out and back. None of it is
indexed.
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


def _public(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    @never_cache
    @require_http_methods(["GET", "HEAD", "POST"])
    @wraps(view)
    def answer(request: HttpRequest, **arguments: Any) -> HttpResponse:
        response = view(request, **arguments)
        response["X-Robots-Tag"] = "noindex, nofollow"
        return response

    return answer


class SignUpForm(forms.Form):
    email = forms.CharField(
        label=_("Your email address"),
        max_length=254,
        widget=forms.EmailInput(attrs={"autocomplete": "email"}),
    )

    def clean_email(self) -> str:
        email = subscribers.normalize_address(self.cleaned_data["email"])
        if email is None:
            raise forms.ValidationError(_("Enter a valid email address."))
        return email


@_public
def subscribe(request: HttpRequest, secret: str) -> HttpResponse:
    """The same answer whether the address is on the list or not."""
    outlet = subscribers.list_of(secret)
    if outlet is None:
        raise Http404
    form = SignUpForm(request.POST if request.method == "POST" else None)
    state = "form"
    if request.method == "POST" and _is_too_much(request, outlet):
        state = "too_much"
    elif request.method == "POST" and form.is_valid():
        subscribers.sign_up(outlet, form.cleaned_data["email"], now=utc_now())
        state = "asked"
    context = {"name": _name(outlet), "form": form, "state": state, "outlet": outlet}
    status = {"too_much": 429, "form": 400 if form.is_bound else 200}.get(state, 200)
    return render(request, "pages/newsletters/subscribe.html", context, status=status)


def _is_too_much(request: HttpRequest, outlet: Outlet) -> bool:
    def by_client(_group: str, request: HttpRequest) -> str:
        return client_network(request)

    def by_list(_group: str, _request: HttpRequest) -> str:
        return str(outlet.pk)

    try:
        counted = [
            is_ratelimited(request, group=f"pipeline.{name}", key=key, rate=rate, increment=True)
            for name, key, rate in (
                ("subscribe", by_client, limits.SUBSCRIBE_CALLS),
                ("subscribe_list", by_list, limits.SUBSCRIBE_CALLS_OF_LIST),
            )
        ]
    # Without the cache nobody can be counted; an address is asked once an hour all the same.
    except (RedisError, OSError, OperationalError) as error:
        log.warning("subscribe_not_counted", error=str(error))
        return False
    return any(counted)


@_public
def confirm(request: HttpRequest, token: str) -> HttpResponse:
    """GET asks, POST confirms: a mail program that opens links in advance confirms nothing."""
    found = subscribers.find_subscriber(token)
    if found is None or found.status not in WANTED_SUBSCRIBERS:
        return render(request, "pages/newsletters/over.html", status=404)
    is_on = found.status == SubscriberStatus.ACTIVE
    if request.method == "POST":
        is_on = subscribers.confirm(found, now=utc_now())
    context = {"name": _name(found.outlet), "subscriber": found, "is_on": is_on}
    return render(request, "pages/newsletters/confirm.html", context)


@csrf_exempt
@_public
def unsubscribe(request: HttpRequest, token: str) -> HttpResponse:
    """GET shows a button. POST does it, without cookies: a mailbox provider's one click (RFC 8058) has none."""
    found = subscribers.find_subscriber(token)
    if found is None:
        return render(request, "pages/newsletters/over.html", status=404)
    if request.method == "POST":
        if ONE_CLICK in request.POST:
            subscribers.unsubscribe(found, now=utc_now())
            return HttpResponse("Unsubscribed.\n", content_type="text/plain; charset=utf-8")
        _act(request, found)
    context = {
        "name": _name(found.outlet),
        "subscriber": found,
        "is_on": found.status in WANTED_SUBSCRIBERS,
    }
    return render(request, "pages/newsletters/unsubscribe.html", context)


def _act(request: HttpRequest, found: Subscriber) -> None:
    if request.POST.get("act") == "unsubscribe":
        subscribers.unsubscribe(found, now=utc_now())
    elif request.POST.get("act") == "come_back":
        subscribers.come_back(found, now=utc_now())


def _name(outlet: Outlet) -> str:
    return str(outlet.config.get("from_name") or outlet.name)
