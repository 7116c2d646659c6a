"""Caption cards from the times of words, and the same cards as SubRip and WebVTT files."""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from pipeline.plugins import Refused
from pipeline.render.typography.bidi import first_strong_is_rtl, is_rtl_language
from pipeline.render.typography.layout_types import Style
from pipeline.render.typography.line_breaks import holds_unit, number_goes_on
from pipeline.render.typography.punctuation import typeset
from pipeline.render.typography.text_layout import TextDoesNotFit, layout
from pipeline.render.typography.word_segmentation import joined
from pipeline.render.video.storyboard import Caption, CaptionStyle, Word
from pipeline.text.prose.sentences import sentence_ends

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pipeline.render.typography.layout_types import Block

WIDEST: Final = 740.0
"""Pixels of a card on a film that is 1080 wide."""
WORDS_MOST: Final = 4
WORDS_OF_TWO_LINES: Final = 3
"""Words of a line where a card has two."""
LONGEST_GAP: Final = 0.6
"""Seconds of silence after which a new card begins."""
SHORTEST: Final = 1 / 6
"""Seconds between two changes: more than six a second can't be read."""
HELD: Final = 0.4
"""Seconds for which the last card stays after its last word."""
LATE: Final = 0.3
"""Seconds by which a card may be off its word, where the card before it would else be gone too soon."""

_PARTED_NUMBER: Final = 1.5
"""The price of a new card within a number, or between one and its unit: dearer than one more card."""

_STYLE: Final = Style(weight=800, optical=32, line_height=1.12, align="center")
_LINE_ENDS: Final = tuple(",;:،؛،、—–")
_EMBED_RTL, _EMBED_END = "\u202b", "\u202c"
_INVISIBLE: Final = str.maketrans(
    dict.fromkeys("\r\n\t\x0b\x0c\x85\u2028\u2029", " ") | {"\x00": None, "\ufeff": None}
)


def cards(
    words: Sequence[Word],
    *,
    look: CaptionStyle | None = None,
    language: str = "",
    until: float,
    title: str = "",
) -> tuple[Caption, ...]:
    """Cards of one to four words, by the width that they have in the look; each begins with its first word.

    A sentence's end, a silence and the end of the title, where the words begin with it, close a card. A card has one line, or two where its words are long or follow too
    fast. `until` is the film's length. Raises `Refused` for words that come too fast, leave the film, or can't be
    drawn.
    """
    chosen = look or CaptionStyle()
    said = _in_order(words, until)
    if not said:
        return ()
    measure = _Measure(chosen, language)
    grouped = [group for phrase in _phrases(said, title) for group in _groups(phrase, measure)]
    grouped = _slow_enough(grouped, measure)
    for group in grouped:
        # A word that is wider than a card is set smaller; where even that is too wide, it is told here.
        measure.block(group, smallest=chosen.smallest)
    return tuple(_timed(grouped, until))


def _in_order(words: Sequence[Word], until: float) -> list[Word]:
    """Words that overlap give way to the next; sources' own times do."""
    found = [Word(clean, word.start, word.end) for word in words if (clean := _clean(word.t))]
    for this, after in pairwise(found):
        if after.start < this.start:
            message = f"The words don't follow one another: {after.t!r} comes before {this.t!r}."
            raise Refused(message, code="words_out_of_order")
    if found and found[-1].start >= until:
        message = (
            f"The word {found[-1].t!r} is spoken at {found[-1].start:.2f} s; the film ends at {until:.2f} s."
        )
        raise Refused(message, code="words_beyond_the_film")
    ends = [*(word.start for word in found[1:]), until][: len(found)]
    return [
        Word(word.t, word.start, max(word.start, min(word.end, end)))
        for word, end in zip(found, ends, strict=True)
    ]


def _clean(text: str) -> str:
    return " ".join(text.translate(_INVISIBLE).split())


def _ends(said: str, title: str) -> tuple[int, ...]:
    """Where sentences end; a title that is said first is one, which has no full stop."""
    length = len(_clean(title))
    following = said[length:].lstrip()[:1]
    if not length or not said.startswith(_clean(title)) or not following.isalnum() or following.islower():
        return sentence_ends(said)
    return (length, *(length + end for end in sentence_ends(said[length:])))


def _phrases(words: Sequence[Word], title: str) -> Iterator[list[Word]]:
    """Up to the end of a sentence, or a silence."""
    ends = set(_ends(joined(word.t for word in words), title))
    phrase: list[Word] = []
    said = ""
    for number, word in enumerate(words):
        phrase.append(word)
        said = joined((said, word.t))
        is_last = number + 1 == len(words)
        if is_last or len(said) in ends or words[number + 1].start - word.end > LONGEST_GAP:
            yield phrase
            phrase = []


class _Measure:
    """How a group of words would be set in the look."""

    def __init__(self, look: CaptionStyle, language: str) -> None:
        self.width = min(look.width, WIDEST)
        self._look = look
        self._language = language
        self._style = Style(
            weight=look.weight, optical=_STYLE.optical, line_height=_STYLE.line_height, align=_STYLE.align
        )

    def block(self, words: Sequence[Word], *, smallest: int) -> Block:
        """On two lines at most. Raises `TextDoesNotFit`, `MissingGlyphs`."""
        said = joined(typeset(word.t, self._language) for word in words)
        height = self._look.size * self._style.line_height * 2 + 1
        return layout(
            said,
            (self.width, height),
            self._style,
            largest=self._look.size,
            smallest=smallest,
            language=self._language,
        )

    def line(self, words: Sequence[Word]) -> float | None:
        """The share of the width that it takes on one line at full size; None where it doesn't fit there."""
        return _share_of_line(tuple(word.t for word in words), self._look, self._language)

    def is_possible(self, words: Sequence[Word]) -> bool:
        """Whether it may be a card at all."""
        if len(words) > WORDS_MOST:
            return False
        try:
            lines = self.block(words, smallest=self._look.smallest).lines
        except TextDoesNotFit:
            return False
        return len(lines) == 1 or all(len(line.text.split()) <= WORDS_OF_TWO_LINES for line in lines)


@lru_cache(maxsize=4096)
def _share_of_line(texts: tuple[str, ...], look: CaptionStyle, language: str) -> float | None:
    """`_Measure.line`. A film is laid out to be checked and again to be made: its words are measured once."""
    measure = _Measure(look, language)
    try:
        block = measure.block([Word(text, 0.0, 0.0) for text in texts], smallest=look.size)
    except TextDoesNotFit:
        return None
    return max(line.width for line in block.lines) / measure.width if len(block.lines) == 1 else None


def _groups(phrase: Sequence[Word], measure: _Measure) -> list[list[Word]]:
    """The fewest cards of one line, as even as can be; a comma is a good place to part."""
    best: list[tuple[float, int]] = [(0.0, 0)]
    for end in range(1, len(phrase) + 1):
        found: list[tuple[float, int]] = []
        for start in range(end - 1, max(end - 1 - WORDS_MOST, -1), -1):
            share = measure.line(phrase[start:end])
            if share is None:
                if start == end - 1:
                    # Alone it may be set smaller, or on two lines.
                    found.append((best[start][0] + 1.0, start))
                break
            parts_well = end == len(phrase) or phrase[end - 1].t.endswith(_LINE_ENDS)
            beside = (phrase[start - 1].t, phrase[start].t) if start else ("", "")
            parts_number = number_goes_on(*beside) or holds_unit(*beside)
            price = 1.0 + (1.0 - share) ** 2 - 0.3 * parts_well + _PARTED_NUMBER * parts_number
            found.append((best[start][0] + price, start))
        best.append(min(found))
    groups: list[list[Word]] = []
    end = len(phrase)
    while end:
        start = best[end][1]
        groups.append(list(phrase[start:end]))
        end = start
    return groups[::-1]


def _slow_enough(groups: list[list[Word]], measure: _Measure) -> list[list[Word]]:
    """Cards that would be gone too soon are joined with a neighbour, across the end of a sentence if need be."""
    joined = [list(group) for group in groups]
    place = 0
    while place + 1 < len(joined):
        if joined[place + 1][0].start - joined[place][0].start >= SHORTEST:
            place += 1
            continue
        for first in (place, place - 1):
            if first >= 0 and measure.is_possible([*joined[first], *joined[first + 1]]):
                joined[first : first + 2] = [[*joined[first], *joined[first + 1]]]
                place = max(first - 1, 0)
                break
        else:
            # Nothing can be joined: the next card comes a little later.
            place += 1
    return joined


def _timed(groups: Sequence[Sequence[Word]], until: float) -> Iterator[Caption]:
    starts: list[float] = []
    for group in groups:
        start = max(group[0].start, starts[-1] + SHORTEST) if starts else group[0].start
        if start - group[0].start > LATE:
            message = (
                f"Around {group[0].start:.1f} s the words come faster than captions can be read: "
                f"more than {WORDS_MOST} in {SHORTEST:.2f} s."
            )
            raise Refused(message, code="words_too_fast")
        starts.append(start)
    for number, (group, start) in enumerate(zip(groups, starts, strict=True)):
        spoken = group[-1].end
        if number + 1 < len(groups):
            following = starts[number + 1]
            # Short silences are bridged, so that cards don't flicker.
            end = following if following - spoken <= LONGEST_GAP else min(following, spoken + HELD)
        else:
            end = min(max(spoken + HELD, start + SHORTEST), until)
        words = tuple(
            Word(word.t, min(max(word.start, start), end), min(max(word.end, start), end)) for word in group
        )
        yield Caption(words, start, end)


# --- Files -----------------------------------------------------------------------------------------------------------


def to_srt(captions: Sequence[Caption], *, language: str = "") -> str:
    """As SubRip: times to the millisecond, empty for no captions."""
    blocks = []
    for number, card in enumerate(captions, start=1):
        start, end = _clock(card.start, ","), _clock(card.end, ",")
        # The format knows no escapes, and some programs look for this sign anywhere.
        said = _said(card, language).replace("-->", "→")
        blocks.append(f"{number}\n{start} --> {end}\n{said}\n")
    return "\n".join(blocks)


def to_vtt(captions: Sequence[Caption], *, language: str = "") -> str:
    """As WebVTT with the same times; signs that would be markup are written as such."""
    blocks = ["WEBVTT\n"]
    for card in captions:
        said = _said(card, language).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        blocks.append(f"{_clock(card.start, '.')} --> {_clock(card.end, '.')}\n{said}\n")
    return "\n".join(blocks)


def to_text(captions: Sequence[Caption], *, title: str = "") -> str:
    """All words, a sentence a line, and one for the title where it is said first."""
    said = joined(word.t for card in captions for word in card.words)
    if not said:
        return ""
    # Others than a film's own title only begin like it.
    is_closed = any(
        joined(word.t for card in captions[:count] for word in card.words) == _clean(title)
        for count in range(1, len(captions))
    )
    ends = [0, *_ends(said, title if is_closed else ""), len(said)]
    lines = (said[start:end].strip() for start, end in pairwise(ends))
    return "".join(f"{line}\n" for line in lines if line)


def _said(card: Caption, language: str) -> str:
    """The words in the order of reading; what runs from right to left says so, because players don't look."""
    text = joined(_clean(word.t) for word in card.words)
    is_rtl = is_rtl_language(language) or bool(first_strong_is_rtl(text))
    return f"{_EMBED_RTL}{text}{_EMBED_END}" if is_rtl else text


def _clock(seconds: float, mark: str) -> str:
    whole = round(seconds * 1000)
    minutes, rest = divmod(whole, 60_000)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:02d}:{minutes:02d}:{rest // 1000:02d}{mark}{rest % 1000:03d}"
