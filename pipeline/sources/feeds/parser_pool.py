"""Keeps the helper processes that parse feeds: each has one user at a time, and ends when it is late or old."""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import threading
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from time import monotonic
from typing import Final

from pipeline.sources.feeds.parser_child import LENGTH, LENGTHS

CHILD: Final = Path(__file__).with_name("parser_child.py")
MAX_IDLE_HELPERS: Final = 2
MAX_FEEDS_PER_HELPER: Final = 500
"""After so many feeds a helper is ended, so that nothing can pile up in it."""
PIECE_BYTES: Final = 64 * 1024
MAX_ANSWER_BYTES: Final = 64 * 1024 * 1024
"""More than a document of the largest size can become; longer answers are refused."""


class HelperDied(Exception):
    """Raised if the helper ended before it answered, could not be started, or announced too long an answer."""


class Helper:
    """One process of `parser_child`, asked by one thread at a time."""

    def __init__(self) -> None:
        # `-I` ignores Python's variables and leaves the script's folder off the path; `-S` starts faster.
        options = ("-I", "-S", "-W", "ignore")
        command = [sys.executable, *options, str(CHILD), str(CHILD.parents[3]), _library_folder()]
        try:
            # No `preexec_fn`, which is unsafe in a process with threads. The environment is empty, so that nothing
            # secret is near a parser of hostile input. Its own group, so that it dies together with its fork.
            self._process = subprocess.Popen(  # noqa: S603  the command is ours
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={},
                cwd="/",
                bufsize=0,
                start_new_session=True,
            )
        except OSError as error:
            raise HelperDied from error
        assert self._process.stdin is not None  # noqa: S101  for the type: it was asked for
        assert self._process.stdout is not None  # noqa: S101
        self._in = self._process.stdin.fileno()
        self._out = self._process.stdout.fileno()
        os.set_blocking(self._in, False)
        os.set_blocking(self._out, False)
        self.question_count = 0

    def ask(self, question: bytes, document: bytes, *, deadline: float) -> bytes:
        """Return the answer.

        Raises `TimeoutError` at `deadline` (of `monotonic()`), and `HelperDied` if the helper ends earlier or
        announces more than `MAX_ANSWER_BYTES`.
        """
        self.question_count += 1
        try:
            for piece in (LENGTHS.pack(len(question), len(document)), question, document):
                self._write(piece, deadline)
            (length,) = LENGTH.unpack(self._read(LENGTH.size, deadline))
            if length > MAX_ANSWER_BYTES:
                raise HelperDied
            return self._read(length, deadline)
        except BrokenPipeError as error:
            raise HelperDied from error

    def _write(self, content: bytes, deadline: float) -> None:
        """Write all bytes. Raises `TimeoutError` at the deadline, `BrokenPipeError` if the helper has ended."""
        view = memoryview(content)
        while view:
            _wait_for_pipe(self._in, select.POLLOUT, deadline)
            with contextlib.suppress(BlockingIOError):
                view = view[os.write(self._in, view[:PIECE_BYTES]) :]

    def _read(self, count: int, deadline: float) -> bytes:
        """Read `count` bytes. Raises `TimeoutError` at the deadline, `HelperDied` if the helper has ended."""
        received = bytearray()
        while len(received) < count:
            _wait_for_pipe(self._out, select.POLLIN, deadline)
            try:
                piece = os.read(self._out, min(PIECE_BYTES, count - len(received)))
            except BlockingIOError:
                continue
            if not piece:
                raise HelperDied
            received += piece
        return bytes(received)

    def end(self) -> None:
        """Kill the process with its fork, and wait for it."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        self._process.wait()

    def forget(self) -> None:
        """Disown the process: in a fork of this process the helper belongs to the parent."""
        self._process.returncode = 0


def _wait_for_pipe(descriptor: int, event: int, deadline: float) -> None:
    """Wait until the pipe is ready. Raises `TimeoutError` at the deadline."""
    poll = select.poll()
    poll.register(descriptor, event)
    left = deadline - monotonic()
    if left <= 0 or not poll.poll(left * 1000):
        raise TimeoutError


_idle: Final[list[Helper]] = []
_lock: Final = threading.Lock()


def ask_child(document: bytes, *, url: str, content_type: str, seconds: float) -> list[bytes]:
    """Return the lines of the answer (see `parser_child`).

    Raises `TimeoutError` after `seconds`, and `HelperDied` if a helper that was just started gives no answer.
    """
    question = json.dumps({"url": url, "content_type": content_type}).encode()
    deadline = monotonic() + seconds
    while True:
        helper, is_fresh = _take_helper()
        try:
            answer = helper.ask(question, document, deadline=deadline)
        except HelperDied:
            helper.end()
            # A pooled helper that was idle for a while has ended; the next one is asked.
            if is_fresh:
                raise
        except BaseException:
            # Late or interrupted: its next answer could belong to this question.
            helper.end()
            raise
        else:
            _return_helper(helper)
            return answer.split(b"\n")


def close() -> None:
    """End the idle helpers."""
    with _lock:
        helpers, _idle[:] = list(_idle), []
    for helper in helpers:
        helper.end()


def _take_helper() -> tuple[Helper, bool]:
    """Return a helper, and whether it was just started. Raises `HelperDied` if none can be started."""
    with _lock:
        if _idle:
            return _idle.pop(), False
    return Helper(), True


def _return_helper(helper: Helper) -> None:
    """Keep the helper for the next question, or end it if it is old or not needed."""
    if helper.question_count < MAX_FEEDS_PER_HELPER:
        with _lock:
            if len(_idle) < MAX_IDLE_HELPERS:
                _idle.append(helper)
                return
    helper.end()


def _forget_helpers_after_fork() -> None:
    """Disown the parent's helpers in a fork."""
    for helper in _idle:
        helper.forget()
    _idle.clear()
    _lock.release()


# The lock is held during a fork, so that the child never finds it held by a thread that it doesn't have.
os.register_at_fork(
    before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_forget_helpers_after_fork
)
atexit.register(close)


@cache
def _library_folder() -> str:
    """Return the folder that feedparser is installed in. Raises `RuntimeError` if it isn't installed."""
    spec = find_spec("feedparser")
    if spec is None or spec.origin is None:
        message = "feedparser is not installed"
        raise RuntimeError(message)
    return str(Path(spec.origin).parent.parent)
