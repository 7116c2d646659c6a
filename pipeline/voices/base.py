"""Defines the interface of voices: speak a text, and report the time of each written word."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipeline.plugins import Unavailability
    from pipeline.render.audio.word_timing import Speech

MAX_TEXT_CHARACTERS: Final = 4_000
"""The longest text, which is about four minutes of speech; films have three at most."""
# The slowest, the default and the fastest rate, in words per minute.
MIN_RATE: Final = 80
DEFAULT_RATE: Final = 165
MAX_RATE: Final = 300


class Voice(ABC):
    """A voice. Its only effect is a child process, which has ended before `speak` returns."""

    kind: ClassVar[str]
    label: ClassVar[str]
    seconds: ClassVar[int]
    """The seconds by the clock after which speaking is stopped."""
    environment: ClassVar[Mapping[str, str]] = {}
    """The variables that the operator sets for it, with their defaults."""

    @abstractmethod
    def unavailable(self, environment: Mapping[str, str]) -> Unavailability | None:
        """Return why the voice can't speak here, or `None` if it can. Films are silent without a voice."""

    @abstractmethod
    def speak(
        self,
        text: str,
        *,
        language: str,
        rate: int = DEFAULT_RATE,
        pitch: int = 50,
        environment: Mapping[str, str],
    ) -> Speech:
        """Speak the text at `rate` words per minute; `pitch` is from 0 to 100, and 50 is the voice's default.

        Raises `Refused` if the voice is unavailable, fails, or can't speak this text or language, and `TryLater` if
        it takes longer than `seconds`.
        """
