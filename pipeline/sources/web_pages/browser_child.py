"""Runs the child process that drives the browser: jobs on stdin, requests and rendered pages on stdout.

It is run by its path and imports nothing of the project. Each message is a line of JSON. A job is `{"url", "type",
"body", "seconds"}`: the address, content type and document (in base64) of a page, and the time for it in seconds. Its
result is `{"html"}`. The child opens no connection: for each request of the page it writes `{"ask": {"url",
"headers"}}`, and reads `{"status", "headers", "body"}` (in base64) or `{"refused": true}`.
"""

from __future__ import annotations

import base64
import json
import os
import re
import resource
import sys
from time import monotonic
from typing import Any, Final
from urllib.parse import urlsplit

SETTLE_SECONDS: Final = 8
"""The time for which a page may go on loading after its document is there; then it is taken as it is."""
_HANDOVER_SECONDS: Final = 2
"""The part of the page's time that is kept for reading its HTML and sending it to the parent."""
MAX_HTML_CHARACTERS: Final = 5 * 1024 * 1024
"""The length at which HTML is cut."""
_NEEDED_TYPES: Final = frozenset({"document", "script", "stylesheet", "xhr", "fetch"})
_BROWSER_SWITCHES: Final = (
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-gpu",
    "--disable-quic",
    "--disable-sync",
    "--dns-prefetch-disable",
    "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--no-first-run",
)
# APIs whose traffic can't be intercepted as requests.
_REMOVE_NETWORK_APIS: Final = """
for (const name of ["RTCPeerConnection", "webkitRTCPeerConnection", "RTCDataChannel", "WebTransport", "EventSource"]) {
  delete window[name];
}
"""


class Conversation:
    """Exchanges lines of JSON with the parent."""

    def __init__(self, inward: Any, outward: Any) -> None:
        self._inward = inward
        self._outward = outward

    def receive(self) -> dict[str, Any] | None:
        """Return the parent's next message, or `None` if it has closed the pipe."""
        line = self._inward.readline()
        return json.loads(line) if line else None

    def send(self, message: dict[str, Any]) -> None:
        """Send a message to the parent."""
        self._outward.write(json.dumps(message).encode() + b"\n")
        self._outward.flush()


def render(browser: Any, job: dict[str, Any], parent: Conversation, user_agent: str) -> str:
    """Return the HTML of the job's page after its JavaScript has run, in a new browser context.

    The document is taken out of `job` when the page first asks for it.
    """
    deadline = monotonic() + job["seconds"] - _HANDOVER_SECONDS
    context = browser.new_context(service_workers="block", accept_downloads=False, user_agent=user_agent)
    try:
        context.add_init_script(_REMOVE_NETWORK_APIS)
        context.route_web_socket(re.compile(""), lambda web_socket: web_socket.close())
        page = context.new_page()
        context.route(re.compile(""), lambda route: _try_answer_request(route, page, job, parent))
        page.on("dialog", lambda dialog: dialog.dismiss())
        # Windows that the page opens are closed: nothing of them is read.
        context.on("page", lambda window: window.close() if window != page else None)
        page.goto(job["url"], wait_until="domcontentloaded", timeout=_milliseconds_left(deadline))
        _wait_until_settled(page, deadline)
        return str(page.content())[:MAX_HTML_CHARACTERS]
    finally:
        context.close()


def _wait_until_settled(page: Any, deadline: float) -> None:
    """Wait until the page makes no more requests, at most `SETTLE_SECONDS`."""
    from playwright.sync_api import Error  # noqa: PLC0415

    try:
        page.wait_for_load_state(
            "networkidle", timeout=min(_milliseconds_left(deadline), SETTLE_SECONDS * 1000)
        )
    except Error:
        # Pages with live data never stop loading; they are taken as they are.
        return


def _milliseconds_left(deadline: float) -> float:
    """Return the milliseconds until the deadline; never 0, which Playwright reads as no limit."""
    return max(1.0, (deadline - monotonic()) * 1000)


def _try_answer_request(route: Any, page: Any, job: dict[str, Any], parent: Conversation) -> None:
    """Answer a request, unless its window is gone."""
    from playwright.sync_api import Error  # noqa: PLC0415

    try:
        _answer_request(route, page, job, parent)
    except Error:
        # The window that made the request is gone; the page goes on without it.
        return


def _is_main_document(request: Any, page: Any) -> bool:
    """Return whether the request is for the page itself."""
    from playwright.sync_api import Error  # noqa: PLC0415

    try:
        return bool(request.is_navigation_request() and request.frame == page.main_frame)
    except Error:
        # The request is of a window that the page is just opening, whose frame isn't there yet.
        return False


def _is_allowed(request: Any, *, is_main: bool) -> bool:
    """Return whether it is a GET for the page, a script, style or data, because other requests give no text."""
    is_needed = request.resource_type in _NEEDED_TYPES and (request.resource_type != "document" or is_main)
    is_web = urlsplit(request.url).scheme in {"http", "https"}
    return bool(is_needed and request.method == "GET" and is_web)


def _answer_request(route: Any, page: Any, job: dict[str, Any], parent: Conversation) -> None:
    """Answer a request by the job's document or the parent's answer, or abort it."""
    request = route.request
    is_main = _is_main_document(request, page)
    if not _is_allowed(request, is_main=is_main):
        route.abort()
        return
    if is_main and "body" in job:
        # The parent has fetched the document already. It is taken out of the job, because only the first request for
        # the page is one for this document: a page may lead on to another.
        route.fulfill(status=200, content_type=job["type"], body=base64.b64decode(job.pop("body")))
        return
    parent.send({"ask": {"url": request.url, "headers": request.headers}})
    answer = parent.receive()
    if answer is None or answer.get("refused"):
        route.abort()
        return
    route.fulfill(status=answer["status"], headers=answer["headers"], body=base64.b64decode(answer["body"]))


def main(library_folder: str, arguments: dict[str, str]) -> None:
    """Start the browser, and render pages until the parent closes the pipe."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sys.path.append(library_folder)
    from playwright.sync_api import sync_playwright  # noqa: PLC0415

    # On a duplicate: closing the file leaves descriptor 1 open, so that nothing else can get it.
    parent = Conversation(sys.stdin.buffer, os.fdopen(os.dup(1), "wb"))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=arguments["browser"],
            args=list(_BROWSER_SWITCHES),
            # Root can't set up Chromium's sandbox; a service run as root is expected to be in a container.
            chromium_sandbox=os.geteuid() != 0,
            # Without this, Chromium calls loopback addresses without the proxy.
            proxy={"server": arguments["proxy"], "bypass": "<-loopback>"},
            timeout=15_000,
        )
        while (job := parent.receive()) is not None:
            parent.send({"html": render(browser, job, parent, arguments["user_agent"])})


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]))
