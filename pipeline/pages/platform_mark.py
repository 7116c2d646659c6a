"""The mark of a platform beside its name: an icon or its letters on a colour of its own, and nobody's trade mark."""

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
"""Of what is no company's place."""
_COLOURS: Final = 8
"""Those of charts, which are told apart in both schemes."""


@dataclass(frozen=True)
class PlatformMark:
    """`icon` is empty where `letters` stand for it; `colour` is the number of a chart's."""

    icon: str
    letters: str
    colour: int


def mark_of(kind: str, label: str) -> PlatformMark:
    """The same for a kind on every page; the letters are the label's first one and its next capital."""
    letters = label[:1].upper() + next((letter for letter in label[1:] if letter.isupper()), "")
    return PlatformMark(_ICONS.get(kind, ""), letters, sum(kind.encode()) % _COLOURS + 1)
