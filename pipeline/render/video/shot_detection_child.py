"""Finds the shots of a video in a process of its own: a program that `shot_process` runs by its path, isolated.

The video is the standard input, so that the process needs no file name and opens no file. The arguments are the
folders of the project and of the libraries, which are put on the import path, and last the request as JSON. The answer
is a line of JSON on standard output: `{"shots": [fields of a Shot]}` or `{"refused": {"code", "message"}}`.
"""

from __future__ import annotations

import dataclasses
import io
import json
import sys
from typing import Any, Final

_BUFFER_BYTES: Final = 1024 * 1024


def main(request: dict[str, Any]) -> dict[str, Any]:
    """Return the answer to a request: the shots of a span, or the refusal.

    The request has `name` (of the video, for messages), `start` and `end` of the span in seconds, `memory` in bytes and
    `timeout_seconds`, after which the system ends the process.
    """
    from pipeline.render.rlimits import confine  # noqa: PLC0415  importable once the arguments are on the path

    confine(memory=request["memory"], seconds=request["timeout_seconds"])
    import av  # noqa: PLC0415  its threads and buffers must be under the limits
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
