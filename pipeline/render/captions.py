"""Makes caption cards from the times of words, and writes the cards as SubRip and WebVTT files."""

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
from pipeline.render.typography.word_segmentation import join_words
from pipeline.render.video.storyboard import Caption, CaptionStyle, Word
from pipeline.text.prose.sentences import sentence_ends

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pipeline.render.typography.layout_types import Block

MAX_CARD_WIDTH: Final = 740.0
"""The width of a card in pixels, on a film that is 1080 wide."""
MAX_CARD_WORDS: Final = 4
MAX_LINE_WORDS: Final = 3
"""The words of one of a card's two lines."""
MAX_GAP_SECONDS: Final = 0.6
"""The longest silence within a card."""
MIN_CARD_SECONDS: Final = 1 / 6
"""The shortest time between two changes of cards: more than six changes a second can't be read."""
LAST_CARD_HOLD_SECONDS: Final = 0.4
"""The time for which a card before a silence, or the last one, stays after its last word."""
MAX_DELAY_SECONDS: Final = 0.3
"""The time by which a card may come after its word, if the card before it would be gone too soon otherwise."""

_SPLIT_NUMBER_COST: Final = 1.5
"""The cost of a new card within a number, or between a number and its unit: more than that of one more card."""

_STYLE: Final = Style(weight=800, optical=32, line_height=1.12, align="center")
_BREAK_PUNCTUATION: Final = tuple(",;:،؛،、—–")
_EMBED_RTL, _EMBED_END = "\u202b", "\u202c"
_INVISIBLE: Final = str.maketrans(
    dict.fromkeys("\r\n\t\x0b\x0c\x85\u2028\u2029", " ") | {"\x00": None, "\ufeff": None}
)


def caption_cards(
    words: Sequence[Word],
    *,
    style: CaptionStyle | None = None,
    language: str = "",
    film_seconds: float,
    title: str = "",
) -> tuple[Caption, ...]:
    """Return caption cards of one to four words, by their width in the style.

    A card ends at a sentence's end, at a silence, and at the end of the title if the words begin with it. It has one
    line, or two if its words are long or follow too fast. `title` is the film's title as it is spoken. `film_seconds`
    is the film's length, and a card's times are seconds from the film's start. Raises `Refused` if the words are out of
    order, come too fast, begin beyond the film, or can't be drawn.
    """
    card_style = style or CaptionStyle()
    spoken_words = _check_order(words, film_seconds)
    if not spoken_words:
        return ()
    measure = _CardMeasure(card_style, language)
    grouped = [
        group for phrase in _split_phrases(spoken_words, title) for group in _group_words(phrase, measure)
    ]
    grouped = _merge_short_cards(grouped, measure)
    for group in grouped:
        # A word wider than a card is set smaller; one that is still too wide is refused here.
        measure.block(group, smallest=card_style.smallest)
    return tuple(_timed_cards(grouped, film_seconds))


def _check_order(words: Sequence[Word], film_seconds: float) -> list[Word]:
    """Return the words, each cut off at the start of the next, since sources' times overlap, or at the film's end.

    Raises `Refused` if a word begins before the one before it, or after the film.
    """
    cleaned = [Word(clean, word.start, word.end) for word in words if (clean := _clean_text(word.t))]
    for current, following in pairwise(cleaned):
        if following.start < current.start:
            message = f"The words don't follow one another: {following.t!r} comes before {current.t!r}."
            raise Refused(message, code="words_out_of_order")
    if cleaned and cleaned[-1].start >= film_seconds:
        message = f"The word {cleaned[-1].t!r} is spoken at {cleaned[-1].start:.2f} s; the film ends at {film_seconds:.2f} s."
        raise Refused(message, code="words_beyond_the_film")
    ends = [*(word.start for word in cleaned[1:]), film_seconds][: len(cleaned)]
    return [
        Word(word.t, word.start, max(word.start, min(word.end, end)))
        for word, end in zip(cleaned, ends, strict=True)
    ]


def _clean_text(text: str) -> str:
    return " ".join(text.translate(_INVISIBLE).split())


def _sentence_ends(text: str, title: str) -> tuple[int, ...]:
    """Return the offsets at which sentences end; a title spoken first counts as one, though it has no full stop."""
    length = len(_clean_text(title))
    following = text[length:].lstrip()[:1]
    if (
        not length
        or not text.startswith(_clean_text(title))
        or not following.isalnum()
        or following.islower()
    ):
        return sentence_ends(text)
    return (length, *(length + end for end in sentence_ends(text[length:])))


def _split_phrases(words: Sequence[Word], title: str) -> Iterator[list[Word]]:
    """Yield runs of words that end at a sentence's end or a silence."""
    ends = set(_sentence_ends(join_words(word.t for word in words), title))
    phrase: list[Word] = []
    text = ""
    for number, word in enumerate(words):
        phrase.append(word)
        text = join_words((text, word.t))
        is_last = number + 1 == len(words)
        if is_last or len(text) in ends or words[number + 1].start - word.end > MAX_GAP_SECONDS:
            yield phrase
            phrase = []


class _CardMeasure:
    """Measures how a group of words would be set in the caption style."""

    def __init__(self, caption_style: CaptionStyle, language: str) -> None:
        self.width = min(caption_style.width, MAX_CARD_WIDTH)
        self._caption_style = caption_style
        self._language = language
        self._style = Style(
            weight=caption_style.weight,
            optical=_STYLE.optical,
            line_height=_STYLE.line_height,
            align=_STYLE.align,
        )

    def block(self, words: Sequence[Word], *, smallest: int) -> Block:
        """Lay the words out on at most two lines.

        Raises `TextDoesNotFit` if they don't fit, and `MissingGlyphs` if the fonts lack a character.
        """
        text = join_words(typeset(word.t, self._language) for word in words)
        height = self._caption_style.size * self._style.line_height * 2 + 1
        return layout(
            text,
            (self.width, height),
            self._style,
            largest=self._caption_style.size,
            smallest=smallest,
            language=self._language,
        )

    def share_of_line(self, words: Sequence[Word]) -> float | None:
        """Return the share of the width that the words take on one line at full size, or `None` if they take two."""
        return _share_of_line(tuple(word.t for word in words), self._caption_style, self._language)

    def is_possible(self, words: Sequence[Word]) -> bool:
        """Return whether the words may be one card at all."""
        if len(words) > MAX_CARD_WORDS:
            return False
        try:
            lines = self.block(words, smallest=self._caption_style.smallest).lines
        except TextDoesNotFit:
            return False
        return len(lines) == 1 or all(len(line.text.split()) <= MAX_LINE_WORDS for line in lines)


@lru_cache(maxsize=4096)
def _share_of_line(texts: tuple[str, ...], style: CaptionStyle, language: str) -> float | None:
    """Compute `_CardMeasure.share_of_line`, cached because a film is laid out twice, for checks and for rendering."""
    measure = _CardMeasure(style, language)
    try:
        block = measure.block([Word(text, 0.0, 0.0) for text in texts], smallest=style.size)
    except TextDoesNotFit:
        return None
    return max(line.width for line in block.lines) / measure.width if len(block.lines) == 1 else None


def _group_words(phrase: Sequence[Word], measure: _CardMeasure) -> list[list[Word]]:
    """Split a phrase into the fewest, most even one-line groups, preferring breaks after punctuation."""
    best: list[tuple[float, int]] = [(0.0, 0)]
    for end in range(1, len(phrase) + 1):
        candidates: list[tuple[float, int]] = []
        for start in range(end - 1, max(end - 1 - MAX_CARD_WORDS, -1), -1):
            share = measure.share_of_line(phrase[start:end])
            if share is None:
                if start == end - 1:
                    # Alone it may be set smaller, or on two lines.
                    candidates.append((best[start][0] + 1.0, start))
                break
            ends_at_punctuation = end == len(phrase) or phrase[end - 1].t.endswith(_BREAK_PUNCTUATION)
            neighbours = (phrase[start - 1].t, phrase[start].t) if start else ("", "")
            splits_number = number_goes_on(*neighbours) or holds_unit(*neighbours)
            cost = 1.0 + (1.0 - share) ** 2 - 0.3 * ends_at_punctuation + _SPLIT_NUMBER_COST * splits_number
            candidates.append((best[start][0] + cost, start))
        best.append(min(candidates))
    groups: list[list[Word]] = []
    end = len(phrase)
    while end:
        start = best[end][1]
        groups.append(list(phrase[start:end]))
        end = start
    return groups[::-1]


def _merge_short_cards(groups: list[list[Word]], measure: _CardMeasure) -> list[list[Word]]:
    """Merge cards that would be gone too soon with a neighbour, across a sentence's end if need be."""
    merged = [list(group) for group in groups]
    index = 0
    while index + 1 < len(merged):
        if merged[index + 1][0].start - merged[index][0].start >= MIN_CARD_SECONDS:
            index += 1
            continue
        for first in (index, index - 1):
            if first >= 0 and measure.is_possible([*merged[first], *merged[first + 1]]):
                merged[first : first + 2] = [[*merged[first], *merged[first + 1]]]
                index = max(first - 1, 0)
                break
        else:
            # Nothing can be merged: `_timed_cards` shows the next card a little later.
            index += 1
    return merged


def _timed_cards(groups: Sequence[Sequence[Word]], film_seconds: float) -> Iterator[Caption]:
    """Yield the groups as cards with their times in seconds. Raises `Refused` if words come too fast."""
    starts: list[float] = []
    for group in groups:
        start = max(group[0].start, starts[-1] + MIN_CARD_SECONDS) if starts else group[0].start
        if start - group[0].start > MAX_DELAY_SECONDS:
            message = (
                f"Around {group[0].start:.1f} s the words come faster than captions can be read: "
                f"more than {MAX_CARD_WORDS} in {MIN_CARD_SECONDS:.2f} s."
            )
            raise Refused(message, code="words_too_fast")
        starts.append(start)
    for number, (group, start) in enumerate(zip(groups, starts, strict=True)):
        last_word_end = group[-1].end
        if number + 1 < len(groups):
            following = starts[number + 1]
            # Short silences are bridged, so that cards don't flicker.
            end = (
                following
                if following - last_word_end <= MAX_GAP_SECONDS
                else min(following, last_word_end + LAST_CARD_HOLD_SECONDS)
            )
        else:
            end = min(max(last_word_end + LAST_CARD_HOLD_SECONDS, start + MIN_CARD_SECONDS), film_seconds)
        words = tuple(
            Word(word.t, min(max(word.start, start), end), min(max(word.end, start), end)) for word in group
        )
        yield Caption(words, start, end)


# --- Files -----------------------------------------------------------------------------------------------------------


def to_srt(captions: Sequence[Caption], *, language: str = "") -> str:
    """Return the captions as SubRip, with times to the millisecond, or "" if there are no captions."""
    blocks = []
    for number, card in enumerate(captions, start=1):
        start, end = _timestamp(card.start, ","), _timestamp(card.end, ",")
        # The format knows no escapes, and some programs look for this arrow anywhere.
        text = _display_text(card, language).replace("-->", "→")
        blocks.append(f"{number}\n{start} --> {end}\n{text}\n")
    return "\n".join(blocks)


def to_vtt(captions: Sequence[Caption], *, language: str = "") -> str:
    """Return the captions as WebVTT with the same times; characters that would be markup are escaped."""
    blocks = ["WEBVTT\n"]
    for card in captions:
        text = _display_text(card, language).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        blocks.append(f"{_timestamp(card.start, '.')} --> {_timestamp(card.end, '.')}\n{text}\n")
    return "\n".join(blocks)


def to_text(captions: Sequence[Caption], *, title: str = "") -> str:
    """Return all words with one sentence on each line, and the title on its own line if it is spoken first."""
    text = join_words(word.t for card in captions for word in card.words)
    if not text:
        return ""
    # The title was spoken as one if a card ends with it; else a sentence merely begins with the title's words.
    is_closed = any(
        join_words(word.t for card in captions[:count] for word in card.words) == _clean_text(title)
        for count in range(1, len(captions))
    )
    ends = [0, *_sentence_ends(text, title if is_closed else ""), len(text)]
    lines = (text[start:end].strip() for start, end in pairwise(ends))
    return "".join(f"{line}\n" for line in lines if line)


def _display_text(card: Caption, language: str) -> str:
    """Return the card's words in reading order, with marks around right-to-left text, which players don't detect."""
    text = join_words(_clean_text(word.t) for word in card.words)
    is_rtl = is_rtl_language(language) or bool(first_strong_is_rtl(text))
    return f"{_EMBED_RTL}{text}{_EMBED_END}" if is_rtl else text


def _timestamp(seconds: float, separator: str) -> str:
    milliseconds = round(seconds * 1000)
    minutes, rest = divmod(milliseconds, 60_000)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:02d}:{minutes:02d}:{rest // 1000:02d}{separator}{rest % 1000:03d}"
