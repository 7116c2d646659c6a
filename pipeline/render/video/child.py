"""The process in which a film is made: `python child.py <folder>`, started by `job.render` with an empty environment.

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


def limit(job: dict[str, Any]) -> None:
    """Before anything is loaded: a limit that comes later can't give back what was taken."""
    from pipeline.render.rlimits import cap  # noqa: PLC0415  found once the project's folder is known

    cap(resource.RLIMIT_AS, job["memory"])
    cap(resource.RLIMIT_FSIZE, job["file"])
    cap(resource.RLIMIT_CORE, 0)
    os.nice(job["nice"])
    if sys.platform == "linux":
        import ctypes  # noqa: PLC0415  only here, and only where there is such a call

        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, SIGKILL)
        # It may have died before it could be asked to be heard of.
        if os.getppid() != job["parent"]:
            os._exit(1)


def tell(**said: Any) -> None:
    sys.stdout.write(json.dumps(said) + "\n")
    sys.stdout.flush()


def main(folder: Path) -> None:
    job = json.loads((folder / JOB).read_text())
    sys.path.insert(0, str(Path(__file__).resolve().parents[3]))
    limit(job)
    import cv2  # noqa: PLC0415  after the limits

    from pipeline.plugins import Refused  # noqa: PLC0415
    from pipeline.render.video.film import make  # noqa: PLC0415

    # The two threads are drawing and encoding.
    cv2.setNumThreads(1)
    try:
        made = make(
            job, folder, lambda number: tell(frame=number + 1) if (number + 1) % _EVERY == 0 else None
        )
    except Refused as refused:
        tell(refused={"code": refused.code, "message": refused.message})
    except (MemoryError, cv2.error) as error:
        # OpenCV has an error of its own for memory that isn't given.
        is_memory = isinstance(error, MemoryError) or "memory" in str(error).lower()
        tell(failed="memory" if is_memory else "broken")
        raise
    except Exception as error:
        # FFmpeg's errors are not all the system's, and each has its number.
        if getattr(error, "errno", None) in {errno.ENOSPC, errno.EDQUOT}:
            tell(failed="space")
        raise
    else:
        tell(made=made)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
