"""Finds the shots of a video in a process of its own, which is run by its path and isolated from the environment.

The video is its standard input, so that it knows no name and opens none; its arguments are the folders of the project
and of the libraries, and the request as JSON. The answer is a line of JSON: `{"shots": […]}` or `{"refused": {…}}`.
"""

from __future__ import annotations

import dataclasses
import io
import json
import sys
from typing import Any, Final

_BUFFER_BYTES: Final = 1024 * 1024


def main(request: dict[str, Any]) -> dict[str, Any]:
    """Return the answer to a request: the shots of a span, or the refusal."""
    from pipeline.render.rlimits import confine  # noqa: PLC0415  it stands on a path of the arguments

    confine(memory=request["memory"], seconds=request["clock"])
    import av  # noqa: PLC0415  after the limits
    import cv2  # noqa: PLC0415

    from pipeline.plugins import Refused  # noqa: PLC0415
    from pipeline.render.probe_child import OpenInput  # noqa: PLC0415
    from pipeline.render.video.footage import Reel  # noqa: PLC0415
    from pipeline.render.video.shots_and_crops import find_shots  # noqa: PLC0415

    av.logging.set_level(None)
    cv2.setNumThreads(1)
    try:
        reel = Reel(request["name"], io.BufferedReader(OpenInput(), _BUFFER_BYTES))
        shots = find_shots(reel, request["start"], request["end"])
    except Refused as refused:
        return {"refused": {"code": refused.code, "message": refused.message}}
    return {"shots": [dataclasses.asdict(shot) for shot in shots]}


if __name__ == "__main__":
    *folders, request_json = sys.argv[1:]
    sys.path += folders
    sys.stdout.write(json.dumps(main(json.loads(request_json))) + "\n")
