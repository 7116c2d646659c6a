"""Adds up groups of counts and increases to a row's figures, with reasons for missing numbers."""

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
ENGAGEMENT_METRICS: Final = ("likes", "comments", "shares", "clicks")
METRICS: Final = (*COUNTED, *MEASURED, "engagements", "engagement_rate")
NULLABLE: Final = (*MEASURED, "engagements", "engagement_rate")
"""Metrics that may be `None`, and then have a reason in `availability`."""
FIRST_PARTY: Final = ("clicks", "feed_fetches")
"""What the service counts itself."""
REASONS: Final = ("unavailable", "delayed", "unsupported")
"""The reasons for a missing number, in order of precedence."""
_FIRST_PARTY_UNKNOWN: Final[dict[str, int | None]] = dict.fromkeys(FIRST_PARTY)
_METRICS_UNKNOWN: Final[dict[str, int | None]] = dict.fromkeys(MEASURED)
_SUM_COLUMNS: Final = tuple((metric, f"sum_{metric}") for metric in MEASURED)


@dataclass(frozen=True)
class Figures:
    """The numbers of one row; a metric that is `None` has its reason in `availability`."""

    metrics: Mapping[str, int | float | None]
    availability: Mapping[str, str]
    coverage: float | None
    """The share, 0 to 1, of the published posts with known numbers, or `None` without posts."""
    first_party: Mapping[str, int | None] = field(default_factory=lambda: dict.fromkeys(FIRST_PARTY))
    """The counts of `FIRST_PARTY`; one that no outlet counted is `None`."""


@dataclass
class Fold:
    """Accumulates the groups of one row, with their platforms, which tell why a metric is missing."""

    published: int = 0
    failed: int = 0
    known: int = 0
    sums: dict[str, int | None] = field(default_factory=_METRICS_UNKNOWN.copy)
    reasons: dict[str, set[str]] = field(default_factory=dict)
    published_on: set[str] = field(default_factory=set)
    failed_on: set[str] = field(default_factory=set)
    first_party: dict[str, int | None] = field(default_factory=_FIRST_PARTY_UNKNOWN.copy)

    def add_outcomes(self, group: Mapping[str, Any], platform: str) -> None:
        """Add a group of outcomes on a platform."""
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
        """Add a group of increases on a platform."""
        for metric, column in _SUM_COLUMNS:
            increase = group[column]
            if increase is not None:
                self.sums[metric] = (self.sums[metric] or 0) + increase
        self._add_reasons(_parse_reasons(group["reasons"]))
        self.published_on.add(platform)

    def add_hits(self, name: str, count: int, platform: str) -> None:
        """Add hits of a metric of `FIRST_PARTY` on a platform."""
        self.first_party[name] = (self.first_party[name] or 0) + count
        if count:
            self.published_on.add(platform)

    def mark_counted(self, name: str) -> None:
        """Set this metric of `FIRST_PARTY` to 0 if it is `None`, because its hits were counted."""
        self.first_party[name] = self.first_party[name] or 0

    def _add_reasons(self, reasons: Mapping[str, str]) -> None:
        for metric, reason in reasons.items():
            self.reasons.setdefault(metric, set()).add(reason)

    def figures(self) -> Figures:
        """Return the row's figures."""
        metrics: dict[str, int | float | None] = {
            "published": self.published,
            "failed": self.failed,
            **self.sums,
        }
        availability = {metric: self._reason(metric) for metric in MEASURED if self.sums[metric] is None}
        known_engagements = [
            value for metric in ENGAGEMENT_METRICS if (value := self.sums[metric]) is not None
        ]
        engagements = metrics["engagements"] = sum(known_engagements) if known_engagements else None
        if engagements is None:
            availability["engagements"] = _first_reason(
                {availability[metric] for metric in ENGAGEMENT_METRICS}
            )
        rate = metrics["engagement_rate"] = engagement_rate(engagements, self.sums["impressions"])
        if rate is None:
            missing = {availability[name] for name in ("impressions", "engagements") if name in availability}
            # Both are known, but there were no impressions, so there is no rate.
            availability["engagement_rate"] = _first_reason(missing) if missing else "unavailable"
        return Figures(metrics, availability, coverage_share(self.known, self.published), self.first_party)

    def _reason(self, metric: str) -> str:
        """Return why the metric is missing: as measured, else by the platforms, else `unavailable`."""
        if metric in self.reasons:
            return _first_reason(self.reasons[metric])
        if self.published_on:
            # The posts were measured, but not within this row's dates.
            return _first_reason({reason_for(platform, metric, "delayed") for platform in self.published_on})
        if self.failed_on:
            return _first_reason({reason_for(platform, metric, "unavailable") for platform in self.failed_on})
        return "unavailable"


def engagement_rate(engagements: int | None, impressions: int | None) -> float | None:
    """Return engagements by impressions, rounded to four places, or `None` if unknown or without impressions."""
    if engagements is None or impressions is None or impressions <= 0:
        return None
    return round(engagements / impressions, 4)


def coverage_share(known: int, published: int) -> float | None:
    """Return the share, 0 to 1, of posts with known numbers, to four places, or `None` without posts."""
    return round(known / published, 4) if published else None


@lru_cache(maxsize=1000)
def _parse_reasons(reasons: str) -> Mapping[str, str]:
    """Parse the JSON; the result is cached, because thousands of rows share a few patterns of reasons."""
    parsed: dict[str, str] = json.loads(reasons)
    return parsed


def _first_reason(reasons: set[str]) -> str:
    """Return the reason of `REASONS` that takes precedence."""
    return next(reason for reason in REASONS if reason in reasons)
