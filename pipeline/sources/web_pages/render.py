"""Pages after their JavaScript has run: headless Chromium in a child process, with this process as its only way out.

Every request of a page comes to this process and goes through the guarded client, so that no name is looked up and no
address is called that the guard would refuse. What doesn't pass here (WebSockets, WebRTC, anything overlooked) is sent
to a proxy that isn't there, by a browser that resolves no names.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, Self

from config.core.http_client import OutboundError
from pipeline.limits import PAGE_BYTES
from pipeline.plugins import Refused, Unavailability
from pipeline.sources.isolated_child import exchange, folder_of
from pipeline.sources.web_pages.polite_fetch import Visit, VisitFailed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from types import TracebackType

    from config.core.http_client import Client

CHILD: Final = Path(__file__).with_name("render_child.py")
RENDER_SECONDS: Final = 20
"""For one page, from the first request to the text."""
MAX_REQUESTS: Final = 60
"""Requests of one page for scripts, styles and data."""
MAX_BYTES: Final = 20 * 1024 * 1024
"""Bytes that one page may load, unpacked."""
REQUEST_SECONDS: Final = 8
WAIT_FOR_TURN_SECONDS: Final = 15
# A name that never resolves (RFC 2606): whatever passes by the interception ends here.
NO_PROXY: Final = "http://nowhere.invalid:9"
# Debian's program is a shell script.
SYSTEM_PATH: Final = "/usr/local/bin:/usr/bin:/bin"
# The first has no window to draw around a page, which takes half of the others' CPU time.
BROWSERS: Final = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")

# One browser takes 300 MB; a second page of this process waits for the first.
_turn = threading.BoundedSemaphore(1)

_SENT_ON: Final = frozenset(
    {"accept", "accept-language", "content-type", "origin", "referer", "x-requested-with"}
)
# They speak of the connection between the guarded client and the server, or would be kept.
_NOT_HANDED_ON: Final = frozenset(
    {"connection", "content-encoding", "content-length", "keep-alive", "set-cookie", "transfer-encoding"}
)


_NO_SCRIPTS: Final = "This service can't run a page's JavaScript."


def find_browser(environment: Mapping[str, str]) -> str:
    """The program named in `CHROMIUM_PATH`, else what is on the path; raises `Refused` with how to get one."""
    why = missing_browser(environment)
    if why is not None:
        raise Refused(why.sentence, code=why.code, field=why.field)
    return _program(environment)


def missing_browser(environment: Mapping[str, str]) -> Unavailability | None:
    """Why no page can be rendered here; None where one can."""
    if find_spec("playwright") is None:
        remedy = "Set `render` to false, or ask the operator to install the extra `browser` (playwright)."
    elif not _program(environment):
        remedy = (
            "Set `render` to false, or ask the operator to install Chromium (Debian's package chromium-headless-shell), or to name the "
            "program in CHROMIUM_PATH."
        )
    else:
        return None
    return Unavailability(_NO_SCRIPTS, remedy, code="render_unavailable", field="config.render")


def _program(environment: Mapping[str, str]) -> str:
    named = environment.get("CHROMIUM_PATH", "")
    if named:
        return named if os.access(named, os.X_OK) else ""
    return next(filter(None, map(shutil.which, BROWSERS)), "")


class Renderer:
    """Renders one page after another in one browser, which it starts at the first and kills in the end."""

    def __init__(self, browser: str, *, http: Client) -> None:
        self._browser = browser
        self._http = http
        self._process: subprocess.Popen[bytes] | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._has_turn = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop()
        if self._has_turn:
            _turn.release()
            self._has_turn = False

    def render(self, visit: Visit) -> Visit:
        """The visited page after its JavaScript has run; raises `VisitFailed`."""
        if not self._has_turn and not _turn.acquire(timeout=WAIT_FOR_TURN_SECONDS):
            message = "The browser is busy with other pages."
            raise VisitFailed(message, code="render_busy", kind="later", stops=True)
        self._has_turn = True
        until = monotonic() + RENDER_SECONDS
        start = {
            "url": visit.url,
            "type": visit.content_type or "text/html",
            "body": base64.b64encode(visit.body).decode("ascii"),
            "seconds": RENDER_SECONDS,
        }
        try:
            html = self._converse(start, until)
        except TimeoutError:
            self._stop()
            message = f"The page was not done with its JavaScript within {RENDER_SECONDS} seconds."
            raise VisitFailed(message, code="render_timed_out", kind="later") from None
        except (OSError, EOFError, ValueError):
            self._stop()
            message = "The browser could not be started, or broke over the page."
            raise VisitFailed(message, code="render_failed", kind="later") from None
        return Visit(
            url=visit.url,
            body=html.encode("utf-8", errors="replace")[:PAGE_BYTES],
            content_type="text/html; charset=utf-8",
            robots_header=visit.robots_header,
            tdm_header=visit.tdm_header,
            etag="",
            modified="",
            moved_to=visit.moved_to,
            is_rendered=True,
        )

    def _converse(self, start: dict[str, Any], until: float) -> str:
        """Answer what the page asks for until the child hands its text over."""
        process = self._process or self._start()
        requests, loaded = 0, 0
        message: dict[str, Any] = start
        while True:
            line = exchange(process, json.dumps(message).encode() + b"\n", until=until)
            said = json.loads(line)
            if "html" in said:
                return str(said["html"])
            if "ask" not in said:
                raise EOFError
            requests += 1
            message = {"refused": True}
            if requests <= MAX_REQUESTS and loaded < MAX_BYTES:
                message = self._load(said["ask"], most=MAX_BYTES - loaded, until=until)
            loaded += len(message.get("body", "")) * 3 // 4

    def _load(self, asked: dict[str, Any], *, most: int, until: float) -> dict[str, Any]:
        headers = {name: value for name, value in asked["headers"].items() if name.lower() in _SENT_ON}
        try:
            answer = self._http.get(
                asked["url"],
                headers=headers,
                timeout=max(0.5, min(REQUEST_SECONDS, until - monotonic())),
                max_bytes=min(PAGE_BYTES, most),
                max_redirects=5,
            )
        except (OutboundError, ValueError):
            # The guard's refusals and broken servers look alike to a page.
            return {"refused": True}
        return {
            "status": answer.status,
            "headers": {
                name: value for name, value in answer.headers.items() if name.lower() not in _NOT_HANDED_ON
            },
            "body": base64.b64encode(answer.body).decode("ascii"),
        }

    def _start(self) -> subprocess.Popen[bytes]:
        self._folder = tempfile.TemporaryDirectory(prefix="page-render-")
        arguments = {
            "browser": self._browser,
            "proxy": NO_PROXY,
            "user_agent": self._http.policy.user_agent,
        }
        self._process = subprocess.Popen(  # noqa: S603  the command is ours
            [
                sys.executable,
                "-I",
                "-S",
                "-W",
                "ignore",
                str(CHILD.resolve()),
                folder_of("playwright"),
                json.dumps(arguments),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            # Nothing of the service's settings is near a browser that runs other people's programs.
            env={
                "HOME": self._folder.name,
                "TMPDIR": self._folder.name,
                "PATH": SYSTEM_PATH,
            },
            cwd=self._folder.name,
            bufsize=0,
            start_new_session=True,
        )
        return self._process

    def _stop(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            # Listed before the first is killed: orphans can't be found by their parent any more. Chromium's reporter of
            # crashes is one from the start.
            lost = _whose_temporary_folder_is(self._folder.name) if self._folder else ()
            for pid in {process.pid, *_descendants(process.pid), *lost}:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    with suppress(OSError):
                        pipe.close()
            process.wait()
        if self._folder is not None:
            # A process that is just dying may still write into it.
            shutil.rmtree(self._folder.name, ignore_errors=True)
            with suppress(OSError):
                self._folder.cleanup()
            self._folder = None


def _descendants(pid: int) -> list[int]:
    """Every process that this one started, and theirs: Chromium's leave the process group of their starter."""
    children: dict[int, list[int]] = {}
    for process, parent in _processes():
        children.setdefault(parent, []).append(process)
    found, queue = [], [pid]
    while queue:
        for child in children.get(queue.pop(), []):
            found.append(child)
            queue.append(child)
    return found


def _whose_temporary_folder_is(folder: str) -> Iterator[int]:
    mark = f"TMPDIR={folder}".encode()
    for entry in Path("/proc").glob("[0-9]*"):
        # Others' can't be read, and some end meanwhile.
        with suppress(OSError):
            if mark in (entry / "environ").read_bytes().split(b"\0"):
                yield int(entry.name)


def _processes() -> Iterator[tuple[int, int]]:
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            # The name of the program stands in brackets and may hold anything.
            rest = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()
            yield int(entry.name), int(rest[1])
        except (OSError, IndexError, ValueError):
            # It ended meanwhile.
            continue
