"""Reads the words of a transcript with their times, from SubRip, WebVTT or JSON that a person or a tool supplied.

JSON is a list of `{"word" or "text", "start", "end"}` in seconds, or an object with that list in `words`, or with
`segments` that have `words` each, as Whisper writes it.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from html import unescape
from typing import TYPE_CHECKING, Any, Final

from pipeline.plugins import Refused
from pipeline.render.video.storyboard import Word

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MAX_CHARACTERS: Final = 2_000_000
"""The limit of a file: eight hours of speech with a time at each word."""
MAX_WORDS: Final = 100_000
MAX_WORD_SECONDS: Final = 3.0
"""The longest word: a tool that doesn't know a word's end may give the next word's start, however late."""

_TIMESTAMP: Final = r"(?:(\d{1,3}):)?(\d{1,2}):(\d{2})[.,](\d{1,3})"
_CUE: Final = re.compile(rf"^[ \t]*{_TIMESTAMP}[ \t]*-->[ \t]*{_TIMESTAMP}(?:[ \t].*)?$")
_INLINE_TIMESTAMP: Final = re.compile(rf"<{_TIMESTAMP}>")
_TAG: Final = re.compile(r"<[^<>]{0,200}>|\{\\[^{}]{0,200}\}")
_SOUND_NOTE: Final = re.compile(r"\[[^\[\]]{0,60}\]|[♪♫]")


@dataclass(frozen=True)
class TimedTranscript:
    """Words with times. `is_word_timed` is False if only lines had times and those of words are estimated."""

    words: tuple[Word, ...]
    is_word_timed: bool

    def between(self, start: float, end: float) -> tuple[Word, ...]:
        """Return the words spoken wholly between two seconds, with times from `start` on."""
        return tuple(
            Word(word.t, word.start - start, word.end - start)
            for word in self.words
            if word.start >= start and word.end <= end
        )


@dataclass(frozen=True)
class _Cue:
    """The text under one time; `marks` are the times within it, each with the text that follows."""

    start: float
    end: float
    marks: tuple[tuple[float, str], ...]


def read_transcript(text: str) -> TimedTranscript:
    """Return the words in order. Raises `Refused` for a file without any or with invalid ones, or beyond a limit."""
    if len(text) > MAX_CHARACTERS:
        message = f"The transcript has {len(text):,} characters; the maximum is {MAX_CHARACTERS:,}."
        raise Refused(message, code="transcript_too_long")
    stripped = text.lstrip("\ufeff \t\r\n")
    transcript = _from_json(stripped) if stripped[:1] in {"[", "{"} else _from_cues(stripped)
    if not transcript.words:
        raise Refused(
            "There are no words with times in the transcript; send SubRip, WebVTT or JSON.",
            code="no_transcript",
        )
    return transcript


# --- JSON ------------------------------------------------------------------------------------------------------------


def _from_json(text: str) -> TimedTranscript:
    """Return the words of a transcript in JSON. Raises `Refused` for broken JSON and for an invalid word."""
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        raise Refused("The transcript can't be read as JSON.", code="no_transcript") from None
    words: list[Word] = []
    for word_object in _word_objects(data):
        word_text: Any = (
            word_object.get("punctuated_word") or word_object.get("word") or word_object.get("text")
        )
        start: Any = word_object.get("start")
        end: Any = word_object.get("end")
        if not isinstance(word_text, str) or not _is_time(start) or not _is_time(end) or not start <= end:
            message = f"Word {len(words) + 1} of the transcript isn't {{word, start, end}} in seconds."
            raise Refused(message, code="no_transcript")
        if word_text.strip():
            words.append(Word(" ".join(word_text.split()), float(start), float(end)))
    return TimedTranscript(_order_and_trim(words), is_word_timed=True)


def _word_objects(data: Any) -> Iterator[dict[str, Any]]:
    """Yield the objects of the words, or an empty object for another value, which is refused then."""
    if isinstance(data, dict):
        segments = data.get("segments")
        if isinstance(data.get("words"), list):
            yield from _word_objects(data["words"])
        elif isinstance(segments, list):
            for segment in segments:
                if isinstance(segment, dict) and isinstance(segment.get("words"), list):
                    yield from _word_objects(segment["words"])
    elif isinstance(data, list):
        yield from (item if isinstance(item, dict) else {} for item in data)


def _is_time(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < math.inf


# --- Lines -----------------------------------------------------------------------------------------------------------


def _from_cues(text: str) -> TimedTranscript:
    lines = _drop_repeats(list(_parse_cues(text)))
    is_word_timed = any(len(line.marks) > 1 for line in lines)
    return TimedTranscript(_order_and_trim(_words_of(lines)), is_word_timed=is_word_timed)


def _parse_cues(text: str) -> Iterator[_Cue]:
    """Yield the cues of SubRip or WebVTT that have words."""
    times: tuple[float, float] | None = None
    rows: list[str] = []
    for row in [*text.splitlines(), ""]:
        match = _CUE.match(row) if "-->" in row else None
        if match is None and row:
            # A row with a blank alone is an empty row of a caption, not its end.
            rows += [row] if row.strip() else []
            continue
        if match is not None and rows and rows[-1].strip().isdecimal():
            # That row is the number of the cue that begins here.
            rows.pop()
        if times is not None and rows:
            yield _to_cue(times, rows)
        # Anything else above a time is the cue's name.
        rows = []
        times = None if match is None else (_seconds(match.groups()[:4]), _seconds(match.groups()[4:]))


def _to_cue(times: tuple[float, float], rows: Sequence[str]) -> _Cue:
    # Rolling captions repeat the row before, without times, above the new one.
    timed = [row for row in rows if _INLINE_TIMESTAMP.search(row)]
    joined = " ".join(timed or rows)
    marks = []
    start, offset = times[0], 0
    for match in _INLINE_TIMESTAMP.finditer(joined):
        marks.append((start, _clean_text(joined[offset : match.start()])))
        start, offset = _seconds(match.groups()), match.end()
    marks.append((start, _clean_text(joined[offset:])))
    return _Cue(*times, tuple((time, text) for time, text in marks if text))


def _clean_text(text: str) -> str:
    return " ".join(_SOUND_NOTE.sub(" ", unescape(_TAG.sub("", text))).split())


def _seconds(groups: Sequence[str | None]) -> float:
    hours, minutes, seconds, fraction = groups
    return (
        int(hours or 0) * 3600
        + int(minutes or 0) * 60
        + int(seconds or 0)
        + int((fraction or "").ljust(3, "0")) / 1000
    )


def _drop_repeats(lines: list[_Cue]) -> list[_Cue]:
    """Drop the second showing of each line in rolling captions, which repeat it for a moment and as a whole."""
    unique: list[_Cue] = []
    for line in lines:
        line_text = " ".join(text for _, text in line.marks)
        text_before = " ".join(text for _, text in unique[-1].marks) if unique else ""
        if line_text and not (line_text == text_before and len(line.marks) == 1):
            unique.append(line)
    return unique


def _words_of(lines: Sequence[_Cue]) -> list[Word]:
    words: list[Word] = []
    for line in lines:
        ends = [*(time for time, _ in line.marks[1:]), line.end]
        for (start, text), end in zip(line.marks, ends, strict=True):
            words += _share_time(text.split(), start, max(end, start))
    return words


def _share_time(words: Sequence[str], start: float, end: float) -> Iterator[Word]:
    """Share the time among the words by their letters, counting one more for each blank."""
    total = sum(len(word) + 1 for word in words)
    letters = 0
    for word in words:
        begin = start + (end - start) * letters / total
        letters += len(word) + 1
        yield Word(word, round(begin, 3), round(start + (end - start) * letters / total, 3))


def _order_and_trim(words: Sequence[Word]) -> tuple[Word, ...]:
    """Return the words in order, each ending before the next begins, and none longer than `MAX_WORD_SECONDS`."""
    if len(words) > MAX_WORDS:
        message = f"The transcript has {len(words):,} words; the maximum is {MAX_WORDS:,}."
        raise Refused(message, code="transcript_too_long")
    ordered = sorted(words, key=lambda word: word.start)
    starts = [*(word.start for word in ordered[1:]), math.inf]
    return tuple(
        Word(word.t, word.start, max(word.start, min(word.end, following, word.start + MAX_WORD_SECONDS)))
        for word, following in zip(ordered, starts, strict=False)
    )
