"""Lays out the picture above an article: the title in the persona's colours, in the size of shared links."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pipeline.engines.shared.picture_parts import at_leading_edge, brand_colours, handle_of, lay_out_face
from pipeline.render import colour
from pipeline.render.picture_types import DrawnText, Panel, PicturePlan
from pipeline.render.typography.bidi import first_strong_is_rtl, is_rtl_language
from pipeline.render.typography.layout_types import Style
from pipeline.render.typography.punctuation import typeset
from pipeline.render.typography.text_layout import TextDoesNotFit

if TYPE_CHECKING:
    from pipeline.engines.base import PersonaCard
    from pipeline.render.picture_types import AvailableMedia, Item
    from pipeline.render.typography.layout_types import Block

SIZE: Final = (1200, 630)
"""The size in pixels that readers of Open Graph show uncropped."""
MIN_SIZE: Final = 44
_LARGEST_SIZE: Final = 96
"""The smallest and the largest font size of the title, in pixels."""
# Distances and sizes in pixels: the margins, the portrait's diameter, the spaces between the parts, and the
# bar's width and height.
_SIDE: Final = 96
_TOP: Final = 88
_BOTTOM: Final = 76
_PORTRAIT: Final = 72
_AFTER_PORTRAIT: Final = 22
_BETWEEN: Final = 40
_BAR: Final = (96, 10)
_UNDER_BAR: Final = 36
# For each line of the signature: the height of its box, and the largest and the smallest font size, in pixels.
_NAME_HEIGHT, _NAME_SIZES = 40, (32, 24)
_LONG_NAME_HEIGHT, _LONG_NAME_SIZES = _PORTRAIT + 8, (26, 12)
_HANDLE_HEIGHT, _HANDLE_SIZES = 40, (26, 14)
_DARK: Final = "#0b0d12"

_TITLE: Final = Style(weight=750, optical=32, line_height=1.14)
_NAME: Final = Style(weight=600, optical=22, line_height=1.2)
_HANDLE: Final = Style(weight=450, optical=20, line_height=1.2)


def plan_hero_picture(title: str, language: str, persona: PersonaCard, media: AvailableMedia) -> PicturePlan:
    """Return the picture. Raises `MissingGlyphs` for an undrawable character, `TextDoesNotFit` for a long text."""
    return _Hero(title, language, persona, media).picture()


class _Hero:
    """Lays out a bar, the title, and the persona at the foot; mirrored if the title runs from right to left."""

    def __init__(self, title: str, language: str, persona: PersonaCard, media: AvailableMedia) -> None:
        """Set the title's direction, and colours of the persona that are readable on the background."""
        self.title = " ".join(title.split())
        self.language = language
        self.persona = persona
        self.media = media
        self.width, self.height = media.size
        is_rtl_by_letters = first_strong_is_rtl(self.title)
        self.is_rtl = is_rtl_language(language) if is_rtl_by_letters is None else is_rtl_by_letters
        self.text_width = float(self.width - 2 * _SIDE)
        self.ground, accent = brand_colours(persona)
        dark_ink = colour.readable(colour.mix(self.ground, _DARK, 0.9), self.ground)
        self.ink = max(
            (colour.WHITE, dark_ink),
            key=lambda ink: colour.contrast(ink, self.ground) + (ink == colour.WHITE),
        )
        if colour.contrast(self.ink, self.ground) < colour.MIN_TEXT_CONTRAST:
            self.ink = dark_ink
        self.faint = colour.readable(colour.mix(self.ink, self.ground, 0.25), self.ground)
        # A bar that hardly differs from the background wouldn't be seen.
        self.accent = colour.readable(accent, self.ground, 1.8)

    def picture(self) -> PicturePlan:
        """Return the plan of the picture."""
        signature_top = self.height - _BOTTOM - _PORTRAIT
        top = _TOP + _BAR[1] + _UNDER_BAR
        title = self._line(
            typeset(self.title, self.language),
            (self.text_width, signature_top - _BETWEEN - top),
            _TITLE,
            (_LARGEST_SIZE, MIN_SIZE),
            self.language,
        )
        x = self.width - _SIDE - _BAR[0] if self.is_rtl else _SIDE
        items: list[Item] = [
            Panel(x, _TOP, _BAR[0], _BAR[1], _BAR[1] // 2 - 1, self.accent),
            self._place(title, _SIDE, top, self.ink),
            *self._lay_out_signature(signature_top),
        ]
        name = self.persona.name.strip()
        return PicturePlan(
            name=f"article-{self.width}x{self.height}.jpg",
            role="hero",
            width=self.width,
            height=self.height,
            background=self.ground,
            items=tuple(items),
            alt_text=f"{self.title} – {name}" if name else self.title,
        )

    def _lay_out_signature(self, y: float) -> list[Item]:
        """Return portrait, name and handle from `y` down; nothing without a name, and no handle after a long name."""
        name = typeset(" ".join(self.persona.name.split()), self.persona.language)
        if not name:
            return []
        portrait_x = self.width - _SIDE - _PORTRAIT if self.is_rtl else _SIDE
        disc = colour.readable(self.accent, self.ground, 1.8)
        on_disc = max((colour.WHITE, colour.BLACK), key=lambda ink: colour.contrast(ink, disc))
        items = lay_out_face(
            self.persona,
            (portrait_x, y),
            _PORTRAIT,
            has_portrait=self.media.has_portrait,
            disc=disc,
            on_disc=on_disc,
        )
        width = self.text_width - _PORTRAIT - _AFTER_PORTRAIT
        text_x = _SIDE if self.is_rtl else _SIDE + _PORTRAIT + _AFTER_PORTRAIT
        handle = handle_of(self.persona)
        try:
            block = self._line(name, (width, _NAME_HEIGHT), _NAME, _NAME_SIZES, self.persona.language)
        except TextDoesNotFit:
            block = self._line(
                name, (width, _LONG_NAME_HEIGHT), _NAME, _LONG_NAME_SIZES, self.persona.language
            )
            handle = ""
        handle_block = (
            self._line(handle, (width, _HANDLE_HEIGHT), _HANDLE, _HANDLE_SIZES, "en") if handle else None
        )
        height = block.height + (handle_block.height if handle_block else 0.0)
        top = y + (_PORTRAIT - height) / 2
        items.append(self._place(block, text_x, top, self.ink))
        if handle_block:
            items.append(self._place(handle_block, text_x, top + block.height, self.faint))
        return items

    def _line(
        self, text: str, box: tuple[float, float], style: Style, sizes: tuple[int, int], language: str
    ) -> Block:
        """Lay out text at the leading edge, whichever way the text runs."""
        return at_leading_edge(text, box, style, sizes, language=language, is_rtl=self.is_rtl)

    def _place(self, block: Block, x: float, y: float, ink: str) -> DrawnText:
        return DrawnText(round(x, 2), round(y, 2), block, ink, self.accent)
