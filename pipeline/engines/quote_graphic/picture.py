"""Lays out a quotation, large, in the persona's colours."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Final

from pipeline.engines.quote_graphic.quotation import in_marks, quotation_in
from pipeline.engines.shared.picture_parts import SIGNATURE_HEIGHT, PictureLayout, full_tones, photo_tones
from pipeline.render.picture_types import MARGIN, SQUARE, UPRIGHT, AvailableMedia, Panel, PicturePlan, Wash
from pipeline.render.typography.layout_types import Style
from pipeline.render.typography.punctuation import typeset
from pipeline.render.typography.text_layout import TextDoesNotFit

if TYPE_CHECKING:
    from pipeline.engines.base import Draft, PersonaCard
    from pipeline.render.picture_types import Item
    from pipeline.render.typography.layout_types import Block

SIZES: Final = (UPRIGHT, SQUARE)
MIN_SIZE: Final = 44
_LARGEST_SIZE: Final = 128
"""The smallest and the largest font size of the quotation, in pixels."""
_MAX_HEIGHT_SHARE: Final = 0.56
"""The share of the picture's height that the quotation may take."""
_WORDS: Final = Style(weight=600, optical=32, line_height=1.2)
_BY: Final = Style(weight=600, optical=24, line_height=1.25)
# Sizes and distances in pixels: the mark's font size by the picture's size, the spaces between the parts, and
# the box height and font sizes of the speaker's name, on one line and on more.
_ORNAMENT: Final = {UPRIGHT: 330, SQUARE: 270}
_AFTER_ORNAMENT: Final = 48
_BEFORE_BY: Final = 56
_ABOVE_SIGNATURE: Final = 48
_BY_HEIGHT, _BY_SIZES = 54, (40, 32)
_LONG_BY_HEIGHT, _LONG_BY_SIZES = 130, (34, 24)
_DASH: Final = (56, 6, 28)
"""The line before the speaker's name: its width, its height and the space after it, in pixels."""
_OPTICAL_CENTRE: Final = 0.44
"""The share of the free height that is above the contents."""


class QuoteLayout(PictureLayout):
    """Lays out a mark, the quotation and its speaker, with the persona at the foot.

    A sentence that nobody spoke has no mark. The picture is mirrored if the text runs from right to left.
    """

    def __init__(self, draft: Draft, persona: PersonaCard, media: AvailableMedia) -> None:
        self.quote = quotation_in(draft.body)
        self.tones = full_tones(persona)
        self.ground: Item = Wash(self.tones.top, self.tones.bottom)
        if media.has_photo:
            self.tones, self.ground = photo_tones(persona)
        super().__init__(persona, media, self.tones, words=self.quote.words, language=draft.language)

    def picture(self) -> PicturePlan:
        """Return the plan of the picture."""
        tones, size = self.tones, self.media.size
        bottom = float(self.height - MARGIN)
        floor = bottom - SIGNATURE_HEIGHT - _ABOVE_SIGNATURE
        mark, above = self.lay_out_ornament("\u201d" if self.is_rtl else "\u201c", _ORNAMENT[size], MARGIN)
        above = above + _AFTER_ORNAMENT if self.quote.is_spoken else 0.0
        speaker_block = self._lay_out_speaker()
        other_height = above + (_BEFORE_BY + speaker_block.height if speaker_block else 0)
        words = self._lay_out_quote(min(self.height * _MAX_HEIGHT_SHARE, floor - MARGIN - other_height))
        content_height = other_height + words.height
        top = MARGIN + max(0.0, floor - MARGIN - content_height) * _OPTICAL_CENTRE
        y = top + above
        items: list[Item] = [self.ground]
        if self.quote.is_spoken:
            items.append(dataclasses.replace(mark, y=round(mark.y + top - MARGIN, 2)))
        items.append(self.place(words, MARGIN, y, tones.ink))
        if speaker_block and speaker_block.lines:
            items += self._place_speaker(speaker_block, y + words.height + _BEFORE_BY)
        items += self.lay_out_signature(bottom)
        by_text = f"\u2013 {self.quote.by}" if self.quote.by else ""
        return PicturePlan(
            name=f"quote-graphic-{self.width}x{self.height}.jpg",
            role="image" if size == SIZES[0] else "alternative",
            width=self.width,
            height=self.height,
            background=tones.top,
            items=tuple(items),
            alt_text=f"{in_marks(self.quote, self.language)} {by_text}".strip(),
        )

    def _lay_out_quote(self, height: float) -> Block:
        text = typeset(self.quote.words, self.language)
        return self.lay_out(text, (self.text_width, height), _WORDS, (_LARGEST_SIZE, MIN_SIZE))

    def _lay_out_speaker(self) -> Block | None:
        if not self.quote.by:
            return None
        width = self.text_width - _DASH[0] - _DASH[2]
        by = typeset(self.quote.by, self.language)
        try:
            return self.lay_out(by, (width, _BY_HEIGHT), _BY, _BY_SIZES)
        except TextDoesNotFit:
            return self.lay_out(by, (width, _LONG_BY_HEIGHT), _BY, _LONG_BY_SIZES)

    def _place_speaker(self, speaker_block: Block, y: float) -> list[Item]:
        width, height, gap = _DASH
        first = speaker_block.lines[0]
        # The line stands at half the height of lower-case letters of the first line.
        middle = y + first.baseline - speaker_block.size * 0.27
        x = round(self.leading_x(width))
        line = Panel(x, round(middle - height / 2), width, height, 0, self.tones.accent)
        return [
            line,
            self.place(speaker_block, self.leading_x(speaker_block.width, width + gap), y, self.tones.ink),
        ]
