"""Groups of counts and rises folded into the figures of one row, and why a number is missing."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from analytics.measure import reason_for
from pipeline.platforms.base import METRICS as MEASURED

if TYPE_CHECKING:
    from collections.abc import Mapping

COUNTED: Final = ("published", "failed")
ENGAGING: Final = ("likes", "comments", "shares", "clicks")
METRICS: Final = (*COUNTED, *MEASURED, "engagements", "engagement_rate")
NULLABLE: Final = (*MEASURED, "engagements", "engagement_rate")
"""What may be None, and then has its reason in `availability`."""
FIRST_PARTY: Final = ("clicks", "feed_fetches")
REASONS: Final = ("unavailable", "delayed", "unsupported")
"""The weightiest first."""
_UNCOUNTED: Final[dict[str, int | None]] = dict.fromkeys(FIRST_PARTY)
_NOTHING: Final[dict[str, int | None]] = dict.fromkeys(MEASURED)
_RISES: Final = tuple((metric, f"sum_{metric}") for metric in MEASURED)


@dataclass(frozen=True)
class Figures:
    metrics: Mapping[str, int | float | None]
    availability: Mapping[str, str]
    coverage: float | None
    first_party: Mapping[str, int | None] = field(default_factory=lambda: dict.fromkeys(FIRST_PARTY))
    """What the service counted itself; None where nobody counted."""


@dataclass
class Fold:
    """What adds up to one row."""

    published: int = 0
    failed: int = 0
    known: int = 0
    sums: dict[str, int | None] = field(default_factory=_NOTHING.copy)
    reasons: dict[str, set[str]] = field(default_factory=dict)
    published_on: set[str] = field(default_factory=set)
    failed_on: set[str] = field(default_factory=set)
    first_party: dict[str, int | None] = field(default_factory=_UNCOUNTED.copy)

    def add_outcomes(self, group: Mapping[str, Any], platform: str) -> None:
        self.published += group["published"]
        self.failed += group["failed"]
        if group["published"]:
            self.published_on.add(platform)
            if group["known"] is None:
                self._add_reasons({metric: reason_for(platform, metric, "delayed") for metric in MEASURED})
            elif group["known"]:
                self.known += group["published"]
        if group["failed"]:
            self.failed_on.add(platform)

    def add_measurements(self, group: Mapping[str, Any], platform: str) -> None:
        for metric, column in _RISES:
            rise = group[column]
            if rise is not None:
                self.sums[metric] = (self.sums[metric] or 0) + rise
        self._add_reasons(_read(group["reasons"]))
        self.published_on.add(platform)

    def add_hits(self, name: str, count: int, platform: str) -> None:
        """Count hits of a name of `FIRST_PARTY` on a platform."""
        self.first_party[name] = (self.first_party[name] or 0) + count
        if count:
            self.published_on.add(platform)

    def counted_none(self, name: str) -> None:
        """Say that hits of this name were counted, if only none: 0 instead of None; a number stays."""
        self.first_party[name] = self.first_party[name] or 0

    def _add_reasons(self, reasons: Mapping[str, str]) -> None:
        for metric, reason in reasons.items():
            self.reasons.setdefault(metric, set()).add(reason)

    def figures(self) -> Figures:
        metrics: dict[str, int | float | None] = {
            "published": self.published,
            "failed": self.failed,
            **self.sums,
        }
        availability = {metric: self._reason(metric) for metric in MEASURED if self.sums[metric] is None}
        engaged = [value for metric in ENGAGING if (value := self.sums[metric]) is not None]
        engagements = metrics["engagements"] = sum(engaged) if engaged else None
        if engagements is None:
            availability["engagements"] = _weightiest({availability[metric] for metric in ENGAGING})
        rate = metrics["engagement_rate"] = rate_of(engagements, self.sums["impressions"])
        if rate is None:
            missing = {availability[name] for name in ("impressions", "engagements") if name in availability}
            # Both are known and nobody has seen it: a rate of nothing doesn't exist.
            availability["engagement_rate"] = _weightiest(missing) if missing else "unavailable"
        return Figures(metrics, availability, share_of(self.known, self.published), self.first_party)

    def _reason(self, metric: str) -> str:
        if metric in self.reasons:
            return _weightiest(self.reasons[metric])
        if self.published_on:
            # It was measured, but not within this row's dates.
            return _weightiest({reason_for(platform, metric, "delayed") for platform in self.published_on})
        if self.failed_on:
            return _weightiest({reason_for(platform, metric, "unavailable") for platform in self.failed_on})
        return "unavailable"


def rate_of(engagements: int | None, impressions: int | None) -> float | None:
    if engagements is None or impressions is None or impressions <= 0:
        return None
    return round(engagements / impressions, 4)


def share_of(known: int, published: int) -> float | None:
    return round(known / published, 4) if published else None


@lru_cache(maxsize=1000)
def _read(reasons: str) -> Mapping[str, str]:
    """An answer of thousands of rows has a few patterns of what is missing."""
    found: dict[str, str] = json.loads(reasons)
    return found


def _weightiest(reasons: set[str]) -> str:
    return next(reason for reason in REASONS if reason in reasons)
