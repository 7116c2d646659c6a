"""Plans films of the template `composite`: a persona tells a story over the source's own videos and pictures.

They change every few seconds. If nothing is left to show, a card of the persona shows the spoken figures.
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
from pipeline.render.video.templates.parts import WIPE_SECONDS, TimedPassage, whole_frames

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pipeline.render.audio.narration import Narration
    from pipeline.render.video.material import Shot
    from pipeline.render.video.storyboard import Overlay, Word
    from pipeline.render.video.templates.parts import Cast
    from pipeline.render.video.templates.telling import Telling

NAME: Final = "composite"
FILM_SECONDS: Final = (20.0, 60.0)
PIECE_SECONDS: Final = (3.0, 5.0)
"""The shortest and the longest time for which one source is shown."""
MIN_VIDEO_SECONDS: Final = PIECE_SECONDS[1] + WIPE_SECONDS + 0.1
"""The part of a video that is long enough for any piece and for the transition over its end."""
_USUAL_SECONDS: Final = 4.4
"""The length of pieces by which their number is estimated."""
_TARGET_SECONDS: Final = 4.0
"""The length that a piece has if sentences and clauses allow it."""
_PICTURE_LEAD_SECONDS: Final = 0.08
"""The time by which a picture comes before its first word."""
_ZOOM: Final = 1.07
_COVERED_AFTER_SECONDS: Final = WIPE_SECONDS / 2
"""The time after which a rising card covers the picture before it."""
_MIN_SECONDS_TO_CUT: Final = 0.8
"""A cut in the video that comes sooner than this looks like a fault: the piece begins with the cut instead."""
_SENTENCE_END: Final = re.compile(r"[.!?…。！？؟۔।]['\"\u2019\u201d\u00bb)\]]*$")
_CLAUSE_END: Final = re.compile(r"[,;:،؛、，–—]$")


@dataclass(frozen=True)
class VisualSource:
    """A still, or the stretch of a video between two of its seconds; `end` is 0 for a still.

    `credit` names the owner, `shots` are the video's, and with `is_tall` a still fills an upright frame.
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
    def max_seconds(self) -> float:
        return PIECE_SECONDS[1] if self.is_still else min(PIECE_SECONDS[1], self.end - self.start)


@dataclass(frozen=True)
class TimedVisual:
    """The time for which a source is shown, in seconds of the film; `source_index` is `None` for a card."""

    start: float
    end: float
    source_index: int | None


@dataclass(frozen=True)
class Outline:
    """The words of a story that isn't spoken yet, and the seconds at which its end card comes and the film ends."""

    heard: Narration
    card: float
    end: float


def plan(
    story: Telling,
    cast: Cast,
    sources: Sequence[VisualSource],
    *,
    language: str,
    heard: Narration | None = None,
    alt_text: str = "",
) -> Storyboard:
    """Plan the film of a story over these sources, in order; sources for which there is no time are left out.

    Raises as `telling.plan` does.
    """
    return _Film(story, cast, language, heard, sources).build_board(alt_text)


def outline(story: Telling, cast: Cast, language: str) -> Outline:
    """Return the times of a story that isn't spoken yet. Raises `Refused` if a passage can't be spoken."""
    return _Film(story, cast, language, None, ()).outline()


def cut_pieces(words: Sequence[Word], end_second: float, max_seconds: Sequence[float]) -> list[TimedVisual]:
    """Return pieces of about three to five seconds up to `end_second`, ended by a sentence or clause if possible.

    `max_seconds` are the longest times for which the sources can be shown. If there are too few sources, cards stand
    between them.
    """
    pieces: list[TimedVisual] = []
    start = 0.0
    indexes = _spread(len(max_seconds), math.ceil(end_second / _USUAL_SECONDS))
    while end_second - start > 1 / FPS:
        index = next(indexes)
        end = _end_of_piece(
            words, start, end_second, PIECE_SECONDS[1] if index is None else max_seconds[index]
        )
        pieces.append(TimedVisual(start, end, index))
        start = end
    return pieces


def _spread(source_count: int, piece_count: int) -> Iterator[int | None]:
    """Yield the source's index for each piece, or `None`; too few sources are spread out, from the beginning on."""
    if source_count >= piece_count:
        return chain(range(source_count), repeat(None))
    source_by_piece = (
        {index * piece_count // source_count: index for index in range(source_count)} if source_count else {}
    )
    return (source_by_piece.get(index) for index in count())


def _end_of_piece(words: Sequence[Word], start: float, end_second: float, max_seconds: float) -> float:
    """Return the second at which a piece ends that begins at `start`, at best before a sentence."""
    remaining = end_second - start
    if remaining <= max_seconds:
        return end_second
    low, high = PIECE_SECONDS[0], min(max_seconds, remaining - PIECE_SECONDS[0])
    if high < low:
        low = high = min(max_seconds, remaining / 2)
    candidates = [
        (rank, abs(second - start - _TARGET_SECONDS), second)
        for rank, second in _possible_edges(words)
        if start + low <= second <= start + high
    ]
    return min(candidates)[2] if candidates else whole_frames(start + high)


def _possible_edges(words: Sequence[Word]) -> Iterator[tuple[int, float]]:
    """Yield (rank, second) for each possible change of the picture: 0 before a sentence, 1 a clause, 2 a word."""
    for index in range(1, len(words)):
        before = words[index - 1].t
        rank = 0 if _SENTENCE_END.search(before) else 1 if _CLAUSE_END.search(before) else 2
        yield rank, whole_frames(words[index].start - _PICTURE_LEAD_SECONDS)


class _Film(telling.Film):
    def __init__(
        self,
        story: Telling,
        cast: Cast,
        language: str,
        heard: Narration | None,
        sources: Sequence[VisualSource],
    ) -> None:
        super().__init__(story, cast, language, heard)
        self._sources = sources
        self._colours = clipped.ClipColours(self.primary, self.accent)

    def outline(self) -> Outline:
        _, _, end = self._timed_passages()
        return Outline(self._narration, end.start, end.end)

    def build_board(self, alt_text: str) -> Storyboard:
        """Return the storyboard of pieces and end card. Raises `Refused` if it would be too short or too long."""
        _, _, end = self._timed_passages()
        if not FILM_SECONDS[0] <= end.end <= FILM_SECONDS[1]:
            message = f"The film would be {end.end:.1f} seconds long; it takes {FILM_SECONDS[0]:.0f} to {FILM_SECONDS[1]:.0f}."
            raise Refused(message, code="wrong_length")
        pieces = cut_pieces(
            self._narration.words, end.start, [source.max_seconds for source in self._sources]
        )
        colours = self.dark_colours()
        end_scene = Scene(
            end.start,
            end.end,
            Visual("colour", colour=colours.ground, colour_to=colours.ground_to),
            self._transition_after(pieces[-1]),
        )
        overlays = [
            *(
                overlay
                for index in range(len(pieces))
                for overlay in self._piece_overlays(index, pieces[index])
            ),
            *clipped.title_overlay(self._telling.hook, clipped.TITLE_SECONDS, self._colours, self.language),
            # The end card's overlays wait until the card has risen.
            *self._end_overlays(
                replace(end, start=whole_frames(end.start + _COVERED_AFTER_SECONDS)), colours
            ),
        ]
        return Storyboard(
            scenes=(*self._scenes(pieces), end_scene),
            overlays=tuple(overlays),
            captions=self._caption_cards(end.end),
            caption_look=self._caption_style(),
            audio=Audio(voice=self._narration.voice),
            meta=Meta(
                title=self._telling.hook,
                alt_text=alt_text,
                language=self.language,
                template=NAME,
                thumbnail_at=1.0,
            ),
        )

    def _scenes(self, pieces: Sequence[TimedVisual]) -> Iterator[Scene]:
        for index, piece in enumerate(pieces):
            source = self._source_of(piece)
            if source is None:
                colours = self._colours_of(index)
                visual = Visual("colour", colour=colours.ground, colour_to=colours.ground_to)
                transition = self._transition_after(pieces[index - 1]) if index else Transition()
                yield Scene(piece.start, piece.end, visual, transition)
            elif source.is_still:
                yield Scene(piece.start, piece.end, _still_visual(source, zooms_in=index % 2 == 0))
            else:
                yield from _clip_scenes(source, piece)

    def _source_of(self, piece: TimedVisual) -> VisualSource | None:
        return None if piece.source_index is None else self._sources[piece.source_index]

    def _transition_after(self, previous: TimedVisual) -> Transition:
        """Return the transition of a card, which rises over the source before it if that lasts for long enough."""
        source = self._source_of(previous)
        length = previous.end - previous.start
        if (
            source is None
            or source.is_still
            or source.end - _start_second(source, length) - length >= WIPE_SECONDS
        ):
            return Transition("wipe", WIPE_SECONDS)
        return Transition()

    def _piece_overlays(self, index: int, piece: TimedVisual) -> Iterator[Overlay]:
        source = self._source_of(piece)
        if source is not None:
            yield from clipped.credit_overlay(source.credit, (piece.start, piece.end), self.language)
            return
        words = tuple(word for word in self._narration.words if piece.start <= word.start < piece.end)
        start = whole_frames(piece.start + _COVERED_AFTER_SECONDS) if index else piece.start
        passage = TimedPassage(join_words(word.t for word in words), words, start, piece.end)
        yield from self._passage_overlays(passage, self._colours_of(index))


def _still_visual(source: VisualSource, *, zooms_in: bool) -> Visual:
    """Return the visual of a still, which is shown whole before a blurred background unless it is tall."""
    return Visual(
        "picture",
        asset=source.name,
        zoom=Zoom(1.0, _ZOOM) if zooms_in else Zoom(_ZOOM, 1.0),
        fit="cover" if source.is_tall else "pad",
    )


def _start_second(source: VisualSource, length: float) -> float:
    """Return the second of the video with which a piece begins: the next cut, if that would come at once."""
    next_cut = next((shot.start for shot in source.shots if shot.start > source.start + 1 / FPS), math.inf)
    is_better = (
        next_cut - source.start < _MIN_SECONDS_TO_CUT and next_cut + length + WIPE_SECONDS <= source.end
    )
    return next_cut if is_better else source.start


def _clip_scenes(source: VisualSource, piece: TimedVisual) -> Iterator[Scene]:
    """Yield a scene for each shot of the piece."""
    length = piece.end - piece.start
    start = _start_second(source, length)
    span = VideoSpan(source.name, start, start + length)
    shots = [shot for shot in source.shots if shot.start < span.end and shot.end > span.start]
    for scene in clipped.scenes(span, shots, round(length * FPS)):
        yield Scene(
            whole_frames(piece.start + scene.start), whole_frames(piece.start + scene.end), scene.visual
        )
