"""One outlet: its account, how it is doing, what it takes, what waits for it and what failed; and its settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.contrib import messages
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _

from accounts.pages import form_recovery
from accounts.pages.act_messages import report_errors
from accounts.pages.page_access import Place, page
from config.core.clock import utc_now
from pipeline import labels, outlets
from pipeline.models import (
    Attempt,
    AttemptStatus,
    Outlet,
    Publication,
    PublishQueue,
    Subscriber,
    SubscriberStatus,
)
from pipeline.outlets.outlet_client import platform_of
from pipeline.pages.outlets import account
from pipeline.pages.outlets.forms import OutletEditForm
from pipeline.payloads import feed_addresses, feed_page_address

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from django.http import HttpRequest, HttpResponse

ROWS: Final = 20


def find_outlet(place: Place, out: UUID) -> Outlet:
    rows = Outlet.objects.of(place.workspace).select_related("workspace").filter(deleted_at=None)
    row: Outlet = get_object_or_404(rows, pk=out)
    return row


@page("look", methods=("GET",))
def outlet(request: HttpRequest, place: Place, out: UUID) -> HttpResponse:
    row = find_outlet(place, out)
    waiting = Publication.objects.of(place.workspace).open().filter(outlet=row).select_related("item")
    per_day, gap = account.pace_of(row)
    context = {
        **outlet_head(row, "look"),
        "notes": account.notes_of(row),
        "readers": _readers(place, row),
        "queue": _queue(place, row),
        "limits": account.limits_of(row),
        "per_day": per_day,
        "gap": gap,
        "waiting": [_waits(one) for one in waiting.order_by("due_at", "id")[:ROWS]],
        "waiting_in_all": waiting.count(),
        "failures": _failures(place, row),
        **_feeds(row),
    }
    return render(request, "pages/outlets/detail.html", context)


def _feeds(row: Outlet) -> dict[str, Any]:
    """The addresses of the workspace's own feed, and its page for people; none of any other outlet."""
    is_own = platform_of(row.platform).is_own_feed
    return {
        "feeds": feed_addresses(row.secret) if is_own else {},
        "feed_page": feed_page_address(row.secret) if is_own else "",
    }


@page("edit")
def outlet_edit(request: HttpRequest, place: Place, out: UUID) -> HttpResponse:
    row = find_outlet(place, out)
    form = form_recovery.form_for(request, OutletEditForm, outlet=row, platform=platform_of(row.platform))
    if request.method == "POST" and form.is_valid():
        given = form.cleaned_data
        with report_errors(request, form):
            outlets.change(
                row,
                name=given["name"],
                config=form.config(),
                per_day=given["per_day"],
                gap_minutes=given["gap_minutes"],
                discloses_ai=given["discloses_ai"],
                counts_clicks=given.get("counts_clicks"),
                by=place.user.email,
                now=utc_now(),
            )
            messages.success(request, _("Saved. Applies to new posts."))
            return redirect(place.address("outlet_page", out=out))
    return render(request, "pages/outlets/edit.html", {**outlet_head(row, "settings"), "form": form})


def outlet_head(row: Outlet, tab: str) -> dict[str, Any]:
    now = utc_now()
    platform = platform_of(row.platform)
    return {
        "outlet": row,
        "tab": tab,
        "has_subscribers": platform.mails_subscribers,
        "platform": platform,
        "account": account.account_of(row),
        "address": _web_address(row.profile),
        "health": account.health_of(row, now),
        "rests_until": row.rests_until if row.rests_until and row.rests_until > now else None,
    }


def _readers(place: Place, row: Outlet) -> int | None:
    """How many are on its list; None where it has none."""
    if not platform_of(row.platform).mails_subscribers:
        return None
    return Subscriber.objects.of(place.workspace).filter(outlet=row, status=SubscriberStatus.ACTIVE).count()


def _queue(place: Place, row: Outlet) -> PublishQueue | None:
    """Whose slots are its; None where its workspace has no queue yet."""
    which = {"pk": row.queue_id} if row.queue_id is not None else {"is_default": True}
    found: PublishQueue | None = PublishQueue.objects.of(place.workspace).filter(**which).first()
    return found


def _web_address(profile: Mapping[str, Any]) -> str:
    """As the platform told it: only what leads to the web becomes a link."""
    address = str(profile.get("url") or "")
    return address if address.startswith(("https://", "http://")) else ""


def _waits(one: Publication) -> dict[str, Any]:
    return {
        "publication": one,
        "title": one.item.title or one.item.excerpt,
        "item": _shown_item(one),
        "status": labels.PUBLICATIONS[one.status],
        "error": one.error or {},
    }


def _shown_item(row: Publication) -> UUID | None:
    """None where it has no page: a test's, or one that was deleted."""
    return None if row.test or row.item.deleted_at is not None else row.item_id


def _failures(place: Place, row: Outlet) -> list[dict[str, Any]]:
    """The newest calls that failed, and publications that failed before any call."""
    attempts = (
        Attempt.objects.of(place.workspace)
        .filter(
            publication__outlet=row,
            status__in=(AttemptStatus.FAILED, AttemptStatus.UNKNOWN),
            error__isnull=False,
        )
        .select_related("publication__item")
        .order_by("-id")[:ROWS]
    )
    found = [
        _failure(one.finished_at or one.started_at, one.publication, one.error or {}) for one in attempts
    ]
    called = {(one["publication"].pk, one["error"].get("message")) for one in found}
    stopped = (
        Publication.objects.of(place.workspace)
        .filter(outlet=row, error__isnull=False)
        .select_related("item")
        .order_by("-updated_at")[:ROWS]
    )
    found += [
        _failure(one.updated_at, one, one.error or {})
        for one in stopped
        if (one.pk, (one.error or {}).get("message")) not in called
    ]
    return sorted(found, key=lambda one: one["at"], reverse=True)[:ROWS]


def _failure(at: Any, publication: Publication, error: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "at": at,
        "publication": publication,
        "title": publication.item.title or publication.item.excerpt,
        "item": _shown_item(publication),
        "error": error,
        "class": labels.FAILURE_CLASSES.get(str(error.get("class", "")), labels.NO_BADGE),
    }
