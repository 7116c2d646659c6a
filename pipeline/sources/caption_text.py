"""Turns captions into readable text, in sentences and paragraphs."""

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
"""A silence that ends a sentence if the captions have no punctuation."""
LONG_PAUSE_SECONDS: Final = 3.0
"""A silence that ends a paragraph."""
MAX_UNPUNCTUATED_SENTENCE_WORDS: Final = 28
"""The number of words after which a sentence without punctuation ends if the speaker doesn't pause."""
MAX_WORDS_PER_STOP: Final = 60
"""Captions with more words per full stop count as unpunctuated, as automatic captions often are."""
SENTENCES_PER_PARAGRAPH: Final = 6

# A cue of the format `srv1`: `<text start="0.1" dur="1.2">words</text>`, escaped twice.
_CUE: Final = re.compile(r"<text\b([^<>]{0,300})>([^<]*)</text>")
_TIME_ATTRIBUTE: Final = re.compile(r'\b(start|dur)="([0-9]{1,7}(?:\.[0-9]{1,6})?)"')
_MARKUP_TAG: Final = re.compile(r"<[^<>]{0,100}>")
# "[Music]", "(applause)", "♪ … ♪" are sounds, ">>" is a change of speaker.
_SOUND_MARK: Final = re.compile(
    r"\[[^\[\]]{0,60}\]|\((?:music|applause|laughter|laughs|cheering)\)|[♪♫]", re.IGNORECASE
)
_SPEAKER_MARK: Final = re.compile(r"^\s*-\s|(?:^|\s)>{2,3}(?=\s|\w)")
_SENTENCE_END: Final = re.compile(r"(?<![.!?。！？…])[.!?。！？…]++[\"'”’)]*+(?=\s|$)")


@dataclass(frozen=True)
class Cue:
    """One line of captions. `start` is in seconds from the beginning of the video, `seconds` is the duration."""

    start: float
    seconds: float
    text: str


def read_timed_text(document: str) -> list[Cue]:
    """Return the first `MAX_CUES` cues of YouTube's `srv1` XML that have a text and a start."""
    cues = []
    for attributes, escaped_text in _CUE.findall(document)[:MAX_CUES]:
        numbers = {name: float(value) for name, value in _TIME_ATTRIBUTE.findall(attributes)}
        text = clean_cue(unescape(unescape(escaped_text[:MAX_CUE_CHARACTERS])))
        if text and "start" in numbers:
            cues.append(Cue(numbers["start"], numbers.get("dur", 0.0), text))
    return cues


def read_json3(document: Any) -> list[Cue]:
    """Return the cues of YouTube's `json3` that have a text and a start.

    The document is `{"events": [{"tStartMs", "dDurationMs", "segs": [{"utf8"}]}]}`; only its first `MAX_CUES`
    events are read.
    """
    events = document.get("events") if isinstance(document, dict) else None
    cues = []
    for event in (events if isinstance(events, list) else [])[:MAX_CUES]:
        segments = event.get("segs") if isinstance(event, dict) else None
        start, duration = (_milliseconds_in(event, name) for name in ("tStartMs", "dDurationMs"))
        if not isinstance(segments, list) or start is None:
            continue
        raw_text = "".join(str(segment.get("utf8", "")) for segment in segments if isinstance(segment, dict))
        text = clean_cue(raw_text[:MAX_CUE_CHARACTERS])
        if text:
            cues.append(Cue(start / 1000, (duration or 0) / 1000, text))
    return cues


def _milliseconds_in(event: Any, name: str) -> int | None:
    """Return a time of an event in milliseconds, or `None` if it has none or an impossible one."""
    value = event.get(name) if isinstance(event, dict) else None
    return value if isinstance(value, int) and 0 <= value < MAX_MILLISECONDS else None


def clean_cue(text: str) -> str:
    """Return the text of a cue on one line, without markup, sounds, speaker marks and control characters."""
    text = _SOUND_MARK.sub(" ", _MARKUP_TAG.sub("", text))
    text = _SPEAKER_MARK.sub(" ", text.replace("\u200b", ""))
    return " ".join("".join(char for char in text if char.isprintable() or char.isspace()).split())


def to_text(cues: list[Cue]) -> str:
    """Return the cues as sentences, in paragraphs with an empty line between, cut to `MAX_CHARACTERS`."""
    cues = _without_repeats(cues)
    full_text = " ".join(cue.text for cue in cues)
    is_punctuated = len(_SENTENCE_END.findall(full_text)) * MAX_WORDS_PER_STOP >= len(full_text.split())
    sentences = _split_at_stops(cues) if is_punctuated else _split_at_pauses(cues)
    paragraphs: list[list[str]] = [[]]
    for sentence, ends_paragraph in sentences:
        paragraphs[-1].append(sentence)
        if ends_paragraph or len(paragraphs[-1]) == SENTENCES_PER_PARAGRAPH:
            paragraphs.append([])
    return "\n\n".join(" ".join(paragraph) for paragraph in paragraphs if paragraph)[:MAX_CHARACTERS].rstrip()


def _without_repeats(cues: list[Cue]) -> list[Cue]:
    """Return the cues without immediate repeats, because rolling captions show each line twice."""
    unique: list[Cue] = []
    for cue in cues:
        if unique and cue.text == unique[-1].text and cue.start - unique[-1].start < LONG_PAUSE_SECONDS:
            continue
        unique.append(cue)
    return unique


def _silence_after(cues: list[Cue], number: int) -> float:
    """Return the seconds of silence after a cue; the last one counts as followed by a long pause."""
    if number + 1 == len(cues):
        return LONG_PAUSE_SECONDS
    return cues[number + 1].start - (cues[number].start + cues[number].seconds)


def _split_at_stops(cues: list[Cue]) -> list[tuple[str, bool]]:
    """Return the sentences, split at full stops, each with a flag for the end of a paragraph."""
    sentences: list[tuple[str, bool]] = []
    open_words: list[str] = []
    for number, cue in enumerate(cues):
        start = 0
        for stop in _SENTENCE_END.finditer(cue.text):
            sentences.append((" ".join([*open_words, cue.text[start : stop.end()].strip()]), False))
            open_words, start = [], stop.end()
        rest = cue.text[start:].strip()
        if rest:
            open_words.append(rest)
        if sentences and not open_words and _silence_after(cues, number) >= LONG_PAUSE_SECONDS:
            sentences[-1] = (sentences[-1][0], True)
    if open_words:
        sentences.append((" ".join(open_words), True))
    return sentences


def _split_at_pauses(cues: list[Cue]) -> list[tuple[str, bool]]:
    """Return the sentences, split at pauses, each with a flag for the end of a paragraph."""
    sentences: list[tuple[str, bool]] = []
    words: list[str] = []
    for number, cue in enumerate(cues):
        words += cue.text.split()
        silence = _silence_after(cues, number)
        if silence >= PAUSE_SECONDS or len(words) >= MAX_UNPUNCTUATED_SENTENCE_WORDS:
            sentences.append((_as_sentence(words), silence >= LONG_PAUSE_SECONDS))
            words = []
    if words:
        sentences.append((_as_sentence(words), True))
    return sentences


def _as_sentence(words: list[str]) -> str:
    """Return the words as a sentence with a capital letter and an end mark."""
    text = " ".join(words)
    return text[:1].upper() + text[1:] + ("" if _SENTENCE_END.search(text[-3:]) else ".")
