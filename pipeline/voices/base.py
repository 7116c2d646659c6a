"""The interface of voices: a text spoken, with the time of each word as it is written."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipeline.plugins import Unavailability
    from pipeline.render.audio.word_timing import Speech

MAX_TEXT_CHARACTERS: Final = 4_000
"""The limit of one text: about four minutes of speech, and films have three at most."""
MIN_RATE: Final = 80
DEFAULT_RATE: Final = 165
MAX_RATE: Final = 300
"""The slowest, the usual and the fastest rate, in words a minute."""


class Voice(ABC):
    """A voice. It has no effect but a child process of its own, which has ended before `speak` returns."""

    kind: ClassVar[str]
    label: ClassVar[str]
    seconds: ClassVar[int]
    """How long it may speak before it is stopped, in seconds by the clock."""
    environment: ClassVar[Mapping[str, str]] = {}
    """The variables that the operator sets for it, with their defaults."""

    @abstractmethod
    def unavailable(self, environment: Mapping[str, str]) -> Unavailability | None:
        """Return what is missing for it to speak here, or `None` if it can. Films are silent without a voice."""

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
        """Speak the text at `rate` words a minute; `pitch` is from 0 to 100, 50 being the voice's own.

        Raises `Refused` with a sentence for a text or a language that it can't speak, and with the reason of
        `unavailable`; `TryLater` if the machine was too busy.
        """
