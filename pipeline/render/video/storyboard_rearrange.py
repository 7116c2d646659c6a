"""Scenes in another order, or of another length, with everything on them."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pipeline.render.video.storyboard import Caption, Motion, Overlay, Transition
from pipeline.render.video.storyboard_edits import SLACK, Unfit, scene_at

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pipeline.render.video.storyboard import Scene, Storyboard

SHORTEST: Final = 0.5
"""Seconds of a scene."""


def why_fixed(board: Storyboard) -> str:
    """Why scenes keep their lengths and their order: the sentence; empty where they need not."""
    if board.audio.voice:
        return "A voice tells the scenes at its own pace, so that they keep their lengths and their order."
    if board.audio.takes:
        return "The sound belongs to these pictures, so that they keep their lengths and their order."
    for overlay in board.overlays:
        scene = board.scenes[scene_at(board, overlay.start)]
        if overlay.end > scene.end + SLACK:
            name = overlay.name or "Something"
            return (
                f"“{name}” is seen through several scenes, so that they keep their lengths and their order."
            )
    for card in (*board.captions, *board.told):
        if card.end > board.scenes[scene_at(board, card.start)].end + SLACK:
            return (
                "A caption is shown through several scenes, so that they keep their lengths and their order."
            )
    return ""


def arranged(board: Storyboard, order: Sequence[int], seconds: Mapping[int, float]) -> Storyboard:
    """The scenes of `order`, by their places now, each as long as `seconds` says, or as it is.

    Scenes that aren't named are left out with all that they show. Raises `Unfit`.
    """
    lengths = {
        place: round(seconds.get(place, scene.end - scene.start) * board.fps) / board.fps
        for place, scene in enumerate(board.scenes)
    }
    is_same_length = all(
        abs(lengths[place] - (scene.end - scene.start)) < 1 / board.fps
        for place, scene in enumerate(board.scenes)
    )
    if list(order) == list(range(len(board.scenes))) and is_same_length:
        return board
    if not order:
        raise Unfit("", "A film has one scene at least.", code="required")
    fixed = why_fixed(board)
    if fixed:
        raise Unfit("", fixed, code="fixed_scenes")
    for place in order:
        if lengths[place] < SHORTEST:
            raise Unfit("s" + str(place), f"A scene lasts {SHORTEST:g} seconds at least.", code="too_short")
    moved = list(_moved(board, order, lengths))
    scenes, spans = [one[0] for one in moved], [one[1] for one in moved]
    overlays: list[Overlay] = []
    captions: list[Caption] = []
    told: list[Caption] = []
    for place, span in zip(order, spans, strict=True):
        at = _Times(board.scenes[place], span)
        overlays += [at.overlay(one) for one in board.overlays if scene_at(board, one.start) == place]
        captions += [at.caption(one) for one in board.captions if scene_at(board, one.start) == place]
        told += [at.caption(one) for one in board.told if scene_at(board, one.start) == place]
    thumbnail = scene_at(board, board.meta.thumbnail_at)
    if thumbnail in order:
        at = _Times(board.scenes[thumbnail], spans[list(order).index(thumbnail)])
        shown = at.moment(board.meta.thumbnail_at)
    else:
        shown = round((spans[0][0] + spans[0][1]) / 2, 4)
    return dataclasses.replace(
        board,
        scenes=tuple(scenes),
        overlays=tuple(overlays),
        captions=tuple(captions),
        told=tuple(told),
        meta=dataclasses.replace(board.meta, thumbnail_at=shown),
    )


def _moved(
    board: Storyboard, order: Sequence[int], lengths: Mapping[int, float]
) -> Iterator[tuple[Scene, tuple[float, float]]]:
    start = 0.0
    for number, place in enumerate(order):
        scene = board.scenes[place]
        end = round(start + lengths[place], 4)
        # The first one takes over from nothing.
        seconds = min(scene.transition.seconds, end - start)
        transition = dataclasses.replace(scene.transition, seconds=seconds) if number else Transition()
        yield dataclasses.replace(scene, start=start, end=end, transition=transition), (start, end)
        start = end


@dataclass(frozen=True)
class _Times:
    """From the times of a scene as it was to those of the scene as it will be."""

    scene: Scene
    span: tuple[float, float]

    def moment(self, second: float) -> float:
        """What happens in the first half keeps its distance from the beginning, what happens later that from the end."""
        since, until = second - self.scene.start, self.scene.end - second
        start, end = self.span
        at = start + since if since <= until else end - until
        return round(min(max(at, start), end), 4)

    def _shared(self, second: float) -> float:
        share = (second - self.scene.start) / (self.scene.end - self.scene.start)
        return round(self.span[0] + share * (self.span[1] - self.span[0]), 4)

    def overlay(self, overlay: Overlay) -> Overlay:
        start, end = self.moment(overlay.start), self.moment(overlay.end)
        spare = (end - start) - (overlay.end - overlay.start)
        enter, leave = overlay.enter, overlay.leave
        if enter.kind == "drift":
            # It lasts for as long as it is seen.
            enter = dataclasses.replace(enter, seconds=max(0.0, round(enter.seconds + spare, 4)))
        taken, room = enter.seconds + leave.seconds, max(end - start, 0.0)
        if taken > room:
            enter, leave = (_shortened(one, room / taken) for one in (enter, leave))
        return dataclasses.replace(overlay, start=start, end=end, enter=enter, leave=leave)

    def caption(self, card: Caption) -> Caption:
        words = tuple(
            dataclasses.replace(one, start=self._shared(one.start), end=self._shared(one.end))
            for one in card.words
        )
        return Caption(words, self._shared(card.start), self._shared(card.end))


def _shortened(motion: Motion, share: float) -> Motion:
    return dataclasses.replace(motion, seconds=int(motion.seconds * share * 10_000) / 10_000)
