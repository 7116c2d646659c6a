"""Reads the publications of an item for its page: status, failures, calls, and what can be done now."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from config.core.datetimes import read_moment
from pipeline import labels, publish
from pipeline.models import Attempt, Publication, PublicationStatus, PublicationStep
from pipeline.outlets.outlet_client import platform_if_known
from pipeline.resources import feed_page_address
from pipeline.states import UNSENT_PUBLICATIONS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime
    from uuid import UUID

    from accounts.models import Workspace
    from accounts.pages.page_access import Place
    from pipeline.models import GeneratedItem
    from pipeline.platforms.base import Platform


@dataclass(frozen=True)
class PlatformCall:
    """A call to a platform as the page shows it; `receipt` is the platform's receipt, or `None` without one."""

    attempt: Attempt
    tone: str
    label: str
    error: str
    receipt: Mapping[str, Any] | None
    late: Mapping[str, Any] | None
    """The answer that came after the call had been given up, or `None` if none came."""
    late_at: datetime | None
    late_link: str


@dataclass(frozen=True)
class ShownPublication:
    """A publication of an item as its page shows it, with the actions that its status allows."""

    publication: Publication
    platform: str
    tone: str
    label: str
    link: str
    error: str
    advice: str
    waits: str
    """What the publication waits for; empty if nothing."""
    calls: tuple[PlatformCall, ...]
    metrics: tuple[tuple[str, int], ...]
    is_by_hand: bool
    can_retry: bool
    can_reconcile: bool
    can_remove: bool
    is_open: bool

    @property
    def needs_somebody(self) -> bool:
        """True if a person has to act."""
        return self.can_retry or self.can_reconcile or self.is_by_hand

    @property
    def can_anything(self) -> bool:
        """True if any action is offered."""
        return self.needs_somebody or self.can_remove


def count_by_status(workspace: Workspace, items: Iterable[tuple[UUID, str]]) -> Mapping[UUID, Counter[str]]:
    """Count the publications by status of each item whose own status doesn't tell them apart.

    `items` are ids with statuses. The key `by_hand` counts the publications that a person has to post. There is no
    SQL query if no item has one of the statuses `labels.SPREADING`.
    """
    counts: defaultdict[UUID, Counter[str]] = defaultdict(Counter)
    item_keys = [key for key, status in items if status in labels.SPREADING]
    if item_keys:
        rows = (
            Publication.objects.of(workspace)
            .filter(item_id__in=item_keys)
            .exclude(status=PublicationStatus.CANCELLED)
        )
        for key, status, step in rows.values_list("item_id", "status", "step"):
            is_by_hand = status == "publishing" and step == Publication.BY_HAND
            counts[key]["by_hand" if is_by_hand else status] += 1
    return counts


def find_items_being_sent(workspace: Workspace, item_keys: Sequence[UUID], now: datetime) -> set[UUID]:
    """Return those of the items that a platform is getting now, without an SQL query for no items.

    Items that wait for a person, for the next attempt or for word of an unknown outcome are left out.
    """
    if not item_keys:
        return set()
    rows = Publication.objects.of(workspace).by_platform().exclude(next_attempt_at__gt=now)
    sent = rows.filter(item_id__in=item_keys, status=PublicationStatus.PUBLISHING)
    return set(sent.values_list("item_id", flat=True))


def read_publications(place: Place, item: GeneratedItem) -> tuple[ShownPublication, ...]:
    """Return the item's publications, the newest first, with two SQL queries however many there are."""
    rows = Publication.objects.of(place.workspace).filter(item=item).select_related("outlet", "queue")
    publications = list(rows.defer("outlet__credentials").order_by("-id"))
    attempts = Attempt.objects.of(place.workspace).filter(publication__item=item).order_by("-number")
    calls: defaultdict[UUID, list[Attempt]] = defaultdict(list)
    for attempt in attempts:
        calls[attempt.publication_id].append(attempt)
    return tuple(_show_publication(row, calls[row.pk]) for row in publications)


def _show_publication(row: Publication, calls: Sequence[Attempt]) -> ShownPublication:
    """Return a publication as its page shows it, with its calls and the actions that its status allows."""
    platform = platform_if_known(row.platform)
    tone, _icon, label = labels.of_publication(row.status, row.step)
    error: Mapping[str, Any] = row.error or {}
    return ShownPublication(
        publication=row,
        platform=str(platform.label) if platform is not None else row.platform,
        tone=tone,
        label=str(label),
        link="" if row.status == PublicationStatus.REMOVED else _public_link(row, platform),
        error=str(error.get("message", "")),
        advice=str(error.get("action") or ""),
        waits=str((row.waits_for or {}).get("message", "")),
        calls=tuple(_build_call(attempt) for attempt in calls),
        metrics=tuple((name, value) for name, value in (row.metrics or {}).items() if isinstance(value, int)),
        is_by_hand=row.is_handed_over,
        can_retry=row.status == PublicationStatus.FAILED,
        can_reconcile=row.status == PublicationStatus.UNKNOWN,
        can_remove=(
            row.status == PublicationStatus.PUBLISHED
            and platform is not None
            and platform.can_remove
            and publish.is_post_known(row, platform)
            and row.step != PublicationStep.REMOVE
        ),
        is_open=row.status in UNSENT_PUBLICATIONS,
    )


def _public_link(row: Publication, platform: Platform | None) -> str:
    """Return the address where people read the post: an entry of the own feed is on the feed's page."""
    if row.url and platform is not None and platform.is_own_feed:
        return f"{feed_page_address(row.outlet.secret)}#{row.external_id}"
    return _safe_url(row.url)


def _safe_url(url: str) -> str:
    """Return the address if it is http(s), else an empty text, because a platform could name any scheme."""
    return url if url.startswith(("https://", "http://")) else ""


def _build_call(attempt: Attempt) -> PlatformCall:
    """Return an attempt as the page shows it, with the answer that came late, if any."""
    tone, _icon, label = labels.ATTEMPTS[attempt.status]
    late = attempt.late_answer
    return PlatformCall(
        attempt,
        tone,
        str(label),
        str((attempt.error or {}).get("message", "")),
        attempt.receipt,
        late,
        read_moment(late["at"]) if late else None,
        _safe_url(late["url"]) if late else "",
    )
