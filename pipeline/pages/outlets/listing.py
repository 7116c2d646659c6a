"""The pages that list a workspace's outlets with their states, and the platforms that one can be connected on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.shortcuts import render

from accounts.pages.page_access import Place, page
from config.core.clock import utc_now
from pipeline import plugins
from pipeline.models import Outlet
from pipeline.outlets.outlet_client import platform_of
from pipeline.pages.outlets import account
from pipeline.platforms.base import Platform
from pipeline.switches import availability

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse


@page("look", methods=("GET",))
def outlets(request: HttpRequest, place: Place) -> HttpResponse:
    now = utc_now()
    own = Outlet.objects.of(place.workspace).filter(deleted_at=None).defer("credentials")
    there = list(own.order_by("id"))
    rows = [
        {
            "outlet": one,
            "platform": platform_of(one.platform).label,
            "account": account.account_of(one),
            "health": account.health_of(one, now),
            "rests_until": one.rests_until if one.rests_until and one.rests_until > now else None,
        }
        for one in there
    ]
    has_own = any(one.connected_at for one in there)
    return render(request, "pages/outlets/list.html", {"rows": rows, "has_own": has_own})


@page("manage", methods=("GET",))
def outlet_add(request: HttpRequest, place: Place) -> HttpResponse:
    del place
    kinds = [
        {"kind": one.kind, "label": one.label, "summary": one.summary, "takes": account.takes(one)}
        for one in plugins.every("platforms", Platform)
        if one.is_connectable and availability.of_platform(one) is None
    ]
    kinds.sort(key=lambda one: str(one["label"]).casefold())
    return render(request, "pages/outlets/add.html", {"kinds": kinds})
