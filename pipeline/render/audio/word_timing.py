"""Word timing finds when each word of a written text is heard in the samples of a voice."""

from __future__ import annotations

import io
import unicodedata
import wave
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from pipeline.render.typography.word_segmentation import joined, phrases
from pipeline.render.video.storyboard import Word

if TYPE_CHECKING:
    from collections.abc import Sequence

_TOUCHING: Final = 0.001
"""Seconds; a pause that ends so shortly before a moment still leads up to it."""


@dataclass(frozen=True)
class Speech:
    """One voice. `samples` are 16 bits, little-endian, one channel; `words` in the order in which they sound."""

    rate: int
    samples: bytes
    words: tuple[Word, ...]

    @property
    def seconds(self) -> float:
        return len(self.samples) / 2 / self.rate

    def wav(self) -> bytes:
        """As a WAV file."""
        file = io.BytesIO()
        with wave.open(file, "wb") as out:
            out.setnchannels(1)
            out.setsampwidth(2)
            out.setframerate(self.rate)
            out.writeframes(self.samples)
        return file.getvalue()


class SpeechEvent(NamedTuple):
    """A synthesiser begins to speak what stands at a place of the text, in code points from 0; times in seconds."""

    place: int
    start: float


class Pause(NamedTuple):
    """A silence within speech; times in seconds."""

    start: float
    end: float


class Token(NamedTuple):
    """A word as it is written, with the marks around it, and what of the text it covers."""

    text: str
    start: int
    end: int


def written_words(text: str) -> list[Token]:
    """The words as they are shown. Marks that stand alone, such as a dash, belong to the word before them."""
    found: list[Token] = []
    held: Token | None = None
    place = 0
    for part in (piece for one in text.split() for piece in phrases(one)):
        start = text.index(part, place)
        place = start + len(part)
        token = Token(part, start, place)
        if not is_spoken(part):
            if found:
                found[-1] = Token(joined((found[-1].text, part)), found[-1].start, place)
            else:
                held = Token(part if held is None else joined((held.text, part)), start, place)
            continue
        if held is not None:
            token, held = Token(joined((held.text, part)), held.start, place), None
        found.append(token)
    return found


def is_spoken(text: str) -> bool:
    """Whether there is anything to say: a letter, a digit, or a sign that is read out."""
    return any(unicodedata.category(sign)[0] in "LN" or sign in "%&@€$£" for sign in text)


def time_words(
    text: str, events: Sequence[SpeechEvent], pauses: Sequence[Pause], seconds: float
) -> tuple[Word, ...]:
    """When each word of the text is heard.

    Synthesisers speak of what they say: a number makes several events, an abbreviation one, two words at times one
    together. A word begins with the first event in it; one without any shares the time of its neighbours by letters.
    It ends where the next one begins, or where the silence before that does.
    """
    words = written_words(text)
    starts = _starts(words, events, seconds)
    timed = []
    for number, (word, start) in enumerate(zip(words, starts, strict=True)):
        until = starts[number + 1] if number + 1 < len(words) else seconds
        timed.append(
            Word(word.text, round(start, 4), round(max(start, _heard_until(start, until, pauses)), 4))
        )
    return tuple(timed)


def _heard_until(start: float, until: float, pauses: Sequence[Pause]) -> float:
    """The end of the sound before `until`: pauses that lead up to it are cut off."""
    end = until
    for pause in reversed(pauses):
        if start < pause.start < end and pause.end >= end - _TOUCHING:
            end = pause.start
    return end


def _starts(words: Sequence[Token], events: Sequence[SpeechEvent], seconds: float) -> list[float]:
    """When each word begins, in seconds: with its first event, or between its neighbours."""
    heard: list[float | None] = []
    for word in words:
        inside = (event.start for event in events if word.start <= event.place < word.end)
        heard.append(next(inside, None))
    # What a synthesiser tells of a place that it has passed already would turn time back.
    latest = 0.0
    for number, start in enumerate(heard):
        if start is None:
            continue
        if start < latest:
            heard[number] = None
        else:
            latest = start
    return _interpolated(words, heard, seconds)


def _interpolated(words: Sequence[Token], heard: list[float | None], seconds: float) -> list[float]:
    """The beginnings with those that aren't known: between two that are, time is shared by letters."""
    starts: list[float] = []
    for number, start in enumerate(heard):
        if start is not None:
            starts.append(start)
            continue
        # The word before, whose beginning is known, shares its time with this one.
        first = number - 1 if number else 0
        begin = starts[-1] if starts else 0.0
        following = next((later for later in range(number, len(heard)) if heard[later] is not None), None)
        end = seconds if following is None else heard[following]
        assert end is not None  # noqa: S101  it was looked for
        last = len(words) if following is None else following
        lengths = [len(word.text) for word in words[first:last]]
        before = lengths[0] if number else 0
        starts.append(begin + (end - begin) * before / sum(lengths))
    return starts
