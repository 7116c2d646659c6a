"""Chooses the mark next to a platform's name: an icon, or letters on a colour. It is no company's trade mark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pipeline.platforms.base import Platform

_SOURCE_ICONS: Final = {"rss": "rss", "scraper": "file-text"}
"""The icons of the kinds of sources that aren't a company's."""
_COLOUR_COUNT: Final = 8
"""The number of chart colours, which can be told apart in the light and in the dark scheme."""


@dataclass(frozen=True)
class PlatformMark:
    """What the template draws: `icon`, or `letters` if `icon` is empty; `colour` is a chart colour's number, from 1."""

    icon: str
    letters: str
    colour: int


def mark_of_platform(platform: Platform) -> PlatformMark:
    """Return the mark of a platform, which is the same on every page."""
    return _mark_of(platform.kind, platform.icon, platform.letters or _letters_of(platform.label))


def mark_of_source(kind: str, label: str) -> PlatformMark:
    """Return the mark of a kind of source, in the colour of the platform that has the same kind."""
    return _mark_of(kind, _SOURCE_ICONS.get(kind, ""), _letters_of(label))


def _mark_of(kind: str, icon: str, letters: str) -> PlatformMark:
    # The sum of the kind's bytes chooses a colour that looks arbitrary and is the same on every page.
    return PlatformMark(icon, letters, sum(kind.encode()) % _COLOUR_COUNT + 1)


def _letters_of(label: str) -> str:
    """Return the first letter of a label as a capital, and the next capital after it, if any."""
    return label[:1].upper() + next((letter for letter in label[1:] if letter.isupper()), "")
