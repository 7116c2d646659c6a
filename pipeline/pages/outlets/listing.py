"""Lists a workspace's outlets with their health, and the platforms that can be connected."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db.models import F, OuterRef, Subquery
from django.shortcuts import render

from accounts.pages.page_access import Place, workspace_page
from config.core.clock import utc_now
from pipeline import plugins
from pipeline.models import Outlet, OutletStatus, Publication
from pipeline.outlets.outlet_client import platform_of
from pipeline.pages.outlets import account
from pipeline.pages.platform_mark import mark_of_platform
from pipeline.platforms.base import Platform
from pipeline.switches import availability

if TYPE_CHECKING:
    from datetime import datetime

    from django.http import HttpRequest, HttpResponse


@workspace_page("look", methods=("GET",))
def outlets(request: HttpRequest, place: Place) -> HttpResponse:
    """List the outlets, the oldest first, each with its newest post."""
    now = utc_now()
    newest_posts = Publication.objects.of(place.workspace).live().published().filter(outlet=OuterRef("pk"))
    outlets_query = Outlet.objects.of(place.workspace).filter(deleted_at=None).defer("credentials")
    outlets_query = outlets_query.annotate(
        last_post=Subquery(newest_posts.order_by(F("published_at").desc()).values("pk")[:1])
    )
    outlet_list = list(outlets_query.order_by("id"))
    posts = (
        Publication.objects.of(place.workspace)
        .select_related("item")
        .in_bulk([outlet.last_post for outlet in outlet_list if outlet.last_post])
    )
    rows = [_row(outlet, posts.get(outlet.last_post), now) for outlet in outlet_list]
    has_own = any(outlet.connected_at for outlet in outlet_list)
    return render(request, "pages/outlets/list.html", {"rows": rows, "has_own": has_own})


def _row(outlet: Outlet, post: Publication | None, now: datetime) -> dict[str, Any]:
    """Return the row of an outlet; `post` is its newest publication."""
    platform = platform_of(outlet.platform)
    return {
        "outlet": outlet,
        "platform": platform.label,
        "mark": mark_of_platform(platform),
        "account": account.account_of(outlet),
        "takes": account.bucket_names_of(platform),
        "health": account.health_of(outlet, now),
        "rests_until": outlet.rests_until if outlet.rests_until and outlet.rests_until > now else None,
        "is_off": outlet.status == OutletStatus.DISABLED,
        "may_reconnect": platform.is_connectable and account.wants_reconnect(outlet),
        "post": post,
        "post_title": (post.item.title or post.item.excerpt) if post else "",
        "has_page": post is not None and post.item.deleted_at is None,
    }


@workspace_page("manage", methods=("GET",))
def outlet_add(request: HttpRequest, place: Place) -> HttpResponse:
    """List the platforms that can be connected on this instance, by name."""
    del place
    platforms = [
        {
            "kind": platform.kind,
            "label": platform.label,
            "mark": mark_of_platform(platform),
            "summary": platform.summary,
            "takes": account.bucket_names_of(platform),
        }
        for platform in plugins.every("platforms", Platform)
        if platform.is_connectable and availability.of_platform(platform) is None
    ]
    platforms.sort(key=lambda platform: str(platform["label"]).casefold())
    return render(request, "pages/outlets/add.html", {"kinds": platforms})
