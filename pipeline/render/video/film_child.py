"""The process in which a film is made: `python film_child.py <folder>`, started by `film_process.py` with little environment.

It reads `job.json` in its folder, writes the film beside it, and tells on its output, line by line, how far it is. It
caps its own memory, and dies with whoever started it.
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
_EVERY: Final = 15
"""Frames between two words on how far it is."""


def confine_itself(job: dict[str, Any]) -> None:
    """Cap memory and files and die with the parent, before anything is loaded: a later limit can't take back what was taken.

    `job` has `memory` and `file` in bytes, `nice`, and the process id of the `parent`.
    """
    from pipeline.render.rlimits import cap  # noqa: PLC0415  found once the project's folder is known

    cap(resource.RLIMIT_AS, job["memory"])
    cap(resource.RLIMIT_FSIZE, job["file"])
    cap(resource.RLIMIT_CORE, 0)
    os.nice(job["nice"])
    if sys.platform == "linux":
        import ctypes  # noqa: PLC0415  only here, and only where there is such a call

        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, SIGKILL)
        # The parent may have died before `prctl` asked to be told of it.
        if os.getppid() != job["parent"]:
            os._exit(1)


def tell(**said: Any) -> None:
    sys.stdout.write(json.dumps(said) + "\n")
    sys.stdout.flush()


def main(folder: Path) -> None:
    """Make the film and tell how it ended: `made`, `refused` or `failed`.

    What isn't anticipated is raised, for the log; where it isn't `failed` for memory, space or OpenCV, nothing is told.
    """
    job = json.loads((folder / JOB).read_text())
    sys.path.insert(0, str(Path(__file__).resolve().parents[3]))
    confine_itself(job)
    import cv2  # noqa: PLC0415  after the limits

    from pipeline.plugins import Refused  # noqa: PLC0415
    from pipeline.render.video.film import make  # noqa: PLC0415

    # The two threads are drawing and encoding.
    cv2.setNumThreads(1)

    def tell_frame(number: int) -> None:
        if (number + 1) % _EVERY == 0:
            tell(frame=number + 1)

    try:
        made = make(job, folder, tell_frame)
    except Refused as refused:
        tell(refused={"code": refused.code, "message": refused.message})
    except (MemoryError, cv2.error) as error:
        tell(failed="memory" if _is_memory(error) else "broken")
        raise
    except Exception as error:
        # FFmpeg's errors are not all the system's, and each has its number.
        if getattr(error, "errno", None) in {errno.ENOSPC, errno.EDQUOT}:
            tell(failed="space")
        raise
    else:
        tell(made=made)


def _is_memory(error: Exception) -> bool:
    """Whether memory was missing. OpenCV has an error of its own for that."""
    return isinstance(error, MemoryError) or "memory" in str(error).lower()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
