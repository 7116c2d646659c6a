"""Defines the material that a raw item brings for films: its videos with their spoken words, and its pictures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pipeline.render.video.storyboard import Crop, Word


@dataclass(frozen=True)
class Shot:
    """A stretch of a video without a cut, in the video's seconds; `crop` is shown, or with `None` all, padded."""

    start: float
    end: float
    crop: Crop | None = None


@dataclass(frozen=True)
class Clip:
    """A video. `name` is its name in storyboards, `words` are the spoken words with times in the video's seconds.

    `is_word_timed` is False if only lines had times and those of words are estimated. `shots` are those of the
    spans to be filmed; there are none until they were detected. `author` and `licence` are as the person who
    supplied the video named them. `seconds` is the length, or 0 if it isn't known.
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
    """A picture. `width` and `height` are in pixels, or 0 if they aren't known."""

    name: str
    width: int = 0
    height: int = 0
    author: str = ""
    licence: str = ""


@dataclass(frozen=True)
class FilmMaterial:
    """The videos and pictures of a raw item. `credit` names the owner of the video.

    `why_no_words` is the reason why a transcript can't be used, for people. `words_at` is the offset in the raw item's
    text at which the words of the transcript begin, or -1 if it wasn't looked up or they aren't there.
    """

    clips: tuple[Clip, ...] = ()
    stills: tuple[StillImage, ...] = ()
    why_no_words: str = ""
    credit: str = ""
    words_at: int = -1

    @property
    def spoken(self) -> Clip | None:
        """The first video with a transcript, or `None` if there is none."""
        return next((clip for clip in self.clips if clip.words), None)


@dataclass(frozen=True)
class VideoSpan:
    """A part of a video that a film shows, in the video's seconds; both are 0 for a still picture."""

    name: str
    start: float
    end: float

    @property
    def is_still(self) -> bool:
        return not self.end
