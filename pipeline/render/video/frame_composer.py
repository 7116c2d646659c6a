"""Draws a storyboard's frames: the scenes, the overlays on them, and the captions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from pipeline.render.video import backgrounds, sprites
from pipeline.render.video.footage import Reel
from pipeline.render.video.storyboard import UnusableAsset
from pipeline.render.video.ycbcr import Planes, copy, new_planes

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import BinaryIO

    from pipeline.render.video.backgrounds import Background
    from pipeline.render.video.storyboard import Motion, Overlay, Storyboard

ALLOWED_SHRINKS: Final = (1, 2, 4)
"""The factors by which a film may be made smaller than its storyboard."""
_MAX_CACHED_CARDS: Final = 12


class _Pose(NamedTuple):
    """The pose of an overlay on one frame: its opacity, its shift downwards in pixels, and its visible left share."""

    strength: float
    drop: float
    share: float


_AT_REST: Final = _Pose(1.0, 0.0, 1.0)


class Composer:
    """Draws any frame of a film; if the frames are asked for in order, each overlay and background is drawn once.

    `read` returns the bytes of an asset, `watch` opens a video, which stays open until `close`. Raises `ValueError` if
    the film can't be made `shrink` times smaller, and `draw` raises `Refused` if something can't be drawn.
    """

    def __init__(
        self,
        board: Storyboard,
        read: Callable[[str], bytes],
        *,
        shrink: int = 1,
        portrait: bytes | None = None,
        watch: Callable[[str], BinaryIO] | None = None,
    ) -> None:
        """Set the film; `portrait` is the persona's picture, if the film shows it."""
        if shrink not in ALLOWED_SHRINKS or board.width % (2 * shrink) or board.height % (2 * shrink):
            message = f"A film of {board.width} × {board.height} can't be made {shrink} times smaller."
            raise ValueError(message)
        self.board = board
        self.size = (board.width // shrink, board.height // shrink)
        self._shrink = shrink
        self._read = read
        self._watch = watch
        self._reels: dict[tuple[str, int], Reel] = {}
        self._portrait = portrait
        self._backgrounds: dict[int, Background] = {}
        self._overlays: dict[int, sprites.Sprite] = {}
        self._cards: dict[tuple[int, int | None], sprites.Sprite] = {}
        self._spare: Planes | None = None
        self._last_key: tuple[object, ...] | None = None
        self._last_frame = new_planes(*self.size)
        # The first frame of each overlay, and the one after its last.
        self._spans = [
            (board.frame_at(overlay.start), board.frame_at(overlay.end)) for overlay in board.overlays
        ]

    def draw(self, target: Planes, number: int) -> None:
        """Draw the frame of that number, from 0, into `target`."""
        poses = self._poses_at(number)
        card = self._card_at(number)
        scene_index, progress, entering = self._scene_at(number)
        background = self._background(scene_index)
        is_moving = not background.is_still or entering is not None
        frame_key = (scene_index, number if is_moving else None, poses, card)
        if frame_key == self._last_key:
            copy(target, self._last_frame)
            return
        self._draw_scenes(target, scene_index, progress, entering)
        for overlay_index, pose in poses:
            sprite = self._overlay_sprite(overlay_index)
            sprites.draw_sprite(target, sprite, strength=pose.strength, drop=pose.drop, share=pose.share)
        if card is not None:
            sprites.draw_sprite(target, self._caption_sprite(*card))
        self._last_key = frame_key
        # Only a frame that may be shown again is worth a copy.
        if not is_moving:
            copy(self._last_frame, target)

    def _scene_at(self, number: int) -> tuple[int, float, float | None]:
        """Return the scene's index, the camera's progress, and the share of its transition, or `None` after that."""
        board = self.board
        index = next(
            (
                index
                for index, scene in enumerate(board.scenes)
                if board.frame_at(scene.start) <= number < board.frame_at(scene.end)
            ),
            len(board.scenes) - 1,
        )
        scene = board.scenes[index]
        passed_frames = number - board.frame_at(scene.start)
        transition_frames = board.frame_at(scene.transition.seconds) if scene.transition.kind != "cut" else 0
        entering = (
            (passed_frames + 1) / (transition_frames + 1) if passed_frames < transition_frames else None
        )
        return index, self._camera_progress(index, number), entering

    def _camera_progress(self, scene_index: int, number: int) -> float:
        """Return the camera's progress in a scene; it keeps moving while the next scene takes over."""
        board = self.board
        scene = board.scenes[scene_index]
        start, end = board.frame_at(scene.start), board.frame_at(scene.end)
        if scene_index + 1 < len(board.scenes):
            end += board.frame_at(board.scenes[scene_index + 1].transition.seconds)
        return (number - start) / max(end - start - 1, 1)

    def _draw_scenes(self, target: Planes, scene_index: int, progress: float, entering: float | None) -> None:
        """Draw the scene's background, and during a transition that of the scene before, too."""
        if entering is None:
            self._drop_backgrounds(before=scene_index)
            self._background(scene_index).draw(target, progress)
            return
        spare = self._spare = self._spare or new_planes(*self.size)
        number = round(self.board.scenes[scene_index].start * self.board.fps)
        passed_frames = progress * max(self._frame_count(scene_index) - 1, 1)
        self._background(scene_index - 1).draw(
            target, self._camera_progress(scene_index - 1, number + round(passed_frames))
        )
        self._background(scene_index).draw(spare, progress)
        kind = self.board.scenes[scene_index].transition.kind
        if kind == "fade":
            backgrounds.crossfade(target, target, spare, _ease_in_out(entering))
        else:
            backgrounds.wipe(target, spare, _ease_out(entering))

    def _frame_count(self, scene_index: int) -> int:
        """Return the number of the scene's frames, with those in which the next scene takes over."""
        board = self.board
        scene = board.scenes[scene_index]
        overlap_seconds = (
            board.scenes[scene_index + 1].transition.seconds if scene_index + 1 < len(board.scenes) else 0.0
        )
        return board.frame_at(scene.end) + board.frame_at(overlap_seconds) - board.frame_at(scene.start)

    def _background(self, scene_index: int) -> Background:
        if scene_index not in self._backgrounds:
            self._backgrounds[scene_index] = backgrounds.background_of(
                self.board.scenes[scene_index],
                self.size,
                self._read,
                reel=lambda name: self._reel(name, scene_index),
                frames=self._frame_count(scene_index),
                fps=self.board.fps,
            )
        return self._backgrounds[scene_index]

    def _reel(self, name: str, scene_index: int) -> Reel:
        """Return the scene's reel: a video goes on over a cut, and two scenes that are seen at once have one each."""
        # Scenes on both sides of a transition have different parities, and so different reels.
        parity = sum(scene.transition.kind != "cut" for scene in self.board.scenes[: scene_index + 1]) % 2
        if (name, parity) not in self._reels:
            for key in [key for key in self._reels if key[1] == parity]:
                self._reels.pop(key).close()
            if self._watch is None:
                raise UnusableAsset(name, "it isn't there.")
            self._reels[name, parity] = Reel(name, self._watch(name))
        return self._reels[name, parity]

    def close(self) -> None:
        """Close the videos that were opened."""
        while self._reels:
            self._reels.popitem()[1].close()

    def _drop_backgrounds(self, *, before: int) -> None:
        """Drop the backgrounds of past scenes, so that no more pictures are held than are shown at once."""
        for index in [index for index in self._backgrounds if index < before]:
            del self._backgrounds[index]

    def _poses_at(self, number: int) -> tuple[tuple[int, _Pose], ...]:
        """Return the overlays of a frame by index, with their poses."""
        return tuple(
            (
                index,
                _pose_at(
                    self.board.overlays[index], number - start, end - start, self.board.fps, self._shrink
                ),
            )
            for index, (start, end) in enumerate(self._spans)
            if start <= number < end
        )

    def _overlay_sprite(self, index: int) -> sprites.Sprite:
        if index not in self._overlays:
            board = self.board
            self._overlays[index] = sprites.sprite_of_items(
                board.overlays[index].items,
                (board.width, board.height),
                shrink=self._shrink,
                portrait=self._portrait,
            )
        return self._overlays[index]

    def _card_at(self, number: int) -> tuple[int, int | None] | None:
        """Return the indexes of the shown caption card and of its spoken word; each may be `None`."""
        board = self.board
        for index, card in enumerate(board.captions):
            if board.frame_at(card.start) <= number < board.frame_at(card.end):
                spoken = [
                    word_index
                    for word_index, word in enumerate(card.words)
                    if board.frame_at(word.start) <= number < max(board.frame_at(word.end), 1)
                ]
                return index, spoken[-1] if spoken else None
        return None

    def _caption_sprite(self, index: int, active: int | None) -> sprites.Sprite:
        key = (index, active)
        if key not in self._cards:
            while len(self._cards) >= _MAX_CACHED_CARDS:
                del self._cards[next(iter(self._cards))]
            self._cards[key] = sprites.sprite_of_caption(
                self.board.captions[index],
                self.board.caption_look,
                active,
                language=self.board.meta.language,
                shrink=self._shrink,
            )
        return self._cards[key]


def _pose_at(overlay: Overlay, passed: int, frames: int, fps: int, shrink: int) -> _Pose:
    """Return the pose of an overlay `passed` frames after it came."""
    remaining = frames - 1 - passed
    enter, leave = overlay.enter, overlay.leave
    enter_frames, leave_frames = round(enter.seconds * fps), round(leave.seconds * fps)
    if enter.kind != "none" and passed < enter_frames:
        return _moving_pose(enter, (passed + 1) / (enter_frames + 1), shrink, is_coming=True)
    if leave.kind != "none" and remaining < leave_frames:
        return _moving_pose(leave, (remaining + 1) / (leave_frames + 1), shrink, is_coming=False)
    return _AT_REST


def _moving_pose(motion: Motion, share: float, shrink: int, *, is_coming: bool) -> _Pose:
    """Return the pose at a `share` of a motion, from 0 for away to 1 for the overlay's position."""
    eased = _ease_out(share) if is_coming else _ease_in_out(share)
    if motion.kind == "grow":
        return _Pose(1.0, 0.0, eased)
    away = (1 - eased) * motion.distance / shrink
    drop = {"rise": away, "drift": away, "drop": -away}.get(motion.kind, 0.0)
    # A leaving overlay goes on in the direction in which it came.
    return _Pose(1.0 if motion.kind == "drift" else eased, drop if is_coming else -drop, 1.0)


def _ease_out(share: float) -> float:
    """Ease a share: fast at first, then settling."""
    return float(1 - (1 - share) ** 3)


def _ease_in_out(share: float) -> float:
    """Ease a share: slow at both ends."""
    return float(share * share * (3 - 2 * share))
