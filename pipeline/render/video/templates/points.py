"""Plans films of the template `points`: a title, three points one after the other, an end card, and no voice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pipeline.render.picture_types import DrawnText, Panel
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
    LABELLED_TEXT,
    LEAVE_SECONDS,
    LEFT,
    LINE_DELAY_SECONDS,
    RIGHT,
    TITLE,
    WIDTH,
    WIPE_SECONDS,
    Cast,
    Parts,
    SceneColours,
    TextBox,
)
from pipeline.text.prose.verbatim_edits import width_fault

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

NAME: Final = "points"
POINTS: Final = 3
SLOTS: Final[Mapping[str, TextBox]] = {
    "title": TextBox(72, WIDTH, float(TITLE_BAND[1] - TITLE_BAND[0]), 112, 40),
    "point": TextBox(110, WIDTH, 620.0, 104, 52),
    "end": TextBox(72, WIDTH, 300.0, 84, 44),
}

_CHARACTERS_PER_SECOND: Final = 26.0
"""The characters of large text on a screen that people read in a second."""
_SETTLE_SECONDS: Final = 0.7
"""The time before people begin to read."""
# The shortest and the longest time of a title and of a point, and the end card's time.
_TITLE_SECONDS: Final = (2.4, 3.0)
_POINT_SECONDS: Final = (2.4, 4.8)
_END_SECONDS: Final = 2.4

_POINT_STYLE: Final = Style(weight=700, optical=32, line_height=1.16)
_NUMBER_STYLE: Final = Style(weight=800, optical=32, line_height=1.0)


@dataclass(frozen=True)
class PointsTexts:
    """The text of each slot, as it was written."""

    title: str
    points: tuple[str, ...]
    end: str

    def slots(self) -> Iterator[tuple[str, str, str]]:
        """Yield each slot, its name for people, and its text."""
        yield "title", "The title", self.title
        for number, point in enumerate(self.points, start=1):
            yield "point", f"Point {number}", point
        yield "end", "The end card", self.end


def plan(texts: PointsTexts, cast: Cast, *, language: str, alt_text: str = "") -> Storyboard:
    """Plan the film of these texts.

    Raises `MissingGlyphs` if the fonts lack a character, and `TextDoesNotFit`, with the slot, if a text is too long.
    """
    return _Film(texts, cast, language).build_board(alt_text)


def seconds_of(texts: PointsTexts) -> float:
    """Return the film's length in seconds: longer texts are shown longer."""
    return sum(_scene_seconds(texts))


def _scene_seconds(texts: PointsTexts) -> list[float]:
    title = _reading_seconds(texts.title, _TITLE_SECONDS)
    return [title, *(_reading_seconds(point, _POINT_SECONDS) for point in texts.points), _END_SECONDS]


def _reading_seconds(words: str, bounds: tuple[float, float]) -> float:
    seconds = min(max(_SETTLE_SECONDS + len(words) / _CHARACTERS_PER_SECOND, bounds[0]), bounds[1])
    return round(seconds * FPS) / FPS


class _Film(Parts):
    def __init__(self, texts: PointsTexts, cast: Cast, language: str) -> None:
        super().__init__(cast, language, first=texts.title)
        self._texts = texts

    def build_board(self, alt_text: str) -> Storyboard:
        """Return the storyboard: a scene for each text, dark and light in turn."""
        seconds = _scene_seconds(self._texts)
        ends = [round(sum(seconds[: index + 1]), 4) for index in range(len(seconds))]
        starts = [0.0, *ends[:-1]]
        colours_by_scene = [
            self.dark_colours(),
            *(self._point_colours(index) for index in range(POINTS)),
            self.dark_colours(),
        ]
        scenes = tuple(
            Scene(
                start,
                end,
                Visual("colour", colour=colours.ground, colour_to=colours.ground_to),
                Transition("wipe", WIPE_SECONDS) if index else Transition(),
            )
            for index, (start, end, colours) in enumerate(zip(starts, ends, colours_by_scene, strict=True))
        )
        overlays = [*self._title_overlays(ends[0], colours_by_scene[0])]
        for index, point in enumerate(self._texts.points):
            overlays += self._point_overlays(
                index, point, (starts[index + 1], ends[index + 1]), colours_by_scene[index + 1]
            )
        overlays += self._end_overlays(starts[-1], ends[-1], colours_by_scene[-1])
        return Storyboard(
            scenes=scenes,
            overlays=tuple(overlays),
            told=tuple(
                Caption((Word(words, start, end),), start, end)
                for start, end, (_, _, words) in zip(starts, ends, self._texts.slots(), strict=True)
            ),
            meta=Meta(
                title=self._texts.title,
                alt_text=alt_text,
                language=self.language,
                template=NAME,
                thumbnail_at=round(ends[0] - 0.7, 4),
            ),
        )

    def _point_colours(self, index: int) -> SceneColours:
        return self.dark_colours() if index % 2 else self.light_colours()

    # Scenes

    def _title_overlays(self, end: float, colours: SceneColours) -> Iterator[Overlay]:
        """Yield the title, complete from the first frame on, which is all that people who scroll past see."""
        title = self.fit("title", SLOTS["title"], self._texts.title, TITLE)
        yield from self.scenery_overlays(0.0, end, colours)
        yield self.bar_overlay(0.0, end, 262, colours, delay=0.1)
        yield Overlay(
            0.0,
            end,
            (DrawnText(float(LEFT), float(TITLE_BAND[0]), title, colours.words, colours.accent),),
            leave=Motion("rise", LEAVE_SECONDS, 46.0),
            name="title",
        )
        yield from self.person_overlays(0.0, end, colours, enter_seconds=0.25)

    def _point_overlays(
        self, index: int, words: str, times: tuple[float, float], colours: SceneColours
    ) -> Iterator[Overlay]:
        """Yield the progress, the point's number, its lines, and the persona's handle if there is one."""
        start, end = times
        text = self.fit("point", SLOTS["point"], words, _POINT_STYLE)
        yield from self._progress_overlays(index, times, colours)
        number = layout(
            str(index + 1), (WIDTH, 320), _NUMBER_STYLE, largest=260, smallest=120, direction="ltr"
        )
        left, top, right, _ = ink_box(number)
        x = RIGHT - right if self.is_rtl else LEFT - left
        first_start = round(start + 0.12, 4)
        yield Overlay(
            first_start,
            end,
            (DrawnText(round(x, 2), round(372 - top, 2), number, colours.accent, colours.accent),),
            enter=Motion("rise", 0.5, 90.0),
            leave=Motion("rise", LEAVE_SECONDS, 46.0),
            name=f"number {index + 1}",
        )
        yield from self.line_overlays(
            text, 680.0, (first_start + LINE_DELAY_SECONDS, end), colours, name=f"point {index + 1}"
        )
        yield from self.handle_overlays((first_start, end), colours)

    def _end_overlays(self, start: float, end: float, colours: SceneColours) -> Iterator[Overlay]:
        """Yield the end card: its label, if the text has one, the address, and the persona."""
        match = LABELLED_TEXT.fullmatch(self._texts.end)
        label, address = (match[1], match[2]) if match else ("", self._texts.end)
        text = self.fit_address(SLOTS["end"], address)
        yield from self.scenery_overlays(start + 0.1, end, colours)
        y = 420.0
        yield self.bar_overlay(start + 0.15, end, 372, colours, delay=0.0)
        if label:
            label_block = self.fit_line(typeset(label, self.language), LABEL, (48, 32))
            yield Overlay(
                round(start + 0.2, 4),
                end,
                (DrawnText(float(LEFT), y, label_block, colours.accent, colours.accent),),
                enter=Motion("rise", 0.4, 50.0),
                name="label",
            )
            y += label_block.height + 14
        yield from self.line_overlays(text, y, (start + 0.27, end), colours, name="end", is_last=True)
        yield from self.person_overlays(start + 0.1, end, colours, enter_seconds=0.3, is_last=True)

    def _progress_overlays(
        self, index: int, times: tuple[float, float], colours: SceneColours
    ) -> Iterator[Overlay]:
        """Yield a dash for each point, of which the current one grows."""
        start, end = times
        gap, height = 16, 12
        width = (int(WIDTH) - gap * (POINTS - 1)) // POINTS
        order = range(POINTS - 1, -1, -1) if self.is_rtl else range(POINTS)
        panels = [
            Panel(
                LEFT + x * (width + gap),
                268,
                width,
                height,
                5,
                colours.accent if position < index else colours.quiet,
            )
            for position, x in enumerate(order)
        ]
        yield Overlay(
            round(start + 0.1, 4),
            end,
            tuple(panels),
            enter=Motion("fade", 0.25),
            leave=Motion("fade", LEAVE_SECONDS),
            name="steps",
        )
        x = LEFT + order[index] * (width + gap)
        yield Overlay(
            round(start + 0.35, 4),
            end,
            (Panel(x, 268, width, height, 5, colours.accent),),
            enter=Motion("grow", 0.7),
            leave=Motion("fade", LEAVE_SECONDS),
            name="step",
        )


def length_fault(texts: PointsTexts) -> str | None:
    """Return the message for the first slot with too many characters, or `None` if all fit."""
    faults = (width_fault(name, text, SLOTS[slot].characters) for slot, name, text in texts.slots())
    return next(filter(None, faults), None)
