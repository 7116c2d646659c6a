"""Builds the parts that a persona's pictures share: colours, signature, placed text, checks of the words."""

from __future__ import annotations

import dataclasses
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pipeline.engines.base import Check, make_check
from pipeline.engines.checks.allowed_contacts import unlisted_addresses
from pipeline.render import colour
from pipeline.render.picture_types import MARGIN, Disc, DrawnText, Panel, Photo, Portrait
from pipeline.render.typography.bidi import first_strong_is_rtl, is_rtl_language
from pipeline.render.typography.clusters import list_characters, split_clusters, undrawable_clusters
from pipeline.render.typography.layout_types import Style
from pipeline.render.typography.punctuation import typeset
from pipeline.render.typography.text_layout import TextDoesNotFit, ink_box, layout, visible_box
from pipeline.text.links import find_links

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeline.engines.base import Brief, Draft, PersonaCard, SourceText
    from pipeline.render.picture_types import AvailableMedia, Item
    from pipeline.render.typography.layout_types import Block, Direction

_PALETTES: Final = (
    ("#1f3a5f", "#d9663b"),
    ("#0f5257", "#c9506b"),
    ("#4a3f6b", "#c46a1b"),
    ("#7a2e3b", "#2f6f73"),
    ("#26547c", "#b5476d"),
    ("#37513f", "#b3541e"),
)
"""Palettes for personas without colours of their own, chosen by name."""
_DARK: Final = "#0b0d12"
_VEIL: Final = 0.66
"""The opacity of the veil over a photo."""
_MAX_BLACK_LUMINANCE: Final = 0.012
"""A colour of at most this luminance can't be made darker visibly, and is made lighter instead."""
_MIN_ORNAMENT_CONTRAST: Final = 3.0
"""The least contrast of large text or an ornament, by WCAG 2.2, 1.4.11."""
_INITIALS: Final = Style(weight=600, optical=28, line_height=1.2, align="center")
_SIGNED: Final = Style(weight=600, optical=22, line_height=1.2)
_TAGGED: Final = Style(weight=500, optical=20, line_height=1.2)
# The signature's sizes and distances in pixels: the portrait's diameter, the spaces after the portrait, between
# name and handle, and under the line.
_SIGNATURE_PORTRAIT: Final = 72
_AFTER_PORTRAIT: Final = 20
_BETWEEN: Final = 32
_UNDER_LINE: Final = 32
_INITIALS_SHARE: Final = 0.41
"""The largest font size of initials, as a share of their disc's diameter."""


def brand_colours(persona: PersonaCard) -> tuple[str, str]:
    """Return (background, accent) of the brand kit, or of the name's palette; a missing accent is the background."""
    palette = _PALETTES[zlib.crc32(persona.name.encode()) % len(_PALETTES)]
    primary = colour.parse(persona.brand.get("primary"))
    accent = colour.parse(persona.brand.get("accent"))
    return primary or palette[0], accent or (primary or palette[1])


@dataclass(frozen=True)
class Tones:
    """The colours of one picture; `ink`, `faint` and `accent` are readable everywhere on its background."""

    top: str
    bottom: str
    ink: str
    faint: str
    accent: str
    disc: str
    """The colour of the circle under initials, which are drawn in `on_disc`."""
    on_disc: str


def full_tones(persona: PersonaCard) -> Tones:
    """Return the colours of a picture on the persona's own colour."""
    ground, accent = brand_colours(persona)
    dark = colour.readable(colour.mix(ground, _DARK, 0.9), ground)
    ink = max(
        (colour.WHITE, dark),
        key=lambda candidate: colour.contrast(candidate, ground) + (candidate == colour.WHITE),
    )
    if colour.contrast(ink, ground) < colour.MIN_TEXT_CONTRAST:
        ink = dark
    # The background moves away from the ink, so that nothing becomes harder to read.
    direction = colour.BLACK if ink == colour.WHITE else colour.WHITE
    top, bottom = (
        (ground, colour.mix(ground, direction, 0.26))
        if direction == colour.BLACK
        else (colour.mix(ground, direction, 0.26), ground)
    )
    return _build_tones(ground, top, bottom, ink, accent)


def photo_tones(persona: PersonaCard) -> tuple[Tones, Photo]:
    """Return the colours of a picture on a photo, and the photo's veil, under which white text is readable."""
    ground, accent = brand_colours(persona)
    veil = colour.mix(ground, _DARK, 0.7)
    lightest = colour.mix(colour.WHITE, veil, _VEIL)
    if colour.contrast(colour.WHITE, lightest) < colour.MIN_TEXT_CONTRAST:
        veil = _DARK
        lightest = colour.mix(colour.WHITE, veil, _VEIL)
    tones = _build_tones(lightest, lightest, lightest, colour.WHITE, accent)
    # Only ornaments have the accent here; a stronger correction would lose its colour.
    seen_accent = colour.readable(accent, lightest, _MIN_ORNAMENT_CONTRAST)
    return dataclasses.replace(tones, accent=seen_accent), Photo(veil, _VEIL)


def paper_tones(persona: PersonaCard) -> Tones:
    """Return the colours of a picture on tinted paper, or on a dark shade if the accent is readable only there."""
    ground, accent = brand_colours(persona)
    paper = colour.mix(colour.WHITE, ground, 0.06)
    ink = colour.readable(colour.mix(ground, _DARK, 0.86), paper, 12.0)
    shade = colour.mix(
        ground,
        *((colour.BLACK, 0.3) if colour.luminance(ground) > _MAX_BLACK_LUMINANCE else (colour.WHITE, 0.07)),
    )
    # A light accent darkened for paper becomes another colour, such as olive for yellow.
    if (
        colour.contrast(accent, paper)
        < _MIN_ORNAMENT_CONTRAST
        <= colour.MIN_TEXT_CONTRAST
        <= colour.contrast(accent, shade)
    ):
        paper, ink = shade, colour.WHITE
    return _build_tones(paper, paper, paper, ink, accent)


def _build_tones(ground: str, top: str, bottom: str, ink: str, accent: str) -> Tones:
    faint = colour.readable(colour.mix(ink, ground, 0.28), ground)
    disc = colour.readable(accent, ground, 1.6)
    on_disc = max(
        (colour.WHITE, colour.BLACK),
        key=lambda candidate: colour.contrast(candidate, disc) + (candidate == colour.WHITE),
    )
    if colour.contrast(on_disc, disc) < colour.MIN_TEXT_CONTRAST:
        on_disc = colour.BLACK if on_disc == colour.WHITE else colour.WHITE
    return Tones(top, bottom, ink, faint, colour.readable(accent, ground), disc, on_disc)


def handle_of(persona: PersonaCard) -> str:
    """Return the handle with its sign, or "" if the persona has none."""
    name = persona.handle.strip().lstrip("@\uff20")
    return f"@{name}" if name else ""


def initials_of(name: str) -> str:
    """Return the initials of the first and the last word, one in scripts without capitals, or "" for no letters."""
    letters = [
        word[0]
        for words in name.split()
        if (word := [cluster for cluster in split_clusters(words) if cluster[0].isalpha()])
    ]
    if not letters:
        return ""
    if letters[0].upper() == letters[0].lower():
        return letters[0]
    return (
        "".join(dict.fromkeys((letters[0].upper(), letters[-1].upper())))
        if len(letters) > 1
        else letters[0].upper()
    )


def lay_out_face(
    persona: PersonaCard,
    corner: tuple[float, float],
    size: int,
    *,
    has_portrait: bool,
    disc: str,
    on_disc: str,
) -> list[Item]:
    """Return the portrait in a circle of `size` pixels at `corner`, or a disc with the initials, if there are any."""
    x, y = round(corner[0]), round(corner[1])
    if has_portrait:
        return [Portrait(x, y, size)]
    circle = Disc(x, y, size, disc)
    initials = initials_of(persona.name)
    if not initials:
        return [circle]
    largest = round(size * _INITIALS_SHARE)
    block = layout(
        initials,
        (size * 0.8, size),
        _INITIALS,
        largest=largest,
        smallest=largest // 3,
        language=persona.language,
    )
    # The visible letters are centred in the disc, not their line.
    left, top, right, bottom = ink_box(block)
    text_corner = (corner[0] + (size - left - right) / 2, corner[1] + (size - top - bottom) / 2)
    return [circle, DrawnText(round(text_corner[0], 2), round(text_corner[1], 2), block, on_disc, on_disc)]


def at_leading_edge(
    words: str,
    box: tuple[float, float],
    style: Style,
    sizes: tuple[int, int],
    *,
    language: str,
    is_rtl: bool,
    accents: Sequence[tuple[int, int]] = (),
) -> Block:
    """Lay out words at the leading edge of a picture that runs as `is_rtl` says, whichever way the words run.

    `sizes` are the largest and the smallest font size, in pixels. Raises `TextDoesNotFit` if the words don't
    fit the box at the smallest size, and `MissingGlyphs` if the fonts lack a character.
    """
    is_rtl_by_letters = first_strong_is_rtl(words)
    runs_rtl = is_rtl if is_rtl_by_letters is None else is_rtl_by_letters
    direction: Direction = "rtl" if runs_rtl else "ltr"
    mirrored_align = {"start": "end", "end": "start", "center": "center"}[style.align]
    aligned = style if runs_rtl is is_rtl else dataclasses.replace(style, align=mirrored_align)  # type: ignore[arg-type]
    return layout(
        words,
        box,
        aligned,
        largest=sizes[0],
        smallest=sizes[1],
        language=language,
        direction=direction,
        accents=accents,
    )


class PictureLayout:
    """Lays out one picture within its margins, mirrored if its words run from right to left."""

    def __init__(
        self, persona: PersonaCard, media: AvailableMedia, tones: Tones, *, words: str, language: str
    ) -> None:
        self.persona = persona
        self.media = media
        self.tones = tones
        self.width, self.height = media.size
        self.language = language
        is_rtl_by_letters = first_strong_is_rtl(words)
        self.is_rtl = is_rtl_language(language) if is_rtl_by_letters is None else is_rtl_by_letters
        self.text_width = float(self.width - 2 * MARGIN)

    @property
    def direction(self) -> Direction:
        return "rtl" if self.is_rtl else "ltr"

    def leading_x(self, width: float, inset: float = 0.0) -> float:
        """Return the left edge of an item of that width, `inset` pixels from where lines begin."""
        return self.width - MARGIN - inset - width if self.is_rtl else MARGIN + inset

    def trailing_x(self, width: float, inset: float = 0.0) -> float:
        """Return the left edge of an item of that width, `inset` pixels from where lines end."""
        return MARGIN + inset if self.is_rtl else self.width - MARGIN - inset - width

    def lay_out(
        self,
        words: str,
        box: tuple[float, float],
        style: Style,
        sizes: tuple[int, int],
        *,
        language: str | None = None,
        accents: list[tuple[int, int]] | None = None,
    ) -> Block:
        """Lay out words at the picture's leading edge as `at_leading_edge` does."""
        text_language = self.language if language is None else language
        return at_leading_edge(
            words, box, style, sizes, language=text_language, is_rtl=self.is_rtl, accents=accents or ()
        )

    def place(self, block: Block, x: float, y: float, ink_colour: str) -> DrawnText:
        """Return the block at a position, moved sideways if a letter's curve would reach into the margin."""
        left, _, right, _ = ink_box(block)
        x += max(0.0, MARGIN - x - left) - max(0.0, x + right - (self.width - MARGIN))
        return DrawnText(round(x, 2), round(y, 2), block, ink_colour, self.tones.accent)

    def lay_out_ornament(
        self, sign: str, size: int, y: float, *, weight: int = 800
    ) -> tuple[DrawnText, float]:
        """Return a large sign and its ink's height; the ink, not the line, begins at the leading margin and `y`."""
        block = layout(
            sign, (self.text_width, size * 2.0), Style(weight, 32, 1.3), largest=size, smallest=size
        )
        left, top, right, bottom = visible_box(block)
        x = self.leading_x(right - left) - left
        accent = self.tones.accent
        return DrawnText(round(x, 2), round(y - top, 2), block, accent, accent), bottom - top

    def lay_out_signature(self, bottom: float) -> list[Item]:
        """Return a line, portrait and name below it, and the handle at the other edge, which end at `bottom`.

        A persona without a name has no initials, but may have a portrait.
        """
        persona, tones = self.persona, self.tones
        middle = bottom - _SIGNATURE_PORTRAIT / 2
        handle = handle_of(persona)
        line_y = round(bottom - _SIGNATURE_PORTRAIT - _UNDER_LINE)
        items: list[Item] = [
            Panel(MARGIN, line_y, round(self.text_width), 2, 0, colour.mix(tones.bottom, tones.ink, 0.22))
        ]
        handle_width = 0.0
        if handle:
            style = dataclasses.replace(_TAGGED, align="end")
            block = self.lay_out(handle, (self.text_width * 0.5, 48), style, (32, 20), language="en")
            items.append(
                self.place(block, self.trailing_x(block.width), middle - block.height / 2, tones.faint)
            )
            handle_width = max(line.width for line in block.lines) + _BETWEEN
        name = typeset(" ".join(persona.name.split()), persona.language)
        if name or self.media.has_portrait:
            items += lay_out_face(
                persona,
                (self.leading_x(_SIGNATURE_PORTRAIT), middle - _SIGNATURE_PORTRAIT / 2),
                _SIGNATURE_PORTRAIT,
                has_portrait=self.media.has_portrait,
                disc=tones.disc,
                on_disc=tones.on_disc,
            )
        if name:
            name_inset = _SIGNATURE_PORTRAIT + _AFTER_PORTRAIT
            block = self._lay_out_name(name, self.text_width - name_inset - handle_width)
            x = self.leading_x(block.width, name_inset)
            items.append(self.place(block, x, middle - block.height / 2, tones.ink))
        return items

    def _lay_out_name(self, name: str, width: float) -> Block:
        try:
            return self.lay_out(name, (width, 48), _SIGNED, (34, 26), language=self.persona.language)
        except TextDoesNotFit:
            return self.lay_out(name, (width, 2.9 * 28), _SIGNED, (28, 14), language=self.persona.language)


SIGNATURE_HEIGHT: Final = _SIGNATURE_PORTRAIT + _UNDER_LINE


def caption_fault(draft: Draft, brief: Brief, source: SourceText, persona: PersonaCard) -> str | None:
    """Return the fault of the picture's caption, no text or a link that isn't allowed, or `None` if it has none."""
    caption = draft.content.get("caption")
    if not isinstance(caption, str):
        return "The caption isn't a text."
    if unlisted_addresses(caption, brief, persona, url=source.url):
        return "The caption has a link that is neither the source's nor the persona's."
    return None


def check_picture_links(words: str) -> Check:
    """Check that the words in the picture hold no link with a scheme; bare names of sites are allowed."""
    urls = [link.url for link in find_links(words) if link.has_scheme]
    fault = f"Links in a picture can't be followed: {', '.join(urls[:3])}." if urls else None
    return make_check("links_in_picture", "The words hold no link.", fault)


def check_glyphs(words: str, language: str, persona: PersonaCard) -> Check:
    """Check that the bundled fonts can draw the picture's words and the persona's name and handle."""
    absent = undrawable_clusters(f"{typeset(words, language)} {persona.name} {handle_of(persona)}")
    fault = f"The fonts for pictures have no glyphs for {list_characters(absent)}." if absent else None
    return make_check("glyphs", "The bundled fonts draw every character.", fault)


def with_last_line(words: str, line: str) -> str:
    """Return the words with the line below them, such as an address or a name, if there is one."""
    return f"{words}\n{line}" if line else words
