"""Builds the samples of a post from a platform's counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeline.platforms.base import METRICS, Sample

if TYPE_CHECKING:
    from collections.abc import Mapping


def sum_counts(counts: Mapping[str, Any], *names: str) -> int | None:
    """Return the sum of these counts, or `None` if the first is missing; older servers may lack the others."""
    values = [counts.get(name) for name in names]
    numbers = [n for n in values if isinstance(n, int) and not isinstance(n, bool) and n >= 0]
    return sum(numbers) if values[0] in numbers else None


def build_samples(values: Mapping[str, int | None]) -> tuple[Sample, ...]:
    """Return a sample of each metric: `unsupported` without an entry in `values`, `unavailable` for `None`."""

    def build_sample(metric: str) -> Sample:
        if metric not in values:
            return Sample(metric, None, "unsupported")
        return Sample(metric, values[metric], "ok" if values[metric] is not None else "unavailable")

    return tuple(build_sample(metric) for metric in METRICS)
