"""Defines pictures as data: engines plan them, and `draw_layout.render_layout` draws them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date  # noqa: TC003 - a field of a dataclass
from typing import TYPE_CHECKING, Final, Literal

from pipeline.render.typography.layout_types import Block  # noqa: TC001 - of `DrawnText`, which a storyboard is read into

if TYPE_CHECKING:
    from pipeline.render.audio.narration import Narration
    from pipeline.render.video.material import FilmMaterial

UPRIGHT: Final = (1080, 1350)
SQUARE: Final = (1080, 1080)
MARGIN: Final = 96
"""Text stays this many pixels from every edge of a picture."""


@dataclass(frozen=True)
class AvailableMedia:
    """The media that an engine may use when it plans, with the picture's size in pixels and the day to show on it."""

    has_portrait: bool = False
    size: tuple[int, int] = UPRIGHT
    shown_on: date | None = None
    has_photo: bool = False
    narration: Narration | None = None
    """The narration of `Engine.script`, or `None` before it is spoken and for a silent film."""
    material: FilmMaterial | None = None


@dataclass(frozen=True)
class Photo:
    """The item's photo over the whole picture, under a `veil` of a `strength` from 0 to 1."""

    veil: str
    strength: float
    kind: Literal["photo"] = "photo"


@dataclass(frozen=True)
class Panel:
    """A rectangle with rounded corners of `radius` pixels, and with a soft shadow if it has one."""

    x: int
    y: int
    width: int
    height: int
    radius: int
    colour: str
    has_shadow: bool = False
    kind: Literal["panel"] = "panel"


@dataclass(frozen=True)
class Wash:
    """A gradient over the whole picture, from one colour at the top to another at the bottom."""

    top: str
    bottom: str
    kind: Literal["wash"] = "wash"


@dataclass(frozen=True)
class Disc:
    """A circle of `size` pixels; it may reach beyond the picture's edges."""

    x: int
    y: int
    size: int
    colour: str
    kind: Literal["disc"] = "disc"


@dataclass(frozen=True)
class Portrait:
    """The persona's portrait in a circle; its bytes are passed to `render_layout`."""

    x: int
    y: int
    size: int
    kind: Literal["portrait"] = "portrait"


@dataclass(frozen=True)
class DrawnText:
    """A laid-out text, with the top left corner of its block at (`x`, `y`); `accent` colours its marked words."""

    x: float
    y: float
    block: Block
    colour: str
    accent: str
    kind: Literal["words"] = "words"


Item = Wash | Photo | Panel | Disc | Portrait | DrawnText


@dataclass(frozen=True)
class PicturePlan:
    """One file: `items` are drawn from back to front, with positions in pixels from the top left corner.

    The `role` is `image`, `hero` for the picture of an article, or `alternative` for the same content in another size,
    which is never posted together with it.
    """

    name: str
    role: str
    width: int
    height: int
    background: str
    items: tuple[Item, ...]
    alt_text: str


@dataclass(frozen=True)
class Layout:
    """The pictures of one item, in order. `version` rises when the same data would be drawn differently.

    `document` is the name of a PDF with each picture as a page, and `title` its title; there is no PDF without a name.
    """

    pictures: tuple[PicturePlan, ...]
    version: int = 1
    document: str = ""
    title: str = ""
    language: str = ""

    @property
    def needs_portrait(self) -> bool:
        return any(isinstance(item, Portrait) for picture in self.pictures for item in picture.items)
