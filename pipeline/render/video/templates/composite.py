"""The template `composite`: somebody tells a story over the source's own films and pictures, another every few seconds.

Where there is nothing left to show, a card of the persona stands, with the figures that are said.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from itertools import chain, count, repeat
from typing import TYPE_CHECKING, Final

from pipeline.plugins import Refused
from pipeline.render.typography.word_segmentation import join_words
from pipeline.render.video.material import VideoSpan
from pipeline.render.video.storyboard import FPS, Audio, Meta, Scene, Storyboard, Transition, Visual, Zoom
from pipeline.render.video.templates import clipped, telling
from pipeline.render.video.templates.parts import WIPE, TimedPassage, whole_frames

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pipeline.render.audio.narration import Narration
    from pipeline.render.video.material import Shot
    from pipeline.render.video.storyboard import Overlay, Word
    from pipeline.render.video.templates.parts import Cast
    from pipeline.render.video.templates.telling import Telling

NAME: Final = "composite"
SECONDS: Final = (20.0, 60.0)
PIECE: Final = (3.0, 5.0)
"""Seconds for which one thing is shown."""
ROOM: Final = PIECE[1] + WIPE + 0.1
"""Seconds of a video that are always enough for one piece of it, and for what comes over its end."""
_USUAL: Final = 4.4
_AIM: Final = 4.0
_LEAD: Final = 0.08
"""Seconds by which a picture comes before the word that it begins with."""
_NEAR: Final = 1.07
_RISEN: Final = WIPE / 2
"""Seconds after which a card that rises covers what was there."""
_SOON: Final = 0.8
"""A cut of the video that comes sooner looks like a fault: the piece begins with it instead."""
_SENTENCE: Final = re.compile(r"[.!?…。！？؟۔।]['\"\u2019\u201d\u00bb)\]]*$")
_CLAUSE: Final = re.compile(r"[,;:،؛、，–—]$")


@dataclass(frozen=True)
class VisualSource:
    """A still, or of a video what lies between two of its seconds, `end` 0 for a still.

    `credit` says whose it is, `shots` are the video's, `is_tall` tells of a still that it fills an upright frame.
    """

    name: str
    start: float = 0.0
    end: float = 0.0
    credit: str = ""
    shots: tuple[Shot, ...] = ()
    is_tall: bool = False

    @property
    def is_still(self) -> bool:
        return not self.end

    @property
    def room(self) -> float:
        return PIECE[1] if self.is_still else min(PIECE[1], self.end - self.start)


@dataclass(frozen=True)
class TimedVisual:
    """From when to when which of the things is shown, None for a card; in seconds of the film."""

    start: float
    end: float
    place: int | None


@dataclass(frozen=True)
class Outline:
    """How long a story takes as it is read in silence: its words, when its end card comes, and its end in seconds."""

    heard: Narration
    card: float
    end: float


def plan(
    told: Telling,
    cast: Cast,
    shown: Sequence[VisualSource],
    *,
    language: str,
    heard: Narration | None = None,
    alt_text: str = "",
) -> Storyboard:
    """The film of these words over these pictures, in their order; what there is no time for is left out.

    Raises as `telling.plan`.
    """
    return _Film(told, cast, language, heard, shown).board(alt_text)


def outline(told: Telling, cast: Cast, language: str) -> Outline:
    """Raises `Refused` where a passage can't be said."""
    film = _Film(told, cast, language, None, ())
    return film.outline()


def cut(words: Sequence[Word], until: float, rooms: Sequence[float]) -> list[TimedVisual]:
    """Pieces of three to five seconds to the second `until`, each ending where a sentence or a clause does.

    `rooms` are the most seconds that each of the things can be shown for. Cards stand between them where they are too
    few.
    """
    pieces: list[TimedVisual] = []
    at = 0.0
    places = _places(len(rooms), math.ceil(until / _USUAL))
    while until - at > 1 / FPS:
        place = next(places)
        end = _edge(words, at, until, PIECE[1] if place is None else rooms[place])
        pieces.append(TimedVisual(at, end, place))
        at = end
    return pieces


def _places(things: int, pieces: int) -> Iterator[int | None]:
    """Which thing comes next; too few are spread, the first one at the beginning."""
    if things >= pieces:
        return chain(range(things), repeat(None))
    at = {place * pieces // things: place for place in range(things)} if things else {}
    return (at.get(place) for place in count())


def _edge(words: Sequence[Word], at: float, until: float, most: float) -> float:
    left = until - at
    if left <= most:
        return until
    low, high = PIECE[0], min(most, left - PIECE[0])
    if high < low:
        low = high = min(most, left / 2)
    found = [
        (rank, abs(second - at - _AIM), second)
        for rank, second in _edges(words)
        if at + low <= second <= at + high
    ]
    return min(found)[2] if found else whole_frames(at + high)


def _edges(words: Sequence[Word]) -> Iterator[tuple[int, float]]:
    """Where a picture may change: before a sentence, a clause, a word."""
    for place in range(1, len(words)):
        before = words[place - 1].t
        rank = 0 if _SENTENCE.search(before) else 1 if _CLAUSE.search(before) else 2
        yield rank, whole_frames(words[place].start - _LEAD)


class _Film(telling.Film):
    def __init__(
        self, told: Telling, cast: Cast, language: str, heard: Narration | None, shown: Sequence[VisualSource]
    ) -> None:
        super().__init__(told, cast, language, heard)
        self._shown = shown
        self._colours = clipped.ClipColours(self.primary, self.accent)

    def outline(self) -> Outline:
        _, _, end = self._spans()
        return Outline(self._heard, end.start, end.end)

    def board(self, alt_text: str) -> Storyboard:
        _, _, end = self._spans()
        if not SECONDS[0] <= end.end <= SECONDS[1]:
            message = f"The film would be {end.end:.1f} seconds long; it takes {SECONDS[0]:.0f} to {SECONDS[1]:.0f}."
            raise Refused(message, code="wrong_length")
        pieces = cut(self._heard.words, end.start, [one.room for one in self._shown])
        dark = self.dark()
        last = Scene(
            end.start,
            end.end,
            Visual("colour", colour=dark.ground, colour_to=dark.ground_to),
            self._onto(pieces[-1]),
        )
        overlays = [
            *(overlay for place in range(len(pieces)) for overlay in self._beside(place, pieces[place])),
            *clipped.hook(self._telling.hook, clipped.TITLE_SECONDS, self._colours, self.language),
            # Nothing of the card comes before it does.
            *self._end(replace(end, start=whole_frames(end.start + _RISEN)), dark),
        ]
        return Storyboard(
            scenes=(*self._scenes(pieces), last),
            overlays=tuple(overlays),
            captions=self._captions(end.end),
            caption_look=self._caption_look(),
            audio=Audio(voice=self._heard.voice),
            meta=Meta(
                title=self._telling.hook,
                alt_text=alt_text,
                language=self.language,
                template=NAME,
                thumbnail_at=1.0,
            ),
        )

    def _scenes(self, pieces: Sequence[TimedVisual]) -> Iterator[Scene]:
        for place, piece in enumerate(pieces):
            shown = self._at(piece)
            if shown is None:
                look = self._of_passage(place)
                visual = Visual("colour", colour=look.ground, colour_to=look.ground_to)
                onto = self._onto(pieces[place - 1]) if place else Transition()
                yield Scene(piece.start, piece.end, visual, onto)
            elif shown.is_still:
                yield Scene(piece.start, piece.end, _picture(shown, comes_nearer=place % 2 == 0))
            else:
                yield from _clip(shown, piece)

    def _at(self, piece: TimedVisual) -> VisualSource | None:
        return None if piece.place is None else self._shown[piece.place]

    def _onto(self, before: TimedVisual) -> Transition:
        """A card rises over what was there, which goes on for as long where it can."""
        shown = self._at(before)
        length = before.end - before.start
        if shown is None or shown.is_still or shown.end - _since(shown, length) - length >= WIPE:
            return Transition("wipe", WIPE)
        return Transition()

    def _beside(self, place: int, piece: TimedVisual) -> Iterator[Overlay]:
        shown = self._at(piece)
        if shown is not None:
            yield from clipped.chip(shown.credit, (piece.start, piece.end), self.language)
            return
        words = tuple(word for word in self._heard.words if piece.start <= word.start < piece.end)
        risen = whole_frames(piece.start + _RISEN) if place else piece.start
        said = TimedPassage(join_words(word.t for word in words), words, risen, piece.end)
        yield from self._passage(said, self._of_passage(place))


def _picture(shown: VisualSource, *, comes_nearer: bool) -> Visual:
    """Whole before a blurred ground where an upright frame would show too little of it."""
    return Visual(
        "picture",
        asset=shown.name,
        zoom=Zoom(1.0, _NEAR) if comes_nearer else Zoom(_NEAR, 1.0),
        fit="cover" if shown.is_tall else "pad",
    )


def _since(shown: VisualSource, length: float) -> float:
    """The second of the video with which a piece begins: with a cut that would come at once."""
    soon = next((shot.start for shot in shown.shots if shot.start > shown.start + 1 / FPS), math.inf)
    is_better = soon - shown.start < _SOON and soon + length + WIPE <= shown.end
    return soon if is_better else shown.start


def _clip(shown: VisualSource, piece: TimedVisual) -> Iterator[Scene]:
    """A scene for each of its shots."""
    length = piece.end - piece.start
    since = _since(shown, length)
    seen = VideoSpan(shown.name, since, since + length)
    shots = [shot for shot in shown.shots if shot.start < seen.end and shot.end > seen.start]
    for scene in clipped.scenes(seen, shots, round(length * FPS)):
        yield Scene(
            whole_frames(piece.start + scene.start), whole_frames(piece.start + scene.end), scene.visual
        )
