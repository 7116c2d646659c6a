"""What is to be drawn, as data: engines make it, `draw_layout.render_layout` draws it."""

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
"""Nothing that is read comes nearer to an edge of a picture, in pixels."""


@dataclass(frozen=True)
class AvailableMedia:
    """What an engine may count on when it plans: files by their presence, the size, the day that is shown."""

    has_portrait: bool = False
    size: tuple[int, int] = UPRIGHT
    shown_on: date | None = None
    has_photo: bool = False
    narration: Narration | None = None
    """What `Engine.script` gave, as it was spoken; None where it wasn't yet, and in a silent film."""
    material: FilmMaterial | None = None


@dataclass(frozen=True)
class Photo:
    """The photo that was given, over the whole picture, under a `veil` of that `strength`, 0 to 1."""

    veil: str
    strength: float
    kind: Literal["photo"] = "photo"


@dataclass(frozen=True)
class Panel:
    """A rectangle with round corners, with a soft shadow where it lies on something."""

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
    """The whole picture from one colour at the top to another at the bottom."""

    top: str
    bottom: str
    kind: Literal["wash"] = "wash"


@dataclass(frozen=True)
class Disc:
    """A circle; it may reach beyond the picture's edges."""

    x: int
    y: int
    size: int
    colour: str
    kind: Literal["disc"] = "disc"


@dataclass(frozen=True)
class Portrait:
    """The persona's portrait in a circle; the bytes are handed to `render`."""

    x: int
    y: int
    size: int
    kind: Literal["portrait"] = "portrait"


@dataclass(frozen=True)
class DrawnText:
    x: float
    y: float
    block: Block
    colour: str
    accent: str
    kind: Literal["words"] = "words"


Item = Wash | Photo | Panel | Disc | Portrait | DrawnText


@dataclass(frozen=True)
class PicturePlan:
    """One file: `items` from back to front, in pixels from the top left corner.

    The `role` is `image`, or `alternative` for one that says the same in another size and is never posted beside it.
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
    """The pictures of one item, in order. `version` rises when the same data would be drawn another way.

    `document` names a PDF that has each picture as a page, `title` what it is called; none where it is empty.
    """

    pictures: tuple[PicturePlan, ...]
    version: int = 1
    document: str = ""
    title: str = ""
    language: str = ""

    @property
    def needs_portrait(self) -> bool:
        return any(isinstance(item, Portrait) for picture in self.pictures for item in picture.items)
