"""Reorders, shortens, lengthens and removes scenes, with everything that lies on them."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pipeline.render.video.storyboard import Caption, Motion, Overlay, Transition
from pipeline.render.video.storyboard_edits import TOLERANCE_SECONDS, Unfit, scene_at

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pipeline.render.video.storyboard import Scene, Storyboard

MIN_SCENE_SECONDS: Final = 0.5
"""The minimum of a scene that is moved or changed."""


def fixed_scenes_reason(board: Storyboard) -> str:
    """Return why scenes can't be moved or change their length, for people, or "" if they can."""
    if board.audio.voice:
        return "A voice tells the scenes at its own pace, so that they keep their lengths and their order."
    if board.audio.takes:
        return "The sound belongs to these pictures, so that they keep their lengths and their order."
    for overlay in board.overlays:
        scene = board.scenes[scene_at(board, overlay.start)]
        if overlay.end > scene.end + TOLERANCE_SECONDS:
            name = overlay.name or "Something"
            return (
                f"“{name}” is seen through several scenes, so that they keep their lengths and their order."
            )
    for card in (*board.captions, *board.told):
        if card.end > board.scenes[scene_at(board, card.start)].end + TOLERANCE_SECONDS:
            return (
                "A caption is shown through several scenes, so that they keep their lengths and their order."
            )
    return ""


def rearrange(board: Storyboard, order: Sequence[int], seconds: Mapping[int, float]) -> Storyboard:
    """Return the board with the scenes of `order`, which are indexes into its scenes, each as long as `seconds` says.

    A scene that isn't in `seconds` keeps its length. Scenes that aren't in `order` are left out with all their items.
    Raises `Unfit` if no scene is left, if the scenes are fixed (`fixed_scenes_reason`), or if one would be too short.
    """
    lengths = {
        index: round(seconds.get(index, scene.end - scene.start) * board.fps) / board.fps
        for index, scene in enumerate(board.scenes)
    }
    is_same_length = all(
        abs(lengths[index] - (scene.end - scene.start)) < 1 / board.fps
        for index, scene in enumerate(board.scenes)
    )
    if list(order) == list(range(len(board.scenes))) and is_same_length:
        return board
    if not order:
        raise Unfit("", "A film has one scene at least.", code="required")
    reason = fixed_scenes_reason(board)
    if reason:
        raise Unfit("", reason, code="fixed_scenes")
    for index in order:
        if lengths[index] < MIN_SCENE_SECONDS:
            raise Unfit(
                "s" + str(index), f"A scene lasts {MIN_SCENE_SECONDS:g} seconds at least.", code="too_short"
            )
    moved_scenes = list(_move_scenes(board, order, lengths))
    scenes, spans = [moved[0] for moved in moved_scenes], [moved[1] for moved in moved_scenes]
    overlays: list[Overlay] = []
    captions: list[Caption] = []
    told_cards: list[Caption] = []
    for index, span in zip(order, spans, strict=True):
        times = _SceneTimes(board.scenes[index], span)
        overlays += [
            times.move_overlay(overlay)
            for overlay in board.overlays
            if scene_at(board, overlay.start) == index
        ]
        captions += [
            times.move_caption(card) for card in board.captions if scene_at(board, card.start) == index
        ]
        told_cards += [
            times.move_caption(card) for card in board.told if scene_at(board, card.start) == index
        ]
    thumbnail = scene_at(board, board.meta.thumbnail_at)
    if thumbnail in order:
        times = _SceneTimes(board.scenes[thumbnail], spans[list(order).index(thumbnail)])
        thumbnail_at = times.new_time(board.meta.thumbnail_at)
    else:
        thumbnail_at = round((spans[0][0] + spans[0][1]) / 2, 4)
    return dataclasses.replace(
        board,
        scenes=tuple(scenes),
        overlays=tuple(overlays),
        captions=tuple(captions),
        told=tuple(told_cards),
        meta=dataclasses.replace(board.meta, thumbnail_at=thumbnail_at),
    )


def _move_scenes(
    board: Storyboard, order: Sequence[int], lengths: Mapping[int, float]
) -> Iterator[tuple[Scene, tuple[float, float]]]:
    """Yield each scene at its new times, with its new start and end in seconds."""
    start = 0.0
    for position, index in enumerate(order):
        scene = board.scenes[index]
        end = round(start + lengths[index], 4)
        # The first scene has none before it to take over from.
        seconds = min(scene.transition.seconds, end - start)
        transition = dataclasses.replace(scene.transition, seconds=seconds) if position else Transition()
        yield dataclasses.replace(scene, start=start, end=end, transition=transition), (start, end)
        start = end


@dataclass(frozen=True)
class _SceneTimes:
    """Converts times within the former `scene` to times within its new `span`, all in seconds of the film."""

    scene: Scene
    span: tuple[float, float]

    def new_time(self, second: float) -> float:
        """Convert a time: in the scene's first half it keeps its distance from the start, later that from the end."""
        from_start, to_end = second - self.scene.start, self.scene.end - second
        start, end = self.span
        moved = start + from_start if from_start <= to_end else end - to_end
        return round(min(max(moved, start), end), 4)

    def _proportional_time(self, second: float) -> float:
        """Convert a time at the same share of the scene's length."""
        share = (second - self.scene.start) / (self.scene.end - self.scene.start)
        return round(self.span[0] + share * (self.span[1] - self.span[0]), 4)

    def move_overlay(self, overlay: Overlay) -> Overlay:
        start, end = self.new_time(overlay.start), self.new_time(overlay.end)
        spare = (end - start) - (overlay.end - overlay.start)
        enter, leave = overlay.enter, overlay.leave
        if enter.kind == "drift":
            # A drift lasts for as long as the overlay is seen.
            enter = dataclasses.replace(enter, seconds=max(0.0, round(enter.seconds + spare, 4)))
        motion_seconds, visible_seconds = enter.seconds + leave.seconds, max(end - start, 0.0)
        if motion_seconds > visible_seconds:
            enter, leave = (_shorten(motion, visible_seconds / motion_seconds) for motion in (enter, leave))
        return dataclasses.replace(overlay, start=start, end=end, enter=enter, leave=leave)

    def move_caption(self, card: Caption) -> Caption:
        words = tuple(
            dataclasses.replace(
                word, start=self._proportional_time(word.start), end=self._proportional_time(word.end)
            )
            for word in card.words
        )
        return Caption(words, self._proportional_time(card.start), self._proportional_time(card.end))


def _shorten(motion: Motion, share: float) -> Motion:
    return dataclasses.replace(motion, seconds=int(motion.seconds * share * 10_000) / 10_000)
