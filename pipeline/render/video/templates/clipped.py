"""Plans films of the template `clipped`: a span of a video with its shots and sound, a title, captions, a credit."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pipeline.render import colour
from pipeline.render.captions import caption_cards
from pipeline.render.picture_types import DrawnText, Panel
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
_WIDTH: Final = _RIGHT - _LEFT
_PADDING: Final = 36
_TITLE: Final = Style(weight=800, optical=32, line_height=1.1, align="center")
_TITLE_SIZES: Final = (88, 46)
_CREDIT: Final = Style(weight=650, optical=26, line_height=1.25)
_CREDIT_SIZES: Final = (34, 24)
_CHIP_HEIGHT: Final = 56
_CHIP_PADDING: Final = 20
"""The height of the credit's chip and the space at its sides, in pixels; the chip ends with the safe area."""
_INK: Final = "#0b0d12"
_TIME_TOLERANCE: Final = 1e-6


@dataclass(frozen=True)
class ClipColours:
    """The persona's colours, or `None` for each that it doesn't have."""

    primary: str | None = None
    accent: str | None = None


def frame_count(span: VideoSpan) -> int:
    """Return the number of frames that the span takes, at least one."""
    return max(1, round((span.end - span.start) * FPS))


def words_within(words: Sequence[Word], span: VideoSpan) -> tuple[Word, ...]:
    """Return the words spoken wholly within the span, with times from its beginning."""
    return tuple(
        Word(word.t, max(word.start - span.start, 0.0), word.end - span.start)
        for word in words
        if word.start >= span.start - _TIME_TOLERANCE and word.end <= span.end + _TIME_TOLERANCE
    )


def plan(
    span: VideoSpan,
    shots: Sequence[Shot],
    words: Sequence[Word],
    *,
    title: str,
    credit: str,
    colours: ClipColours,
    language: str,
    alt_text: str = "",
) -> Storyboard:
    """Plan the film; `words` have times from the span's beginning.

    Raises `MissingGlyphs` if the fonts lack a character, `TextDoesNotFit` if a text is too long, and `Refused` as
    `caption_cards` does.
    """
    frames = frame_count(span)
    end = frames / FPS
    return Storyboard(
        scenes=tuple(scenes(span, shots, frames)),
        overlays=(
            *title_overlay(title, min(TITLE_SECONDS, end), colours, language),
            *credit_overlay(credit, (0.0, end), language),
        ),
        captions=caption_cards(words, style=caption_style(colours), language=language, film_seconds=end),
        caption_look=caption_style(colours),
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
    """Yield a scene for each shot, from the first frame that shows it; a shot that no frame shows has none."""
    starts = [_first_frame(span, shot.start, frames) for shot in shots] or [0]
    crops = [shot.crop for shot in shots] or [Crop()]
    starts[0] = 0
    for start, scene_end, crop in zip(starts, [*starts[1:], frames], crops, strict=True):
        if scene_end > start:
            visual = Visual(
                "clip",
                asset=span.name,
                crop=crop or Crop(),
                fit="pad" if crop is None else "cover",
                since=round(span.start + start / FPS, 6),
            )
            yield Scene(start / FPS, scene_end / FPS, visual)


def _first_frame(span: VideoSpan, second: float, frames: int) -> int:
    """Return the number of the first frame at or after a second of the video."""
    return min(max(math.ceil((second - span.start) * FPS - 0.01), 0), frames)


def caption_style(colours: ClipColours) -> CaptionStyle:
    """Return the captions' style, in the persona's accent colour made readable."""
    accent = colour.parse(colours.accent) or "#ffd23f"
    default = CaptionStyle(y=CAPTION_Y)
    return CaptionStyle(y=CAPTION_Y, accent=colour.readable(accent, default.outline, 4.5))


def title_overlay(title: str, end: float, colours: ClipColours, language: str) -> Iterator[Overlay]:
    """Yield the title, if there is one, on a panel, so that it is readable over any picture."""
    if not title.strip():
        return
    block = fit_title(title, language)
    ground = colour.readable(
        colour.mix(colour.parse(colours.primary) or "#16202e", _INK, 0.25), colour.WHITE, 7.0
    )
    height = round(block.height) + 2 * _PADDING
    # Centred in the band for titles.
    top = round(TITLE_BAND[0] + (TITLE_BAND[1] - TITLE_BAND[0] - height) / 2)
    yield Overlay(
        0.0,
        end,
        (
            Panel(_LEFT, top, _WIDTH, height, 28, ground),
            DrawnText(float(_LEFT + _PADDING), float(top + _PADDING), block, colour.WHITE, colour.WHITE),
        ),
        leave=Motion("fade", 0.25),
        name="title",
    )


def fit_title(title: str, language: str) -> Block:
    """Lay the title out. Raises `TextDoesNotFit`, with advice, if it is too long."""
    box = (_WIDTH - 2 * _PADDING, TITLE_BAND[1] - TITLE_BAND[0] - 2 * _PADDING)
    try:
        return layout(
            typeset(title, language),
            box,
            _TITLE,
            largest=_TITLE_SIZES[0],
            smallest=_TITLE_SIZES[1],
            language=language,
        )
    except TextDoesNotFit as refused:
        message = f"The title doesn't fit on the film: “{title[:60]}”. Shorten it."
        raise TextDoesNotFit(box[0], box[1], _TITLE_SIZES[1], why=message) from refused


def credit_overlay(credit: str, times: tuple[float, float], language: str) -> Iterator[Overlay]:
    """Yield the credit, which names the video's owner, if there is one, for the `times` in seconds."""
    if not credit.strip():
        return
    block = _fit_credit(credit, language)
    width = round(max(line.width for line in block.lines)) + 2 * _CHIP_PADDING
    y = _BOTTOM - _CHIP_HEIGHT
    words = DrawnText(
        float(_LEFT + _CHIP_PADDING),
        round(y + (_CHIP_HEIGHT - block.height) / 2, 2),
        block,
        colour.WHITE,
        colour.WHITE,
    )
    yield Overlay(*times, (Panel(_LEFT, y, min(width, _WIDTH), _CHIP_HEIGHT, 14, _INK), words), name="credit")


def _fit_credit(credit: str, language: str) -> Block:
    """Lay the credit out on one line; a longer one is cut, with an ellipsis."""
    text = credit
    while True:
        try:
            return layout(
                typeset(text, language),
                (_WIDTH - 2 * _CHIP_PADDING, _CHIP_HEIGHT),
                _CREDIT,
                largest=_CREDIT_SIZES[0],
                smallest=_CREDIT_SIZES[1],
                language=language,
            )
        except TextDoesNotFit:
            if len(text) <= 8:
                raise
            text = f"{text[: len(text) * 3 // 4].rstrip()}…"
