"""Groups of counts and rises folded into the figures of one row, and why a number is missing."""

from __future__ import annotations

from dataclasses import dataclass, field
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
REASONS: Final = ("unavailable", "delayed", "unsupported")
"""The weightiest first."""


@dataclass(frozen=True)
class Figures:
    metrics: Mapping[str, int | float | None]
    availability: Mapping[str, str]
    coverage: float | None


@dataclass
class Fold:
    """What adds up to one row."""

    published: int = 0
    failed: int = 0
    known: int = 0
    sums: dict[str, int | None] = field(default_factory=lambda: dict.fromkeys(MEASURED))
    reasons: dict[str, set[str]] = field(default_factory=lambda: {metric: set() for metric in MEASURED})
    published_on: set[str] = field(default_factory=set)
    failed_on: set[str] = field(default_factory=set)

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
        for metric in MEASURED:
            rise = group[f"sum_{metric}"]
            if rise is not None:
                self.sums[metric] = (self.sums[metric] or 0) + rise
        self._add_reasons(group["availability"])
        self.published_on.add(platform)

    def _add_reasons(self, reasons: Mapping[str, str]) -> None:
        for metric, reason in reasons.items():
            self.reasons[metric].add(reason)

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
        impressions = self.sums["impressions"]
        if engagements is not None and impressions is not None and impressions > 0:
            metrics["engagement_rate"] = round(engagements / impressions, 4)
        else:
            metrics["engagement_rate"] = None
            missing = {availability[name] for name in ("impressions", "engagements") if name in availability}
            # Both are known and nobody has seen it: a rate of nothing doesn't exist.
            availability["engagement_rate"] = _weightiest(missing) if missing else "unavailable"
        coverage = round(self.known / self.published, 4) if self.published else None
        return Figures(metrics, availability, coverage)

    def _reason(self, metric: str) -> str:
        if self.reasons[metric]:
            return _weightiest(self.reasons[metric])
        if self.published_on:
            # It was measured, but not within this row's dates.
            return _weightiest({reason_for(platform, metric, "delayed") for platform in self.published_on})
        if self.failed_on:
            return _weightiest({reason_for(platform, metric, "unavailable") for platform in self.failed_on})
        return "unavailable"


def _weightiest(reasons: set[str]) -> str:
    return next(reason for reason in REASONS if reason in reasons)
