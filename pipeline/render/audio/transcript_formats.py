"""The words of a source with their times: read from SubRip, WebVTT or JSON that a person or a tool handed over.

JSON is a list of `{"word" or "text", "start", "end"}` in seconds, or an object with it in `words`, or with `segments`
that have `words` each, as Whisper writes it.
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

CHARACTERS: Final = 2_000_000
"""Of a file: eight hours of talk with a time at each word."""
WORDS: Final = 100_000
LONGEST_WORD: Final = 3.0
"""Seconds; a tool that knows no end of a word gives the next one's start, however late."""

_TIME: Final = r"(?:(\d{1,3}):)?(\d{1,2}):(\d{2})[.,](\d{1,3})"
_CUE: Final = re.compile(rf"^[ \t]*{_TIME}[ \t]*-->[ \t]*{_TIME}(?:[ \t].*)?$")
_INLINE: Final = re.compile(rf"<{_TIME}>")
_TAG: Final = re.compile(r"<[^<>]{0,200}>|\{\\[^{}]{0,200}\}")
_SOUND: Final = re.compile(r"\[[^\[\]]{0,60}\]|[♪♫]")


@dataclass(frozen=True)
class TimedTranscript:
    """`is_word_timed` is False where only lines had times, and those of words are reckoned by their letters."""

    words: tuple[Word, ...]
    is_word_timed: bool

    def between(self, start: float, end: float) -> tuple[Word, ...]:
        """The words that are spoken wholly within a span, with times from its beginning."""
        return tuple(
            Word(word.t, word.start - start, word.end - start)
            for word in self.words
            if word.start >= start and word.end <= end
        )


@dataclass(frozen=True)
class _Line:
    """What stands under one time; `marks` are the times within, each with what follows it."""

    start: float
    end: float
    marks: tuple[tuple[float, str], ...]


def read_transcript(text: str) -> TimedTranscript:
    """The words in order. Raises `Refused` with a sentence for what holds none, or times that can't be."""
    if len(text) > CHARACTERS:
        message = f"The transcript has {len(text):,} characters; {CHARACTERS:,} are the most."
        raise Refused(message, code="transcript_too_long")
    given = text.lstrip("\ufeff \t\r\n")
    found = _from_json(given) if given[:1] in {"[", "{"} else _from_lines(given)
    if not found.words:
        raise Refused(
            "There are no words with times in the transcript; send SubRip, WebVTT or JSON.",
            code="no_transcript",
        )
    return found


# --- JSON ------------------------------------------------------------------------------------------------------------


def _from_json(text: str) -> TimedTranscript:
    try:
        given = json.loads(text)
    except (ValueError, RecursionError):
        raise Refused("The transcript can't be read as JSON.", code="no_transcript") from None
    words: list[Word] = []
    for one in _listed(given):
        said: Any = one.get("punctuated_word") or one.get("word") or one.get("text")
        start: Any = one.get("start")
        end: Any = one.get("end")
        if not isinstance(said, str) or not _is_moment(start) or not _is_moment(end) or not start <= end:
            message = f"Word {len(words) + 1} of the transcript isn't {{word, start, end}} in seconds."
            raise Refused(message, code="no_transcript")
        if said.strip():
            words.append(Word(" ".join(said.split()), float(start), float(end)))
    return TimedTranscript(_settled(words), is_word_timed=True)


def _listed(given: Any) -> Iterator[dict[str, Any]]:
    if isinstance(given, dict):
        segments = given.get("segments")
        if isinstance(given.get("words"), list):
            yield from _listed(given["words"])
        elif isinstance(segments, list):
            for segment in segments:
                if isinstance(segment, dict) and isinstance(segment.get("words"), list):
                    yield from _listed(segment["words"])
    elif isinstance(given, list):
        yield from (one if isinstance(one, dict) else {} for one in given)


def _is_moment(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < math.inf


# --- Lines -----------------------------------------------------------------------------------------------------------


def _from_lines(text: str) -> TimedTranscript:
    lines = _without_repeats(list(_cues(text)))
    is_word_timed = any(len(line.marks) > 1 for line in lines)
    return TimedTranscript(_settled(_words_of(lines)), is_word_timed=is_word_timed)


def _cues(text: str) -> Iterator[_Line]:
    times: tuple[float, float] | None = None
    said: list[str] = []
    for row in [*text.splitlines(), ""]:
        match = _CUE.match(row) if "-->" in row else None
        if match is None and row:
            # A blank alone is an empty row of a caption, not its end.
            said += [row] if row.strip() else []
            continue
        if match is not None and said and said[-1].strip().isdecimal():
            # The number of the cue that begins here.
            said.pop()
        if times is not None and said:
            yield _line(times, said)
        # What else stands above a time is its name.
        said = []
        times = None if match is None else (_seconds(match.groups()[:4]), _seconds(match.groups()[4:]))


def _line(times: tuple[float, float], said: Sequence[str]) -> _Line:
    # Rolling captions repeat the row before, without times, above the new one.
    timed = [row for row in said if _INLINE.search(row)]
    joined = " ".join(timed or said)
    marks = []
    start, place = times[0], 0
    for mark in _INLINE.finditer(joined):
        marks.append((start, _clean(joined[place : mark.start()])))
        start, place = _seconds(mark.groups()), mark.end()
    marks.append((start, _clean(joined[place:])))
    return _Line(*times, tuple((moment, text) for moment, text in marks if text))


def _clean(text: str) -> str:
    return " ".join(_SOUND.sub(" ", unescape(_TAG.sub("", text))).split())


def _seconds(groups: Sequence[str | None]) -> float:
    hours, minutes, seconds, fraction = groups
    return (
        int(hours or 0) * 3600
        + int(minutes or 0) * 60
        + int(seconds or 0)
        + int((fraction or "").ljust(3, "0")) / 1000
    )


def _without_repeats(lines: list[_Line]) -> list[_Line]:
    """Rolling captions show each line a second time, for a moment and as a whole."""
    kept: list[_Line] = []
    for line in lines:
        said = " ".join(text for _, text in line.marks)
        before = " ".join(text for _, text in kept[-1].marks) if kept else ""
        if said and not (said == before and len(line.marks) == 1):
            kept.append(line)
    return kept


def _words_of(lines: Sequence[_Line]) -> list[Word]:
    words: list[Word] = []
    for line in lines:
        ends = [*(moment for moment, _ in line.marks[1:]), line.end]
        for (start, text), end in zip(line.marks, ends, strict=True):
            words += _shared(text.split(), start, max(end, start))
    return words


def _shared(said: Sequence[str], start: float, end: float) -> Iterator[Word]:
    """Time by letters, and one more for each blank."""
    total = sum(len(word) + 1 for word in said)
    place = 0
    for word in said:
        begin = start + (end - start) * place / total
        place += len(word) + 1
        yield Word(word, round(begin, 3), round(start + (end - start) * place / total, 3))


def _settled(words: Sequence[Word]) -> tuple[Word, ...]:
    """In order, each ending before the next begins, and none longer than a word lasts."""
    if len(words) > WORDS:
        message = f"The transcript has {len(words):,} words; {WORDS:,} are the most."
        raise Refused(message, code="transcript_too_long")
    ordered = sorted(words, key=lambda word: word.start)
    starts = [*(word.start for word in ordered[1:]), math.inf]
    return tuple(
        Word(word.t, word.start, max(word.start, min(word.end, following, word.start + LONGEST_WORD)))
        for word, following in zip(ordered, starts, strict=False)
    )
