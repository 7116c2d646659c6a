"""Runs a program once, in a new session, and kills it with all processes that it started."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import BinaryIO

PROJECT: Final = Path(__file__).parent.parent.parent
FEW_ARENAS: Final = {"MALLOC_ARENA_MAX": "2"}
"""Limits the arenas of malloc: that of each thread takes 64 MiB of the address space that a child may have."""
_CHUNK_BYTES: Final = 256 * 1024
_STDERR_BYTES_KEPT: Final = 16 * 1024


class ChildEnded(Exception):
    """The child gave no answer: it was `slow`, printed too much (`flooded`), `died`, or can't be started (`missing`).

    `words` is the end of its standard error, or "" if that isn't known.
    """

    def __init__(self, how: Literal["slow", "flooded", "missing", "died"], words: str = "") -> None:
        super().__init__(how, words)
        self.how = how
        self.words = words


@dataclass(frozen=True)
class Caps:
    """The limits of a run: `seconds` by the clock, and the bytes of the `answer` that the program prints."""

    seconds: float
    answer: int


def run(
    command: Sequence[str],
    *,
    caps: Caps,
    input_data: bytes = b"",
    file: BinaryIO | None = None,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> bytes:
    """Run the program and return what it prints.

    Its standard input is `input_data`, or `file`, which must have a file descriptor. Its environment is `environment`
    alone, so that it sees no secret. Raises `ChildEnded` if it can't be started, exceeds a limit or fails.
    """
    try:
        child = subprocess.Popen(  # noqa: S603  programs of ours or of the operator
            list(command),
            stdin=subprocess.PIPE if file is None else file,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(environment or {}),
            cwd=folder or "/",
            start_new_session=True,
            bufsize=0,
        )
    except OSError:
        raise ChildEnded("missing") from None
    try:
        deadline = monotonic() + caps.seconds
        answer, stderr = _exchange(child, input_data, caps, deadline)
        # The child may have closed its outputs and still run.
        status = child.wait(timeout=max(0.0, deadline - monotonic()))
    except subprocess.TimeoutExpired:
        raise ChildEnded("slow") from None
    finally:
        _kill(child)
    if status != 0:
        raise ChildEnded("died", stderr.decode(errors="replace").strip())
    return answer


def python_command(program: Path, *libraries: str) -> list[str]:
    """Return the command that runs a Python file of the project, isolated from the environment and started quickly.

    Its arguments are the folders of the project and of the libraries, because with `-S` no path is searched. Raises
    `ChildEnded` if a library isn't installed.
    """
    folders = dict.fromkeys([str(PROJECT), *(str(package_folder(name).parent) for name in libraries)])
    return [sys.executable, "-I", "-S", "-W", "ignore", str(program.resolve()), *folders]


def package_folder(library: str) -> Path:
    """Return the folder of a package, without importing it. Raises `ChildEnded` (`missing`) if it isn't installed."""
    spec = find_spec(library)
    if spec is None or spec.origin is None:
        raise ChildEnded("missing", f"{library} is not installed")
    return Path(spec.origin).parent


def _exchange(
    child: subprocess.Popen[bytes], input_data: bytes, caps: Caps, deadline: float
) -> tuple[bytes, bytes]:
    """Write and read in turn, so that a child that stops reading can't hold the parent beyond the deadline.

    Returns standard output and the end of standard error. Raises `ChildEnded` if the child is too slow or prints more.
    """
    answer, stderr = bytearray(), bytearray()
    unsent = memoryview(input_data)
    with selectors.DefaultSelector() as selector:
        for stream, buffer in ((child.stdout, answer), (child.stderr, stderr)):
            assert stream is not None  # noqa: S101  both are pipes
            selector.register(stream, selectors.EVENT_READ, buffer)
        if child.stdin is not None:
            os.set_blocking(child.stdin.fileno(), False)
            selector.register(child.stdin, selectors.EVENT_WRITE)
        while selector.get_map():
            seconds_left = deadline - monotonic()
            if seconds_left <= 0:
                raise ChildEnded("slow", stderr.decode(errors="replace").strip())
            for key, _ in selector.select(seconds_left):
                if key.fileobj is child.stdin:
                    unsent = _write_some(child, selector, unsent)
                    continue
                chunk = os.read(key.fd, _CHUNK_BYTES)
                if not chunk:
                    selector.unregister(key.fileobj)
                key.data.extend(chunk)
            if len(answer) > caps.answer:
                raise ChildEnded("flooded")
            del stderr[:-_STDERR_BYTES_KEPT]
    return bytes(answer), bytes(stderr)


def _write_some(
    child: subprocess.Popen[bytes], selector: selectors.BaseSelector, unsent: memoryview
) -> memoryview:
    """Write a chunk and return the rest; close the pipe when nothing remains or the child has stopped reading."""
    assert child.stdin is not None  # noqa: S101  it is registered
    try:
        remaining = unsent[os.write(child.stdin.fileno(), unsent[:_CHUNK_BYTES]) :] if unsent else unsent
    except OSError:
        remaining = unsent[:0]
    if not remaining:
        selector.unregister(child.stdin)
        child.stdin.close()
    return remaining


def _kill(child: subprocess.Popen[bytes]) -> None:
    """Kill the child with its process group, without a signal to end cleanly: it holds nothing worth saving."""
    # The group outlives its leader while any member of it runs.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    child.kill()
    for pipe in (child.stdin, child.stdout, child.stderr):
        if pipe is not None:
            with suppress(OSError):
                pipe.close()
    child.wait()
