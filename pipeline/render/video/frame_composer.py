"""Frame by frame: the scenes, what lies over them, and the captions, as the storyboard says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from pipeline.render.video import backgrounds, sprites
from pipeline.render.video.footage import Reel
from pipeline.render.video.storyboard import UnusableAsset
from pipeline.render.video.ycbcr import Planes, blank, copy

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import BinaryIO

    from pipeline.render.video.backgrounds import Ground
    from pipeline.render.video.storyboard import Motion, Overlay, Storyboard

SHRINKS: Final = (1, 2, 4)
"""How many times smaller than its storyboard a film may be."""
_KEPT_CARDS: Final = 12


class _Pose(NamedTuple):
    """How an overlay lies on one frame."""

    strength: float
    drop: float
    share: float


_AT_REST: Final = _Pose(1.0, 0.0, 1.0)


class Composer:
    """Draws any frame of a film; asked for them in order it draws each thing once.

    `read` gives the bytes of an asset, `watch` opens a video, which stays open until `close`. Raises `Refused` with a
    sentence for what can't be drawn, as early as can be.
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
        if shrink not in SHRINKS or board.width % (2 * shrink) or board.height % (2 * shrink):
            message = f"A film of {board.width} × {board.height} can't be made {shrink} times smaller."
            raise ValueError(message)
        self.board = board
        self.size = (board.width // shrink, board.height // shrink)
        self._shrink = shrink
        self._read = read
        self._watch = watch
        self._reels: dict[tuple[str, int], Reel] = {}
        self._portrait = portrait
        self._grounds: dict[int, Ground] = {}
        self._overlays: dict[int, sprites.Sprite] = {}
        self._cards: dict[tuple[int, int | None], sprites.Sprite] = {}
        self._spare: Planes | None = None
        self._last: tuple[object, ...] | None = None
        self._kept = blank(*self.size)
        # Each overlay stands over these frames.
        self._spans = [(board.frame_at(one.start), board.frame_at(one.end)) for one in board.overlays]

    def draw(self, target: Planes, number: int) -> None:
        """The frame of that number, from 0."""
        poses = self._poses(number)
        card = self._card(number)
        place, progress, entering = self._scene(number)
        ground = self._ground(place)
        is_moving = not ground.is_still or entering is not None
        shown = (place, number if is_moving else None, poses, card)
        if shown == self._last:
            copy(target, self._kept)
            return
        self._draw_scenes(target, place, progress, entering)
        for which, pose in poses:
            sprite = self._overlay(which)
            sprites.draw_sprite(target, sprite, strength=pose.strength, drop=pose.drop, share=pose.share)
        if card is not None:
            sprites.draw_sprite(target, self._caption(*card))
        self._last = shown
        # Only what may be shown again is worth a copy.
        if not is_moving:
            copy(self._kept, target)

    def _scene(self, number: int) -> tuple[int, float, float | None]:
        """Which scene, how far it is, and how far it has taken over; None where it has."""
        board = self.board
        place = next(
            (
                place
                for place, scene in enumerate(board.scenes)
                if board.frame_at(scene.start) <= number < board.frame_at(scene.end)
            ),
            len(board.scenes) - 1,
        )
        scene = board.scenes[place]
        passed = number - board.frame_at(scene.start)
        taking = board.frame_at(scene.transition.seconds) if scene.transition.kind != "cut" else 0
        entering = (passed + 1) / (taking + 1) if passed < taking else None
        return place, self._progress(place, number), entering

    def _progress(self, place: int, number: int) -> float:
        """A camera keeps moving while the next scene takes over."""
        board = self.board
        scene = board.scenes[place]
        start, end = board.frame_at(scene.start), board.frame_at(scene.end)
        if place + 1 < len(board.scenes):
            end += board.frame_at(board.scenes[place + 1].transition.seconds)
        return (number - start) / max(end - start - 1, 1)

    def _draw_scenes(self, target: Planes, place: int, progress: float, entering: float | None) -> None:
        if entering is None:
            self._forget_grounds(before=place)
            self._ground(place).draw(target, progress)
            return
        spare = self._spare = self._spare or blank(*self.size)
        number = round(self.board.scenes[place].start * self.board.fps)
        passed = progress * max(self._length(place) - 1, 1)
        self._ground(place - 1).draw(target, self._progress(place - 1, number + round(passed)))
        self._ground(place).draw(spare, progress)
        kind = self.board.scenes[place].transition.kind
        if kind == "fade":
            backgrounds.cross(target, target, spare, _in_and_out(entering))
        else:
            backgrounds.wipe(target, spare, _out(entering))

    def _length(self, place: int) -> int:
        board = self.board
        scene = board.scenes[place]
        more = board.scenes[place + 1].transition.seconds if place + 1 < len(board.scenes) else 0.0
        return board.frame_at(scene.end) + board.frame_at(more) - board.frame_at(scene.start)

    def _ground(self, place: int) -> Ground:
        if place not in self._grounds:
            self._grounds[place] = backgrounds.ground_of(
                self.board.scenes[place],
                self.size,
                self._read,
                reel=lambda name: self._reel(name, place),
                frames=self._length(place),
                fps=self.board.fps,
            )
        return self._grounds[place]

    def _reel(self, name: str, place: int) -> Reel:
        """A video goes on over a cut; where two of its scenes are seen at once, each has a reel of its own."""
        turn = sum(scene.transition.kind != "cut" for scene in self.board.scenes[: place + 1]) % 2
        if (name, turn) not in self._reels:
            for other in [one for one in self._reels if one[1] == turn]:
                self._reels.pop(other).close()
            if self._watch is None:
                raise UnusableAsset(name, "it isn't there.")
            self._reels[name, turn] = Reel(name, self._watch(name))
        return self._reels[name, turn]

    def close(self) -> None:
        """Let go of the videos that were opened."""
        while self._reels:
            self._reels.popitem()[1].close()

    def _forget_grounds(self, *, before: int) -> None:
        """A film holds no more pictures than it shows at once."""
        for place in [one for one in self._grounds if one < before]:
            del self._grounds[place]

    def _poses(self, number: int) -> tuple[tuple[int, _Pose], ...]:
        return tuple(
            (
                which,
                _pose(self.board.overlays[which], number - start, end - start, self.board.fps, self._shrink),
            )
            for which, (start, end) in enumerate(self._spans)
            if start <= number < end
        )

    def _overlay(self, which: int) -> sprites.Sprite:
        if which not in self._overlays:
            board = self.board
            self._overlays[which] = sprites.of_items(
                board.overlays[which].items,
                (board.width, board.height),
                shrink=self._shrink,
                portrait=self._portrait,
            )
        return self._overlays[which]

    def _card(self, number: int) -> tuple[int, int | None] | None:
        """The card that is shown, and the word that is spoken."""
        board = self.board
        for place, card in enumerate(board.captions):
            if board.frame_at(card.start) <= number < board.frame_at(card.end):
                spoken = [
                    which
                    for which, word in enumerate(card.words)
                    if board.frame_at(word.start) <= number < max(board.frame_at(word.end), 1)
                ]
                return place, spoken[-1] if spoken else None
        return None

    def _caption(self, place: int, active: int | None) -> sprites.Sprite:
        key = (place, active)
        if key not in self._cards:
            while len(self._cards) >= _KEPT_CARDS:
                del self._cards[next(iter(self._cards))]
            self._cards[key] = sprites.of_caption(
                self.board.captions[place],
                self.board.caption_look,
                active,
                language=self.board.meta.language,
                shrink=self._shrink,
            )
        return self._cards[key]


def _pose(overlay: Overlay, passed: int, frames: int, fps: int, shrink: int) -> _Pose:
    left = frames - 1 - passed
    coming, going = overlay.enter, overlay.leave
    enters, leaves = round(coming.seconds * fps), round(going.seconds * fps)
    if coming.kind != "none" and passed < enters:
        return _moved(coming, (passed + 1) / (enters + 1), shrink, is_coming=True)
    if going.kind != "none" and left < leaves:
        return _moved(going, (left + 1) / (leaves + 1), shrink, is_coming=False)
    return _AT_REST


def _moved(motion: Motion, share: float, shrink: int, *, is_coming: bool) -> _Pose:
    """`share` of the way from away to there."""
    eased = _out(share) if is_coming else _in_and_out(share)
    if motion.kind == "grow":
        return _Pose(1.0, 0.0, eased)
    away = (1 - eased) * motion.distance / shrink
    drop = {"rise": away, "drift": away, "drop": -away}.get(motion.kind, 0.0)
    # What leaves goes on in the direction in which it came.
    return _Pose(1.0 if motion.kind == "drift" else eased, drop if is_coming else -drop, 1.0)


def _out(share: float) -> float:
    """Fast at first, then settling."""
    return float(1 - (1 - share) ** 3)


def _in_and_out(share: float) -> float:
    return float(share * share * (3 - 2 * share))
