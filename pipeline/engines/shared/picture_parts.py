"""What the pictures of a persona share: its colours, its signature, how a text is placed, the checks of glyphs."""

from __future__ import annotations

import dataclasses
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pipeline.engines.base import Check, judge
from pipeline.engines.checks.allowed_contacts import strange_addresses
from pipeline.render import colour
from pipeline.render.picture_plan import MARGIN, Disc, DrawnText, Panel, Photo, Portrait
from pipeline.render.typography.bidi import first_strong_is_rtl, is_rtl_language
from pipeline.render.typography.clusters import list_characters, split_clusters, undrawable_clusters
from pipeline.render.typography.layout_types import Style
from pipeline.render.typography.punctuation import typeset
from pipeline.render.typography.text_layout import TextDoesNotFit, ink_box, layout, visible_box
from pipeline.text.links import find_links

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeline.engines.base import Brief, Draft, PersonaCard, SourceText
    from pipeline.render.picture_plan import AvailableMedia, Item
    from pipeline.render.typography.layout_types import Block, Direction

_PALETTES: Final = (
    ("#1f3a5f", "#d9663b"),
    ("#0f5257", "#c9506b"),
    ("#4a3f6b", "#c46a1b"),
    ("#7a2e3b", "#2f6f73"),
    ("#26547c", "#b5476d"),
    ("#37513f", "#b3541e"),
)
"""For a persona without colours of its own: one that goes with its name."""
_DARK: Final = "#0b0d12"
_VEIL: Final = 0.66
"""How much of a photo a veil takes away."""
_BLACKISH: Final = 0.012
_SEEN: Final = 3.0
"""The least contrast of what is large or an ornament, by WCAG 2.2, 1.4.11."""
_INITIALS: Final = Style(weight=600, optical=28, line_height=1.2, align="center")
_SIGNED: Final = Style(weight=600, optical=22, line_height=1.2)
_TAGGED: Final = Style(weight=500, optical=20, line_height=1.2)
_SIGNATURE: Final = 72
"""The portrait's diameter beside a name at a picture's edge, in pixels."""
_AFTER_PORTRAIT: Final = 20
_BETWEEN: Final = 32
_UNDER_LINE: Final = 32
_OF_THE_FACE: Final = 0.41


def brand_colours(persona: PersonaCard) -> tuple[str, str]:
    """The ground and the accent of its brand kit; without one, two that always go with its name."""
    own = _PALETTES[zlib.crc32(persona.name.encode()) % len(_PALETTES)]
    primary = colour.parse(persona.brand.get("primary"))
    accent = colour.parse(persona.brand.get("accent"))
    return primary or own[0], accent or (primary or own[1])


@dataclass(frozen=True)
class Tones:
    """The colours of one picture. `ink`, `faint` and `accent` can be read on all of its ground."""

    top: str
    bottom: str
    ink: str
    faint: str
    accent: str
    disc: str
    """Under initials, which are drawn in `on_disc`."""
    on_disc: str


def full_tones(persona: PersonaCard) -> Tones:
    """A picture on the persona's own colour."""
    ground, accent = brand_colours(persona)
    dark = colour.readable(colour.mix(ground, _DARK, 0.9), ground)
    ink = max((colour.WHITE, dark), key=lambda one: colour.contrast(one, ground) + (one == colour.WHITE))
    if colour.contrast(ink, ground) < colour.MIN_TEXT_CONTRAST:
        ink = dark
    # The ground moves away from what is written on it, so that nothing becomes harder to read.
    away = colour.BLACK if ink == colour.WHITE else colour.WHITE
    top, bottom = (
        (ground, colour.mix(ground, away, 0.26))
        if away == colour.BLACK
        else (
            colour.mix(ground, away, 0.26),
            ground,
        )
    )
    return _toned(ground, top, bottom, ink, accent)


def photo_tones(persona: PersonaCard) -> tuple[Tones, Photo]:
    """A picture on any photo: under a dark veil of the persona's colour even a white one is dark enough for white."""
    ground, accent = brand_colours(persona)
    veil = colour.mix(ground, _DARK, 0.7)
    lightest = colour.mix(colour.WHITE, veil, _VEIL)
    if colour.contrast(colour.WHITE, lightest) < colour.MIN_TEXT_CONTRAST:
        veil = _DARK
        lightest = colour.mix(colour.WHITE, veil, _VEIL)
    tones = _toned(lightest, lightest, lightest, colour.WHITE, accent)
    # Only ornaments have it here, and more of it would be lost than on a ground that is known.
    seen_accent = colour.readable(accent, lightest, _SEEN)
    return dataclasses.replace(tones, accent=seen_accent), Photo(veil, _VEIL)


def paper_tones(persona: PersonaCard) -> Tones:
    """A picture on paper with a breath of the persona's colour; on a shade of it where its accent wants the dark."""
    ground, accent = brand_colours(persona)
    paper = colour.mix(colour.WHITE, ground, 0.06)
    ink = colour.readable(colour.mix(ground, _DARK, 0.86), paper, 12.0)
    shade = colour.mix(
        ground, *((colour.BLACK, 0.3) if colour.luminance(ground) > _BLACKISH else (colour.WHITE, 0.07))
    )
    # A light accent has to be darkened on paper until it is another colour, such as olive for yellow.
    if colour.contrast(accent, paper) < _SEEN <= colour.MIN_TEXT_CONTRAST <= colour.contrast(accent, shade):
        paper, ink = shade, colour.WHITE
    return _toned(paper, paper, paper, ink, accent)


def _toned(ground: str, top: str, bottom: str, ink: str, accent: str) -> Tones:
    faint = colour.readable(colour.mix(ink, ground, 0.28), ground)
    disc = colour.readable(accent, ground, 1.6)
    on_disc = max(
        (colour.WHITE, colour.BLACK), key=lambda one: colour.contrast(one, disc) + (one == colour.WHITE)
    )
    if colour.contrast(on_disc, disc) < colour.MIN_TEXT_CONTRAST:
        on_disc = colour.BLACK if on_disc == colour.WHITE else colour.WHITE
    return Tones(top, bottom, ink, faint, colour.readable(accent, ground), disc, on_disc)


def handle_of(persona: PersonaCard) -> str:
    """With its sign; empty where the persona has none."""
    bare = persona.handle.strip().lstrip("@\uff20")
    return f"@{bare}" if bare else ""


def initials_of(name: str) -> str:
    """The first letters of the first and the last word; one of a name in a script without capitals."""
    letters = [
        word[0]
        for words in name.split()
        if (word := [one for one in split_clusters(words) if one[0].isalpha()])
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
    persona: PersonaCard, at: tuple[float, float], size: int, *, has_portrait: bool, disc: str, on_disc: str
) -> list[Item]:
    """The portrait in a circle, or the initials on a disc."""
    x, y = round(at[0]), round(at[1])
    if has_portrait:
        return [Portrait(x, y, size)]
    circle = Disc(x, y, size, disc)
    initials = initials_of(persona.name)
    if not initials:
        return [circle]
    largest = round(size * _OF_THE_FACE)
    block = layout(
        initials,
        (size * 0.8, size),
        _INITIALS,
        largest=largest,
        smallest=largest // 3,
        language=persona.language,
    )
    # What is drawn stands in the middle of the disc, not its line.
    left, top, right, bottom = ink_box(block)
    place = (at[0] + (size - left - right) / 2, at[1] + (size - top - bottom) / 2)
    return [circle, DrawnText(round(place[0], 2), round(place[1], 2), block, on_disc, on_disc)]


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
    """Words at the leading edge of a picture that runs as `is_rtl` says, whichever way they run themselves.

    `sizes` are the largest and the smallest. Raises `TextDoesNotFit` and `MissingGlyphs`.
    """
    strong = first_strong_is_rtl(words)
    runs_rtl = is_rtl if strong is None else strong
    own: Direction = "rtl" if runs_rtl else "ltr"
    turned = {"start": "end", "end": "start", "center": "center"}[style.align]
    aligned = style if runs_rtl is is_rtl else dataclasses.replace(style, align=turned)  # type: ignore[arg-type]
    return layout(
        words,
        box,
        aligned,
        largest=sizes[0],
        smallest=sizes[1],
        language=language,
        direction=own,
        accents=accents,
    )


class PictureLayout:
    """One picture that is being laid out: its margins, which way it runs, its colours."""

    def __init__(
        self, persona: PersonaCard, media: AvailableMedia, tones: Tones, *, words: str, language: str
    ) -> None:
        self.persona = persona
        self.media = media
        self.tones = tones
        self.width, self.height = media.size
        self.language = language
        strong = first_strong_is_rtl(words)
        self.is_rtl = is_rtl_language(language) if strong is None else strong
        self.room = float(self.width - 2 * MARGIN)

    @property
    def direction(self) -> Direction:
        return "rtl" if self.is_rtl else "ltr"

    def leading(self, width: float, inset: float = 0.0) -> float:
        """The left edge of something of that width which stands `inset` from where lines begin."""
        return self.width - MARGIN - inset - width if self.is_rtl else MARGIN + inset

    def trailing(self, width: float, inset: float = 0.0) -> float:
        """The left edge of something of that width which stands `inset` from where lines end."""
        return MARGIN + inset if self.is_rtl else self.width - MARGIN - inset - width

    def text(
        self,
        words: str,
        box: tuple[float, float],
        style: Style,
        sizes: tuple[int, int],
        *,
        language: str | None = None,
        accents: list[tuple[int, int]] | None = None,
    ) -> Block:
        """Words that stand at the picture's leading edge, whichever way they run themselves; `sizes` from the largest."""
        spoken = self.language if language is None else language
        return at_leading_edge(
            words, box, style, sizes, language=spoken, is_rtl=self.is_rtl, accents=accents or ()
        )

    def words(self, block: Block, x: float, y: float, ink_colour: str) -> DrawnText:
        """The block at a place; where a letter's curve would reach into the margin, all of it stands aside."""
        left, _, right, _ = ink_box(block)
        x += max(0.0, MARGIN - x - left) - max(0.0, x + right - (self.width - MARGIN))
        return DrawnText(round(x, 2), round(y, 2), block, ink_colour, self.tones.accent)

    def ornament(self, sign: str, size: int, y: float, *, weight: int = 800) -> tuple[DrawnText, float]:
        """A large sign whose ink, not its line, begins at the leading margin and at `y`; and the ink's height."""
        block = layout(sign, (self.room, size * 2.0), Style(weight, 32, 1.3), largest=size, smallest=size)
        left, top, right, bottom = visible_box(block)
        x = self.leading(right - left) - left
        accent = self.tones.accent
        return DrawnText(round(x, 2), round(y - top, 2), block, accent, accent), bottom - top

    def signature(self, bottom: float) -> list[Item]:
        """Under a thin line, portrait and name at the leading edge, the handle at the trailing one; it ends at `bottom`."""
        persona, tones = self.persona, self.tones
        middle = bottom - _SIGNATURE / 2
        handle = handle_of(persona)
        line = round(bottom - _SIGNATURE - _UNDER_LINE)
        items: list[Item] = [
            Panel(MARGIN, line, round(self.room), 2, 0, colour.mix(tones.bottom, tones.ink, 0.22))
        ]
        used = 0.0
        if handle:
            style = dataclasses.replace(_TAGGED, align="end")
            block = self.text(handle, (self.room * 0.5, 48), style, (32, 20), language="en")
            items.append(
                self.words(block, self.trailing(block.width), middle - block.height / 2, tones.faint)
            )
            used = max(line.width for line in block.lines) + _BETWEEN
        name = typeset(" ".join(persona.name.split()), persona.language)
        if name or self.media.has_portrait:
            items += lay_out_face(
                persona,
                (self.leading(_SIGNATURE), middle - _SIGNATURE / 2),
                _SIGNATURE,
                has_portrait=self.media.has_portrait,
                disc=tones.disc,
                on_disc=tones.on_disc,
            )
        if name:
            beside = _SIGNATURE + _AFTER_PORTRAIT
            block = self._name(name, self.room - beside - used)
            x = self.leading(block.width, beside)
            items.append(self.words(block, x, middle - block.height / 2, tones.ink))
        return items

    def _name(self, name: str, width: float) -> Block:
        try:
            return self.text(name, (width, 48), _SIGNED, (34, 26), language=self.persona.language)
        except TextDoesNotFit:
            return self.text(name, (width, 2.9 * 28), _SIGNED, (28, 14), language=self.persona.language)


SIGNATURE_HEIGHT: Final = _SIGNATURE + _UNDER_LINE


def caption_fault(draft: Draft, brief: Brief, source: SourceText, persona: PersonaCard) -> str | None:
    """What is wrong with the words that go beside the picture."""
    caption = draft.content.get("caption")
    if not isinstance(caption, str):
        return "The caption isn't a text."
    if strange_addresses(caption, brief, persona, url=source.url):
        return "The caption has a link that is neither the source's nor the persona's."
    return None


def check_picture_links(words: str) -> Check:
    found = [link.url for link in find_links(words) if link.has_scheme]
    fault = f"Nobody can follow a link in a picture: {', '.join(found[:3])}." if found else None
    return judge("links_in_picture", "The words hold no link.", fault)


def check_glyphs(words: str, language: str, persona: PersonaCard) -> Check:
    absent = undrawable_clusters(f"{typeset(words, language)} {persona.name} {handle_of(persona)}")
    fault = f"The fonts for pictures have no glyphs for {list_characters(absent)}." if absent else None
    return judge("glyphs", "The bundled fonts draw every character.", fault)


def with_last_line(words: str, line: str) -> str:
    """The words and below them the line, such as an address or a name, where there is one."""
    return f"{words}\n{line}" if line else words
