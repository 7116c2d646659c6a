"""Makes a Persona Tweet: the persona's words on a card that looks like a post, publishable anywhere."""

from __future__ import annotations

import dataclasses
import re
from typing import TYPE_CHECKING, Any, Final

from pipeline.engines.base import Check, Draft, Engine, make_check, variant_schema
from pipeline.engines.shared.picture_parts import (
    at_leading_edge,
    brand_colours,
    caption_fault,
    check_glyphs,
    check_picture_links,
    handle_of,
    lay_out_face,
    with_last_line,
)
from pipeline.engines.short_post import ShortPost
from pipeline.plugins import Refused
from pipeline.render import colour
from pipeline.render.picture_types import (
    MARGIN,
    SQUARE,
    UPRIGHT,
    AvailableMedia,
    DrawnText,
    Layout,
    Panel,
    PicturePlan,
)
from pipeline.render.typography.bidi import first_strong_is_rtl, is_rtl_language
from pipeline.render.typography.layout_types import Style
from pipeline.render.typography.punctuation import typeset
from pipeline.render.typography.text_layout import TextDoesNotFit, layout
from pipeline.text.links import ascii_url, find_links
from pipeline.text.weighted_length import MAX_LENGTH

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import date

    from pipeline.engines.base import Brief, PersonaCard, SourceText
    from pipeline.render.picture_types import Item
    from pipeline.render.typography.layout_types import Block

# By language tag: the date's pattern, then the twelve months in the form that follows a day.
_DATE_FORMATS: Final[Mapping[str, tuple[str, str]]] = {
    "en": (
        "{day} {month} {year}",
        "January February March April May June July August September October November December",
    ),
    "en-us": (
        "{month} {day}, {year}",
        "January February March April May June July August September October November December",
    ),
    "de": (
        "{day}. {month} {year}",
        "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
    ),
    "fr": (
        "{day} {month} {year}",
        "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    ),
    "es": (
        "{day} de {month} de {year}",
        "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
    ),
    "it": (
        "{day} {month} {year}",
        "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre",
    ),
    "pt": (
        "{day} de {month} de {year}",
        "janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro",
    ),
    "nl": (
        "{day} {month} {year}",
        "januari februari maart april mei juni juli augustus september oktober november december",
    ),
    "ar": (
        "{day} {month} {year}",
        "يناير فبراير مارس أبريل مايو يونيو يوليو أغسطس سبتمبر أكتوبر نوفمبر ديسمبر",
    ),
    "he": (
        "{day} ב{month} {year}",
        "ינואר פברואר מרץ אפריל מאי יוני יולי אוגוסט ספטמבר אוקטובר נובמבר דצמבר",
    ),
}
SIZES: Final = (UPRIGHT, SQUARE)
MIN_SIZE: Final = 40
"""The smallest font size of the words, in pixels."""
_LARGEST_SIZE: Final = 84
"""The largest font size of the words, in pixels."""
_PREFERRED_SHARE: Final = 0.5
"""Share of the picture's height for the words; the whole card is used only if they don't fit otherwise."""

# Distances and sizes of the card, in pixels: its distance from the picture's edges, the space inside of its
# own edges, the radius of its corners, the portrait's diameter, and the spaces between its parts.
_INSET: Final = 60
_PADDING: Final = 68
_RADIUS: Final = 44
_PORTRAIT: Final = 112
_AFTER_PORTRAIT: Final = 28
_BEFORE_WORDS: Final = 44
_BEFORE_DATE: Final = 40
# For each line of text: the height of its box, and the largest and the smallest font size, in pixels.
_NAME_HEIGHT, _NAME_SIZES = 52, (42, 34)
_LONG_NAME_HEIGHT, _LONG_NAME_SIZES = 132, (36, 24)
_HANDLE_HEIGHT, _HANDLE_SIZES = 84, (34, 24)
_DATE_HEIGHT, _DATE_SIZES = 60, (30, 26)
_OPTICAL_CENTRE: Final = 0.47
"""Share of the free height above the card: exactly in the middle it looks as if it had slipped down."""

_WORDS: Final = Style(weight=450, optical=26, line_height=1.32, hang=_INSET + _PADDING - MARGIN)
_NAME: Final = Style(weight=700, optical=24, line_height=1.2)
_HANDLE: Final = Style(weight=450, optical=20, line_height=1.25)
_DATE: Final = Style(weight=450, optical=18, line_height=1.25)

_MIN_DISC_CONTRAST: Final = 1.25
"""The least contrast at which a coloured disc is visible on the card."""
_MARKED: Final = re.compile(r"(?<![\w&/@#])[#@\uff03\uff20][^\W_][\w.\-]*\w|(?<![\w&/@#])[#@][^\W\d_]")
"""Hashtags and mentions such as "#Rye2026" and "@a.berg", also of one letter ("#x"), but not "you@example"."""

_OWN_CHECKS: Final = ("content", "length", "link_count")
_RULES: Final = f"""\
A Persona Tweet is one idea from one source, drawn as large words on a picture that stands alone.
- At most {MAX_LENGTH - 20} characters, better 80 to 180: they are read at a glance. An emoji counts as two.
- The first words say what happened or why it matters. No greeting, no announcement of what follows.
- Write no link and no address: nobody can follow one in a picture. No hashtags. Mention no account.
- One or two sentences; a line break only between them.
"""


def format_date(on: date, language: str) -> str:
    """Return the date with the month in words if the language is known, else in ISO 8601."""
    tag = language.lower().replace("_", "-")
    date_format = _DATE_FORMATS.get(tag) or _DATE_FORMATS.get(tag.partition("-")[0])
    if date_format is None:
        return on.isoformat()
    pattern, months = date_format
    return pattern.format(day=on.day, month=months.split()[on.month - 1], year=on.year)


class PersonaTweet(Engine):
    """Makes a picture whose words are chosen and checked as a Short Post's are.

    The link to the source is in the caption, not on the picture.
    """

    kind = "persona_tweet"
    name = "Persona Tweet"
    bucket = "image"
    version = 1
    credits = 2
    made_from = ("text", "topic")
    sizes = SIZES

    def __init__(self) -> None:
        self._post = ShortPost()

    def why_not(self, source: SourceText) -> str | None:
        return self._post.why_not(source)

    def offline(self, brief: Brief, persona: PersonaCard, *, variants: int, seed: str) -> tuple[Draft, ...]:
        """Return a Short Post's drafts as cards, the best first, whatever the seed."""
        posts = self._post.offline(_without_url(brief), persona, variants=variants, seed=seed)
        return tuple(_as_card(post, brief) for post in posts)

    def draft_schema(self) -> Mapping[str, Any]:
        return variant_schema({"text": {"type": "string", "description": "The words on the picture."}})

    def rules(self) -> str:
        return _RULES

    def draft_from(self, answer: Mapping[str, Any], brief: Brief, persona: PersonaCard, angle: str) -> Draft:
        return _as_card(self._post.draft_from(answer, _without_url(brief), persona, angle), brief)

    def check(
        self, draft: Draft, brief: Brief, source: SourceText, persona: PersonaCard
    ) -> tuple[Check, ...]:
        """Run Short Post's rules for the words, and check that they can be drawn in every size."""
        as_post = dataclasses.replace(draft, content={"parts": [draft.body]})
        post_checks = self._post.check(as_post, brief, source, persona)
        length = next(check for check in post_checks if check.code == "length")
        return (
            _check_content(draft, brief, source, persona),
            length,
            *(check for check in post_checks if check.code not in _OWN_CHECKS),
            check_picture_links(draft.body),
            check_glyphs(draft.body, draft.language, persona),
            _check_fits(draft, persona),
        )

    def plan(self, draft: Draft, persona: PersonaCard, media: AvailableMedia) -> Layout:
        """Return one picture.

        Raises `MissingGlyphs` if the fonts lack a character, `TextDoesNotFit` if a text is too long, and
        `ValueError` for a size that isn't in `SIZES`.
        """
        if media.size not in SIZES:
            message = f"A Persona Tweet is {SIZES[0]} or {SIZES[1]} pixels, not {media.size}."
            raise ValueError(message)
        return Layout((_Card(draft, persona, media).picture(),))


def _without_url(brief: Brief) -> Brief:
    return dataclasses.replace(brief, url="")


def _as_card(post: Draft, brief: Brief) -> Draft:
    url = ascii_url(brief.url)
    return dataclasses.replace(post, content={"caption": with_last_line(post.body, url), "slides": []})


def _check_content(draft: Draft, brief: Brief, source: SourceText, persona: PersonaCard) -> Check:
    fault = None
    caption = draft.content.get("caption")
    if not draft.body.strip():
        fault = "The picture has no words."
    elif not isinstance(caption, str) or draft.content.get("slides") != []:
        fault = "The content of a Persona Tweet is a caption and no slides."
    else:
        fault = caption_fault(draft, brief, source, persona)
    return make_check("content", "The picture has words and a caption.", fault)


def _check_fits(draft: Draft, persona: PersonaCard) -> Check:
    fault = None
    for size in SIZES:
        try:
            _Card(draft, persona, AvailableMedia(size=size)).picture()
        except Refused as refused:
            fault = f"At {size[0]} × {size[1]} pixels: {refused.message}"
            break
    return make_check("fits", f"The words fit into each size at {MIN_SIZE} pixels or more.", fault)


class _Colours:
    """The card's colours, made of the persona's two; each text has a contrast of at least 4.5."""

    def __init__(self, persona: PersonaCard) -> None:
        """Make each text colour readable on the card, and the disc visible on it and under its initials."""
        self.ground, self.accent = brand_colours(persona)
        self.card = colour.WHITE
        self.words = colour.readable(colour.mix(self.ground, "#0b0d12", 0.88), self.card, 12.0)
        self.faint = colour.readable(colour.mix(self.words, self.card, 0.42), self.card)
        self.marked = colour.readable(self.accent, self.card)
        visible_colours = (
            candidate
            for candidate in (self.accent, self.ground)
            if colour.contrast(candidate, self.card) >= _MIN_DISC_CONTRAST
        )
        self.disc = next(visible_colours, self.words)
        self.initials = max(
            (colour.WHITE, self.words),
            # White wins unless the other colour's contrast is higher by more than 1.
            key=lambda ink: colour.contrast(ink, self.disc) + (ink == colour.WHITE),
        )
        if colour.contrast(self.initials, self.disc) < colour.MIN_TEXT_CONTRAST:
            self.disc = colour.readable(self.disc, self.initials)


class _Card:
    """Lays out one card: a header, the words, a date. It is mirrored if the words run from right to left."""

    def __init__(self, draft: Draft, persona: PersonaCard, media: AvailableMedia) -> None:
        self.draft = draft
        self.persona = persona
        self.media = media
        self.width, self.height = media.size
        self.colours = _Colours(persona)
        is_rtl_by_letters = first_strong_is_rtl(draft.body)
        self.is_rtl = is_rtl_language(draft.language) if is_rtl_by_letters is None else is_rtl_by_letters
        self.left = _INSET + _PADDING
        self.text_width = self.width - 2 * self.left
        self.right = self.left + self.text_width

    def picture(self) -> PicturePlan:
        """Return the plan of the card: as high as its contents, and somewhat above the picture's middle."""
        name, handle, header = self._lay_out_header()
        date_block = self._lay_out_date()
        date_height = _BEFORE_DATE + date_block.height if date_block else 0.0
        frame = 2 * _PADDING + header + _BEFORE_WORDS + date_height
        words = self._lay_out_words(self.height - 2 * _INSET - frame)
        height = round(frame + words.height)
        top = round((self.height - height) * _OPTICAL_CENTRE)
        colours = self.colours
        items: list[Item] = [
            Panel(_INSET, top, self.width - 2 * _INSET, height, _RADIUS, colours.card, has_shadow=True)
        ]
        y = top + _PADDING
        items += self._lay_out_face(y + (header - _PORTRAIT) / 2)
        text_top = y + (header - name.height - (handle.height if handle else 0)) / 2
        text_x = self.left if self.is_rtl else self.left + _PORTRAIT + _AFTER_PORTRAIT
        items.append(self._place(name, text_x, text_top, colours.words))
        if handle:
            items.append(self._place(handle, text_x, text_top + name.height, colours.faint))
        y_words = y + header + _BEFORE_WORDS
        items.append(self._place(words, self.left, y_words, colours.words))
        if date_block:
            items.append(
                self._place(date_block, self.left, y_words + words.height + _BEFORE_DATE, colours.faint)
            )
        return PicturePlan(
            name=f"persona-tweet-{self.width}x{self.height}.jpg",
            role="image" if self.media.size == SIZES[0] else "alternative",
            width=self.width,
            height=self.height,
            background=colours.ground,
            items=tuple(items),
            alt_text=f"{self.draft.body} – {self.persona.name}",
        )

    def _place(self, block: Block, x: float, y: float, ink: str) -> DrawnText:
        return DrawnText(round(x, 2), round(y, 2), block, ink, self.colours.marked)

    def _line(
        self, text: str, box: tuple[float, float], style: Style, sizes: tuple[int, int], language: str
    ) -> Block:
        """Lay out text at the card's leading edge, whichever way the text runs."""
        return at_leading_edge(text, box, style, sizes, language=language, is_rtl=self.is_rtl)

    def _lay_out_header(self) -> tuple[Block, Block | None, float]:
        """Return the persona's name, its handle or `None`, and the header's height in pixels."""
        text_width = self.text_width - _PORTRAIT - _AFTER_PORTRAIT
        language = self.persona.language
        name = typeset(" ".join(self.persona.name.split()), language)
        try:
            name_block = self._line(name, (text_width, _NAME_HEIGHT), _NAME, _NAME_SIZES, language)
        except TextDoesNotFit:
            name_block = self._line(name, (text_width, _LONG_NAME_HEIGHT), _NAME, _LONG_NAME_SIZES, language)
        handle = handle_of(self.persona)
        handle_block = None
        if handle:
            handle_block = self._line(handle, (text_width, _HANDLE_HEIGHT), _HANDLE, _HANDLE_SIZES, "en")
        height = name_block.height + (handle_block.height if handle_block else 0.0)
        return name_block, handle_block, max(float(_PORTRAIT), height)

    def _lay_out_date(self) -> Block | None:
        if self.media.shown_on is None:
            return None
        language = self.draft.language or self.persona.language
        date_text = format_date(self.media.shown_on, language)
        return self._line(date_text, (self.text_width, _DATE_HEIGHT), _DATE, _DATE_SIZES, language)

    def _lay_out_words(self, max_height: float) -> Block:
        """Lay out the words in half of the picture's height, or in `max_height` if they don't fit there."""
        text = typeset(self.draft.body, self.draft.language)
        accents = [match.span() for match in _MARKED.finditer(text)]
        accents += [(link.start, link.end) for link in find_links(text)]
        height = min(max_height, self.height * _PREFERRED_SHARE)
        try:
            return self._fit_words(text, height, accents)
        except TextDoesNotFit:
            return self._fit_words(text, max_height, accents)

    def _fit_words(self, text: str, height: float, accents: list[tuple[int, int]]) -> Block:
        return layout(
            text,
            (self.text_width, height),
            _WORDS,
            largest=_LARGEST_SIZE,
            smallest=MIN_SIZE,
            language=self.draft.language,
            direction="rtl" if self.is_rtl else "ltr",
            accents=accents,
        )

    def _lay_out_face(self, y: float) -> list[Item]:
        x = self.right - _PORTRAIT if self.is_rtl else self.left
        return lay_out_face(
            self.persona,
            (x, y),
            _PORTRAIT,
            has_portrait=self.media.has_portrait,
            disc=self.colours.disc,
            on_disc=self.colours.initials,
        )


PLUGIN = PersonaTweet()
