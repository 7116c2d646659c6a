"""What is said in a film, and when each word of it sounds: engines give the script and lay their scenes on its times."""

from __future__ import annotations

import dataclasses
import re
from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pipeline.render.audio.word_timing import written_words
from pipeline.render.video.storyboard import Word

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipeline.render.audio.word_timing import Speech

RATE: Final = 165
"""Words a minute, as people speak in short films."""
PITCH: Final = 50
PAUSE: Final = 0.33
"""Seconds between two sentences of a film that is read in silence."""
_BETWEEN: Final = "\n\n"
_ENDED: Final = re.compile(r"[.!?…。！？؟۔।]['\"\u2019\u201d\u00bb)\]]*$")
_LETTERS: Final = 18.2
"""Characters that are spoken in a second at `RATE`, blanks counted."""
_DIGIT: Final = 6
"""Characters that a digit takes when it is said."""
_SYLLABLES: Final = (
    (re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"), 4.0),
    (re.compile("[\uac00-\ud7a3]"), 3.0),
    (re.compile("[\u3040-\u30ff]"), 2.0),
)
"""Signs that are a syllable each, and the characters that one takes: Chinese, Korean, kana."""


@dataclass(frozen=True)
class NarrationScript:
    """What a voice says: passages one after the other, in one language. `rate` in words a minute, `pitch` 0 to 100."""

    passages: tuple[str, ...]
    language: str
    rate: int = RATE
    pitch: int = PITCH

    @property
    def text(self) -> str:
        """As a voice gets it: each passage ends as a sentence does, so that it is heard to end."""
        return _BETWEEN.join(_ended(one) for one in self.passages)


@dataclass(frozen=True)
class Narration:
    """A script with the times of its words, in seconds from the film's beginning: as many passages as it has.

    `voice` is the name of the asset that is heard; empty where nobody speaks and the words are shown at the pace of
    speech.
    """

    passages: tuple[tuple[Word, ...], ...]
    seconds: float
    voice: str = ""

    @property
    def words(self) -> tuple[Word, ...]:
        return tuple(word for passage in self.passages for word in passage)


def spoken(script: NarrationScript, speech: Speech, *, voice: str) -> Narration:
    """The times of a speech of `script.text`, by passage; the words as the script has them."""
    starts, place = [], 0
    for passage in script.passages:
        starts.append(place)
        place += len(_ended(passage)) + len(_BETWEEN)
    found: list[list[Word]] = [[] for _ in script.passages]
    for token, word in zip(written_words(script.text), speech.words, strict=True):
        found[bisect_right(starts, token.start) - 1].append(word)
    passages = tuple(
        _as_written(passage, words) for passage, words in zip(script.passages, found, strict=True)
    )
    return Narration(passages, speech.seconds, voice)


def silent(script: NarrationScript) -> Narration:
    """The same at the pace of speech, by letters, for a film that nobody speaks in."""
    passages: list[tuple[Word, ...]] = []
    at = 0.0
    pace = _LETTERS * script.rate / RATE
    for passage in script.passages:
        words: list[Word] = []
        for token in written_words(passage):
            start, at = at, at + _weight(token.text) / pace
            words.append(Word(token.text, round(start, 4), round(at, 4)))
            if _ENDED.search(token.text):
                at += PAUSE
        if words and not _ENDED.search(words[-1].t):
            at += PAUSE
        passages.append(tuple(words))
    return Narration(tuple(passages), round(at, 4))


def seconds_of(script: NarrationScript) -> float:
    """About how long it takes to say."""
    return silent(script).seconds


def as_json(narration: Narration) -> dict[str, Any]:
    return dataclasses.asdict(narration)


def from_json(kept: Mapping[str, Any]) -> Narration:
    """The narration that `as_json` was given."""
    passages = tuple(tuple(Word(**word) for word in passage) for passage in kept["passages"])
    return Narration(passages, kept["seconds"], kept["voice"])


def _ended(passage: str) -> str:
    stripped = passage.strip()
    return stripped if _ENDED.search(stripped) else f"{stripped}."


def _as_written(passage: str, words: Sequence[Word]) -> tuple[Word, ...]:
    """Without the full stop that was only there to be heard."""
    if words and not _ENDED.search(passage.strip()) and words[-1].t.endswith("."):
        return (*words[:-1], dataclasses.replace(words[-1], t=words[-1].t[:-1]))
    return tuple(words)


def _weight(word: str) -> float:
    weight = len(word) + 1 + (_DIGIT - 1) * sum(sign.isdigit() for sign in word)
    if word.isascii():
        return weight
    return weight + sum((takes - 1) * len(signs.findall(word)) for signs, takes in _SYLLABLES)
