"""The helpers that read feeds for this process: borrowed one at a time, ended when they are late or old."""

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
MOST_IDLE: Final = 2
FEEDS_OF_ONE: Final = 500
"""After so many feeds a helper is ended, so that nothing can pile up in it."""
PIECE: Final = 64 * 1024
ANSWER_BYTES: Final = 64 * 1024 * 1024
"""More than any document of the largest size becomes; what is longer is refused."""


class HelperDied(Exception):
    """The helper ended, or could not be started, before it answered."""


class Helper:
    """One process of `feed_parser_child`, asked by one thread at a time."""

    def __init__(self) -> None:
        command = [
            sys.executable,
            "-I",
            "-S",
            "-W",
            "ignore",
            str(CHILD),
            str(CHILD.parents[3]),
            _library_folder(),
        ]
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
        self.asked = 0

    def ask(self, question: bytes, document: bytes, *, until: float) -> bytes:
        """The answer; raises `TimeoutError` at `until` (of `monotonic()`), `HelperDied`."""
        self.asked += 1
        try:
            for piece in (LENGTHS.pack(len(question), len(document)), question, document):
                self._write(piece, until)
            (length,) = LENGTH.unpack(self._read(LENGTH.size, until))
            if length > ANSWER_BYTES:
                raise HelperDied
            return self._read(length, until)
        except BrokenPipeError as error:
            raise HelperDied from error

    def _write(self, content: bytes, until: float) -> None:
        view = memoryview(content)
        while view:
            _wait(self._in, select.POLLOUT, until)
            with contextlib.suppress(BlockingIOError):
                view = view[os.write(self._in, view[:PIECE]) :]

    def _read(self, count: int, until: float) -> bytes:
        found = bytearray()
        while len(found) < count:
            _wait(self._out, select.POLLIN, until)
            try:
                piece = os.read(self._out, min(PIECE, count - len(found)))
            except BlockingIOError:
                continue
            if not piece:
                raise HelperDied
            found += piece
        return bytes(found)

    def end(self) -> None:
        """Kill it with its fork, and collect it."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        self._process.wait()

    def forget(self) -> None:
        """In a fork of this process the helper belongs to the parent."""
        self._process.returncode = 0


def _wait(descriptor: int, event: int, until: float) -> None:
    poll = select.poll()
    poll.register(descriptor, event)
    left = until - monotonic()
    if left <= 0 or not poll.poll(left * 1000):
        raise TimeoutError


_idle: Final[list[Helper]] = []
_lock: Final = threading.Lock()


def ask_child(document: bytes, *, url: str, content_type: str, seconds: float) -> list[bytes]:
    """The lines of the answer (see `feed_parser_child`); raises `TimeoutError`, `HelperDied`."""
    question = json.dumps({"url": url, "content_type": content_type}).encode()
    until = monotonic() + seconds
    while True:
        helper, is_fresh = _borrow()
        try:
            answer = helper.ask(question, document, until=until)
        except HelperDied:
            helper.end()
            # One that had nothing to do for a while has ended by itself.
            if is_fresh:
                raise
        except BaseException:
            # Late, or interrupted between question and answer: nobody could tell what its next answer is to.
            helper.end()
            raise
        else:
            _give_back(helper)
            return answer.split(b"\n")


def close() -> None:
    """End the helpers that nobody has borrowed."""
    with _lock:
        helpers, _idle[:] = list(_idle), []
    for helper in helpers:
        helper.end()


def _borrow() -> tuple[Helper, bool]:
    with _lock:
        if _idle:
            return _idle.pop(), False
    return Helper(), True


def _give_back(helper: Helper) -> None:
    if helper.asked < FEEDS_OF_ONE:
        with _lock:
            if len(_idle) < MOST_IDLE:
                _idle.append(helper)
                return
    helper.end()


def _forget_after_fork() -> None:
    for helper in _idle:
        helper.forget()
    _idle.clear()
    _lock.release()


# Under the lock, so that a fork never finds it held by a thread that it doesn't have.
os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_forget_after_fork)
atexit.register(close)


@cache
def _library_folder() -> str:
    found = find_spec("feedparser")
    if found is None or found.origin is None:
        message = "feedparser is not installed"
        raise RuntimeError(message)
    return str(Path(found.origin).parent.parent)
