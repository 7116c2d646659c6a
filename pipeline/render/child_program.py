"""A program that is run once, in a session of its own, and ended with all that it started."""

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
"""Each thread's own arena takes 64 MiB of the address space that a child may have."""
_PIECE: Final = 256 * 1024
_WORDS_KEPT: Final = 16 * 1024


class ChildEnded(Exception):
    """It gave no answer: it was `slow`, said too much (`flooded`), is `missing`, or `died`; `words` are its last ones."""

    def __init__(self, how: Literal["slow", "flooded", "missing", "died"], words: str = "") -> None:
        super().__init__(how, words)
        self.how = how
        self.words = words


@dataclass(frozen=True)
class Caps:
    """`seconds` by the clock, `answer` in bytes of what it may print."""

    seconds: float
    answer: int


def run(
    command: Sequence[str],
    *,
    caps: Caps,
    given: bytes = b"",
    file: BinaryIO | None = None,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> bytes:
    """What the program prints. It reads `given`, or `file` itself where there is one: an open file of the system's.

    Its environment holds nothing but `environment`, so that no secret is near it. Raises `ChildEnded`.
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
        until = monotonic() + caps.seconds
        answer, words = _exchange(child, given, caps, until)
        # It may have closed its outputs and run on.
        status = child.wait(timeout=max(0.0, until - monotonic()))
    except subprocess.TimeoutExpired:
        raise ChildEnded("slow") from None
    finally:
        _end(child)
    if status != 0:
        raise ChildEnded("died", words.decode(errors="replace").strip())
    return answer


def ours(program: Path, *libraries: str) -> list[str]:
    """The command that runs a Python file of ours, isolated from the environment and started quickly.

    The file gets the project's folder and those of the libraries as its arguments, because nothing is found for it.
    """
    folders = dict.fromkeys([str(PROJECT), *(str(folder_of(name).parent) for name in libraries)])
    return [sys.executable, "-I", "-S", "-W", "ignore", str(program.resolve()), *folders]


def folder_of(library: str) -> Path:
    """Where a package is installed. Raises `ChildEnded` with `missing`; imports nothing of it."""
    found = find_spec(library)
    if found is None or found.origin is None:
        raise ChildEnded("missing", f"{library} is not installed")
    return Path(found.origin).parent


def _exchange(child: subprocess.Popen[bytes], given: bytes, caps: Caps, until: float) -> tuple[bytes, bytes]:
    """Write and read by turns: a child that stops reading must not hold the parent for longer than its time."""
    answer, words = bytearray(), bytearray()
    unsent = memoryview(given)
    with selectors.DefaultSelector() as selector:
        for stream, kept in ((child.stdout, answer), (child.stderr, words)):
            assert stream is not None  # noqa: S101  both are pipes
            selector.register(stream, selectors.EVENT_READ, kept)
        if child.stdin is not None:
            os.set_blocking(child.stdin.fileno(), False)
            selector.register(child.stdin, selectors.EVENT_WRITE)
        while selector.get_map():
            left = until - monotonic()
            if left <= 0:
                raise ChildEnded("slow", words.decode(errors="replace").strip())
            for key, _ in selector.select(left):
                if key.fileobj is child.stdin:
                    unsent = _send(child, selector, unsent)
                    continue
                piece = os.read(key.fd, _PIECE)
                if not piece:
                    selector.unregister(key.fileobj)
                key.data.extend(piece)
            if len(answer) > caps.answer:
                raise ChildEnded("flooded")
            del words[:-_WORDS_KEPT]
    return bytes(answer), bytes(words)


def _send(child: subprocess.Popen[bytes], selector: selectors.BaseSelector, unsent: memoryview) -> memoryview:
    """What is still to be written; the pipe is closed when nothing is, or nobody reads."""
    assert child.stdin is not None  # noqa: S101  it is registered
    try:
        left = unsent[os.write(child.stdin.fileno(), unsent[:_PIECE]) :] if unsent else unsent
    except OSError:
        left = unsent[:0]
    if not left:
        selector.unregister(child.stdin)
        child.stdin.close()
    return left


def _end(child: subprocess.Popen[bytes]) -> None:
    """Killed with its group, never asked: it holds nothing that a clean end would save."""
    # The group outlives its leader while anybody of it runs.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    child.kill()
    for pipe in (child.stdin, child.stdout, child.stderr):
        if pipe is not None:
            with suppress(OSError):
                pipe.close()
    child.wait()
