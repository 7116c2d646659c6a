"""Parses the slides of a carousel, and lays out the picture of each."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pipeline.engines.shared.fixed_words import fixed_words
from pipeline.engines.shared.picture_parts import (
    SIGNATURE_HEIGHT,
    PictureLayout,
    full_tones,
    handle_of,
    lay_out_face,
    paper_tones,
)
from pipeline.plugins import Refused
from pipeline.render.colour import mix
from pipeline.render.picture_types import MARGIN, Disc, DrawnText, Panel, PicturePlan, Wash
from pipeline.render.typography.layout_types import Style
from pipeline.render.typography.punctuation import typeset
from pipeline.text.prose.verbatim_edits import count_words

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipeline.engines.base import PersonaCard
    from pipeline.render.picture_types import AvailableMedia, Item
    from pipeline.render.typography.layout_types import Block

HOOK: Final = "hook"
POINT: Final = "point"
RECAP: Final = "recap"
CALL: Final = "cta"
KINDS: Final = (HOOK, POINT, RECAP, CALL)
MIN_SLIDES: Final = 4
MAX_SLIDES: Final = 10
MAX_SLIDE_WORDS: Final = 45
"""The words of one slide, title and text together."""
MIN_SIZE: Final = 38
"""The smallest font size of a slide's text, in pixels."""

_HOOK: Final = Style(weight=700, optical=32, line_height=1.14)
_UNDER_HOOK: Final = Style(weight=450, optical=28, line_height=1.34)
_TITLE: Final = Style(weight=700, optical=32, line_height=1.16)
_TEXT: Final = Style(weight=450, optical=28, line_height=1.36)
_ALONE: Final = Style(weight=550, optical=32, line_height=1.26)
_MARK: Final = Style(weight=600, optical=20, line_height=1.2)
# Sizes and distances in pixels: a point's number, the bar's width and height, the space between parts, the height
# of the head, the face's and a bullet's diameter, what is added to the space below a number, and that below a face.
_BIG_NUMBER: Final = 168
_BAR: Final = (96, 10)
_GAP: Final = 40
_HEAD: Final = 92
_FACE: Final = 168
_DOT: Final = 18
_NUMBER_GAP: Final = 16
_FACE_GAP: Final = 56
_SWIPE: Final = (34, 30, 66)
"""The pill that asks to swipe on: its font size, the space at its sides and its height, in pixels."""
_OPTICAL_CENTRE: Final = 0.44
"""The share of a slide's free height that is above its words."""


@dataclass(frozen=True)
class Slide:
    """One slide. `kind` is one of `KINDS`; `text` has a line for each point of a recap."""

    kind: str
    title: str
    text: str

    @property
    def words(self) -> str:
        return "\n".join(part for part in (self.title, self.text) if part.strip())

    def as_json(self) -> dict[str, str]:
        return {"kind": self.kind, "title": self.title, "text": self.text}


def slides_in(content: Mapping[str, Any]) -> tuple[Slide, ...]:
    """Return the slides of an item's content. Raises `Refused`, with the field, if their number or one is wrong."""
    stored = content.get("slides")
    if not isinstance(stored, list) or not MIN_SLIDES <= len(stored) <= MAX_SLIDES:
        count = len(stored) if isinstance(stored, list) else 0
        message = f"A carousel has {MIN_SLIDES} to {MAX_SLIDES} slides; this has {count}."
        raise Refused(message, code="slide_count", field="content.slides")
    return tuple(_parse_slide(slide, index) for index, slide in enumerate(stored))


def _parse_slide(data: Any, index: int) -> Slide:
    """Return a slide of an item's content. Raises `Refused`, with the field, for a wrong form or too many words."""
    field = f"content.slides[{index}]"
    names = {"kind", "title", "text"}
    if not isinstance(data, dict) or not all(isinstance(data.get(name), str) for name in names):
        raise Refused("A slide has the texts kind, title and text.", code="invalid_slide", field=field)
    if set(data) != names or data["kind"] not in KINDS:
        message = f"A slide has kind, title and text; its kind is {', '.join(KINDS[:-1])} or {KINDS[-1]}."
        raise Refused(message, code="invalid_slide", field=field)
    slide = Slide(data["kind"], data["title"].strip(), data["text"].strip())
    if not slide.words:
        message = f"Slide {index + 1} has no words."
        raise Refused(message, code="empty_slide", field=field)
    count = count_words(slide.words)
    if count > MAX_SLIDE_WORDS:
        message = f"Slide {index + 1} has {count} words; the maximum is {MAX_SLIDE_WORDS}."
        raise Refused(message, code="too_many_words", field=field)
    return slide


def draw_slides(
    slides: Sequence[Slide], persona: PersonaCard, media: AvailableMedia, *, language: str
) -> tuple[PicturePlan, ...]:
    """Return one picture per slide. Raises `Refused`, with the slide's number, if its words can't be drawn."""
    pictures = []
    # All slides run in the direction of most of their words, or the frame would jump from slide to slide.
    all_words = "\n".join(slide.words for slide in slides)
    for index in range(len(slides)):
        try:
            pictures.append(
                _SlideLayout(slides, index, persona, media, all_words=all_words, language=language).picture()
            )
        except Refused as refused:
            message = f"Slide {index + 1}: {refused.message}"
            raise Refused(message, code=refused.code, field=f"content.slides[{index}]") from refused
    return tuple(pictures)


class _SlideLayout(PictureLayout):
    """Lays out one slide: a head with the persona and the count, the slide's words, and the progress."""

    def __init__(
        self,
        slides: Sequence[Slide],
        index: int,
        persona: PersonaCard,
        media: AvailableMedia,
        *,
        all_words: str,
        language: str,
    ) -> None:
        """Set the slide at the index; `all_words` are those of all slides, which decide the direction."""
        self.slide = slides[index]
        self.index = index
        self.count = len(slides)
        self.point_number = sum(slide.kind == POINT for slide in slides[: index + 1])
        is_full = self.slide.kind in {HOOK, CALL}
        tones = full_tones(persona) if is_full else paper_tones(persona)
        super().__init__(persona, media, tones, words=all_words, language=language)
        self.fixed = fixed_words(language)

    def picture(self) -> PicturePlan:
        """Return the plan of the slide's picture."""
        tones = self.tones
        draw = {
            HOOK: self._lay_out_hook,
            POINT: self._lay_out_point,
            RECAP: self._lay_out_recap,
            CALL: self._lay_out_call,
        }[self.slide.kind]
        items: list[Item] = [
            Wash(tones.top, tones.bottom),
            *self._lay_out_head(),
            *draw(),
            *self._lay_out_progress(),
        ]
        return PicturePlan(
            name=f"carousel-{self.index + 1:02d}.jpg",
            role="image",
            width=self.width,
            height=self.height,
            background=tones.top,
            items=tuple(items),
            alt_text=f"{self.index + 1}/{self.count}: {self.slide.words}",
        )

    # --- The frame ---------------------------------------------------------------------------------------------------

    def _lay_out_head(self) -> list[Item]:
        """Lay out the persona's name at one edge, and the slide's number at the other."""
        tones = self.tones
        count = self.lay_out(
            f"{self.index + 1}/{self.count}", (200, 44), self._at_end(_MARK), (32, 32), language="en"
        )
        items: list[Item] = [self.place(count, self.trailing_x(count.width), MARGIN, tones.faint)]
        name_text = typeset(" ".join(self.persona.name.split()), self.persona.language) or handle_of(
            self.persona
        )
        if name_text:
            name = self.lay_out(
                name_text, (self.text_width - 240, 44), _MARK, (32, 14), language=self.persona.language
            )
            # Name and count have one baseline, whatever script the name is written in.
            y = MARGIN + count.lines[0].baseline - name.lines[0].baseline
            items.append(self.place(name, self.leading_x(name.width), y, tones.ink))
        return items

    @staticmethod
    def _at_end(style: Style) -> Style:
        return dataclasses.replace(style, align="end")

    def _lay_out_progress(self) -> list[Item]:
        """Lay out a bar for each slide, in the accent up to this one."""
        gap, height = 10, 6
        width = (self.text_width - gap * (self.count - 1)) / self.count
        y = self.height - MARGIN - height
        bars: list[Item] = []
        faint = mix(self.tones.bottom, self.tones.ink, 0.2)
        for index in range(self.count):
            x = round(self.leading_x(width, index * (width + gap)))
            colour = self.tones.accent if index <= self.index else faint
            bars.append(Panel(x, y, round(width), height, height // 2, colour))
        return bars

    @property
    def _top(self) -> float:
        return float(MARGIN + _HEAD)

    @property
    def _floor(self) -> float:
        return float(self.height - MARGIN - _GAP)

    def _centred_top(self, height: float, floor: float) -> float:
        return self._top + max(0.0, floor - self._top - height) * _OPTICAL_CENTRE

    # --- What it says ------------------------------------------------------------------------------------------------

    def _typeset(self, words: str) -> str:
        return typeset(words, self.language)

    def _lay_out_hook(self) -> list[Item]:
        """Lay out a bar, the hook below it, and the cue to swipe at the lower edge."""
        swipe, pill = self._lay_out_swipe()
        floor = self._floor - _SWIPE[2] - _GAP
        room = floor - self._top - _BAR[1] - _GAP
        title, text = self._lay_out_pair(room, _HOOK, (120, 52), _UNDER_HOOK, (46, MIN_SIZE))
        height = _BAR[1] + _GAP + self._height(title, text)
        y = self._centred_top(height, floor)
        items: list[Item] = [
            Panel(round(self.leading_x(_BAR[0])), round(y), _BAR[0], _BAR[1], _BAR[1] // 2, self.tones.accent)
        ]
        items += self._place_pair(title, text, y + _BAR[1] + _GAP)
        return [*items, pill, swipe]

    def _lay_out_swipe(self) -> tuple[DrawnText, Panel]:
        """Return the swipe cue and its pill in the accent colour, at the lower edge on the next slide's side."""
        size, side, height = _SWIPE
        arrow = "\u2190" if self.is_rtl else "\u2192"
        block = self.lay_out(f"{self.fixed.swipe} {arrow}", (420, height), _MARK, (size, size))
        text_width = max(line.width for line in block.lines)
        width = round(text_width + 2 * side)
        x = round(self.trailing_x(width))
        y = round(self._floor - height)
        tones = self.tones
        pill = Panel(x, y, width, height, height // 2, tones.accent)
        text_left = min(line.x for line in block.lines)
        ink = tones.bottom
        words = DrawnText(
            round(x + side - text_left, 2), round(y + (height - block.height) / 2, 2), block, ink, ink
        )
        return words, pill

    def _lay_out_point(self) -> list[Item]:
        """Lay out the point's large number, and title and text below it."""
        number, number_height = self.lay_out_ornament(str(self.point_number), _BIG_NUMBER, 0, weight=800)
        room = self._floor - self._top - number_height - _GAP - _NUMBER_GAP
        if self.slide.title and self.slide.text:
            title, text = self._lay_out_pair(room, _TITLE, (104, 48), _TEXT, (60, MIN_SIZE))
        else:
            alone = self.lay_out(
                self._typeset(self.slide.words), (self.text_width, room), _ALONE, (92, MIN_SIZE)
            )
            title, text = alone, None
        height = number_height + _GAP + _NUMBER_GAP + self._height(title, text)
        y = self._centred_top(height, self._floor)
        number = dataclasses.replace(number, y=round(number.y + y, 2))
        return [number, *self._place_pair(title, text, y + number_height + _GAP + _NUMBER_GAP)]

    def _lay_out_recap(self) -> list[Item]:
        """Lay out a title with the points below it, in the largest size at which all fit."""
        title = self.lay_out(
            self._typeset(self.slide.title or self.fixed.recap), (self.text_width, 220), _TITLE, (96, 52)
        )
        lines = [line.strip() for line in self.slide.text.splitlines() if line.strip()]
        room = self._floor - self._top - title.height - _GAP
        size = 58
        while True:
            blocks = self._lay_out_points(lines, room, size)
            if blocks is not None:
                break
            size -= 2
            if size < MIN_SIZE:
                # One more layout at the smallest size raises the usual error, which says that it doesn't fit.
                blocks = [
                    self._lay_out_line(line, room / len(lines) - _GAP, MIN_SIZE, MIN_SIZE) for line in lines
                ]
                break
        height = title.height + _GAP + sum(block.height + _GAP for block in blocks) - _GAP * bool(blocks)
        y = self._centred_top(height, self._floor)
        items: list[Item] = [self.place(title, MARGIN, y, self.tones.ink)]
        y += title.height + _GAP
        for block in blocks:
            items += self._place_bullet(block, y)
            y += block.height + _GAP
        return items

    def _lay_out_points(self, lines: Sequence[str], room: float, size: int) -> list[Block] | None:
        """Return all points at one size, or `None` if they don't fit at it."""
        try:
            blocks = [self._lay_out_line(line, room, size, size) for line in lines]
        except Refused as refused:
            if refused.code != "does_not_fit":
                raise
            return None
        return blocks if sum(block.height + _GAP for block in blocks) - _GAP <= room else None

    def _lay_out_line(self, line: str, room: float, largest: int, smallest: int) -> Block:
        return self.lay_out(
            self._typeset(line), (self.text_width - 3 * _DOT, room), _TEXT, (largest, smallest)
        )

    def _place_bullet(self, block: Block, y: float) -> list[Item]:
        middle = y + block.lines[0].baseline - block.size * 0.36
        dot = Disc(round(self.leading_x(_DOT)), round(middle - _DOT / 2), _DOT, self.tones.accent)
        return [dot, self.place(block, self.leading_x(block.width, 3 * _DOT), y, self.tones.ink)]

    def _lay_out_call(self) -> list[Item]:
        """Lay out the last slide: the persona's face, and below it the call."""
        tones = self.tones
        floor = self._floor - SIGNATURE_HEIGHT
        room = floor - self._top - _FACE - _FACE_GAP
        title, text = self._lay_out_pair(room, _HOOK, (100, 52), _UNDER_HOOK, (52, MIN_SIZE))
        height = _FACE + _FACE_GAP + self._height(title, text)
        y = self._centred_top(height, self._floor)
        items: list[Item] = lay_out_face(
            self.persona,
            (self.leading_x(_FACE), y),
            _FACE,
            has_portrait=self.media.has_portrait,
            disc=tones.disc,
            on_disc=tones.on_disc,
        )
        return [*items, *self._place_pair(title, text, y + _FACE + _FACE_GAP)]

    def _lay_out_pair(
        self, room: float, style: Style, sizes: tuple[int, int], under: Style, under_sizes: tuple[int, int]
    ) -> tuple[Block, Block | None]:
        """Lay out title and text in a height that they share; if only one exists, it is returned as the title."""
        slide = self.slide
        if not (slide.title and slide.text):
            return self.lay_out(self._typeset(slide.words), (self.text_width, room), style, sizes), None
        title = self.lay_out(self._typeset(slide.title), (self.text_width, room * 0.5), style, sizes)
        remaining = room - title.height - _GAP
        return title, self.lay_out(
            self._typeset(slide.text), (self.text_width, remaining), under, under_sizes
        )

    @staticmethod
    def _height(title: Block, text: Block | None) -> float:
        return title.height + (_GAP + text.height if text else 0.0)

    def _place_pair(self, title: Block, text: Block | None, y: float) -> list[Item]:
        items: list[Item] = [self.place(title, MARGIN, y, self.tones.ink)]
        if text is not None:
            is_full = self.slide.kind in {HOOK, CALL}
            ink = self.tones.ink if not is_full else self.tones.faint
            items.append(self.place(text, MARGIN, y + title.height + _GAP, ink))
        return items
