"""What every voice offers: a text spoken, with the moment of each word as it is written."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipeline.plugins import Unavailability
    from pipeline.render.audio.word_timing import Speech

TEXT_CHARACTERS: Final = 4_000
"""Of one text: about four minutes of speech, and films are three at most."""
SLOWEST: Final = 80
USUAL: Final = 165
FASTEST: Final = 300
"""Words a minute."""


class Voice(ABC):
    """Pure but for a child process of its own, which is ended before `speak` returns."""

    kind: ClassVar[str]
    label: ClassVar[str]
    seconds: ClassVar[int]
    """By the clock: for how long it may speak before it is stopped."""
    environment: ClassVar[Mapping[str, str]] = {}
    """What the operator sets for it, with what holds where nothing is set."""

    @abstractmethod
    def unavailable(self, environment: Mapping[str, str]) -> Unavailability | None:
        """None where it can speak here; else what is missing. Films are then silent."""

    @abstractmethod
    def speak(
        self,
        text: str,
        *,
        language: str,
        rate: int = USUAL,
        pitch: int = 50,
        environment: Mapping[str, str],
    ) -> Speech:
        """The text spoken, at `rate` words a minute; `pitch` from 0 to 100, 50 being the voice's own.

        Raises `Refused` with a sentence for a text or a language that it can't speak, and where `unavailable` says why;
        `TryLater` where the machine was too busy.
        """
