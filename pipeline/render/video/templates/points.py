"""The template `points`: a title, three points one after the other, an end card; nothing is spoken."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pipeline.render.picture_plan import DrawnText, Panel
from pipeline.render.typography.layout_types import Style
from pipeline.render.typography.punctuation import typeset
from pipeline.render.typography.text_layout import ink_box, layout
from pipeline.render.video.storyboard import (
    FPS,
    TITLE_BAND,
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
from pipeline.render.video.templates.parts import (
    LABEL,
    LABELLED,
    LEAVE,
    LEFT,
    RIGHT,
    ROOM,
    STEP,
    TITLE,
    WIPE,
    Cast,
    Parts,
    SceneColours,
    TextBox,
    handle_of,
)
from pipeline.text.prose.verbatim_edits import too_wide

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

NAME: Final = "points"
POINTS: Final = 3


SLOTS: Final[Mapping[str, TextBox]] = {
    "title": TextBox(72, ROOM, float(TITLE_BAND[1] - TITLE_BAND[0]), 112, 40),
    "point": TextBox(110, ROOM, 620.0, 104, 52),
    "end": TextBox(72, ROOM, 300.0, 84, 44),
}

_READ: Final = 26.0
"""Characters that people read in a second of large words on a screen."""
_SETTLE: Final = 0.7
_TITLE_SECONDS: Final = (2.4, 3.0)
_POINT_SECONDS: Final = (2.4, 4.8)
_END_SECONDS: Final = 2.4

_POINT: Final = Style(weight=700, optical=32, line_height=1.16)
_NUMBER: Final = Style(weight=800, optical=32, line_height=1.0)


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


def plan(values: Values, cast: Cast, *, language: str, alt_text: str = "") -> Storyboard:
    """The film of these words. Raises `MissingGlyphs`, or `TextDoesNotFit` with the slot that is too small for them."""
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


class _Film(Parts):
    def __init__(self, values: Values, cast: Cast, language: str) -> None:
        super().__init__(cast, language, first=values.title)
        self._values = values

    def board(self, alt_text: str) -> Storyboard:
        lengths = _lengths(self._values)
        ends = [round(sum(lengths[: place + 1]), 4) for place in range(len(lengths))]
        starts = [0.0, *ends[:-1]]
        looks = [self.dark(), *(self._of_point(place) for place in range(POINTS)), self.dark()]
        scenes = tuple(
            Scene(
                start,
                end,
                Visual("colour", colour=look.ground, colour_to=look.ground_to),
                Transition("wipe", WIPE) if place else Transition(),
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
                language=self.language,
                template=NAME,
                thumbnail_at=round(ends[0] - 0.7, 4),
            ),
        )

    def _of_point(self, place: int) -> SceneColours:
        return self.dark() if place % 2 else self.paper()

    # Scenes

    def _hook(self, end: float, look: SceneColours) -> Iterator[Overlay]:
        """The title stands there from the first frame on: it is the thumbnail of whoever scrolls past."""
        title = self.set("title", SLOTS["title"], self._values.title, TITLE)
        yield from self.scenery(0.0, end, look)
        yield self.bar(0.0, end, 262, look, delay=0.1)
        yield Overlay(
            0.0,
            end,
            (DrawnText(float(LEFT), float(TITLE_BAND[0]), title, look.words, look.accent),),
            leave=Motion("rise", LEAVE, 46.0),
            name="title",
        )
        yield from self.person(0.0, end, look, comes=0.25)

    def _point(
        self, place: int, words: str, span: tuple[float, float], look: SceneColours
    ) -> Iterator[Overlay]:
        start, end = span
        text = self.set("point", SLOTS["point"], words, _POINT)
        yield from self._steps(place, span, look)
        number = layout(str(place + 1), (ROOM, 320), _NUMBER, largest=260, smallest=120, direction="ltr")
        left, top, right, _ = ink_box(number)
        x = RIGHT - right if self.is_rtl else LEFT - left
        begun = round(start + 0.12, 4)
        yield Overlay(
            begun,
            end,
            (DrawnText(round(x, 2), round(372 - top, 2), number, look.accent, look.accent),),
            enter=Motion("rise", 0.5, 90.0),
            leave=Motion("rise", LEAVE, 46.0),
            name=f"number {place + 1}",
        )
        yield from self.lines(text, 680.0, (begun + STEP, end), look, name=f"point {place + 1}")
        handle = handle_of(self.cast)
        if handle:
            small = self.line(handle, LABEL, (36, 26))
            yield Overlay(
                begun,
                end,
                (DrawnText(float(LEFT), 1384.0, small, look.faint, look.faint),),
                enter=Motion("fade", 0.3),
                leave=Motion("fade", LEAVE),
                name="handle",
            )

    def _end(self, start: float, end: float, look: SceneColours) -> Iterator[Overlay]:
        matched = LABELLED.fullmatch(self._values.end)
        label, said = (matched[1], matched[2]) if matched else ("", self._values.end)
        text = self.address(SLOTS["end"], said)
        yield from self.scenery(start + 0.1, end, look)
        y = 420.0
        yield self.bar(start + 0.15, end, 372, look, delay=0.0)
        if label:
            small = self.line(typeset(label, self.language), LABEL, (48, 32))
            yield Overlay(
                round(start + 0.2, 4),
                end,
                (DrawnText(float(LEFT), y, small, look.accent, look.accent),),
                enter=Motion("rise", 0.4, 50.0),
                name="label",
            )
            y += small.height + 14
        yield from self.lines(text, y, (start + 0.27, end), look, name="end", is_last=True)
        yield from self.person(start + 0.1, end, look, comes=0.3, is_last=True)

    def _steps(self, place: int, span: tuple[float, float], look: SceneColours) -> Iterator[Overlay]:
        """How far it is: one dash for each point."""
        start, end = span
        gap, height = 16, 12
        width = (int(ROOM) - gap * (POINTS - 1)) // POINTS
        order = range(POINTS - 1, -1, -1) if self.is_rtl else range(POINTS)
        panels = [
            Panel(
                LEFT + at * (width + gap),
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
            leave=Motion("fade", LEAVE),
            name="steps",
        )
        at = LEFT + order[place] * (width + gap)
        yield Overlay(
            round(start + 0.35, 4),
            end,
            (Panel(at, 268, width, height, 5, look.accent),),
            enter=Motion("grow", 0.7),
            leave=Motion("fade", LEAVE),
            name="step",
        )


def too_long(values: Values) -> str | None:
    """The sentence for the first slot with more characters than it takes; None where all have room."""
    for slot, called, words in values.slots():
        fault = too_wide(called, words, SLOTS[slot].characters)
        if fault is not None:
            return fault
    return None
