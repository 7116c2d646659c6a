"""What a raw item brings to films: its videos with what is said in them, and its pictures. Data only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pipeline.render.video.storyboard import Crop, Word


@dataclass(frozen=True)
class Shot:
    """A stretch of a video without a cut, in its own seconds. `crop` is the part to show, None for all of it, padded."""

    start: float
    end: float
    crop: Crop | None = None


@dataclass(frozen=True)
class Clip:
    """A video: `name` is what storyboards call it, `words` what is said in it at which of its seconds.

    `shots` are those of the spans that are to be filmed; empty until somebody looked. `author` and `licence` are what
    whoever handed it over said of it. `seconds` is its length, 0 where nobody knows it.
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
    name: str
    width: int = 0
    height: int = 0
    author: str = ""
    licence: str = ""


@dataclass(frozen=True)
class FilmMaterial:
    """`why_no_words` is the sentence for a transcript that can't be used; `credit` names whose video it is.

    `words_at` is where in the raw item's text the words of the transcript begin, -1 where nobody looked.
    """

    clips: tuple[Clip, ...] = ()
    stills: tuple[StillImage, ...] = ()
    why_no_words: str = ""
    credit: str = ""
    words_at: int = -1

    @property
    def spoken(self) -> Clip | None:
        """The video whose words are known."""
        return next((clip for clip in self.clips if clip.words), None)


@dataclass(frozen=True)
class VideoSpan:
    """A part of a video that a film shows, in the video's seconds."""

    name: str
    start: float
    end: float
