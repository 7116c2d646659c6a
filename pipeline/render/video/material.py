"""The material that a raw item brings for films, as data: its videos with the words spoken in them, and its pictures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pipeline.render.video.storyboard import Crop, Word


@dataclass(frozen=True)
class Shot:
    """A stretch of a video without a cut, in its own seconds. `crop` is the part to show; None shows all of it, padded."""

    start: float
    end: float
    crop: Crop | None = None


@dataclass(frozen=True)
class Clip:
    """A video. `name` is its name in storyboards, `words` are the words spoken in it, with their times in its seconds.

    `shots` are those of the spans to be filmed; empty until they were detected. `author` and `licence` are as given by
    whoever supplied the video. `seconds` is its length, 0 where it isn't known.
    """

    name: str
    words: tuple[Word, ...] = ()
    is_word_timed: bool = True
    shots: tuple[Shot, ...] = ()
    author: str = ""
    licence: str = ""
    seconds: float = 0.0


@dataclass(frozen=True)
class StillImage:
    """A picture. `width` and `height` are in pixels, 0 where they aren't known."""

    name: str
    width: int = 0
    height: int = 0
    author: str = ""
    licence: str = ""


@dataclass(frozen=True)
class FilmMaterial:
    """The videos and pictures of a raw item. `credit` names whose video it is.

    `why_no_words` is the reason why a transcript can't be used, for people. `words_at` is where in the raw item's text
    the words of the transcript begin, -1 where that wasn't looked up.
    """

    clips: tuple[Clip, ...] = ()
    stills: tuple[StillImage, ...] = ()
    why_no_words: str = ""
    credit: str = ""
    words_at: int = -1

    @property
    def spoken(self) -> Clip | None:
        """The first video with a transcript; None without one."""
        return next((clip for clip in self.clips if clip.words), None)


@dataclass(frozen=True)
class VideoSpan:
    """A part of a video that a film shows, in the video's seconds."""

    name: str
    start: float
    end: float
