"""The process in which a video is looked at, run by its path and isolated from the environment.

The video is its input, so that it knows no name and opens none; its arguments are the folders of the project and of the
libraries, and what is asked as JSON. The answer is one line of JSON: `{"shots": […]}` or `{"refused": {…}}`.
"""

from __future__ import annotations

import dataclasses
import io
import json
import sys
from typing import Any, Final

_BUFFER: Final = 1024 * 1024


def main(asked: dict[str, Any]) -> dict[str, Any]:
    from pipeline.render.rlimits import confine  # noqa: PLC0415  it stands on a path of the arguments

    confine(memory=asked["memory"], seconds=asked["clock"])
    import av  # noqa: PLC0415  after the limits
    import cv2  # noqa: PLC0415

    from pipeline.plugins import Refused  # noqa: PLC0415
    from pipeline.render.probe_child import OpenInput  # noqa: PLC0415
    from pipeline.render.video.footage import Reel  # noqa: PLC0415
    from pipeline.render.video.shots_and_crops import find_shots  # noqa: PLC0415

    av.logging.set_level(None)
    cv2.setNumThreads(1)
    try:
        reel = Reel(asked["name"], io.BufferedReader(OpenInput(), _BUFFER))
        shots = find_shots(reel, asked["start"], asked["end"])
    except Refused as refused:
        return {"refused": {"code": refused.code, "message": refused.message}}
    return {"shots": [dataclasses.asdict(shot) for shot in shots]}


if __name__ == "__main__":
    *places, given = sys.argv[1:]
    sys.path += places
    sys.stdout.write(json.dumps(main(json.loads(given))) + "\n")
