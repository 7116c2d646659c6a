"""Holds the spoken text of a film and the times of its words, on which engines lay the scenes."""

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
PAUSE_SECONDS: Final = 0.33
"""Seconds between two sentences of a film without a voice, whose words are only shown."""
_PASSAGE_SEPARATOR: Final = "\n\n"
_SENTENCE_END: Final = re.compile(r"[.!?…。！？؟۔।]['\"\u2019\u201d\u00bb)\]]*$")
_CHARACTERS_PER_SECOND: Final = 18.2
"""Characters spoken in a second at `RATE`, with blanks."""
_DIGIT_CHARACTERS: Final = 6
"""Characters that a digit counts for when it is spoken."""
_SYLLABIC_SCRIPTS: Final = (
    (re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"), 4.0),
    (re.compile("[\uac00-\ud7a3]"), 3.0),
    (re.compile("[\u3040-\u30ff]"), 2.0),
)
"""Characters that are a syllable each, and the characters that each counts for: Chinese, Korean, kana."""


@dataclass(frozen=True)
class NarrationScript:
    """The text for a voice: passages in one language. `rate` is in words a minute, `pitch` from 0 to 100."""

    passages: tuple[str, ...]
    language: str
    rate: int = RATE
    pitch: int = PITCH

    @property
    def text(self) -> str:
        """The text for a voice: each passage ends with a full stop or its like, so that its end is heard."""
        return _PASSAGE_SEPARATOR.join(_with_full_stop(passage) for passage in self.passages)


@dataclass(frozen=True)
class Narration:
    """The words of each passage of a script, with their times in seconds from the film's beginning.

    `seconds` is the length of the speech. `voice` is the name of the voice's asset, or "" for a film without a voice,
    whose words are shown at the pace of speech.
    """

    passages: tuple[tuple[Word, ...], ...]
    seconds: float
    voice: str = ""

    @property
    def words(self) -> tuple[Word, ...]:
        return tuple(word for passage in self.passages for word in passage)


def spoken(script: NarrationScript, speech: Speech, *, voice: str) -> Narration:
    """Return the narration for a speech of `script.text`. Raises `ValueError` if it has another number of words."""
    starts, offset = [], 0
    for passage in script.passages:
        starts.append(offset)
        offset += len(_with_full_stop(passage)) + len(_PASSAGE_SEPARATOR)
    words_by_passage: list[list[Word]] = [[] for _ in script.passages]
    for token, word in zip(written_words(script.text), speech.words, strict=True):
        words_by_passage[bisect_right(starts, token.start) - 1].append(word)
    passages = tuple(
        _without_added_full_stop(passage, words)
        for passage, words in zip(script.passages, words_by_passage, strict=True)
    )
    return Narration(passages, speech.seconds, voice)


def silent(script: NarrationScript) -> Narration:
    """Return the narration for a film without a voice, timed at the pace of speech by the letters of its words."""
    passages: list[tuple[Word, ...]] = []
    seconds = 0.0
    characters_per_second = _CHARACTERS_PER_SECOND * script.rate / RATE
    for passage in script.passages:
        words: list[Word] = []
        for token in written_words(passage):
            start, seconds = seconds, seconds + _spoken_length(token.text) / characters_per_second
            words.append(Word(token.text, round(start, 4), round(seconds, 4)))
            if _SENTENCE_END.search(token.text):
                seconds += PAUSE_SECONDS
        if words and not _SENTENCE_END.search(words[-1].t):
            seconds += PAUSE_SECONDS
        passages.append(tuple(words))
    return Narration(tuple(passages), round(seconds, 4))


def seconds_of(script: NarrationScript) -> float:
    """Return about how many seconds the script takes to say."""
    return silent(script).seconds


def as_json(narration: Narration) -> dict[str, Any]:
    """Return the narration as values for JSON; `from_json` reads them."""
    return dataclasses.asdict(narration)


def from_json(data: Mapping[str, Any]) -> Narration:
    """Return the narration from the values of `as_json`."""
    passages = tuple(tuple(Word(**word) for word in passage) for passage in data["passages"])
    return Narration(passages, data["seconds"], data["voice"])


def _with_full_stop(passage: str) -> str:
    """Return the passage, with a full stop if it doesn't end like a sentence."""
    stripped = passage.strip()
    return stripped if _SENTENCE_END.search(stripped) else f"{stripped}."


def _without_added_full_stop(passage: str, words: Sequence[Word]) -> tuple[Word, ...]:
    """Return the words without the full stop that `_with_full_stop` added for the voice."""
    if words and not _SENTENCE_END.search(passage.strip()) and words[-1].t.endswith("."):
        return (*words[:-1], dataclasses.replace(words[-1], t=words[-1].t[:-1]))
    return tuple(words)


def _spoken_length(word: str) -> float:
    """Return the number of characters that the word counts for when it is spoken, with the blank after it."""
    length = len(word) + 1 + (_DIGIT_CHARACTERS - 1) * sum(character.isdigit() for character in word)
    if word.isascii():
        return length
    return length + sum(
        (characters - 1) * len(pattern.findall(word)) for pattern, characters in _SYLLABIC_SCRIPTS
    )
