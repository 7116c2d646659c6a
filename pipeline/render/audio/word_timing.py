"""Finds when each word of a written text is heard in the samples of a voice."""

from __future__ import annotations

import io
import unicodedata
import wave
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from pipeline.render.typography.word_segmentation import join_words, split_words
from pipeline.render.video.storyboard import Word

if TYPE_CHECKING:
    from collections.abc import Sequence

_ADJACENT_SECONDS: Final = 0.001
"""The longest gap between the end of a pause and a moment to which the pause leads up."""


@dataclass(frozen=True)
class Speech:
    """A recorded voice. `samples` are 16 bits, little-endian, one channel; `words` are in the order of speaking."""

    rate: int
    samples: bytes
    words: tuple[Word, ...]

    @property
    def seconds(self) -> float:
        return len(self.samples) / 2 / self.rate

    def wav(self) -> bytes:
        """Return the speech as a WAV file."""
        file = io.BytesIO()
        with wave.open(file, "wb") as writer:
            writer.setnchannels(1)
            writer.setsampwidth(2)
            writer.setframerate(self.rate)
            writer.writeframes(self.samples)
        return file.getvalue()


class SpeechEvent(NamedTuple):
    """The second `start` at which a synthesiser begins to speak the text at `offset`, in code points from 0."""

    offset: int
    start: float


class Pause(NamedTuple):
    """A silence within speech; times in seconds."""

    start: float
    end: float


class Token(NamedTuple):
    """A word as it is written, with the punctuation around it, and the range of the text that it covers."""

    text: str
    start: int
    end: int


def written_words(text: str) -> list[Token]:
    """Return the words as they are shown; marks alone make no word.

    Marks that stand alone, such as a dash, belong to the word before them, or to the first word.
    """
    tokens: list[Token] = []
    leading_marks: Token | None = None
    offset = 0
    for part in (phrase for chunk in text.split() for phrase in split_words(chunk)):
        start = text.index(part, offset)
        offset = start + len(part)
        if is_spoken(part):
            token = Token(part, start, offset)
            if leading_marks is not None:
                token = Token(join_words((leading_marks.text, part)), leading_marks.start, offset)
                leading_marks = None
            tokens.append(token)
        elif tokens:
            tokens[-1] = Token(join_words((tokens[-1].text, part)), tokens[-1].start, offset)
        elif leading_marks is None:
            leading_marks = Token(part, start, offset)
        else:
            leading_marks = Token(join_words((leading_marks.text, part)), start, offset)
    return tokens


def is_spoken(text: str) -> bool:
    """Return whether there is anything to say: a letter, a digit, or a symbol that is read out."""
    return any(unicodedata.category(character)[0] in "LN" or character in "%&@€$£" for character in text)


def time_words(
    text: str, events: Sequence[SpeechEvent], pauses: Sequence[Pause], seconds: float
) -> tuple[Word, ...]:
    """Return each word of the text with its times in seconds.

    Synthesisers report an event for each piece that they speak, such as the parts of a number or two words together. A
    word begins with the first event within it, and words without an event share the time of their neighbours by
    letters. A word ends at the start of the next word, or of the silence before that.
    """
    words = written_words(text)
    starts = _find_starts(words, events, seconds)
    timed = []
    for index, (word, start) in enumerate(zip(words, starts, strict=True)):
        limit = starts[index + 1] if index + 1 < len(words) else seconds
        timed.append(
            Word(word.text, round(start, 4), round(max(start, _end_of_sound(start, limit, pauses)), 4))
        )
    return tuple(timed)


def _end_of_sound(start: float, limit: float, pauses: Sequence[Pause]) -> float:
    """Return the second at which the sound before `limit` ends: pauses that lead up to the limit are cut off."""
    end = limit
    for pause in reversed(pauses):
        if start < pause.start < end and pause.end >= end - _ADJACENT_SECONDS:
            end = pause.start
    return end


def _find_starts(words: Sequence[Token], events: Sequence[SpeechEvent], seconds: float) -> list[float]:
    """Return when each word begins, in seconds: with its first event, or between its neighbours."""
    starts: list[float | None] = []
    for word in words:
        events_inside = (event.start for event in events if word.start <= event.offset < word.end)
        starts.append(next(events_inside, None))
    # An event for a word that was already passed would turn time back.
    latest = 0.0
    for index, start in enumerate(starts):
        if start is None:
            continue
        if start < latest:
            starts[index] = None
        else:
            latest = start
    return _interpolate(words, starts, seconds)


def _interpolate(words: Sequence[Token], known_starts: list[float | None], seconds: float) -> list[float]:
    """Return the starts with the unknown ones filled in: between two known ones, time is shared by letters."""
    starts: list[float] = []
    for index, start in enumerate(known_starts):
        if start is not None:
            starts.append(start)
            continue
        # The word before, whose start is known by now, shares its time with this one.
        first_word = index - 1 if index else 0
        begin = starts[-1] if starts else 0.0
        next_known = next(
            (later for later in range(index, len(known_starts)) if known_starts[later] is not None), None
        )
        end = seconds if next_known is None else known_starts[next_known]
        assert end is not None  # noqa: S101  it was looked for
        end_word = len(words) if next_known is None else next_known
        lengths = [len(word.text) for word in words[first_word:end_word]]
        letters_before = lengths[0] if index else 0
        starts.append(begin + (end - begin) * letters_before / sum(lengths))
    return starts
