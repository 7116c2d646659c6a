"""A film is made in a process of its own, with a cap on memory and time, in a folder of its own."""

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

MEMORY: Final = 1_500 * 1024 * 1024
"""Of address space: a film of full size takes 1.2 GB of it, and 350 MB of memory."""
FILE_MOST: Final = 1024 * 1024 * 1024
NICE: Final = 10
BYTES_A_SECOND: Final = 3_000_000
"""More than a second of a film ever took; three times that has to be free for each before one is begun."""
_LAST_MOMENT: Final = 5.0
FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
_TOO_MUCH: Final = frozenset({errno.EAGAIN, errno.ENOMEM, errno.EMFILE, errno.ENFILE})
"""What the system says that can't start a process just now."""
_ENDED_BY_US: Final = frozenset({"slow", "stopped"})
_LINE_MOST: Final = 1024 * 1024
_PROGRAM: Final = Path(__file__).with_name("film_child.py")
_LOG: Final = "child.log"
_LOG_TOLD: Final = 2_000
_NO_MEMORY: Final = ("MemoryError", "Cannot allocate memory", "failed to map segment")
_LOCKS: Final = ".slot-{}"
NEEDED: Final = ("av", "cv2", "numpy")


@dataclass(frozen=True)
class FilmLimits:
    """Of one film. `seconds` is its time on the wall clock; None for ten times its length and a minute."""

    memory: int = MEMORY
    seconds: float | None = None
    nice: int = NICE


@dataclass(frozen=True)
class Job:
    """`files` are the storyboard's assets by name; `shrink` makes a smaller film.

    `sound` is mastered, at any rate; without one the voice and the music that the storyboard names are mixed and
    mastered where the film is made.
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
    path: Path
    width: int
    height: int


@dataclass(frozen=True)
class Made:
    """Files in the working folder, by name: `film.mp4`, `thumb.jpg`, `thumb-wide.jpg`, a `frame-01.jpg` for each scene.

    `loudness` is that of the film itself in LUFS and dBTP, None for a silent one; `note` says what it fell short of.
    """

    files: Mapping[str, MadeFile]
    duration: float
    loudness: tuple[float, float] | None = None
    note: str = ""


class RenderFailed(Refused):
    """The process that made the film has ended without one."""

    def __init__(self, message: str, *, code: str, log: str = "") -> None:
        super().__init__(message, code=code)
        self.log = log
        """The end of what it wrote, for the operator."""


class RenderBusy(TryLater):
    """As much is being made as the machine has room for."""

    def __init__(self) -> None:
        super().__init__("The machine is busy; it is tried again.", code="render_busy")


class NoRoom(TryLater):
    """There isn't enough free space for the film."""

    def __init__(self) -> None:
        super().__init__("There is too little free space to make a film.", code="no_space")


def why_not() -> str | None:
    """None where films can be made here; else the sentence that says what is missing."""
    absent = [name for name in NEEDED if find_spec(name) is None]
    if not absent:
        return None
    return f"Films can't be made here: {', '.join(absent)} is not installed."


@contextmanager
def telling_of_no_room() -> Iterator[None]:
    """Raises `NoRoom` for a disk that is full: it passes, and costs nobody's words."""
    try:
        yield
    except OSError as error:
        if error.errno in FULL:
            raise NoRoom from error
        raise


@contextmanager
def slot(folder: Path, most: int) -> Iterator[None]:
    """One of so many places, for all processes of this machine; raises `RenderBusy` where all are taken."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(most):
        with (folder / _LOCKS.format(number)).open("w") as file:
            try:
                # The lock goes with the process, however it ends.
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            yield
            return
    raise RenderBusy


@contextmanager
def working_folder(root: Path) -> Iterator[Path]:
    """A new folder that is gone afterwards."""
    root.mkdir(parents=True, exist_ok=True)
    folder = root / secrets.token_hex(8)
    folder.mkdir()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def sweep(root: Path, *, older: timedelta, now: float) -> int:
    """Remove the folders of killed processes; returns how many."""
    if not root.is_dir():
        return 0
    removed = 0
    for one in list(root.iterdir()):
        # Its own hand may remove it at this moment.
        with suppress(FileNotFoundError):
            if one.is_dir() and now - one.stat().st_mtime >= older.total_seconds():
                shutil.rmtree(one, ignore_errors=True)
                removed += not one.exists()
    return removed


def render(
    job: Job,
    folder: Path,
    *,
    limits: FilmLimits | None = None,
    on_progress: Callable[[float], bool] | None = None,
) -> Made:
    """Make the film in a folder that only it uses, and wait for it.

    `on_progress` gets the share that is done; where it answers False, the film is given up with `RenderFailed`.
    Raises `Refused` for what can't be filmed, `NoRoom`, `RenderBusy` where no process can be started now, and `RenderFailed`
    for a process that was ended by a limit or broke. Whatever happens, the process has ended when this returns.
    """
    allowed = limits or FilmLimits()
    refuse_without_room(job.board, folder, shrink=job.shrink)
    seconds = 10 * job.board.duration + 60 if allowed.seconds is None else allowed.seconds
    (folder / "job.json").write_text(json.dumps(_told(job, allowed)))
    with (folder / _LOG).open("wb") as log:
        child = _start(folder, log)
    try:
        said = _listen(child, job.board.frames, time.monotonic() + seconds, on_progress)
        if not said.keys() & _ENDED_BY_US:
            _wait_for(child)
    finally:
        _end(child)
    return _outcome(said, child.returncode, folder, seconds)


def refuse_without_room(board: Storyboard, folder: Path, *, shrink: int) -> None:
    """Raises `NoRoom` where the film may not fit on the disk of the folder."""
    wanted = 3 * BYTES_A_SECOND * board.duration / shrink**2
    if shutil.disk_usage(folder).free < wanted:
        raise NoRoom


def _told(job: Job, limits: FilmLimits) -> dict[str, Any]:
    return {
        "storyboard": as_json(job.board),
        "files": {name: str(path.resolve()) for name, path in job.files.items()},
        "portrait": str(job.portrait.resolve()) if job.portrait else None,
        "sound": str(job.sound.resolve()) if job.sound else None,
        "shrink": job.shrink,
        "quality": {"preset": job.preset},
        "thumbnails": job.thumbnails,
        "memory": limits.memory,
        "file": FILE_MOST,
        "nice": limits.nice,
        "parent": os.getpid(),
    }


def _start(folder: Path, log: IO[bytes]) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(  # noqa: S603  the command is ours
            [sys.executable, "-I", "-W", "ignore", str(_PROGRAM.resolve()), str(folder.resolve())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            # Nothing secret is near what reads other people's pictures. A library's threads take address space.
            env={"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", **child_program.FEW_ARENAS},
            cwd=folder,
            start_new_session=True,
            bufsize=0,
        )
    except OSError as error:
        if error.errno in _TOO_MUCH:
            raise RenderBusy from error
        message = "No process could be started to make the film."
        raise RenderFailed(message, code="render_died") from error


def _listen(
    child: subprocess.Popen[bytes],
    frames: int,
    until: float,
    on_progress: Callable[[float], bool] | None,
) -> dict[str, Any]:
    """Its last word; `{}` where it ended without one, `{"slow"}` and `{"stopped"}` where it was ended."""
    assert child.stdout is not None  # noqa: S101  it is a pipe
    heard, last = b"", dict[str, Any]()
    os.set_blocking(child.stdout.fileno(), False)
    with selectors.DefaultSelector() as selector:
        selector.register(child.stdout, selectors.EVENT_READ)
        while True:
            left = until - time.monotonic()
            if left <= 0:
                return {"slow": True}
            if not selector.select(left):
                continue
            piece = os.read(child.stdout.fileno(), 65_536)
            if not piece or len(heard) > _LINE_MOST:
                return last
            *lines, heard = (heard + piece).split(b"\n")
            for line in lines:
                last = json.loads(line)
                is_wanted = on_progress is None or "frame" not in last or on_progress(last["frame"] / frames)
                if not is_wanted:
                    return {"stopped": True}


def _wait_for(child: subprocess.Popen[bytes]) -> None:
    """A moment for one that has said its last word."""
    with suppress(subprocess.TimeoutExpired):
        child.wait(_LAST_MOMENT)


def _end(child: subprocess.Popen[bytes]) -> None:
    """Killed with everything that it has started; what has ended by itself is only collected."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    if child.stdout is not None:
        child.stdout.close()
    child.wait()


def _outcome(said: dict[str, Any], status: int, folder: Path, seconds: float) -> Made:
    if "made" in said and status == 0:
        made = said["made"]
        files = {
            one["name"]: MadeFile(folder / one["name"], one["width"], one["height"]) for one in made["files"]
        }
        loudness = made["loudness"]
        return Made(files, made["duration"], tuple(loudness) if loudness else None, made["note"])
    if "refused" in said:
        raise Refused(said["refused"]["message"], code=said["refused"]["code"])
    log = _end_of(folder / _LOG)
    if "slow" in said:
        message = f"Making the film took longer than {seconds:.0f} seconds and was stopped."
        raise RenderFailed(message, code="render_slow", log=log)
    if "stopped" in said:
        message = "Making the film was stopped."
        raise RenderFailed(message, code="render_stopped", log=log)
    if said.get("failed") == "space":
        raise NoRoom
    if said.get("failed") == "memory" or any(sign in log for sign in _NO_MEMORY):
        message = "Making the film took more memory than it may have."
        raise RenderFailed(message, code="render_memory", log=log)
    message = "The process that made the film ended before it was done."
    raise RenderFailed(message, code="render_died", log=log)


def _end_of(path: Path) -> str:
    with suppress(OSError):
        return path.read_bytes()[-_LOG_TOLD:].decode(errors="replace")
    return ""
