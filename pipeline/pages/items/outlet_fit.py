"""Shows an item's text as each outlet gets it: counted as its platform counts, and adapted to its rules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from config.core.errors import AppError
from pipeline import publish
from pipeline.outlets.outlet_client import account_of, platform_of
from pipeline.text.bucket_traits import TRAITS
from pipeline.text.plain_text import plain_text

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from pipeline.models import GeneratedItem, Outlet

# The page's list of publications says that an item is published already or being sent.
_CODES_SHOWN_ELSEWHERE: Final = frozenset({"already_published", "in_flight"})
_NEARLY_FULL_PERCENT: Final = 90
_MAX_CHARACTERS_SHOWN: Final = 600
"""Only the beginning of longer posts is shown at first."""


@dataclass(frozen=True)
class Fit:
    """How an item's text fits an outlet.

    `count` and `limit` are in the platform's `unit`; `limit` is `None` if the platform has none. `problems` keep the
    item from being published there, and `steps` are what is changed to make the text fit.
    """

    outlet: Outlet
    platform: str
    count: int
    limit: int | None
    unit: str
    problems: tuple[str, ...]
    steps: tuple[str, ...]
    parts: tuple[str, ...]
    """The posts as they would be sent; empty if they are the same as the item's."""
    preview: tuple[str, ...] = ()
    """The posts as people read them on the platform, also if they are the same as the item's."""

    @property
    def is_long(self) -> bool:
        """True if only the beginning of the posts is shown at first."""
        return sum(map(len, self.preview)) > _MAX_CHARACTERS_SHOWN

    @property
    def percent(self) -> int:
        """The share of the outlet's limit that is used, in percent and at most 100; 0 without a limit."""
        return min(self.count * 100 // self.limit, 100) if self.limit else 0

    @property
    def tone(self) -> str:
        """The tone of the count: `bad` over the limit or with problems, `warn` close to the limit, else empty."""
        if self.problems or (self.limit is not None and self.count > self.limit):
            return "bad"
        return "warn" if self.percent >= _NEARLY_FULL_PERCENT else ""


def read_fits(item: GeneratedItem, *, now: datetime) -> tuple[Fit, ...]:
    """Return the item's fit for each of its default outlets, and store nothing; its workspace must be loaded."""
    return tuple(fit_of(item, verdict) for verdict in validate_default_outlets(item, now=now))


def validate_default_outlets(item: GeneratedItem, *, now: datetime) -> tuple[publish.OutletVerdict, ...]:
    """Return the verdict of each default outlet's rules on the item, or none if the item can't go to any outlet."""
    try:
        return tuple(publish.validate_outlets(item, publish.PublishWish(), now=now, refuse=False))
    except AppError:
        # The page that publishes the item shows the reason.
        return ()


def fit_of(item: GeneratedItem, verdict: publish.OutletVerdict) -> Fit:
    """Return how the item fits the outlet of a verdict."""
    platform = platform_of(verdict.outlet.platform)
    length = platform.length(account_of(verdict.outlet), verdict.post)
    parts = verdict.post.parts
    return Fit(
        outlet=verdict.outlet,
        platform=str(platform.label),
        count=length.count,
        limit=length.limit,
        unit=length.unit,
        problems=tuple(
            problem.message for problem in verdict.problems if problem.code not in _CODES_SHOWN_ELSEWHERE
        ),
        steps=tuple(step.message for step in verdict.post.steps),
        preview=tuple(plain_text(part, verdict.post.payload.body_format) for part in parts),
        parts=parts if TRAITS[item.bucket].is_posted and _differs_from_item(item, parts) else (),
    )


def _differs_from_item(item: GeneratedItem, parts: Sequence[str]) -> bool:
    """Return whether the posts differ from the item's."""
    item_parts = item.content.get("parts") or [item.body]
    return list(parts) != list(item_parts)
