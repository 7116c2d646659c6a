"""Shows one outlet: its account, health, limits, waiting posts and failures; and edits its settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.contrib import messages
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _

from accounts.pages import kept_forms
from accounts.pages.act_messages import report_errors
from accounts.pages.page_access import Place, workspace_page
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
from pipeline.resources import feed_addresses, feed_page_address

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from django.http import HttpRequest, HttpResponse

ROWS: Final = 20
"""The most waiting posts, and the most failures, that the page shows."""


def find_outlet(place: Place, out: UUID) -> Outlet:
    """Return the workspace's outlet; raises `Http404` if it has none with this id, or it was deleted."""
    rows = Outlet.objects.of(place.workspace).select_related("workspace").filter(deleted_at=None)
    row: Outlet = get_object_or_404(rows, pk=out)
    return row


@workspace_page("look", methods=("GET",))
def outlet(request: HttpRequest, place: Place, out: UUID) -> HttpResponse:
    """Show one outlet with its next posts and its newest failures."""
    row = find_outlet(place, out)
    waiting = Publication.objects.of(place.workspace).open().filter(outlet=row).select_related("item")
    per_day, gap = account.pace_of(row)
    context = {
        **outlet_head(row, "look"),
        "notes": account.notes_of(row),
        "readers": _count_subscribers(place, row),
        "queue": _queue_of(place, row),
        "limits": account.limits_of(row),
        "per_day": per_day,
        "gap": gap,
        "waiting": [_waiting_row(publication) for publication in waiting.order_by("due_at", "id")[:ROWS]],
        "waiting_in_all": waiting.count(),
        "failures": _recent_failures(place, row),
        **_feed_context(row),
    }
    return render(request, "pages/outlets/detail.html", context)


def _feed_context(outlet: Outlet) -> dict[str, Any]:
    """Return the addresses of the workspace's own feed and of its page; they are empty for another outlet."""
    is_own = platform_of(outlet.platform).is_own_feed
    return {
        "feeds": feed_addresses(outlet.secret) if is_own else {},
        "feed_page": feed_page_address(outlet.secret) if is_own else "",
    }


@workspace_page("edit")
def outlet_edit(request: HttpRequest, place: Place, out: UUID) -> HttpResponse:
    """Edit those settings of an outlet that need no new log-in."""
    row = find_outlet(place, out)
    form = kept_forms.form_for(request, OutletEditForm, outlet=row, platform=platform_of(row.platform))
    if request.method == "POST" and form.is_valid():
        form_data = form.cleaned_data
        with report_errors(request, form):
            outlets.change(
                row,
                name=form_data["name"],
                config=form.config(),
                per_day=form_data["per_day"],
                gap_minutes=form_data["gap_minutes"],
                discloses_ai=form_data["discloses_ai"],
                counts_clicks=form_data.get("counts_clicks"),
                by=place.user.email,
                now=utc_now(),
            )
            messages.success(request, _("Saved. Applies to new posts."))
            return redirect(place.url_of("outlet_page", out=out))
    return render(request, "pages/outlets/edit.html", {**outlet_head(row, "settings"), "form": form})


def outlet_head(row: Outlet, tab: str) -> dict[str, Any]:
    """Return the template context that all pages of an outlet share."""
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


def _count_subscribers(place: Place, outlet: Outlet) -> int | None:
    """Return the number of active subscribers, or `None` if the platform mails no subscribers."""
    if not platform_of(outlet.platform).mails_subscribers:
        return None
    return (
        Subscriber.objects.of(place.workspace).filter(outlet=outlet, status=SubscriberStatus.ACTIVE).count()
    )


def _queue_of(place: Place, outlet: Outlet) -> PublishQueue | None:
    """Return the queue whose slots the outlet uses, or `None` if its workspace has no queue yet."""
    condition = {"pk": outlet.queue_id} if outlet.queue_id is not None else {"is_default": True}
    queue: PublishQueue | None = PublishQueue.objects.of(place.workspace).filter(**condition).first()
    return queue


def _web_address(profile: Mapping[str, Any]) -> str:
    """Return the profile's address if it is http(s), else an empty text: a platform could name any scheme."""
    address = str(profile.get("url") or "")
    return address if address.startswith(("https://", "http://")) else ""


def _waiting_row(publication: Publication) -> dict[str, Any]:
    return {
        "publication": publication,
        "title": publication.item.title or publication.item.excerpt,
        "item": _linkable_item(publication),
        "status": labels.of_publication(publication.status, publication.step),
        "error": publication.error or {},
    }


def _linkable_item(publication: Publication) -> UUID | None:
    """Return the id of the publication's item, or `None` if it has no page: for a test, or a deleted item."""
    return None if publication.test or publication.item.deleted_at is not None else publication.item_id


def _recent_failures(place: Place, outlet: Outlet) -> list[dict[str, Any]]:
    """Return the newest failed calls, and publications whose error isn't a call's, newest first."""
    attempts = (
        Attempt.objects.of(place.workspace)
        .filter(
            publication__outlet=outlet,
            status__in=(AttemptStatus.FAILED, AttemptStatus.UNKNOWN),
            error__isnull=False,
        )
        .select_related("publication__item")
        .order_by("-id")[:ROWS]
    )
    failures = [
        _failure_row(attempt.finished_at or attempt.started_at, attempt.publication, attempt.error or {})
        for attempt in attempts
    ]
    listed = {(failure["publication"].pk, failure["error"].get("message")) for failure in failures}
    failed_publications = (
        Publication.objects.of(place.workspace)
        .filter(outlet=outlet, error__isnull=False)
        .select_related("item")
        .order_by("-updated_at")[:ROWS]
    )
    failures += [
        _failure_row(publication.updated_at, publication, publication.error or {})
        for publication in failed_publications
        if (publication.pk, (publication.error or {}).get("message")) not in listed
    ]
    return sorted(failures, key=lambda failure: failure["at"], reverse=True)[:ROWS]


def _failure_row(at: Any, publication: Publication, error: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "at": at,
        "publication": publication,
        "title": publication.item.title or publication.item.excerpt,
        "item": _linkable_item(publication),
        "error": error,
        "class": labels.FAILURE_CLASSES.get(str(error.get("class", "")), labels.NO_BADGE),
    }
