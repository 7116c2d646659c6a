"""Renders pages with their JavaScript: headless Chromium in a child process without network access.

Every request of a page comes to this process and goes through the guarded client, so that no name is looked
up and no address is called that the guard would refuse. Requests that don't pass here (WebSockets, WebRTC,
anything overlooked) go to a proxy that isn't there, from a browser that resolves no names.
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

CHILD: Final = Path(__file__).with_name("browser_child.py")
RENDER_SECONDS: Final = 20
"""The time limit of one page, from the start of the browser or the first request to the HTML."""
MAX_REQUESTS: Final = 60
"""The most requests of one page for scripts, styles and data."""
MAX_LOADED_BYTES: Final = 20 * 1024 * 1024
"""The most bytes that one page may load, unpacked."""
REQUEST_SECONDS: Final = 8
WAIT_FOR_BROWSER_SECONDS: Final = 15
UNREACHABLE_PROXY: Final = "http://nowhere.invalid:9"
"""A name that never resolves (RFC 2606): requests that escape the interception end here."""
SYSTEM_PATH: Final = "/usr/local/bin:/usr/bin:/bin"
"""Debian's `chromium` is a shell script, which needs a PATH."""
BROWSERS: Final = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
"""The first one draws no window, so it needs half of the others' CPU time."""

# One browser takes 300 MB, so a process runs only one at a time.
_browser_slot = threading.BoundedSemaphore(1)

_FORWARDED_REQUEST_HEADERS: Final = frozenset(
    {"accept", "accept-language", "content-type", "origin", "referer", "x-requested-with"}
)
# They concern the connection between the guarded client and the server, or would store cookies.
_DROPPED_RESPONSE_HEADERS: Final = frozenset(
    {"connection", "content-encoding", "content-length", "keep-alive", "set-cookie", "transfer-encoding"}
)


_NO_JAVASCRIPT: Final = "This service can't run a page's JavaScript."


def find_browser(environment: Mapping[str, str]) -> str:
    """Return the path of a browser (see `_browser_path`). Raises `Refused` if pages can't be rendered here."""
    unavailability = missing_browser(environment)
    if unavailability is not None:
        raise Refused(unavailability.sentence, code=unavailability.code, field=unavailability.field)
    return _browser_path(environment)


def missing_browser(environment: Mapping[str, str]) -> Unavailability | None:
    """Return why no page can be rendered here, or `None` if one can."""
    if find_spec("playwright") is None:
        remedy = "Set `render` to false, or ask the operator to install the extra `browser` (playwright)."
    elif not _browser_path(environment):
        remedy = (
            "Set `render` to false, or ask the operator to install Chromium (Debian's package chromium-headless-shell), or to name the "
            "program in CHROMIUM_PATH."
        )
    else:
        return None
    return Unavailability(_NO_JAVASCRIPT, remedy, code="render_unavailable", field="config.render")


def _browser_path(environment: Mapping[str, str]) -> str:
    """Return the browser's path, or an empty string if there is none, or the named one can't be executed."""
    chosen_path = environment.get("CHROMIUM_PATH", "")
    if chosen_path:
        return chosen_path if os.access(chosen_path, os.X_OK) else ""
    return next(filter(None, map(shutil.which, BROWSERS)), "")


class Renderer:
    """Renders pages in one browser, which is started for the first and killed at the end."""

    def __init__(self, browser: str, *, http: Client) -> None:
        self._browser = browser
        self._http = http
        self._process: subprocess.Popen[bytes] | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._has_slot = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop()
        if self._has_slot:
            _browser_slot.release()
            self._has_slot = False

    def render(self, visit: Visit) -> Visit:
        """Return the visited page after its JavaScript has run, its HTML cut to `PAGE_BYTES`.

        Raises `VisitFailed` if the browser is busy, can't be started, breaks or takes too long.
        """
        if not self._has_slot and not _browser_slot.acquire(timeout=WAIT_FOR_BROWSER_SECONDS):
            message = "The browser is busy with other pages."
            raise VisitFailed(message, code="render_busy", kind="later", stops=True)
        self._has_slot = True
        deadline = monotonic() + RENDER_SECONDS
        job = {
            "url": visit.url,
            "type": visit.content_type or "text/html",
            "body": base64.b64encode(visit.body).decode("ascii"),
            "seconds": RENDER_SECONDS,
        }
        try:
            html = self._serve_child(job, deadline)
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
            last_modified="",
            moved_to=visit.moved_to,
            is_rendered=True,
        )

    def _serve_child(self, job: dict[str, Any], deadline: float) -> str:
        """Give the child a job (see `browser_child`), and answer its requests until it returns the HTML.

        Raises `TimeoutError` at the deadline, and `EOFError`, `OSError` or `ValueError` if the child breaks.
        """
        process = self._process or self._start()
        request_count, loaded_bytes = 0, 0
        message: dict[str, Any] = job
        while True:
            line = exchange(process, json.dumps(message).encode() + b"\n", deadline=deadline)
            reply = json.loads(line)
            if "html" in reply:
                return str(reply["html"])
            if "ask" not in reply:
                raise EOFError
            request_count += 1
            message = {"refused": True}
            if request_count <= MAX_REQUESTS and loaded_bytes < MAX_LOADED_BYTES:
                message = self._load_resource(
                    reply["ask"], max_bytes=MAX_LOADED_BYTES - loaded_bytes, deadline=deadline
                )
            # Base64 writes three bytes as four characters.
            loaded_bytes += len(message.get("body", "")) * 3 // 4

    def _load_resource(self, request: dict[str, Any], *, max_bytes: int, deadline: float) -> dict[str, Any]:
        """Fetch a resource for the page, and return the message with it, or with the refusal."""
        headers = {
            name: value
            for name, value in request["headers"].items()
            if name.lower() in _FORWARDED_REQUEST_HEADERS
        }
        try:
            answer = self._http.get(
                request["url"],
                headers=headers,
                timeout=max(0.5, min(REQUEST_SECONDS, deadline - monotonic())),
                max_bytes=min(PAGE_BYTES, max_bytes),
                max_redirects=5,
            )
        except (OutboundError, ValueError):
            # A page must not learn whether the guard refused or the server is broken.
            return {"refused": True}
        return {
            "status": answer.status,
            "headers": {
                name: value
                for name, value in answer.headers.items()
                if name.lower() not in _DROPPED_RESPONSE_HEADERS
            },
            "body": base64.b64encode(answer.body).decode("ascii"),
        }

    def _start(self) -> subprocess.Popen[bytes]:
        """Start the child that drives the browser. Raises `OSError` if it can't be started."""
        self._folder = tempfile.TemporaryDirectory(prefix="page-render-")
        arguments = {
            "browser": self._browser,
            "proxy": UNREACHABLE_PROXY,
            "user_agent": self._http.policy.user_agent,
        }
        # `-I` ignores Python's variables and leaves the script's folder off the path; `-S` starts faster.
        options = ("-I", "-S", "-W", "ignore")
        self._process = subprocess.Popen(  # noqa: S603  the command is ours
            [
                sys.executable,
                *options,
                str(CHILD.resolve()),
                folder_of("playwright"),
                json.dumps(arguments),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            # A browser that runs other people's programs gets none of the service's settings.
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
        """Kill the child with every process of the browser, and remove its folder."""
        process, self._process = self._process, None
        if process is not None:
            # They are listed before the first is killed, because orphans can't be found by their parent. Chromium's
            # reporter of crashes is an orphan from the start.
            orphans = _processes_with_temporary_folder(self._folder.name) if self._folder else ()
            for pid in {process.pid, *_descendants(process.pid), *orphans}:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    with suppress(OSError):
                        pipe.close()
            process.wait()
        if self._folder is not None:
            # A dying process may still write into the folder.
            shutil.rmtree(self._folder.name, ignore_errors=True)
            with suppress(OSError):
                self._folder.cleanup()
            self._folder = None


def _descendants(pid: int) -> list[int]:
    """Return the ids of all processes below one, by their parents: Chromium's leave the process group."""
    children: dict[int, list[int]] = {}
    for process, parent in _processes():
        children.setdefault(parent, []).append(process)
    descendants, queue = [], [pid]
    while queue:
        for child in children.get(queue.pop(), []):
            descendants.append(child)
            queue.append(child)
    return descendants


def _processes_with_temporary_folder(folder: str) -> Iterator[int]:
    """Yield the ids of the processes whose temporary folder is this one."""
    setting = f"TMPDIR={folder}".encode()
    for entry in Path("/proc").glob("[0-9]*"):
        # Other users' processes can't be read, and some end meanwhile.
        with suppress(OSError):
            if setting in (entry / "environ").read_bytes().split(b"\0"):
                yield int(entry.name)


def _processes() -> Iterator[tuple[int, int]]:
    """Yield the id of each process with its parent's id."""
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            # The program's name stands in brackets and may hold anything, so the last bracket is searched.
            rest = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()
            yield int(entry.name), int(rest[1])
        except (OSError, IndexError, ValueError):
            # The process ended meanwhile.
            continue
