"""A video is looked at in a process under limits: its shots within a span."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pipeline.plugins import Refused
from pipeline.render import child_program
from pipeline.render.video.film_process import RenderBusy, RenderFailed
from pipeline.render.video.material import Shot
from pipeline.render.video.storyboard import LONGEST, Crop, UnusableAsset

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipeline.render.video.material import VideoSpan

_PROGRAM: Final = Path(__file__).with_name("shot_detection_child.py")
MEMORY: Final = 1_200 * 1024 * 1024
"""Of address space: a frame of 2160p takes 12 MB, its decoder 300, the libraries 500."""
SECONDS_A_SECOND: Final = 6
"""By the clock, for each second that is looked at; 2160p takes one on a quiet machine."""
_LEAST: Final = 60
_ANSWER: Final = 256 * 1024
_HOW: Final = {"slow": "slow", "flooded": "memory", "died": "died"}


def longest(span: VideoSpan) -> int:
    """Seconds by the clock that `detect_shots` may take."""
    return _LEAST + round(SECONDS_A_SECOND * (span.end - span.start))


def detect_shots(path: Path, span: VideoSpan) -> tuple[Shot, ...]:
    """The shots of a span.

    Raises `Refused` for one that is longer than a film, `UnusableAsset`, `RenderFailed` for what takes too much, and
    `RenderBusy`.
    """
    if not 0 < span.end - span.start <= LONGEST:
        message = f"A film shows {LONGEST:g} seconds of a video at most, not {span.end - span.start:g}."
        raise Refused(message, code="long_span")
    seconds = longest(span)
    asked = {
        "name": span.name,
        "start": span.start,
        "end": span.end,
        "memory": MEMORY,
        "clock": seconds,
    }
    try:
        with path.open("rb") as file:
            said = child_program.run(
                [*child_program.ours(_PROGRAM, "av", "cv2", "numpy", "PIL"), json.dumps(asked)],
                file=file,
                caps=child_program.Caps(seconds=seconds, answer=_ANSWER),
                environment={
                    "OPENBLAS_NUM_THREADS": "1",
                    "OMP_NUM_THREADS": "1",
                    **child_program.FEW_ARENAS,
                },
            )
    except FileNotFoundError:
        raise UnusableAsset(span.name, "it isn't there.") from None
    except child_program.ChildEnded as ended:
        if ended.how == "missing":
            raise RenderBusy from None
        message = "Looking at the video took too long or too much memory; save it again in a usual format."
        raise RenderFailed(message, code=f"render_{_HOW[ended.how]}", log=ended.words) from None
    told = json.loads(said)
    if "refused" in told:
        raise Refused(told["refused"]["message"], code=told["refused"]["code"])
    return shots_from(told["shots"])


def shots_from(told: Sequence[Mapping[str, Any]]) -> tuple[Shot, ...]:
    """Of their fields, as they are read back from JSON."""
    return tuple(
        Shot(one["start"], one["end"], None if one["crop"] is None else Crop(**one["crop"])) for one in told
    )
