"""Reads what became of an item on each outlet: status, failures
in words, what was handed over, and what can be done now.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext as _

from config.core.datetimes import read_moment
from pipeline import labels, publish
from pipeline.models import Attempt, Publication, PublicationStatus, PublicationStep
from pipeline.outlets.outlet_client import platform_if_known
from pipeline.payloads import feed_page_address
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
    """A call to a platform, in words; `receipt` is what
    the platform handed over, None where it was nothing.
    """

    attempt: Attempt
    tone: str
    label: str
    error: str
    receipt: Mapping[str, Any] | None
    late: Mapping[str, Any] | None
    """What the platform answered after the call had been given up."""
    late_at: datetime | None
    late_link: str


@dataclass(frozen=True)
class Sending:
    """A publication of an item as its page shows it, with the actions that are open to a person."""

    publication: Publication
    platform: str
    tone: str
    label: str
    link: str
    error: str
    advice: str
    waits: str
    calls: tuple[PlatformCall, ...]
    metrics: tuple[tuple[str, int], ...]
    is_by_hand: bool
    can_retry: bool
    can_reconcile: bool
    can_remove: bool
    is_open: bool

    @property
    def needs_somebody(self) -> bool:
        """True where a person has to act."""
        return self.can_retry or self.can_reconcile or self.is_by_hand

    @property
    def can_anything(self) -> bool:
        """True where any action is offered."""
        return self.needs_somebody or self.can_remove


def spread_of(workspace: Workspace, items: Iterable[tuple[UUID, str]]) -> Mapping[UUID, Counter[str]]:
    """Count each item's publications by status, for items whose own status may hide it.

    `by_hand` counts those that wait for a person. `items` are ids
    with statuses; without such an item there is no statement.
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


def sendings_of(place: Place, item: GeneratedItem) -> tuple[Sending, ...]:
    """Return the item's publications, the newest first, with two statements however many there are."""
    rows = Publication.objects.of(place.workspace).filter(item=item).select_related("outlet", "queue")
    publications = list(rows.defer("outlet__credentials").order_by("-id"))
    attempts = Attempt.objects.of(place.workspace).filter(publication__item=item).order_by("-number")
    calls: defaultdict[UUID, list[Attempt]] = defaultdict(list)
    for attempt in attempts:
        calls[attempt.publication_id].append(attempt)
    return tuple(_build_sending(row, calls[row.pk]) for row in publications)


def _build_sending(row: Publication, calls: Sequence[Attempt]) -> Sending:
    """Return a publication as its page shows it, with its calls and the actions that its status allows."""
    platform = platform_if_known(row.platform)
    tone, _icon, label = labels.PUBLICATIONS[row.status]
    is_by_hand = row.is_handed_over
    if is_by_hand:
        tone, label = "warn", _("Post manually")
    error: Mapping[str, Any] = row.error or {}
    return Sending(
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
        is_by_hand=is_by_hand,
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
    """Return where people read the post; for an entry of
    the workspace's own feed a place on the feed's page.
    """
    if row.url and platform is not None and platform.is_own_feed:
        return f"{feed_page_address(row.outlet.secret)}#{row.external_id}"
    return _safe_url(row.url)


def _safe_url(url: str) -> str:
    """Return the address if a browser opens it safely, else an empty text: platforms make these addresses."""
    return url if url.startswith(("https://", "http://")) else ""


def _build_call(attempt: Attempt) -> PlatformCall:
    """Return an attempt as a call in words; a late answer is what came after it had been given up."""
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
