"""What became of an item on each outlet: status, failures
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
    """One call to a platform, and what it handed over; `receipt` None where it had none."""

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
        return self.can_retry or self.can_reconcile or self.is_by_hand

    @property
    def can_anything(self) -> bool:
        return self.needs_somebody or self.can_remove


def spread_of(workspace: Workspace, items: Iterable[tuple[UUID, str]]) -> Mapping[UUID, Counter[str]]:
    """How many outlets of each item are how far, of those whose status may
    hide it: publications by status, and `by_hand` what waits for a person.
    `items` are ids with statuses; no statement where none is of that kind.
    """
    found: defaultdict[UUID, Counter[str]] = defaultdict(Counter)
    keys = [key for key, status in items if status in labels.SPREADING]
    if keys:
        rows = (
            Publication.objects.of(workspace)
            .filter(item_id__in=keys)
            .exclude(status=PublicationStatus.CANCELLED)
        )
        for key, status, step in rows.values_list("item_id", "status", "step"):
            is_by_hand = status == "publishing" and step == Publication.BY_HAND
            found[key]["by_hand" if is_by_hand else status] += 1
    return found


def sendings_of(place: Place, item: GeneratedItem) -> tuple[Sending, ...]:
    """The newest promise first; two statements, however many there are."""
    rows = Publication.objects.of(place.workspace).filter(item=item).select_related("outlet", "queue")
    there = list(rows.defer("outlet__credentials").order_by("-id"))
    made = Attempt.objects.of(place.workspace).filter(publication__item=item).order_by("-number")
    calls: defaultdict[UUID, list[Attempt]] = defaultdict(list)
    for one in made:
        calls[one.publication_id].append(one)
    return tuple(_sending(row, calls[row.pk]) for row in there)


def _sending(row: Publication, calls: Sequence[Attempt]) -> Sending:
    platform = platform_if_known(row.platform)
    tone, _icon, label = labels.PUBLICATIONS[row.status]
    is_by_hand = publish.is_handed_over(row)
    if is_by_hand:
        tone, label = "warn", _("Post manually")
    error: Mapping[str, Any] = row.error or {}
    return Sending(
        publication=row,
        platform=str(platform.label) if platform is not None else row.platform,
        tone=tone,
        label=str(label),
        link="" if row.status == PublicationStatus.REMOVED else _link(row, platform),
        error=str(error.get("message", "")),
        advice=str(error.get("action") or ""),
        waits=str((row.waits_for or {}).get("message", "")),
        calls=tuple(_call(one) for one in calls),
        metrics=tuple((name, value) for name, value in (row.metrics or {}).items() if isinstance(value, int)),
        is_by_hand=is_by_hand,
        can_retry=row.status == PublicationStatus.FAILED,
        can_reconcile=row.status == PublicationStatus.UNKNOWN,
        can_remove=(
            row.status == PublicationStatus.PUBLISHED
            and platform is not None
            and platform.can_remove
            and row.step != PublicationStep.REMOVE
        ),
        is_open=row.status in UNSENT_PUBLICATIONS,
    )


def _link(row: Publication, platform: Platform | None) -> str:
    """Where a person reads it; an entry of the workspace's own feed on the feed's page."""
    if row.url and platform is not None and platform.is_own_feed:
        return f"{feed_page_address(row.outlet.secret)}#{row.external_id}"
    return _safe(row.url)


def _safe(url: str) -> str:
    """Of the platform's own making, so that only what a browser opens safely becomes a link."""
    return url if url.startswith(("https://", "http://")) else ""


def _call(attempt: Attempt) -> PlatformCall:
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
        _safe(late["url"]) if late else "",
    )
