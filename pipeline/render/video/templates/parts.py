"""What templates of films share: who shows it, their colours, and the parts that stand in a frame."""

from __future__ import annotations

import dataclasses
import re
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from pipeline.render import colour
from pipeline.render.picture_plan import Disc, DrawnText, Panel, Portrait
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
    """A passage on the screen, and the words that are said of it; a hook that is too long isn't said."""

    text: str
    words: tuple[Word, ...]
    start: float
    end: float


@dataclass(frozen=True)
class TextBox:
    """What a piece of text may take: characters, a box in pixels, and the sizes between which it is set."""

    characters: int
    width: float
    height: float
    largest: int
    smallest: int


LEFT, TOP, RIGHT, BOTTOM = SAFE_AREA
ROOM: Final = float(RIGHT - LEFT)
LEAVE: Final = 0.17
"""Seconds in which what has been read goes."""
STEP: Final = 0.07
"""Between two lines that come one after the other."""
WIPE: Final = 0.5

TITLE: Final = Style(weight=800, optical=32, line_height=1.08)
LABEL: Final = Style(weight=600, optical=26, line_height=1.2)
_PERSON: Final = Style(weight=700, optical=28, line_height=1.2)
_INITIALS: Final = Style(weight=650, optical=32, line_height=1.2, align="center")

LABELLED: Final = re.compile(r"([^:：]{2,24})[:：]\s+(\S.*)", re.DOTALL)
"""What begins with a word that says what it is, as “Source: news.example”."""
_COUNTED: Final = re.compile(r"(?<=\d) (?=[^\W\d_])")
_PALETTES: Final = (
    ("#14324f", "#ff8a4c"),
    ("#0f4a4a", "#ffb454"),
    ("#3b2f63", "#ff7f9c"),
    ("#64212f", "#f6b94a"),
    ("#12405c", "#5fd0c5"),
    ("#2c4433", "#f2a541"),
)
INK: Final = "#0b0d12"
FACE: Final = 200
PERSON_Y: Final = 1050


@dataclass(frozen=True)
class Cast:
    """Who shows it: the persona's name, handle and colours."""

    name: str = ""
    handle: str = ""
    primary: str | None = None
    accent: str | None = None
    has_portrait: bool = False


@dataclass(frozen=True)
class SceneColours:
    """A scene's colours: its ground, what is read on it, and what stands out."""

    ground: str
    ground_to: str
    words: str
    faint: str
    accent: str
    quiet: str


class Parts:
    """Everything stands on one edge, which is the right one where the words run from right to left."""

    def __init__(self, cast: Cast, language: str, *, first: str) -> None:
        """`first` are the words whose direction is the film's."""
        self.cast, self.language = cast, language
        strong = first_strong_is_rtl(first)
        self.is_rtl = is_rtl_language(language) if strong is None else strong
        self.direction: Literal["rtl", "ltr"] = "rtl" if self.is_rtl else "ltr"
        own = _PALETTES[zlib.crc32(cast.name.encode()) % len(_PALETTES)]
        self.primary = colour.parse(cast.primary) or own[0]
        self.accent = colour.parse(cast.accent) or own[1]

    # Colours

    def dark(self) -> SceneColours:
        ground = colour.mix(self.primary, INK, 0.18)
        ground = colour.readable(ground, colour.WHITE, 7.0)
        return self.look(ground, colour.mix(ground, INK, 0.55), colour.WHITE)

    def paper(self) -> SceneColours:
        """A light scene."""
        ground = colour.mix(colour.mix(self.primary, self.accent, 0.3), "#fffdf8", 0.93)
        return self.look(ground, "", colour.readable(colour.mix(self.primary, INK, 0.55), ground, 10.0))

    def look(self, ground: str, ground_to: str, words: str) -> SceneColours:
        return SceneColours(
            ground=ground,
            ground_to=ground_to,
            words=words,
            faint=colour.readable(colour.mix(words, ground, 0.3), ground),
            accent=colour.readable(self.accent, ground, 3.0),
            quiet=colour.mix(ground, words, 0.16),
        )

    # Parts

    def set(self, called: str, room: TextBox, words: str, style: Style) -> Block:
        """Shrunk from the slot's largest size to its smallest, never cut. `called` names it to people."""
        try:
            return layout(
                # A number stays with what it counts.
                _COUNTED.sub("\u00a0", typeset(words, self.language)),
                (room.width, room.height),
                style,
                largest=room.largest,
                smallest=room.smallest,
                language=self.language,
                direction=self.direction,
            )
        except TextDoesNotFit as refused:
            message = (
                f"The {called} doesn't fit into {room.width:.0f} × {room.height:.0f} pixels at {room.smallest} pixels, "
                f"its smallest size: “{words[:60]}”. Shorten it."
            )
            raise TextDoesNotFit(room.width, room.height, room.smallest, why=message) from refused

    def address(self, room: TextBox, said: str) -> Block:
        """On one line while it can be: an address that is broken is hard to read."""
        shown = typeset(said, self.language)
        for size in range(room.largest, room.smallest - 1, -4):
            try:
                return self.one_of(shown, TITLE, size)
            except TextDoesNotFit:
                continue
        return self.set("end", room, said, TITLE)

    def line(self, words: str, style: Style, sizes: tuple[int, int]) -> Block:
        """At most two lines; a handle or an address reads from left to right wherever it stands."""
        strong = first_strong_is_rtl(words)
        is_rtl = self.is_rtl if strong is None else strong
        return layout(
            words,
            # Some scripts have taller lines than Latin.
            (ROOM, sizes[0] * style.line_height * 3),
            style if is_rtl is self.is_rtl else dataclasses.replace(style, align="end"),
            largest=sizes[0],
            smallest=sizes[1],
            language=self.language,
            direction="rtl" if is_rtl else "ltr",
        )

    def one_of(self, words: str, style: Style, size: int) -> Block:
        """Raises `TextDoesNotFit` where it takes more than one line."""
        block = self.line(words, style, (size, size))
        if len(block.lines) > 1:
            raise TextDoesNotFit(ROOM, block.height, size)
        return block

    def lines(
        self,
        block: Block,
        y: float,
        span: tuple[float, float],
        look: SceneColours,
        *,
        name: str,
        is_last: bool = False,
    ) -> Iterator[Overlay]:
        """A block whose lines come one after the other."""
        for place, line in enumerate(block.lines):
            alone = dataclasses.replace(block, lines=(line,))
            yield Overlay(
                round(span[0] + place * STEP, 4),
                span[1],
                (DrawnText(float(LEFT), round(y, 2), alone, look.words, look.accent),),
                enter=Motion("rise", 0.45, 64.0),
                leave=Motion() if is_last else Motion("rise", LEAVE, 46.0),
                name=name,
            )

    def bar(self, start: float, end: float, y: int, look: SceneColours, *, delay: float) -> Overlay:
        x = RIGHT - 132 if self.is_rtl else LEFT
        return Overlay(
            round(start + delay, 4),
            end,
            (Panel(x, y, 132, 14, 6, look.accent),),
            enter=Motion("grow", 0.6),
            leave=Motion("fade", LEAVE),
            name="bar",
        )

    def scenery(self, start: float, end: float, look: SceneColours) -> Iterator[Overlay]:
        """Two discs that drift, as large as the words leave room for."""
        mirror = self.is_rtl
        for size, x, y, tone, far in (
            (620, 640, 760, colour.mix(look.ground, look.accent, 0.2), 90.0),
            # Below everything that is read.
            (300, 700, 1460, look.accent, 190.0),
        ):
            yield Overlay(
                round(start, 4),
                end,
                (Disc(SIZE[0] - x - size if mirror else x, y, size, tone),),
                enter=Motion("drift", round(end - start - LEAVE, 4), far),
                leave=Motion("fade", LEAVE),
                name="scenery",
            )

    def person(
        self,
        start: float,
        end: float,
        look: SceneColours,
        *,
        comes: float,
        is_last: bool = False,
        y: int = PERSON_Y,
        size: int = FACE,
    ) -> Iterator[Overlay]:
        """Who shows it: portrait or initials `size` pixels large, and the name under it."""
        leave = Motion() if is_last else Motion("rise", LEAVE, 46.0)
        face = self.face(look, y, size)
        if face:
            yield Overlay(
                round(start, 4),
                end,
                face,
                enter=Motion("rise", comes + 0.2, 60.0) if is_last else Motion(),
                leave=leave,
                name="face",
            )
        below = float(y + size + 24)
        name, handle = " ".join(self.cast.name.split()), handle_of(self.cast)
        for words, style, sizes, ink_of in (
            (typeset(name, self.language), _PERSON, (52, 32), look.words),
            (handle, LABEL, (40, 26), look.faint),
        ):
            if not words:
                continue
            block = self.one_line(words, style, sizes)
            yield Overlay(
                round(start, 4),
                end,
                (DrawnText(float(LEFT), round(below, 2), block, ink_of, look.accent),),
                enter=Motion("rise", comes + 0.25, 60.0) if is_last else Motion(),
                leave=leave,
                name="person",
            )
            below += block.height + 4

    def one_line(self, words: str, style: Style, sizes: tuple[int, int]) -> Block:
        """A name may be long: then it is small, and at its smallest it may take two lines."""
        for size in range(sizes[0], sizes[1] - 1, -4):
            try:
                return self.one_of(words, style, size)
            except TextDoesNotFit:
                continue
        return self.line(words, style, (sizes[1], 20))

    def face(self, look: SceneColours, y: int, size: int) -> tuple[Item, ...]:
        x = RIGHT - size if self.is_rtl else LEFT
        if self.cast.has_portrait:
            return (Portrait(x, y, size),)
        initials = initials_of(self.cast.name)
        if not initials:
            return ()
        disc = Disc(x, y, size, look.words)
        block = layout(
            initials, (size * 0.8, float(size)), _INITIALS, largest=round(size * 0.42), smallest=30
        )
        # What is drawn stands in the middle of the disc, not its line.
        left, top, right, bottom = ink_box(block)
        place = x + size / 2 - (left + right) / 2, y + size / 2 - (top + bottom) / 2
        letters = colour.readable(look.ground, look.words, 7.0)
        return (disc, DrawnText(round(place[0], 2), round(place[1], 2), block, letters, letters))


def handle_of(cast: Cast) -> str:
    bare = cast.handle.strip().lstrip("@\uff20")
    return f"@{bare}" if bare else ""


def initials_of(name: str) -> str:
    """The first letters of the first and the last word."""
    letters = [
        word[0]
        for words in name.split()
        if (word := [one for one in split_clusters(words) if one[0].isalpha()])
    ]
    if not letters:
        return ""
    firsts = [letter.upper() for letter in dict.fromkeys((letters[0], letters[-1]))]
    return "".join(firsts) if letters[0].upper() != letters[0].lower() else letters[0]


def whole_frames(seconds: float) -> float:
    return round(round(seconds * FPS) / FPS, 4)
