"""Runs hostile input through a child process that answers one question after another in limited time."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, Self

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

MAX_ANSWER_BYTES: Final = 16 * 1024 * 1024
"""An answer holds one article or one sitemap; a larger one means that the child was taken over."""
_PIECE_BYTES: Final = 256 * 1024


class ChildFailed(Exception):
    """Raised if the child gave no usable answer.

    `is_slow` is `True` if the time limit ended the child, and `False` if it died at one of its own limits or
    answered too much.
    """

    def __init__(self, *, is_slow: bool) -> None:
        super().__init__("slow" if is_slow else "died")
        self.is_slow = is_slow


class NoProcess(Exception):
    """Raised if the machine could start no further process."""


class IsolatedChild:
    """Runs a Python file of ours, isolated from the environment; started by the first question.

    A question is a line of JSON and a document, an answer a line of JSON. The child limits its own CPU time
    and memory for each question. After `ChildFailed` the next question gets a new child.
    """

    def __init__(self, program: Path, *, library: str) -> None:
        # No `preexec_fn`, which is unsafe in a process with threads: the child limits itself. `-I` ignores
        # Python's variables and leaves the script's folder off the path; `-S` starts faster.
        options = ("-I", "-S", "-W", "ignore")
        self._command = [sys.executable, *options, str(program.resolve()), folder_of(library)]
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def ask(self, question: Mapping[str, Any], document: bytes, *, seconds: float) -> Any:
        """Return the answer.

        Raises `ChildFailed` if there is none within `seconds`, the child dies or answers more than
        `MAX_ANSWER_BYTES`, and `NoProcess` if no child can be started.
        """
        process = self._process or self._start()
        head = json.dumps({**question, "length": len(document)}).encode() + b"\n"
        try:
            line = exchange(process, head + document, deadline=monotonic() + seconds)
        except TimeoutError:
            self.stop()
            raise ChildFailed(is_slow=True) from None
        except (OSError, EOFError):
            self.stop()
            raise ChildFailed(is_slow=False) from None
        return json.loads(line)

    def stop(self) -> None:
        """Kill the child; it holds nothing that a clean end would save."""
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                # Closing flushes the pipe, whose reader is dead.
                with suppress(OSError):
                    pipe.close()
        process.wait()

    def _start(self) -> subprocess.Popen[bytes]:
        """Start the child. Raises `NoProcess` if the machine can start no further process."""
        try:
            # Its environment is empty, so that nothing secret is near a parser of hostile input.
            process = subprocess.Popen(  # noqa: S603  the command is ours
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={},
                cwd="/",
                bufsize=0,
            )
        except OSError:
            message = "no process could be started"
            raise NoProcess(message) from None
        self._process = process
        return process


def exchange(process: subprocess.Popen[bytes], question: bytes, *, deadline: float) -> bytes:
    """Write the question and read the answer by turns, before the deadline (of `monotonic()`).

    They take turns because a child that stops reading must not hold the parent for longer than its time.
    Raises `TimeoutError` at the deadline, `EOFError` if the child ends its answer early or answers more than
    `MAX_ANSWER_BYTES`, and `OSError` if it closes the pipe of the question.
    """
    assert process.stdin is not None  # noqa: S101  both are pipes
    assert process.stdout is not None  # noqa: S101
    writer, reader = process.stdin.fileno(), process.stdout.fileno()
    os.set_blocking(writer, False)
    unsent, answer = memoryview(question), bytearray()
    with selectors.DefaultSelector() as selector:
        selector.register(writer, selectors.EVENT_WRITE)
        selector.register(reader, selectors.EVENT_READ)
        while not answer.endswith(b"\n"):
            left = deadline - monotonic()
            if left <= 0:
                raise TimeoutError
            for key, _ in selector.select(left):
                if key.fd == writer:
                    unsent = unsent[os.write(writer, unsent[:_PIECE_BYTES]) :]
                    if not unsent:
                        selector.unregister(writer)
                    continue
                piece = os.read(reader, _PIECE_BYTES)
                if not piece or len(answer) + len(piece) > MAX_ANSWER_BYTES:
                    raise EOFError
                answer += piece
    return bytes(answer)


def folder_of(library: str) -> str:
    """Return the folder that a library is installed in. Raises `RuntimeError` if it isn't installed."""
    spec = find_spec(library)
    if spec is None or spec.origin is None:
        message = f"{library} is not installed"
        raise RuntimeError(message)
    return str(Path(spec.origin).parent.parent)
