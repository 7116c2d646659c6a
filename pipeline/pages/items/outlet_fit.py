"""The words as each outlet gets them: counted as its platform counts, fitted by its rules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from config.core.errors import AppError
from pipeline import publish
from pipeline.outlets.outlet_client import account_of, platform_of
from pipeline.text.content_buckets import TRAITS
from pipeline.text.plain_text import plain_text

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from pipeline.models import GeneratedItem, Outlet

# That it is out there already, or under way, is said where its publications are.
_SAID_ELSEWHERE: Final = frozenset({"already_published", "in_flight"})
_NEARLY_FULL: Final = 90
_SHOWN_WHOLE: Final = 600
"""Characters; of a longer post the beginning is shown first."""


@dataclass(frozen=True)
class Fit:
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
    """The posts as people read them there, whether or not they are the item's own."""

    @property
    def is_long(self) -> bool:
        return sum(map(len, self.preview)) > _SHOWN_WHOLE

    @property
    def percent(self) -> int:
        return min(self.count * 100 // self.limit, 100) if self.limit else 0

    @property
    def tone(self) -> str:
        if self.problems or (self.limit is not None and self.count > self.limit):
            return "bad"
        return "warn" if self.percent >= _NEARLY_FULL else ""


def fits_of(item: GeneratedItem, *, now: datetime) -> tuple[Fit, ...]:
    """For the outlets where it goes by default; nothing is stored. The item comes with its workspace."""
    return tuple(fit_of(item, one) for one in judged_of(item, now=now))


def judged_of(item: GeneratedItem, *, now: datetime) -> tuple[publish.OutletVerdict, ...]:
    """What each outlet's rules say of it, where it goes by default; empty where none is left, or takes it."""
    try:
        return tuple(publish.validate_outlets(item, publish.PublishWish(), now=now, refuse=False))
    except AppError:
        # Publishing says why.
        return ()


def fit_of(item: GeneratedItem, judged: publish.OutletVerdict) -> Fit:
    platform = platform_of(judged.outlet.platform)
    length = platform.length(account_of(judged.outlet), judged.post)
    parts = judged.post.parts
    return Fit(
        outlet=judged.outlet,
        platform=str(platform.label),
        count=length.count,
        limit=length.limit,
        unit=length.unit,
        problems=tuple(one.message for one in judged.problems if one.code not in _SAID_ELSEWHERE),
        steps=tuple(step.message for step in judged.post.steps),
        preview=tuple(plain_text(part, judged.post.payload.body_format) for part in parts),
        parts=parts if TRAITS[item.bucket].is_posted and _differs(item, parts) else (),
    )


def _differs(item: GeneratedItem, parts: Sequence[str]) -> bool:
    own = item.content.get("parts") or [item.body]
    return list(parts) != list(own)
