"""Makes a film in a process that `film_process.py` starts with little environment: `python film_child.py <folder>`.

The process reads `job.json` in the folder, writes the film into it, and reports its progress on standard output, a line
of JSON at a time. It limits its memory, and dies with the process that started it.
"""

from __future__ import annotations

import errno
import json
import os
import resource
import sys
from pathlib import Path
from typing import Any, Final

JOB: Final = "job.json"
PR_SET_PDEATHSIG: Final = 1
SIGKILL: Final = 9
_FRAMES_PER_REPORT: Final = 15
"""Frames between two reports of progress."""


def limit_itself(job: dict[str, Any]) -> None:
    """Limit memory and files, and have the system end this process with its parent.

    It is called before anything large is loaded, because a limit takes no memory back. `job` has `memory` and `file` in
    bytes, `nice`, and the process id of the `parent`.
    """
    from pipeline.render.rlimits import cap  # noqa: PLC0415  importable once the project's folder is on the path

    cap(resource.RLIMIT_AS, job["memory"])
    cap(resource.RLIMIT_FSIZE, job["file"])
    cap(resource.RLIMIT_CORE, 0)
    os.nice(job["nice"])
    if sys.platform == "linux":
        import ctypes  # noqa: PLC0415  only Linux has this call

        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, SIGKILL)
        # The parent may have died before `prctl` was called.
        if os.getppid() != job["parent"]:
            os._exit(1)


def send(**message: Any) -> None:
    """Write one message to the parent, as a line of JSON."""
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def main(folder: Path) -> None:
    """Make the film and send how it ended: `made`, `refused` or `failed`.

    All errors but `Refused` are raised, for the log; `failed` is sent for missing memory, a full disk and errors of
    OpenCV alone.
    """
    job = json.loads((folder / JOB).read_text())
    sys.path.insert(0, str(Path(__file__).resolve().parents[3]))
    limit_itself(job)
    import cv2  # noqa: PLC0415  after the limits

    from pipeline.plugins import Refused  # noqa: PLC0415
    from pipeline.render.video.film import make_film  # noqa: PLC0415

    # One thread of OpenCV's: the two of the encoder's `_Pair` draw and encode already.
    cv2.setNumThreads(1)

    def report_frame(number: int) -> None:
        if (number + 1) % _FRAMES_PER_REPORT == 0:
            send(frame=number + 1)

    try:
        result = make_film(job, folder, report_frame)
    except Refused as refused:
        send(refused={"code": refused.code, "message": refused.message})
    except (MemoryError, cv2.error) as error:
        send(failed="memory" if _is_memory(error) else "broken")
        raise
    except Exception as error:
        # Not all of FFmpeg's errors are `OSError`, but each has its number.
        if getattr(error, "errno", None) in {errno.ENOSPC, errno.EDQUOT}:
            send(failed="space")
        raise
    else:
        send(made=result)


def _is_memory(error: Exception) -> bool:
    """Return whether memory was missing, of which OpenCV tells in the text of its own error."""
    return isinstance(error, MemoryError) or "memory" in str(error).lower()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
