"""Captions to readable text: what was said, in sentences and paragraphs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import unescape
from typing import Any, Final

MAX_MILLISECONDS: Final = 10**9
MAX_CUES: Final = 40_000
MAX_CUE_CHARACTERS: Final = 2000
MAX_CHARACTERS: Final = 400_000
"""About eight hours of talk."""

PAUSE_SECONDS: Final = 0.9
"""A silence of this length ends a sentence where the captions have no punctuation."""
LONG_PAUSE_SECONDS: Final = 3.0
"""A silence of this length ends a paragraph."""
WORDS_PER_SENTENCE: Final = 28
"""Where nobody pauses, a sentence without punctuation ends after so many words."""
WORDS_PER_STOP: Final = 60
"""Captions with fewer full stops than one in so many words count as unpunctuated, as automatic ones often are."""
SENTENCES_PER_PARAGRAPH: Final = 6

# The format `srv1`: `<text start="0.1" dur="1.2">words</text>`, escaped twice.
_CUE: Final = re.compile(r"<text\b([^<>]{0,300})>([^<]*)</text>")
_NUMBER: Final = re.compile(r'\b(start|dur)="([0-9]{1,7}(?:\.[0-9]{1,6})?)"')
_TAG: Final = re.compile(r"<[^<>]{0,100}>")
# "[Music]", "(applause)", "♪ … ♪" are sounds, ">>" is a change of speaker.
_SOUND: Final = re.compile(
    r"\[[^\[\]]{0,60}\]|\((?:music|applause|laughter|laughs|cheering)\)|[♪♫]", re.IGNORECASE
)
_SPEAKER: Final = re.compile(r"^\s*-\s|(?:^|\s)>{2,3}(?=\s|\w)")
_STOP: Final = re.compile(r"(?<![.!?。！？…])[.!?。！？…]++[\"'”’)]*+(?=\s|$)")


@dataclass(frozen=True)
class Cue:
    """One line of captions; times are seconds from the beginning of the video."""

    start: float
    seconds: float
    text: str


def read_timed_text(document: str) -> list[Cue]:
    """The cues of YouTube's `srv1` XML; an empty list where there are none."""
    cues = []
    for attributes, written in _CUE.findall(document)[:MAX_CUES]:
        numbers = {name: float(value) for name, value in _NUMBER.findall(attributes)}
        text = clean_cue(unescape(unescape(written[:MAX_CUE_CHARACTERS])))
        if text and "start" in numbers:
            cues.append(Cue(numbers["start"], numbers.get("dur", 0.0), text))
    return cues


def read_json3(document: Any) -> list[Cue]:
    """The cues of YouTube's `json3`: `{"events": [{"tStartMs", "dDurationMs", "segs": [{"utf8"}]}]}`."""
    events = document.get("events") if isinstance(document, dict) else None
    cues = []
    for event in (events if isinstance(events, list) else [])[:MAX_CUES]:
        segments = event.get("segs") if isinstance(event, dict) else None
        starts, lasts = (_milliseconds(event, name) for name in ("tStartMs", "dDurationMs"))
        if not isinstance(segments, list) or starts is None:
            continue
        said = "".join(str(one.get("utf8", "")) for one in segments if isinstance(one, dict))
        text = clean_cue(said[:MAX_CUE_CHARACTERS])
        if text:
            cues.append(Cue(starts / 1000, (lasts or 0) / 1000, text))
    return cues


def _milliseconds(event: Any, name: str) -> int | None:
    value = event.get(name) if isinstance(event, dict) else None
    return value if isinstance(value, int) and 0 <= value < MAX_MILLISECONDS else None


def clean_cue(text: str) -> str:
    """The words of a cue, without markup, sounds and marks of speakers."""
    text = _SOUND.sub(" ", _TAG.sub("", text))
    text = _SPEAKER.sub(" ", text.replace("\u200b", ""))
    return " ".join("".join(char for char in text if char.isprintable() or char.isspace()).split())


def to_text(cues: list[Cue]) -> str:
    """Sentences, in paragraphs with an empty line between; the same cues always give the same text."""
    cues = _without_repeats(cues)
    spoken = " ".join(cue.text for cue in cues)
    is_punctuated = len(_STOP.findall(spoken)) * WORDS_PER_STOP >= len(spoken.split())
    sentences = _by_stops(cues) if is_punctuated else _by_pauses(cues)
    paragraphs: list[list[str]] = [[]]
    for sentence, ends_paragraph in sentences:
        paragraphs[-1].append(sentence)
        if ends_paragraph or len(paragraphs[-1]) == SENTENCES_PER_PARAGRAPH:
            paragraphs.append([])
    return "\n\n".join(" ".join(one) for one in paragraphs if one)[:MAX_CHARACTERS].rstrip()


def _without_repeats(cues: list[Cue]) -> list[Cue]:
    """Rolling captions show a line twice, once below and once above the next."""
    kept: list[Cue] = []
    for cue in cues:
        if kept and cue.text == kept[-1].text and cue.start - kept[-1].start < LONG_PAUSE_SECONDS:
            continue
        kept.append(cue)
    return kept


def _silence_after(cues: list[Cue], number: int) -> float:
    if number + 1 == len(cues):
        return LONG_PAUSE_SECONDS
    return cues[number + 1].start - (cues[number].start + cues[number].seconds)


def _by_stops(cues: list[Cue]) -> list[tuple[str, bool]]:
    found: list[tuple[str, bool]] = []
    open_words: list[str] = []
    for number, cue in enumerate(cues):
        begin = 0
        for stop in _STOP.finditer(cue.text):
            found.append((" ".join([*open_words, cue.text[begin : stop.end()].strip()]), False))
            open_words, begin = [], stop.end()
        rest = cue.text[begin:].strip()
        if rest:
            open_words.append(rest)
        if found and not open_words and _silence_after(cues, number) >= LONG_PAUSE_SECONDS:
            found[-1] = (found[-1][0], True)
    if open_words:
        found.append((" ".join(open_words), True))
    return found


def _by_pauses(cues: list[Cue]) -> list[tuple[str, bool]]:
    found: list[tuple[str, bool]] = []
    words: list[str] = []
    for number, cue in enumerate(cues):
        words += cue.text.split()
        silence = _silence_after(cues, number)
        if silence >= PAUSE_SECONDS or len(words) >= WORDS_PER_SENTENCE:
            found.append((_sentence(words), silence >= LONG_PAUSE_SECONDS))
            words = []
    if words:
        found.append((_sentence(words), True))
    return found


def _sentence(words: list[str]) -> str:
    text = " ".join(words)
    return text[:1].upper() + text[1:] + ("" if _STOP.search(text[-3:]) else ".")
