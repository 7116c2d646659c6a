"""The film of one span of a video: its own shots and sound, a title at first, captions, and whose it is."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pipeline.render import colour
from pipeline.render.captions import caption_cards
from pipeline.render.picture_plan import DrawnText, Panel
from pipeline.render.typography.layout_types import Style
from pipeline.render.typography.punctuation import typeset
from pipeline.render.typography.text_layout import TextDoesNotFit, layout
from pipeline.render.video.storyboard import (
    FPS,
    SAFE_AREA,
    TITLE_BAND,
    Audio,
    CaptionStyle,
    Crop,
    Meta,
    Motion,
    Overlay,
    Scene,
    Storyboard,
    Take,
    Visual,
    Word,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pipeline.render.typography.layout_types import Block
    from pipeline.render.video.material import Shot, VideoSpan

NAME: Final = "clipped"
TITLE_SECONDS: Final = 3.0
CAPTION_Y: Final = 1210.0
_LEFT, _TOP, _RIGHT, _BOTTOM = SAFE_AREA
_ROOM: Final = _RIGHT - _LEFT
_INSET: Final = 36
_TITLE: Final = Style(weight=800, optical=32, line_height=1.1, align="center")
_TITLE_SIZES: Final = (88, 46)
_CREDIT: Final = Style(weight=650, optical=26, line_height=1.25)
_CREDIT_SIZES: Final = (34, 24)
_CHIP: Final = 56
"""Pixels of the chip's height; it ends where the safe area does."""
_INK: Final = "#0b0d12"
_EPSILON: Final = 1e-6


@dataclass(frozen=True)
class ClipColours:
    """The persona's colours, None where it has none."""

    primary: str | None = None
    accent: str | None = None


def frames_of(span: VideoSpan) -> int:
    return max(1, round((span.end - span.start) * FPS))


def words_within(words: Sequence[Word], span: VideoSpan) -> tuple[Word, ...]:
    """The words that are spoken wholly within, with times from the span's beginning."""
    return tuple(
        Word(word.t, max(word.start - span.start, 0.0), word.end - span.start)
        for word in words
        if word.start >= span.start - _EPSILON and word.end <= span.end + _EPSILON
    )


def plan(
    span: VideoSpan,
    shots: Sequence[Shot],
    words: Sequence[Word],
    *,
    title: str,
    credit: str,
    look: ClipColours,
    language: str,
    alt_text: str = "",
) -> Storyboard:
    """`words` have times from the span's beginning. Raises `MissingGlyphs`, `TextDoesNotFit`, or `Refused` of captions."""
    frames = frames_of(span)
    end = frames / FPS
    return Storyboard(
        scenes=tuple(scenes(span, shots, frames)),
        overlays=(*hook(title, min(TITLE_SECONDS, end), look, language), *chip(credit, (0.0, end), language)),
        captions=caption_cards(words, style=caption_style(look), language=language, film_seconds=end),
        caption_look=caption_style(look),
        audio=Audio(takes=(Take(span.name, span.start, 0.0, end),)),
        meta=Meta(
            title=title,
            alt_text=alt_text,
            language=language,
            template=NAME,
            thumbnail_at=round(min(1.0, end / 2), 4),
        ),
    )


def scenes(span: VideoSpan, shots: Sequence[Shot], frames: int) -> Iterator[Scene]:
    """One for each shot, from the first frame on that shows it; a shot that no frame shows has none."""
    starts = [_first_frame(span, shot.start, frames) for shot in shots] or [0]
    crops = [shot.crop for shot in shots] or [Crop()]
    starts[0] = 0
    for start, stop, crop in zip(starts, [*starts[1:], frames], crops, strict=True):
        if stop > start:
            visual = Visual(
                "clip",
                asset=span.name,
                crop=crop or Crop(),
                fit="pad" if crop is None else "cover",
                since=round(span.start + start / FPS, 6),
            )
            yield Scene(start / FPS, stop / FPS, visual)


def _first_frame(span: VideoSpan, second: float, frames: int) -> int:
    return min(max(math.ceil((second - span.start) * FPS - 0.01), 0), frames)


def caption_style(look: ClipColours) -> CaptionStyle:
    accent = colour.parse(look.accent) or "#ffd23f"
    usual = CaptionStyle(y=CAPTION_Y)
    return CaptionStyle(y=CAPTION_Y, accent=colour.readable(accent, usual.outline, 4.5))


def hook(title: str, end: float, look: ClipColours, language: str) -> Iterator[Overlay]:
    """The title on a panel of its own, so that it is read over whatever is filmed."""
    if not title.strip():
        return
    block = set_title(title, language)
    ground = colour.readable(
        colour.mix(colour.parse(look.primary) or "#16202e", _INK, 0.25), colour.WHITE, 7.0
    )
    height = round(block.height) + 2 * _INSET
    # In the middle of the room that a title has.
    top = round(TITLE_BAND[0] + (TITLE_BAND[1] - TITLE_BAND[0] - height) / 2)
    yield Overlay(
        0.0,
        end,
        (
            Panel(_LEFT, top, _ROOM, height, 28, ground),
            DrawnText(float(_LEFT + _INSET), float(top + _INSET), block, colour.WHITE, colour.WHITE),
        ),
        leave=Motion("fade", 0.25),
        name="title",
    )


def set_title(title: str, language: str) -> Block:
    """Raises `TextDoesNotFit` with what to do."""
    room = (_ROOM - 2 * _INSET, TITLE_BAND[1] - TITLE_BAND[0] - 2 * _INSET)
    try:
        return layout(
            typeset(title, language),
            room,
            _TITLE,
            largest=_TITLE_SIZES[0],
            smallest=_TITLE_SIZES[1],
            language=language,
        )
    except TextDoesNotFit as refused:
        message = f"The title doesn't fit on the film: “{title[:60]}”. Shorten it."
        raise TextDoesNotFit(room[0], room[1], _TITLE_SIZES[1], why=message) from refused


def chip(credit: str, seen: tuple[float, float], language: str) -> Iterator[Overlay]:
    """Whose video it is, as long as it is seen."""
    if not credit.strip():
        return
    block = _credit(credit, language)
    width = round(max(line.width for line in block.lines)) + 2 * 20
    y = _BOTTOM - _CHIP
    words = DrawnText(
        float(_LEFT + 20), round(y + (_CHIP - block.height) / 2, 2), block, colour.WHITE, colour.WHITE
    )
    yield Overlay(*seen, (Panel(_LEFT, y, min(width, _ROOM), _CHIP, 14, _INK), words), name="credit")


def _credit(credit: str, language: str) -> Block:
    """On one line; a name that is too long for that is cut, and says so."""
    said = credit
    while True:
        try:
            return layout(
                typeset(said, language),
                (_ROOM - 40, _CHIP),
                _CREDIT,
                largest=_CREDIT_SIZES[0],
                smallest=_CREDIT_SIZES[1],
                language=language,
            )
        except TextDoesNotFit:
            if len(said) <= 8:
                raise
            said = f"{said[: len(said) * 3 // 4].rstrip()}…"
