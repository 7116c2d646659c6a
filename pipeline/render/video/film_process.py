"""Makes a film in a separate process with limits on memory and time, and in a folder that only it uses."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import secrets
import selectors
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

from pipeline.plugins import Refused, TryLater
from pipeline.render import child_program
from pipeline.render.video.storyboard_json import as_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from datetime import timedelta

    from pipeline.render.video.storyboard import Storyboard

MEMORY_BYTES: Final = 1_500 * 1024 * 1024
"""The limit of address space: a film of full size takes 1.2 GB of it, and 350 MB of memory."""
MAX_FILE_BYTES: Final = 1024 * 1024 * 1024
NICE: Final = 10
MAX_BYTES_PER_SECOND: Final = 3_000_000
"""More than a second of a film ever took; for each second three times that has to be free before a film is begun."""
_EXIT_GRACE_SECONDS: Final = 5.0
"""The time in which a child has to exit after its last message."""
DISK_FULL_ERRORS: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
_BUSY_ERRORS: Final = frozenset({errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE})
"""The system's errors if it can't start a process at the moment."""
_KILL_REASONS: Final = frozenset({"slow", "stopped"})
_MAX_LINE_BYTES: Final = 1024 * 1024
_PROGRAM: Final = Path(__file__).with_name("film_child.py")
_LOG: Final = "child.log"
_LOG_BYTES_REPORTED: Final = 2_000
_OUT_OF_MEMORY_SIGNS: Final = ("MemoryError", "Cannot allocate memory", "failed to map segment")
_LOCK_NAME: Final = ".slot-{}"
REQUIRED_LIBRARIES: Final = ("av", "cv2", "numpy")


@dataclass(frozen=True)
class FilmLimits:
    """The limits of one film. `seconds` is the time by the clock, or `None` for ten times its length and a minute."""

    memory: int = MEMORY_BYTES
    seconds: float | None = None
    nice: int = NICE


@dataclass(frozen=True)
class Job:
    """A film to be made. `files` are the storyboard's assets by name; `shrink` makes a film that many times smaller.

    `sound` is the finished sound, already mastered, at any sample rate; without one the voice and the music that the
    storyboard names are mixed and mastered in the child.
    """

    board: Storyboard
    files: Mapping[str, Path] = field(default_factory=dict)
    portrait: Path | None = None
    sound: Path | None = None
    shrink: int = 1
    preset: str = "veryfast"
    thumbnails: bool = True


@dataclass(frozen=True)
class MadeFile:
    """One file of a finished film; `width` and `height` in pixels."""

    path: Path
    width: int
    height: int


@dataclass(frozen=True)
class Made:
    """A finished film. `files` are in the working folder, by name.

    They are `film.mp4`, and with thumbnails `thumb.jpg`, `thumb-wide.jpg` and for each scene `frame-01.jpg` and so on.
    `duration` is in seconds. `loudness` is the film's in LUFS and dBTP, or `None` for a silent one; `note` has faults
    of the sound.
    """

    files: Mapping[str, MadeFile]
    duration: float
    loudness: tuple[float, float] | None = None
    note: str = ""


class RenderFailed(Refused):
    """The process that should have made the film ended without a film."""

    def __init__(self, message: str, *, code: str, log: str = "") -> None:
        super().__init__(message, code=code)
        self.log = log
        """The end of the child's log, for the operator."""


class RenderBusy(TryLater):
    """The machine can't make another film at the moment."""

    def __init__(self) -> None:
        super().__init__("The machine is busy; it is tried again.", code="render_busy")


class NoRoom(TryLater):
    """There isn't enough free space for the film."""

    def __init__(self) -> None:
        super().__init__("There is too little free space to make a film.", code="no_space")


def unavailable_reason() -> str | None:
    """Return why films can't be made here, for people, or `None` if they can."""
    absent = [name for name in REQUIRED_LIBRARIES if find_spec(name) is None]
    if not absent:
        return None
    return f"Films can't be made here: {', '.join(absent)} is not installed."


@contextmanager
def disk_full_as_no_room() -> Iterator[None]:
    """Raise `NoRoom` for an error of a full disk, because that passes, so that no attempt is counted."""
    try:
        yield
    except OSError as error:
        if error.errno in DISK_FULL_ERRORS:
            raise NoRoom from error
        raise


@contextmanager
def claim_slot(folder: Path, slots: int) -> Iterator[None]:
    """Hold one of `slots` slots, shared by all processes of this machine. Raises `RenderBusy` if all are taken."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(slots):
        with (folder / _LOCK_NAME.format(number)).open("w") as file:
            try:
                # The lock ends with the process, however that ends.
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            yield
            return
    raise RenderBusy


@contextmanager
def working_folder(root: Path) -> Iterator[Path]:
    """Make a new folder and remove it afterwards."""
    root.mkdir(parents=True, exist_ok=True)
    folder = root / secrets.token_hex(8)
    folder.mkdir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def remove_abandoned(root: Path, *, older: timedelta, now: float) -> int:
    """Remove the folders, at least as old as `older`, that killed processes left, and return their number."""
    if not root.is_dir():
        return 0
    removed = 0
    for folder in list(root.iterdir()):
        # The process that owns the folder may remove it at this moment.
        with suppress(FileNotFoundError):
            if folder.is_dir() and now - folder.stat().st_mtime >= older.total_seconds():
                shutil.rmtree(folder, ignore_errors=True)
                removed += not folder.exists()
    return removed


def render(
    job: Job,
    folder: Path,
    *,
    limits: FilmLimits | None = None,
    on_progress: Callable[[float], bool] | None = None,
) -> Made:
    """Make the film in a folder that only this call uses, and wait for it.

    `on_progress` gets the share that is done; if it returns False, the film is given up with `RenderFailed`. Raises
    `Refused` if the storyboard can't be filmed, `NoRoom` if there is too little free space, `RenderBusy` if no process
    can be started at the moment, and `RenderFailed` if a limit ended the process or it broke. The process has always
    ended when this returns or raises.
    """
    film_limits = limits or FilmLimits()
    refuse_without_room(job.board, folder, shrink=job.shrink)
    seconds = 10 * job.board.duration + 60 if film_limits.seconds is None else film_limits.seconds
    (folder / "job.json").write_text(json.dumps(_job_json(job, film_limits)))
    with (folder / _LOG).open("wb") as log:
        child = _start(folder, log)
    try:
        last_message = _read_messages(child, job.board.frames, time.monotonic() + seconds, on_progress)
        if not last_message.keys() & _KILL_REASONS:
            _wait_briefly(child)
    finally:
        _kill(child)
    return _outcome(last_message, child.returncode, folder, seconds)


def refuse_without_room(board: Storyboard, folder: Path, *, shrink: int) -> None:
    """Raise `NoRoom` if the film may not fit on the folder's disk."""
    needed_bytes = 3 * MAX_BYTES_PER_SECOND * board.duration / shrink**2
    if shutil.disk_usage(folder).free < needed_bytes:
        raise NoRoom


def _job_json(job: Job, limits: FilmLimits) -> dict[str, Any]:
    """Return the job as the child reads it."""
    return {
        "storyboard": as_json(job.board),
        "files": {name: str(path.resolve()) for name, path in job.files.items()},
        "portrait": str(job.portrait.resolve()) if job.portrait else None,
        "sound": str(job.sound.resolve()) if job.sound else None,
        "shrink": job.shrink,
        "quality": {"preset": job.preset},
        "thumbnails": job.thumbnails,
        "memory": limits.memory,
        "file": MAX_FILE_BYTES,
        "nice": limits.nice,
        "parent": os.getpid(),
    }


def _start(folder: Path, log: IO[bytes]) -> subprocess.Popen[bytes]:
    """Start the child. Raises `RenderBusy` if the system can't at the moment, `RenderFailed` if it can't at all."""
    try:
        return subprocess.Popen(  # noqa: S603  the command is ours
            [sys.executable, "-I", "-W", "ignore", str(_PROGRAM.resolve()), str(folder.resolve())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            # Little environment: no secret is near code that reads other people's pictures. Threads take address space.
            env={"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", **child_program.FEW_ARENAS},
            cwd=folder,
            start_new_session=True,
            bufsize=0,
        )
    except OSError as error:
        if error.errno in _BUSY_ERRORS:
            raise RenderBusy from error
        message = "No process could be started to make the film."
        raise RenderFailed(message, code="render_died") from error


def _read_messages(
    child: subprocess.Popen[bytes], frames: int, deadline: float, on_progress: Callable[[float], bool] | None
) -> dict[str, Any]:
    """Return the child's last message, or `{}` if there was none.

    While the child still runs, it is `{"slow": True}` after the deadline, or `{"stopped": True}` by `on_progress`.
    """
    assert child.stdout is not None  # noqa: S101  it is a pipe
    unread, last_message = b"", dict[str, Any]()
    os.set_blocking(child.stdout.fileno(), False)
    with selectors.DefaultSelector() as selector:
        selector.register(child.stdout, selectors.EVENT_READ)
        while True:
            seconds_left = deadline - time.monotonic()
            if seconds_left <= 0:
                return {"slow": True}
            if not selector.select(seconds_left):
                continue
            chunk = os.read(child.stdout.fileno(), 65_536)
            if not chunk or len(unread) > _MAX_LINE_BYTES:
                return last_message
            *lines, unread = (unread + chunk).split(b"\n")
            for line in lines:
                last_message = json.loads(line)
                should_continue = (
                    on_progress is None
                    or "frame" not in last_message
                    or on_progress(last_message["frame"] / frames)
                )
                if not should_continue:
                    return {"stopped": True}


def _wait_briefly(child: subprocess.Popen[bytes]) -> None:
    """Give a child that has sent its last message a moment to exit."""
    with suppress(subprocess.TimeoutExpired):
        child.wait(_EXIT_GRACE_SECONDS)


def _kill(child: subprocess.Popen[bytes]) -> None:
    """Kill the child with all processes that it has started, and wait for its end."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    if child.stdout is not None:
        child.stdout.close()
    child.wait()


def _outcome(last_message: dict[str, Any], status: int, folder: Path, seconds: float) -> Made:
    """Return the film, or raise the error for how the child ended."""
    if "made" in last_message and status == 0:
        result = last_message["made"]
        files = {
            file["name"]: MadeFile(folder / file["name"], file["width"], file["height"])
            for file in result["files"]
        }
        loudness = result["loudness"]
        return Made(files, result["duration"], tuple(loudness) if loudness else None, result["note"])
    if "refused" in last_message:
        raise Refused(last_message["refused"]["message"], code=last_message["refused"]["code"])
    log = _log_tail(folder / _LOG)
    if "slow" in last_message:
        message = f"Making the film took longer than {seconds:.0f} seconds and was stopped."
        raise RenderFailed(message, code="render_slow", log=log)
    if "stopped" in last_message:
        message = "Making the film was stopped."
        raise RenderFailed(message, code="render_stopped", log=log)
    if last_message.get("failed") == "space":
        raise NoRoom
    if last_message.get("failed") == "memory" or any(sign in log for sign in _OUT_OF_MEMORY_SIGNS):
        message = "Making the film took more memory than it may have."
        raise RenderFailed(message, code="render_memory", log=log)
    message = "The process that made the film ended before it was done."
    raise RenderFailed(message, code="render_died", log=log)


def _log_tail(path: Path) -> str:
    """Return the end of the child's log."""
    with suppress(OSError):
        return path.read_bytes()[-_LOG_BYTES_REPORTED:].decode(errors="replace")
    return ""
