"""Shows an item's text as each outlet gets it: counted as its platform counts, fitted by its rules."""

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

# The list of publications says that an item is published already, or being sent.
_CODES_SHOWN_ELSEWHERE: Final = frozenset({"already_published", "in_flight"})
_NEARLY_FULL_PERCENT: Final = 90
_MAX_CHARACTERS_SHOWN: Final = 600
"""Of longer posts only the beginning is shown at first."""


@dataclass(frozen=True)
class Fit:
    """How an item's text fits an outlet; `count` and `limit` are in the platform's `unit`."""

    outlet: Outlet
    platform: str
    count: int
    limit: int | None
    unit: str
    problems: tuple[str, ...]
    steps: tuple[str, ...]
    parts: tuple[str, ...]
    """The posts as they would be sent; empty where they are the item's own."""
    preview: tuple[str, ...] = ()
    """The posts as people read them on the platform, also where they are the item's own."""

    @property
    def is_long(self) -> bool:
        """True where only the beginning of the posts is shown at first."""
        return sum(map(len, self.preview)) > _MAX_CHARACTERS_SHOWN

    @property
    def percent(self) -> int:
        """How full the outlet's limit is, at most 100; 0 without a limit."""
        return min(self.count * 100 // self.limit, 100) if self.limit else 0

    @property
    def tone(self) -> str:
        """The colour of the count: `bad` over the limit or with problems, `warn` close to it, else empty."""
        if self.problems or (self.limit is not None and self.count > self.limit):
            return "bad"
        return "warn" if self.percent >= _NEARLY_FULL_PERCENT else ""


def fits_of(item: GeneratedItem, *, now: datetime) -> tuple[Fit, ...]:
    """Return the item's fit for each outlet where it is
    published by default. The item comes with its workspace.

    Nothing is stored.
    """
    return tuple(fit_of(item, verdict) for verdict in judged_of(item, now=now))


def judged_of(item: GeneratedItem, *, now: datetime) -> tuple[publish.OutletVerdict, ...]:
    """Return what the rules of each default outlet say of
    the item; empty where no outlet is left or takes it.
    """
    try:
        return tuple(publish.validate_outlets(item, publish.PublishWish(), now=now, refuse=False))
    except AppError:
        # The page for publishing says why.
        return ()


def fit_of(item: GeneratedItem, judged: publish.OutletVerdict) -> Fit:
    """Return how the item fits the outlet of a verdict."""
    platform = platform_of(judged.outlet.platform)
    length = platform.length(account_of(judged.outlet), judged.post)
    parts = judged.post.parts
    return Fit(
        outlet=judged.outlet,
        platform=str(platform.label),
        count=length.count,
        limit=length.limit,
        unit=length.unit,
        problems=tuple(
            problem.message for problem in judged.problems if problem.code not in _CODES_SHOWN_ELSEWHERE
        ),
        steps=tuple(step.message for step in judged.post.steps),
        preview=tuple(plain_text(part, judged.post.payload.body_format) for part in parts),
        parts=parts if TRAITS[item.bucket].is_posted and _differ_from_own(item, parts) else (),
    )


def _differ_from_own(item: GeneratedItem, parts: Sequence[str]) -> bool:
    """Return whether the posts differ from the item's own."""
    own = item.content.get("parts") or [item.body]
    return list(parts) != list(own)
