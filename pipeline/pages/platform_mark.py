"""The mark beside a platform's name: an icon, or letters on a colour of their own.

No company's trade mark is used.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

_ICONS: Final = {
    "feed": "rss",
    "rss": "rss",
    "scraper": "file-text",
    "email_newsletter": "mail",
    "signed_webhook": "webhook",
    "webhook": "webhook",
    "brand": "zap",
    "handoff": "user",
    "simulated": "eye",
}
"""Icons of the kinds that aren't a company's platform."""
_COLOUR_COUNT: Final = 8
"""How many colours charts have; they can be told apart in the light and in the dark scheme."""


@dataclass(frozen=True)
class PlatformMark:
    """What the template draws: `icon`, or `letters` where it is empty.

    `colour` is the number of a chart colour, from 1.
    """

    icon: str
    letters: str
    colour: int


def mark_of(kind: str, label: str) -> PlatformMark:
    """Return the mark of a kind of platform, which is the same on every page.

    The letters are the label's first one and its next capital.
    """
    letters = label[:1].upper() + next((letter for letter in label[1:] if letter.isupper()), "")
    return PlatformMark(_ICONS.get(kind, ""), letters, sum(kind.encode()) % _COLOUR_COUNT + 1)
