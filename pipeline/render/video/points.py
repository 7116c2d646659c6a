"""The template `points`: a title, three points one after the other, an end card; nothing is spoken."""

from __future__ import annotations

import dataclasses
import re
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from pipeline.plugins import Refused
from pipeline.render import colour
from pipeline.render.bidi import first_strong_is_rtl, is_rtl_language
from pipeline.render.blocks import Style
from pipeline.render.clusters import split
from pipeline.render.plan import Disc, Panel, Portrait, Words
from pipeline.render.text import DoesNotFit, ink, layout
from pipeline.render.typeset import typeset
from pipeline.render.video.storyboard import (
    FPS,
    HOOK,
    SAFE_AREA,
    SIZE,
    Caption,
    Meta,
    Motion,
    Overlay,
    Scene,
    Storyboard,
    Transition,
    Visual,
    Word,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pipeline.render.blocks import Block
    from pipeline.render.video.storyboard import Item

NAME: Final = "points"
POINTS: Final = 3


@dataclass(frozen=True)
class Slot:
    """What a piece of text may take: characters, a box in pixels, and the sizes between which it is set."""

    characters: int
    width: float
    height: float
    largest: int
    smallest: int


_LEFT, _TOP, _RIGHT, _BOTTOM = SAFE_AREA
_ROOM: Final = float(_RIGHT - _LEFT)

SLOTS: Final[Mapping[str, Slot]] = {
    "title": Slot(72, _ROOM, float(HOOK[1] - HOOK[0]), 112, 56),
    "point": Slot(110, _ROOM, 620.0, 104, 52),
    "end": Slot(72, _ROOM, 300.0, 84, 44),
}

_READ: Final = 26.0
"""Characters that people read in a second of large words on a screen."""
_SETTLE: Final = 0.7
_TITLE_SECONDS: Final = (2.4, 3.0)
_POINT_SECONDS: Final = (2.4, 4.8)
_END_SECONDS: Final = 2.4
_WIPE: Final = 0.5
_LEAVE: Final = 0.17
_STEP: Final = 0.07
"""Between two lines that come one after the other."""

_TITLE: Final = Style(weight=800, optical=32, line_height=1.08)
_POINT: Final = Style(weight=700, optical=32, line_height=1.16)
_NUMBER: Final = Style(weight=800, optical=32, line_height=1.0)
_LABEL: Final = Style(weight=600, optical=26, line_height=1.2)
_PERSON: Final = Style(weight=700, optical=28, line_height=1.2)
_INITIALS: Final = Style(weight=650, optical=32, line_height=1.2, align="center")

_LABELLED: Final = re.compile(r"([^:：]{2,24})[:：]\s+(\S.*)", re.DOTALL)
_COUNTED: Final = re.compile(r"(?<=\d) (?=[^\W\d_])")
_PALETTES: Final = (
    ("#14324f", "#ff8a4c"),
    ("#0f4a4a", "#ffb454"),
    ("#3b2f63", "#ff7f9c"),
    ("#64212f", "#f6b94a"),
    ("#12405c", "#5fd0c5"),
    ("#2c4433", "#f2a541"),
)
_INK: Final = "#0b0d12"
_FACE: Final = 200
_PERSON_Y: Final = 1050


@dataclass(frozen=True)
class Cast:
    """Who shows it: the persona's name, handle and colours."""

    name: str = ""
    handle: str = ""
    primary: str | None = None
    accent: str | None = None
    has_portrait: bool = False


@dataclass(frozen=True)
class Values:
    """The words of each slot, as they were written."""

    title: str
    points: tuple[str, ...]
    end: str

    def slots(self) -> Iterator[tuple[str, str, str]]:
        """Slot, what a person calls it, and its words."""
        yield "title", "The title", self.title
        for place, point in enumerate(self.points, start=1):
            yield "point", f"Point {place}", point
        yield "end", "The end card", self.end


@dataclass(frozen=True)
class _Look:
    """A scene's colours: its ground, what is read on it, and what stands out."""

    ground: str
    ground_to: str
    words: str
    faint: str
    accent: str
    quiet: str


def plan(values: Values, cast: Cast, *, language: str, alt_text: str = "") -> Storyboard:
    """The film of these words. Raises `MissingGlyphs`, or `DoesNotFit` with the slot that is too small for them."""
    return _Film(values, cast, language).board(alt_text)


def seconds_of(values: Values) -> float:
    """How long it is: what is longer to read stands longer."""
    return sum(_lengths(values))


def _lengths(values: Values) -> list[float]:
    title = _length(values.title, _TITLE_SECONDS)
    return [title, *(_length(point, _POINT_SECONDS) for point in values.points), _END_SECONDS]


def _length(words: str, bounds: tuple[float, float]) -> float:
    wanted = min(max(_SETTLE + len(words) / _READ, bounds[0]), bounds[1])
    return round(wanted * FPS) / FPS


class _Film:
    """Everything stands on one edge, which is the right one where the words run from right to left."""

    def __init__(self, values: Values, cast: Cast, language: str) -> None:
        self._values, self._cast, self._language = values, cast, language
        strong = first_strong_is_rtl(values.title)
        self._is_rtl = is_rtl_language(language) if strong is None else strong
        self._direction: Literal["rtl", "ltr"] = "rtl" if self._is_rtl else "ltr"
        own = _PALETTES[zlib.crc32(cast.name.encode()) % len(_PALETTES)]
        self._primary = colour.parse(cast.primary) or own[0]
        self._accent = colour.parse(cast.accent) or own[1]

    def board(self, alt_text: str) -> Storyboard:
        lengths = _lengths(self._values)
        ends = [round(sum(lengths[: place + 1]), 4) for place in range(len(lengths))]
        starts = [0.0, *ends[:-1]]
        looks = [self._dark(), *(self._of_point(place) for place in range(POINTS)), self._dark()]
        scenes = tuple(
            Scene(
                start,
                end,
                Visual("colour", colour=look.ground, colour_to=look.ground_to),
                Transition("wipe", _WIPE) if place else Transition(),
            )
            for place, (start, end, look) in enumerate(zip(starts, ends, looks, strict=True))
        )
        overlays = [*self._hook(ends[0], looks[0])]
        for place, point in enumerate(self._values.points):
            overlays += self._point(place, point, (starts[place + 1], ends[place + 1]), looks[place + 1])
        overlays += self._end(starts[-1], ends[-1], looks[-1])
        return Storyboard(
            scenes=scenes,
            overlays=tuple(overlays),
            told=tuple(
                Caption((Word(words, start, end),), start, end)
                for start, end, (_, _, words) in zip(starts, ends, self._values.slots(), strict=True)
            ),
            meta=Meta(
                title=self._values.title,
                alt_text=alt_text,
                language=self._language,
                template=NAME,
                thumbnail_at=round(ends[0] - 0.7, 4),
            ),
        )

    # Colours

    def _dark(self) -> _Look:
        ground = colour.mix(self._primary, _INK, 0.18)
        ground = colour.readable(ground, colour.WHITE, 7.0)
        return self._look(ground, colour.mix(ground, _INK, 0.55), colour.WHITE)

    def _of_point(self, place: int) -> _Look:
        if place % 2:
            return self._dark()
        paper = colour.mix(colour.mix(self._primary, self._accent, 0.3), "#fffdf8", 0.93)
        return self._look(paper, "", colour.readable(colour.mix(self._primary, _INK, 0.55), paper, 10.0))

    def _look(self, ground: str, ground_to: str, words: str) -> _Look:
        return _Look(
            ground=ground,
            ground_to=ground_to,
            words=words,
            faint=colour.readable(colour.mix(words, ground, 0.3), ground),
            accent=colour.readable(self._accent, ground, 3.0),
            quiet=colour.mix(ground, words, 0.16),
        )

    # Scenes

    def _hook(self, end: float, look: _Look) -> Iterator[Overlay]:
        """The title stands there from the first frame on: it is the thumbnail of whoever scrolls past."""
        title = self._set("title", self._values.title, _TITLE)
        yield from self._scenery(0.0, end, look)
        yield self._bar(0.0, end, 262, look, delay=0.1)
        yield Overlay(
            0.0,
            end,
            (Words(float(_LEFT), float(HOOK[0]), title, look.words, look.accent),),
            leave=Motion("rise", _LEAVE, 46.0),
            name="title",
        )
        yield from self._person(0.0, end, look, comes=0.25)

    def _point(self, place: int, words: str, span: tuple[float, float], look: _Look) -> Iterator[Overlay]:
        start, end = span
        text = self._set("point", words, _POINT)
        yield from self._steps(place, span, look)
        number = layout(str(place + 1), (_ROOM, 320), _NUMBER, largest=260, smallest=120, direction="ltr")
        left, top, right, _ = ink(number)
        x = _RIGHT - right if self._is_rtl else _LEFT - left
        begun = round(start + 0.12, 4)
        yield Overlay(
            begun,
            end,
            (Words(round(x, 2), round(372 - top, 2), number, look.accent, look.accent),),
            enter=Motion("rise", 0.5, 90.0),
            leave=Motion("rise", _LEAVE, 46.0),
            name=f"number {place + 1}",
        )
        yield from self._lines(text, 680.0, (begun + _STEP, end), look, name=f"point {place + 1}")
        handle = _handle(self._cast)
        if handle:
            small = self._line(handle, _LABEL, (36, 26))
            yield Overlay(
                begun,
                end,
                (Words(float(_LEFT), 1384.0, small, look.faint, look.faint),),
                enter=Motion("fade", 0.3),
                leave=Motion("fade", _LEAVE),
                name="handle",
            )

    def _end(self, start: float, end: float, look: _Look) -> Iterator[Overlay]:
        matched = _LABELLED.fullmatch(self._values.end)
        label, said = (matched[1], matched[2]) if matched else ("", self._values.end)
        text = self._address(said)
        yield from self._scenery(start + 0.1, end, look)
        y = 420.0
        yield self._bar(start + 0.15, end, 372, look, delay=0.0)
        if label:
            small = self._line(typeset(label, self._language), _LABEL, (48, 32))
            yield Overlay(
                round(start + 0.2, 4),
                end,
                (Words(float(_LEFT), y, small, look.accent, look.accent),),
                enter=Motion("rise", 0.4, 50.0),
                name="label",
            )
            y += small.height + 14
        yield from self._lines(text, y, (start + 0.27, end), look, name="end", is_last=True)
        yield from self._person(start + 0.1, end, look, comes=0.3, is_last=True)

    # Parts

    def _set(self, slot: str, words: str, style: Style) -> Block:
        """Shrunk from the slot's largest size to its smallest, never cut."""
        room = SLOTS[slot]
        try:
            return layout(
                # A number stays with what it counts.
                _COUNTED.sub("\u00a0", typeset(words, self._language)),
                (room.width, room.height),
                style,
                largest=room.largest,
                smallest=room.smallest,
                language=self._language,
                direction=self._direction,
            )
        except DoesNotFit as refused:
            message = (
                f"The {slot} doesn't fit into {room.width:.0f} × {room.height:.0f} pixels at {room.smallest} pixels, "
                f"its smallest size: “{words[:60]}”. Shorten it."
            )
            raise DoesNotFit(room.width, room.height, room.smallest, why=message) from refused

    def _address(self, said: str) -> Block:
        """On one line while it can be: an address that is broken is hard to read."""
        shown = typeset(said, self._language)
        for size in range(SLOTS["end"].largest, SLOTS["end"].smallest - 1, -4):
            try:
                return self._one_of(shown, _TITLE, size)
            except DoesNotFit:
                continue
        return self._set("end", said, _TITLE)

    def _line(self, words: str, style: Style, sizes: tuple[int, int]) -> Block:
        """At most two lines; a handle or an address reads from left to right wherever it stands."""
        strong = first_strong_is_rtl(words)
        is_rtl = self._is_rtl if strong is None else strong
        return layout(
            words,
            # Some scripts have taller lines than Latin.
            (_ROOM, sizes[0] * style.line_height * 3),
            style if is_rtl is self._is_rtl else dataclasses.replace(style, align="end"),
            largest=sizes[0],
            smallest=sizes[1],
            language=self._language,
            direction="rtl" if is_rtl else "ltr",
        )

    def _one_of(self, words: str, style: Style, size: int) -> Block:
        """Raises `DoesNotFit` where it takes more than one line."""
        block = self._line(words, style, (size, size))
        if len(block.lines) > 1:
            raise DoesNotFit(_ROOM, block.height, size)
        return block

    def _lines(
        self,
        block: Block,
        y: float,
        span: tuple[float, float],
        look: _Look,
        *,
        name: str,
        is_last: bool = False,
    ) -> Iterator[Overlay]:
        """A block whose lines come one after the other."""
        for place, line in enumerate(block.lines):
            alone = dataclasses.replace(block, lines=(line,))
            yield Overlay(
                round(span[0] + place * _STEP, 4),
                span[1],
                (Words(float(_LEFT), round(y, 2), alone, look.words, look.accent),),
                enter=Motion("rise", 0.45, 64.0),
                leave=Motion() if is_last else Motion("rise", _LEAVE, 46.0),
                name=name,
            )

    def _bar(self, start: float, end: float, y: int, look: _Look, *, delay: float) -> Overlay:
        x = _RIGHT - 132 if self._is_rtl else _LEFT
        return Overlay(
            round(start + delay, 4),
            end,
            (Panel(x, y, 132, 14, 6, look.accent),),
            enter=Motion("grow", 0.6),
            leave=Motion("fade", _LEAVE),
            name="bar",
        )

    def _steps(self, place: int, span: tuple[float, float], look: _Look) -> Iterator[Overlay]:
        """How far it is: one dash for each point."""
        start, end = span
        gap, height = 16, 12
        width = (int(_ROOM) - gap * (POINTS - 1)) // POINTS
        order = range(POINTS - 1, -1, -1) if self._is_rtl else range(POINTS)
        panels = [
            Panel(
                _LEFT + at * (width + gap),
                268,
                width,
                height,
                5,
                look.accent if number < place else look.quiet,
            )
            for number, at in enumerate(order)
        ]
        yield Overlay(
            round(start + 0.1, 4),
            end,
            tuple(panels),
            enter=Motion("fade", 0.25),
            leave=Motion("fade", _LEAVE),
            name="steps",
        )
        at = _LEFT + order[place] * (width + gap)
        yield Overlay(
            round(start + 0.35, 4),
            end,
            (Panel(at, 268, width, height, 5, look.accent),),
            enter=Motion("grow", 0.7),
            leave=Motion("fade", _LEAVE),
            name="step",
        )

    def _scenery(self, start: float, end: float, look: _Look) -> Iterator[Overlay]:
        """Two discs that drift, as large as the words leave room for."""
        mirror = self._is_rtl
        for size, x, y, tone, far in (
            (620, 640, 760, colour.mix(look.ground, look.accent, 0.2), 90.0),
            # Below everything that is read.
            (300, 700, 1460, look.accent, 190.0),
        ):
            yield Overlay(
                round(start, 4),
                end,
                (Disc(SIZE[0] - x - size if mirror else x, y, size, tone),),
                enter=Motion("drift", round(end - start - _LEAVE, 4), far),
                leave=Motion("fade", _LEAVE),
                name="scenery",
            )

    def _person(
        self, start: float, end: float, look: _Look, *, comes: float, is_last: bool = False
    ) -> Iterator[Overlay]:
        """Who shows it: portrait or initials, and the name under it."""
        leave = Motion() if is_last else Motion("rise", _LEAVE, 46.0)
        face = self._face(look)
        if face:
            yield Overlay(
                round(start, 4),
                end,
                face,
                enter=Motion("rise", comes + 0.2, 60.0) if is_last else Motion(),
                leave=leave,
                name="face",
            )
        y = float(_PERSON_Y + _FACE + 24)
        name, handle = " ".join(self._cast.name.split()), _handle(self._cast)
        for words, style, sizes, ink_of in (
            (typeset(name, self._language), _PERSON, (52, 32), look.words),
            (handle, _LABEL, (40, 26), look.faint),
        ):
            if not words:
                continue
            block = self._one_line(words, style, sizes)
            yield Overlay(
                round(start, 4),
                end,
                (Words(float(_LEFT), round(y, 2), block, ink_of, look.accent),),
                enter=Motion("rise", comes + 0.25, 60.0) if is_last else Motion(),
                leave=leave,
                name="person",
            )
            y += block.height + 4

    def _one_line(self, words: str, style: Style, sizes: tuple[int, int]) -> Block:
        """A name may be long: then it is small, and at its smallest it may take two lines."""
        for size in range(sizes[0], sizes[1] - 1, -4):
            try:
                return self._one_of(words, style, size)
            except DoesNotFit:
                continue
        return self._line(words, style, (sizes[1], 20))

    def _face(self, look: _Look) -> tuple[Item, ...]:
        x = _RIGHT - _FACE if self._is_rtl else _LEFT
        if self._cast.has_portrait:
            return (Portrait(x, _PERSON_Y, _FACE),)
        initials = _initials(self._cast.name)
        if not initials:
            return ()
        disc = Disc(x, _PERSON_Y, _FACE, look.words)
        block = layout(initials, (_FACE * 0.8, float(_FACE)), _INITIALS, largest=84, smallest=30)
        # What is drawn stands in the middle of the disc, not its line.
        left, top, right, bottom = ink(block)
        place = x + _FACE / 2 - (left + right) / 2, _PERSON_Y + _FACE / 2 - (top + bottom) / 2
        letters = colour.readable(look.ground, look.words, 7.0)
        return (disc, Words(round(place[0], 2), round(place[1], 2), block, letters, letters))


def _handle(cast: Cast) -> str:
    bare = cast.handle.strip().lstrip("@\uff20")
    return f"@{bare}" if bare else ""


def _initials(name: str) -> str:
    """The first letters of the first and the last word."""
    letters = [
        word[0] for words in name.split() if (word := [one for one in split(words) if one[0].isalpha()])
    ]
    if not letters:
        return ""
    firsts = [letter.upper() for letter in dict.fromkeys((letters[0], letters[-1]))]
    return "".join(firsts) if letters[0].upper() != letters[0].lower() else letters[0]


def too_long(values: Values) -> str | None:
    """The sentence for the first slot with more characters than it takes; None where all have room."""
    for slot, called, words in values.slots():
        most = SLOTS[slot].characters
        if len(words) > most:
            return f"{called} has {len(words)} characters; {most} are the most."
    return None


class WrongCount(Refused):
    def __init__(self, found: int) -> None:
        super().__init__(f"A film of this template has {POINTS} points, not {found}.", code="wrong_count")
