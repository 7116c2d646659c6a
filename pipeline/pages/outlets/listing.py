"""The pages that list a workspace's outlets with their states, and the platforms that one can be connected on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db.models import F, OuterRef, Subquery
from django.shortcuts import render

from accounts.pages.page_access import Place, page
from config.core.clock import utc_now
from pipeline import plugins
from pipeline.models import Outlet, OutletStatus, Publication
from pipeline.outlets.outlet_client import platform_of
from pipeline.pages.outlets import account
from pipeline.pages.platform_mark import mark_of
from pipeline.platforms.base import Platform
from pipeline.switches import availability

if TYPE_CHECKING:
    from datetime import datetime

    from django.http import HttpRequest, HttpResponse


@page("look", methods=("GET",))
def outlets(request: HttpRequest, place: Place) -> HttpResponse:
    now = utc_now()
    newest = Publication.objects.of(place.workspace).live().published().filter(outlet=OuterRef("pk"))
    own = Outlet.objects.of(place.workspace).filter(deleted_at=None).defer("credentials")
    own = own.annotate(last_post=Subquery(newest.order_by(F("published_at").desc()).values("pk")[:1]))
    there = list(own.order_by("id"))
    posts = (
        Publication.objects.of(place.workspace)
        .select_related("item")
        .in_bulk([one.last_post for one in there if one.last_post])
    )
    rows = [_row(one, posts.get(one.last_post), now) for one in there]
    has_own = any(one.connected_at for one in there)
    return render(request, "pages/outlets/list.html", {"rows": rows, "has_own": has_own})


def _row(one: Outlet, post: Publication | None, now: datetime) -> dict[str, Any]:
    platform = platform_of(one.platform)
    return {
        "outlet": one,
        "platform": platform.label,
        "mark": mark_of(one.platform, platform.label),
        "account": account.account_of(one),
        "takes": account.takes(platform),
        "health": account.health_of(one, now),
        "rests_until": one.rests_until if one.rests_until and one.rests_until > now else None,
        "is_off": one.status == OutletStatus.DISABLED,
        "may_reconnect": platform.is_connectable and account.wants_reconnect(one),
        "post": post,
        "post_title": (post.item.title or post.item.excerpt) if post else "",
        "has_page": post is not None and post.item.deleted_at is None,
    }


@page("manage", methods=("GET",))
def outlet_add(request: HttpRequest, place: Place) -> HttpResponse:
    del place
    kinds = [
        {
            "kind": one.kind,
            "label": one.label,
            "mark": mark_of(one.kind, one.label),
            "summary": one.summary,
            "takes": account.takes(one),
        }
        for one in plugins.every("platforms", Platform)
        if one.is_connectable and availability.of_platform(one) is None
    ]
    kinds.sort(key=lambda one: str(one["label"]).casefold())
    return render(request, "pages/outlets/add.html", {"kinds": kinds})
