"""Finds the shots within a span of a video, in a process under limits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pipeline.plugins import Refused
from pipeline.render import child_program
from pipeline.render.video.film_process import RenderBusy, RenderFailed
from pipeline.render.video.material import Shot
from pipeline.render.video.storyboard import MAX_FILM_SECONDS, Crop, UnusableAsset

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipeline.render.video.material import VideoSpan

_PROGRAM: Final = Path(__file__).with_name("shot_detection_child.py")
MEMORY_BYTES: Final = 1_200 * 1024 * 1024
"""The limit of address space: a frame of 2160p takes 12 MB, its decoder 300 MB, the libraries 500 MB."""
TIMEOUT_PER_SECOND: Final = 6
"""Seconds by the clock for each second of the span; 2160p takes one on a quiet machine."""
_MIN_TIMEOUT_SECONDS: Final = 60
_MAX_ANSWER_BYTES: Final = 256 * 1024
_CODE_BY_ENDING: Final = {"slow": "slow", "flooded": "memory", "died": "died"}


def timeout_seconds(span: VideoSpan) -> int:
    """Return the seconds by the clock that `detect_shots` may take."""
    return _MIN_TIMEOUT_SECONDS + round(TIMEOUT_PER_SECOND * (span.end - span.start))


def detect_shots(path: Path, span: VideoSpan) -> tuple[Shot, ...]:
    """Return the shots of a span.

    Raises `Refused` for a span longer than a film or a video that can't be read, `UnusableAsset` if there is no file,
    `RenderFailed` if the child takes too much time or memory or dies, and `RenderBusy` if it can't be started.
    """
    if not 0 < span.end - span.start <= MAX_FILM_SECONDS:
        message = (
            f"A film shows {MAX_FILM_SECONDS:g} seconds of a video at most, not {span.end - span.start:g}."
        )
        raise Refused(message, code="long_span")
    seconds = timeout_seconds(span)
    request = {
        "name": span.name,
        "start": span.start,
        "end": span.end,
        "memory": MEMORY_BYTES,
        "timeout_seconds": seconds,
    }
    try:
        with path.open("rb") as file:
            output = child_program.run(
                [*child_program.python_command(_PROGRAM, "av", "cv2", "numpy", "PIL"), json.dumps(request)],
                file=file,
                caps=child_program.Caps(seconds=seconds, answer=_MAX_ANSWER_BYTES),
                environment={"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", **child_program.FEW_ARENAS},
            )
    except FileNotFoundError:
        raise UnusableAsset(span.name, "it isn't there.") from None
    except child_program.ChildEnded as ended:
        if ended.how == "missing":
            raise RenderBusy from None
        message = "Looking at the video took too long or too much memory; save it again in a usual format."
        raise RenderFailed(message, code=f"render_{_CODE_BY_ENDING[ended.how]}", log=ended.words) from None
    answer = json.loads(output)
    if "refused" in answer:
        raise Refused(answer["refused"]["message"], code=answer["refused"]["code"])
    return shots_from(answer["shots"])


def shots_from(rows: Sequence[Mapping[str, Any]]) -> tuple[Shot, ...]:
    """Return the shots from their fields, as they are read from JSON."""
    return tuple(
        Shot(row["start"], row["end"], None if row["crop"] is None else Crop(**row["crop"])) for row in rows
    )
