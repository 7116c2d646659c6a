"""Builds the shared parts of film templates: the persona, the scenes' colours, and the overlays of texts."""

from __future__ import annotations

import dataclasses
import re
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from pipeline.render import colour
from pipeline.render.picture_types import Disc, DrawnText, Panel, Portrait
from pipeline.render.typography.bidi import first_strong_is_rtl, is_rtl_language
from pipeline.render.typography.clusters import split_clusters
from pipeline.render.typography.layout_types import Style
from pipeline.render.typography.punctuation import typeset
from pipeline.render.typography.text_layout import TextDoesNotFit, ink_box, layout
from pipeline.render.video.storyboard import FPS, SAFE_AREA, SIZE, Motion, Overlay

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipeline.render.typography.layout_types import Block
    from pipeline.render.video.storyboard import Item, Word


@dataclass(frozen=True)
class TimedPassage:
    """A passage on the screen from second `start` to `end`, and its spoken words, which a long hook doesn't have."""

    text: str
    words: tuple[Word, ...]
    start: float
    end: float


@dataclass(frozen=True)
class TextBox:
    """The limits of a text: its characters, the box in pixels, and its largest and smallest font size."""

    characters: int
    width: float
    height: float
    largest: int
    smallest: int


LEFT, _, RIGHT, _ = SAFE_AREA
WIDTH: Final = float(RIGHT - LEFT)
LEAVE_SECONDS: Final = 0.17
"""The time in which an overlay leaves after it was read."""
LINE_DELAY_SECONDS: Final = 0.07
"""The time between two lines that come one after the other."""
WIPE_SECONDS: Final = 0.5

TITLE: Final = Style(weight=800, optical=32, line_height=1.08)
LABEL: Final = Style(weight=600, optical=26, line_height=1.2)
_PERSON: Final = Style(weight=700, optical=28, line_height=1.2)
_INITIALS: Final = Style(weight=650, optical=32, line_height=1.2, align="center")

LABELLED_TEXT: Final = re.compile(r"([^:：]{2,24})[:：]\s+(\S.*)", re.DOTALL)
"""A text that begins with a label, as “Source: news.example”."""
_SPACE_AFTER_NUMBER: Final = re.compile(r"(?<=\d) (?=[^\W\d_])")
_PALETTES: Final = (
    ("#14324f", "#ff8a4c"),
    ("#0f4a4a", "#ffb454"),
    ("#3b2f63", "#ff7f9c"),
    ("#64212f", "#f6b94a"),
    ("#12405c", "#5fd0c5"),
    ("#2c4433", "#f2a541"),
)
INK: Final = "#0b0d12"
FACE_PIXELS: Final = 200
PERSON_TOP: Final = 1050


@dataclass(frozen=True)
class Cast:
    """The persona that presents the film: name, handle, colours, and whether there is a portrait."""

    name: str = ""
    handle: str = ""
    primary: str | None = None
    accent: str | None = None
    has_portrait: bool = False


@dataclass(frozen=True)
class SceneColours:
    """A scene's colours: its background down to `ground_to`, text, faint text, accents and quiet ornaments."""

    ground: str
    ground_to: str
    words: str
    faint: str
    accent: str
    quiet: str


class Parts:
    """Lays out the parts of a film at one edge, which is the right one if the film's text runs right to left."""

    def __init__(self, cast: Cast, language: str, *, first: str) -> None:
        """Set the persona and its colours; `first` is the text whose direction is the film's."""
        self.cast, self.language = cast, language
        first_strong = first_strong_is_rtl(first)
        self.is_rtl = is_rtl_language(language) if first_strong is None else first_strong
        self.direction: Literal["rtl", "ltr"] = "rtl" if self.is_rtl else "ltr"
        palette = _PALETTES[zlib.crc32(cast.name.encode()) % len(_PALETTES)]
        self.primary = colour.parse(cast.primary) or palette[0]
        self.accent = colour.parse(cast.accent) or palette[1]

    # Colours

    def dark_colours(self) -> SceneColours:
        """Return the colours of a dark scene."""
        ground = colour.mix(self.primary, INK, 0.18)
        ground = colour.readable(ground, colour.WHITE, 7.0)
        return self.scene_colours(ground, colour.mix(ground, INK, 0.55), colour.WHITE)

    def light_colours(self) -> SceneColours:
        """Return the colours of a light scene."""
        ground = colour.mix(colour.mix(self.primary, self.accent, 0.3), "#fffdf8", 0.93)
        return self.scene_colours(
            ground, "", colour.readable(colour.mix(self.primary, INK, 0.55), ground, 10.0)
        )

    def scene_colours(self, ground: str, ground_to: str, words: str) -> SceneColours:
        """Return a scene's colours for a background and its text."""
        return SceneColours(
            ground=ground,
            ground_to=ground_to,
            words=words,
            faint=colour.readable(colour.mix(words, ground, 0.3), ground),
            accent=colour.readable(self.accent, ground, 3.0),
            quiet=colour.mix(ground, words, 0.16),
        )

    # Parts

    def fit(self, label: str, box: TextBox, words: str, style: Style) -> Block:
        """Lay a text out in its box, never cut; `label` names the text to people.

        Raises `TextDoesNotFit`, with advice, if it is too long.
        """
        try:
            return layout(
                # A number stays on one line with what it counts.
                _SPACE_AFTER_NUMBER.sub("\u00a0", typeset(words, self.language)),
                (box.width, box.height),
                style,
                largest=box.largest,
                smallest=box.smallest,
                language=self.language,
                direction=self.direction,
            )
        except TextDoesNotFit as refused:
            message = (
                f"The {label} doesn't fit into {box.width:.0f} × {box.height:.0f} pixels at {box.smallest} pixels, "
                f"its smallest size: “{words[:60]}”. Shorten it."
            )
            raise TextDoesNotFit(box.width, box.height, box.smallest, why=message) from refused

    def fit_address(self, box: TextBox, text: str) -> Block:
        """Lay an address out, on one line if it fits, for easier reading. Raises `TextDoesNotFit` as `fit` does."""
        typeset_text = typeset(text, self.language)
        for size in range(box.largest, box.smallest - 1, -4):
            try:
                return self.fit_single_line(typeset_text, TITLE, size)
            except TextDoesNotFit:
                continue
        return self.fit("end", box, text, TITLE)

    def fit_line(self, words: str, style: Style, sizes: tuple[int, int]) -> Block:
        """Lay a text out on up to three lines, in its own direction: an address runs from left to right anywhere."""
        first_strong = first_strong_is_rtl(words)
        is_rtl = self.is_rtl if first_strong is None else first_strong
        return layout(
            words,
            # Some scripts have taller lines than Latin.
            (WIDTH, sizes[0] * style.line_height * 3),
            style if is_rtl is self.is_rtl else dataclasses.replace(style, align="end"),
            largest=sizes[0],
            smallest=sizes[1],
            language=self.language,
            direction="rtl" if is_rtl else "ltr",
        )

    def fit_single_line(self, words: str, style: Style, size: int) -> Block:
        """Lay a text out on a single line at one size. Raises `TextDoesNotFit` if it is longer."""
        block = self.fit_line(words, style, (size, size))
        if len(block.lines) > 1:
            raise TextDoesNotFit(WIDTH, block.height, size)
        return block

    def line_overlays(
        self,
        block: Block,
        y: float,
        times: tuple[float, float],
        colours: SceneColours,
        *,
        name: str,
        is_last: bool = False,
    ) -> Iterator[Overlay]:
        """Yield a block's lines as overlays that come one after the other."""
        for index, line in enumerate(block.lines):
            line_block = dataclasses.replace(block, lines=(line,))
            yield Overlay(
                round(times[0] + index * LINE_DELAY_SECONDS, 4),
                times[1],
                (DrawnText(float(LEFT), round(y, 2), line_block, colours.words, colours.accent),),
                enter=Motion("rise", 0.45, 64.0),
                leave=Motion() if is_last else Motion("rise", LEAVE_SECONDS, 46.0),
                name=name,
            )

    def bar_overlay(
        self, start: float, end: float, y: int, colours: SceneColours, *, delay: float
    ) -> Overlay:
        """Return a short bar that grows in the accent colour."""
        x = RIGHT - 132 if self.is_rtl else LEFT
        return Overlay(
            round(start + delay, 4),
            end,
            (Panel(x, y, 132, 14, 6, colours.accent),),
            enter=Motion("grow", 0.6),
            leave=Motion("fade", LEAVE_SECONDS),
            name="bar",
        )

    def scenery_overlays(self, start: float, end: float, colours: SceneColours) -> Iterator[Overlay]:
        """Yield two drifting discs, mirrored if the film's text runs right to left."""
        is_mirrored = self.is_rtl
        for size, x, y, colour_value, distance in (
            (620, 640, 760, colour.mix(colours.ground, colours.accent, 0.2), 90.0),
            # This one is below all text.
            (300, 700, 1460, colours.accent, 190.0),
        ):
            yield Overlay(
                round(start, 4),
                end,
                (Disc(SIZE[0] - x - size if is_mirrored else x, y, size, colour_value),),
                enter=Motion("drift", round(end - start - LEAVE_SECONDS, 4), distance),
                leave=Motion("fade", LEAVE_SECONDS),
                name="scenery",
            )

    def person_overlays(
        self,
        start: float,
        end: float,
        colours: SceneColours,
        *,
        enter_seconds: float,
        is_last: bool = False,
        y: int = PERSON_TOP,
        size: int = FACE_PIXELS,
    ) -> Iterator[Overlay]:
        """Yield the persona from `y` on: portrait or initials of `size` pixels, and name and handle below."""
        leave = Motion() if is_last else Motion("rise", LEAVE_SECONDS, 46.0)
        face = self.face_items(colours, y, size)
        if face:
            yield Overlay(
                round(start, 4),
                end,
                face,
                enter=Motion("rise", enter_seconds + 0.2, 60.0) if is_last else Motion(),
                leave=leave,
                name="face",
            )
        top = float(y + size + 24)
        name, handle = " ".join(self.cast.name.split()), handle_of(self.cast)
        for words, style, sizes, text_colour in (
            (typeset(name, self.language), _PERSON, (52, 32), colours.words),
            (handle, LABEL, (40, 26), colours.faint),
        ):
            if not words:
                continue
            block = self.fit_name(words, style, sizes)
            yield Overlay(
                round(start, 4),
                end,
                (DrawnText(float(LEFT), round(top, 2), block, text_colour, colours.accent),),
                enter=Motion("rise", enter_seconds + 0.25, 60.0) if is_last else Motion(),
                leave=leave,
                name="person",
            )
            top += block.height + 4

    def handle_overlays(self, times: tuple[float, float], colours: SceneColours) -> Iterator[Overlay]:
        """Yield the persona's handle, if it has one, at the foot of the safe area."""
        handle = handle_of(self.cast)
        if handle:
            block = self.fit_line(handle, LABEL, (36, 26))
            yield Overlay(
                *times,
                (DrawnText(float(LEFT), 1384.0, block, colours.faint, colours.faint),),
                enter=Motion("fade", 0.3),
                leave=Motion("fade", LEAVE_SECONDS),
                name="handle",
            )

    def fit_name(self, words: str, style: Style, sizes: tuple[int, int]) -> Block:
        """Lay a name out on one line, smaller the longer it is; at the smallest size it may take more lines."""
        for size in range(sizes[0], sizes[1] - 1, -4):
            try:
                return self.fit_single_line(words, style, size)
            except TextDoesNotFit:
                continue
        return self.fit_line(words, style, (sizes[1], 20))

    def face_items(self, colours: SceneColours, y: int, size: int) -> tuple[Item, ...]:
        """Return the portrait, or the initials on a disc, or nothing for a name without letters."""
        x = RIGHT - size if self.is_rtl else LEFT
        if self.cast.has_portrait:
            return (Portrait(x, y, size),)
        initials = initials_of(self.cast.name)
        if not initials:
            return ()
        disc = Disc(x, y, size, colours.words)
        block = layout(
            initials, (size * 0.8, float(size)), _INITIALS, largest=round(size * 0.42), smallest=30
        )
        # The ink is centred in the disc, not the line's box.
        left, top, right, bottom = ink_box(block)
        position = x + size / 2 - (left + right) / 2, y + size / 2 - (top + bottom) / 2
        letter_colour = colour.readable(colours.ground, colours.words, 7.0)
        return (
            disc,
            DrawnText(round(position[0], 2), round(position[1], 2), block, letter_colour, letter_colour),
        )


def handle_of(cast: Cast) -> str:
    """Return the handle with one @, or "" if there is none."""
    name = cast.handle.strip().lstrip("@\uff20")
    return f"@{name}" if name else ""


def initials_of(name: str) -> str:
    """Return the first letters of the name's first and last word, one in scripts without capitals, or "" for none."""
    letters = [
        word[0]
        for words in name.split()
        if (word := [cluster for cluster in split_clusters(words) if cluster[0].isalpha()])
    ]
    if not letters:
        return ""
    firsts = [letter.upper() for letter in dict.fromkeys((letters[0], letters[-1]))]
    return "".join(firsts) if letters[0].upper() != letters[0].lower() else letters[0]


def whole_frames(seconds: float) -> float:
    """Return the seconds rounded to whole frames."""
    return round(round(seconds * FPS) / FPS, 4)
