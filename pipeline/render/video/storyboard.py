"""Defines a film as data: engines plan it, `film_process.render` films it, and a stored one is filmed the same again.

Times are seconds from the film's start, positions are pixels of the storyboard's size; a smaller file is the same
drawing, scaled. Whole frames decide in the end, not times: `frame_at` converts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal

from pipeline.plugins import Refused
from pipeline.render import colour
from pipeline.render.picture_types import Disc, DrawnText, Panel, Portrait

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipeline.render.typography.layout_types import Block

SIZE: Final = (1080, 1920)
FPS: Final = 30
SAFE_AREA: Final = (90, 260, 900, 1440)
"""Left, top, right and bottom in pixels: text stays within, on Shorts, Reels and TikTok alike."""
TITLE_BAND: Final = (300, 560)
"""Top and bottom in pixels of the band for the title of the first three seconds."""
MAX_FILM_SECONDS: Final = 180.0
MAX_SCENES: Final = 60
MAX_CAPTIONS: Final = 1_200
MAX_OVERLAYS: Final = 400

_ASSET_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,119}")
_TIME_TOLERANCE: Final = 1e-6

Item = Panel | Disc | Portrait | DrawnText


class UnusableAsset(Refused):
    """A file of the storyboard can't be shown or heard; the message has its name and the reason."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(f"The file {name} can't be shown: {why}", code="unusable_asset")


@dataclass(frozen=True)
class Crop:
    """The part of an asset that is shown, in shares of the asset's width and height."""

    x: float = 0.0
    y: float = 0.0
    width: float = 1.0
    height: float = 1.0


@dataclass(frozen=True)
class Zoom:
    """The camera's zoom at the scene's first and last frame; 1 shows the whole crop.

    `x` and `y` are the point of the frame, in shares, that stays in place.
    """

    start: float = 1.0
    end: float = 1.0
    x: float = 0.5
    y: float = 0.5


@dataclass(frozen=True)
class Visual:
    """The background of a scene, which fills the frame behind everything else.

    The kind `colour` is a flat colour, or a gradient down to `colour_to`. `picture` is a still, `clip` a film from its
    second `since` on; both cover the frame, or with the `fit` `pad` stand whole before a blurred copy. `shade` is the
    share of darkness, 0 to 1.
    """

    kind: Literal["colour", "picture", "clip"]
    asset: str = ""
    colour: str = "#000000"
    colour_to: str = ""
    crop: Crop = field(default_factory=Crop)
    zoom: Zoom = field(default_factory=Zoom)
    fit: Literal["cover", "pad"] = "cover"
    since: float = 0.0
    shade: float = 0.0


@dataclass(frozen=True)
class Transition:
    """The change from the scene before, during this scene's first `seconds`."""

    kind: Literal["cut", "fade", "wipe"] = "cut"
    seconds: float = 0.0


@dataclass(frozen=True)
class Scene:
    """A stretch of the film with one visual, from `start` to `end`."""

    start: float
    end: float
    visual: Visual
    transition: Transition = field(default_factory=Transition)


@dataclass(frozen=True)
class Word:
    """A word `t` as it is shown, which is spoken from second `start` to second `end`."""

    t: str
    start: float
    end: float


@dataclass(frozen=True)
class Caption:
    """A card of one to four words; each word is highlighted while it is spoken."""

    words: tuple[Word, ...]
    start: float
    end: float


@dataclass(frozen=True)
class CaptionStyle:
    """The look of captions: a card is centred on `x` and `y` and at most `width` wide; lengths are in pixels."""

    x: float = 540.0
    y: float = 1200.0
    width: float = 720.0
    size: int = 84
    smallest: int = 54
    weight: int = 800
    colour: str = "#ffffff"
    accent: str = "#ffd23f"
    outline: str = "#0b0b0f"
    outline_width: int = 7


@dataclass(frozen=True)
class Motion:
    """The motion with which an overlay comes or goes.

    `fade` only fades; `rise` and `drop` move by `distance` pixels while fading, `drift` moves upwards without fading;
    `grow` uncovers it from its left edge.
    """

    kind: Literal["none", "fade", "rise", "drop", "drift", "grow"] = "none"
    seconds: float = 0.0
    distance: float = 0.0


@dataclass(frozen=True)
class Overlay:
    """Items that lie over the scenes, back to front, and move together; later overlays lie over earlier ones."""

    start: float
    end: float
    items: tuple[Item, ...]
    enter: Motion = field(default_factory=Motion)
    leave: Motion = field(default_factory=Motion)
    name: str = ""


@dataclass(frozen=True)
class Duck:
    """The compressor with which music gives way to a voice: its ratio, and its attack and release in seconds."""

    ratio: float = 8.0
    attack: float = 0.02
    release: float = 0.35


@dataclass(frozen=True)
class Take:
    """The sound of a clip, from its second `since` on, while the film goes from `start` to `end`."""

    asset: str
    since: float
    start: float
    end: float


@dataclass(frozen=True)
class Audio:
    """The film's sound: names of assets, or "" for none. `music_below` is the music's level under the voice, in dB.

    `takes` are the sounds of clips, which are treated as a voice. `fade_out` is in seconds.
    """

    voice: str = ""
    music: str = ""
    music_below: float = 15.0
    duck: Duck = field(default_factory=Duck)
    fade_out: float = 1.2
    takes: tuple[Take, ...] = ()


@dataclass(frozen=True)
class Meta:
    """The film's metadata. `thumbnail_at` is the second whose frame is the thumbnail."""

    title: str = ""
    alt_text: str = ""
    language: str = ""
    template: str = ""
    thumbnail_at: float = 0.0


@dataclass(frozen=True)
class Storyboard:
    """A whole film. `version` rises when the same data would be filmed differently."""

    scenes: tuple[Scene, ...]
    overlays: tuple[Overlay, ...] = ()
    captions: tuple[Caption, ...] = ()
    caption_look: CaptionStyle = field(default_factory=CaptionStyle)
    told: tuple[Caption, ...] = ()
    """The cards of the caption files if they aren't `captions`: in a silent film the words on the screen."""
    audio: Audio = field(default_factory=Audio)
    meta: Meta = field(default_factory=Meta)
    fps: int = FPS
    width: int = SIZE[0]
    height: int = SIZE[1]
    version: int = 1

    @property
    def duration(self) -> float:
        """The film's length in seconds, a whole number of frames."""
        return self.frames / self.fps

    @property
    def frames(self) -> int:
        return self.frame_at(self.scenes[-1].end) if self.scenes else 0

    @property
    def needs_portrait(self) -> bool:
        return any(isinstance(item, Portrait) for overlay in self.overlays for item in overlay.items)

    @property
    def assets(self) -> tuple[str, ...]:
        """The names of the film's files, each once: those of the scenes, then voice, music and takes."""
        names = [scene.visual.asset for scene in self.scenes] + [self.audio.voice, self.audio.music]
        names += [take.asset for take in self.audio.takes]
        return tuple(dict.fromkeys(name for name in names if name))

    def frame_at(self, second: float) -> int:
        """Return the number of the frame that begins nearest to a second."""
        return round(second * self.fps)


def storyboard_faults(board: Storyboard) -> tuple[str, ...]:
    """Return the faults that keep the storyboard from being filmed, one sentence each."""
    return tuple(_faults(board))


def _faults(board: Storyboard) -> Iterator[str]:
    """Yield the faults of the whole, then of each part; faulty numbers of parts end the search."""
    if not 1 <= board.fps <= 60:
        yield f"fps: from 1 to 60, not {board.fps}."
        return
    if not (16 <= board.width <= 2160 and 16 <= board.height <= 3840) or board.width % 2 or board.height % 2:
        yield f"size: even, up to 2160 × 3840 pixels, not {board.width} × {board.height}."
    if not 1 <= len(board.scenes) <= MAX_SCENES:
        yield f"scenes: from 1 to {MAX_SCENES}, not {len(board.scenes)}."
        return
    yield from _faults_of_scenes(board)
    yield from _faults_of_takes(board)
    if max(len(board.captions), len(board.told)) > MAX_CAPTIONS or len(board.overlays) > MAX_OVERLAYS:
        yield f"captions: at most {MAX_CAPTIONS}, overlays: at most {MAX_OVERLAYS}."
        return
    yield from _faults_of_captions(board, "captions", board.captions)
    yield from _faults_of_captions(board, "told", board.told)
    for index, overlay in enumerate(board.overlays):
        yield from _faults_of_overlay(board, index, overlay)


def _faults_of_scenes(board: Storyboard) -> Iterator[str]:
    """Yield the faults of scenes, which have to follow one another without gaps, and of their visuals."""
    previous_end = 0.0
    for index, scene in enumerate(board.scenes):
        where = f"scenes[{index}]"
        if abs(scene.start - previous_end) > _TIME_TOLERANCE:
            yield f"{where}: starts at {scene.start:g} s, and the one before ends at {previous_end:g} s."
        if board.frame_at(scene.end) <= board.frame_at(scene.start):
            yield f"{where}: is shorter than a frame."
        length = scene.end - scene.start
        if not 0 <= scene.transition.seconds <= length:
            yield f"{where}: its transition of {scene.transition.seconds:g} s is longer than the scene."
        if index == 0 and scene.transition.kind != "cut":
            yield f"{where}: the first scene begins with a cut."
        yield from (f"{where}: {fault}" for fault in _faults_of_visual(scene.visual))
        previous_end = scene.end
    if not previous_end <= MAX_FILM_SECONDS:
        yield f"scenes: the maximum is {MAX_FILM_SECONDS:g} seconds, not {previous_end:g}."


def _faults_of_takes(board: Storyboard) -> Iterator[str]:
    """Yield the faults of takes, which have to follow one another within the film."""
    if len(board.audio.takes) > MAX_SCENES:
        yield f"audio.takes: at most {MAX_SCENES}."
        return
    previous_end = 0.0
    for index, take in enumerate(board.audio.takes):
        where = f"audio.takes[{index}]"
        if not _ASSET_NAME.fullmatch(take.asset) or not 0 <= take.since < float("inf"):
            yield f"{where}: names a file and a second of it."
        if (
            not previous_end - _TIME_TOLERANCE <= take.start < take.end
            or board.frame_at(take.end) > board.frames
        ):
            yield f"{where}: from {take.start:g} to {take.end:g} s, and takes follow one another within the film."
        previous_end = take.end


def _faults_of_visual(visual: Visual) -> Iterator[str]:
    """Yield the faults of a visual's asset, colours, crop, zoom, shade and start."""
    if visual.kind != "colour" and not _ASSET_NAME.fullmatch(visual.asset):
        yield f"the asset of a {visual.kind} is the name of a file, not {visual.asset!r}."
    for name, value in (("colour", visual.colour), ("colour_to", visual.colour_to or visual.colour)):
        if colour.parse(value) != value:
            yield f"{name}: a colour is written as #1f3a5f, not {value!r}."
    crop, zoom = visual.crop, visual.zoom
    if not (
        0 <= crop.x < crop.x + crop.width <= 1 + _TIME_TOLERANCE
        and 0 <= crop.y < crop.y + crop.height <= 1 + _TIME_TOLERANCE
    ):
        yield "crop: lies within the asset, in shares from 0 to 1."
    if not (1 <= zoom.start <= 4 and 1 <= zoom.end <= 4 and 0 <= zoom.x <= 1 and 0 <= zoom.y <= 1):
        yield "zoom: from 1 to 4, around a point in shares from 0 to 1."
    if visual.kind == "clip" and (zoom.start, zoom.end) != (1, 1):
        yield "zoom: a clip's own camera moves; it isn't zoomed."
    if not 0 <= visual.shade <= 1 or not 0 <= visual.since < float("inf"):
        yield "shade: from 0 to 1; since: 0 or later."


def _faults_of_captions(board: Storyboard, field_name: str, cards: tuple[Caption, ...]) -> Iterator[str]:
    """Yield the faults of cards, which have to follow one another within the film, and of their words' times."""
    previous_end = 0.0
    for index, card in enumerate(cards):
        where = f"{field_name}[{index}]"
        if not card.words or not all(word.t.strip() for word in card.words):
            yield f"{where}: has no words."
        if (
            card.start < previous_end - _TIME_TOLERANCE
            or board.frame_at(card.end) > board.frames
            or not card.start < card.end
        ):
            yield f"{where}: from {card.start:g} to {card.end:g} s, and cards follow one another within the film."
        previous_start = card.start
        for word in card.words:
            if not previous_start - _TIME_TOLERANCE <= word.start <= word.end <= card.end + _TIME_TOLERANCE:
                yield f"{where}: {word.t!r} is spoken outside its card or before the word before it."
                break
            previous_start = word.start
        previous_end = card.end


def _faults_of_overlay(board: Storyboard, index: int, overlay: Overlay) -> Iterator[str]:
    """Yield the faults of an overlay's times and motions, or that it has no items."""
    where = f"overlays[{index}]"
    if not 0 <= overlay.start < overlay.end or board.frame_at(overlay.end) > board.frames:
        yield f"{where}: from {overlay.start:g} to {overlay.end:g} s, which is not within the film."
    elif (
        not 0
        <= overlay.enter.seconds + overlay.leave.seconds
        <= overlay.end - overlay.start + _TIME_TOLERANCE
    ):
        yield f"{where}: comes and goes in more time than it has."
    if min(overlay.enter.seconds, overlay.leave.seconds) < 0:
        yield f"{where}: a motion takes no less than no time."
    if not overlay.items:
        yield f"{where}: has nothing in it."


def texts_outside(board: Storyboard, area: tuple[float, float, float, float] = SAFE_AREA) -> tuple[str, ...]:
    """Return the texts of overlays that reach out of the area, which is scaled with the board's size."""
    scale_x, scale_y = board.width / SIZE[0], board.height / SIZE[1]
    left, top, right, bottom = area[0] * scale_x, area[1] * scale_y, area[2] * scale_x, area[3] * scale_y
    texts = []
    for overlay in board.overlays:
        for item in overlay.items:
            if isinstance(item, DrawnText):
                x, y, text_right, text_bottom = _text_box(item.x, item.y, item.block)
                if x < left - 1 or y < top - 1 or text_right > right + 1 or text_bottom > bottom + 1:
                    texts.append(" ".join(line.text for line in item.block.lines))
    return tuple(texts)


def _text_box(x: float, y: float, block: Block) -> tuple[float, float, float, float]:
    if not block.lines:
        return x, y, x, y
    starts = min(run.x for line in block.lines for run in line.runs)
    ends = max(run.x + run.width for line in block.lines for run in line.runs)
    return x + starts, y, x + ends, y + block.height
