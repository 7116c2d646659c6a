"""The child process that drives the browser: pages on stdin, questions and rendered pages on stdout.

It is run by its path and imports nothing of the project. It calls nothing: each request of the page is written to
stdout as a line of JSON, and answered by a line on stdin.
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
"""How long a page may go on loading after its document is there; then it is taken as it is."""
MAX_HTML: Final = 5 * 1024 * 1024
"""Characters; what is longer is cut."""
_NEEDED: Final = frozenset({"document", "script", "stylesheet", "xhr", "fetch"})
_SWITCHES: Final = (
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
# What could talk past the requests that are intercepted.
_REMOVED_FROM_WINDOW: Final = """
for (const name of ["RTCPeerConnection", "webkitRTCPeerConnection", "RTCDataChannel", "WebTransport", "EventSource"]) {
  delete window[name];
}
"""


class Conversation:
    """With the parent: a line out, a line in."""

    def __init__(self, inward: Any, outward: Any) -> None:
        self._inward = inward
        self._outward = outward

    def hear(self) -> dict[str, Any] | None:
        line = self._inward.readline()
        return json.loads(line) if line else None

    def say(self, what: dict[str, Any]) -> None:
        self._outward.write(json.dumps(what).encode() + b"\n")
        self._outward.flush()


def render(browser: Any, start: dict[str, Any], parent: Conversation, user_agent: str) -> str:
    """The HTML of one page once its JavaScript has run, in a context of its own."""
    # Leaves the parent time before its own deadline.
    until = monotonic() + start["seconds"] - 2
    context = browser.new_context(service_workers="block", accept_downloads=False, user_agent=user_agent)
    try:
        context.add_init_script(_REMOVED_FROM_WINDOW)
        context.route_web_socket(re.compile(""), lambda web_socket: web_socket.close())
        page = context.new_page()
        context.route(re.compile(""), lambda route: _answer_or_abandon(route, page, start, parent))
        page.on("dialog", lambda dialog: dialog.dismiss())
        # A window that the page opens has no use, and would be rendered unseen.
        context.on("page", lambda other: other.close() if other != page else None)
        page.goto(start["url"], wait_until="domcontentloaded", timeout=_left(until))
        _settle(page, until)
        return str(page.content())[:MAX_HTML]
    finally:
        context.close()


def _settle(page: Any, until: float) -> None:
    from playwright.sync_api import Error  # noqa: PLC0415

    try:
        page.wait_for_load_state("networkidle", timeout=min(_left(until), SETTLE_SECONDS * 1000))
    except Error:
        # It goes on loading, as pages with live data do; what is there counts.
        return


def _left(until: float) -> float:
    """Milliseconds; never 0, by which Playwright means for ever."""
    return max(1.0, (until - monotonic()) * 1000)


def _answer_or_abandon(route: Any, page: Any, start: dict[str, Any], parent: Conversation) -> None:
    from playwright.sync_api import Error  # noqa: PLC0415

    try:
        _answer_request(route, page, start, parent)
    except Error:
        # The window that asked is gone; the page goes on without it.
        return


def _is_main(request: Any, page: Any) -> bool:
    from playwright.sync_api import Error  # noqa: PLC0415

    try:
        return bool(request.is_navigation_request() and request.frame == page.main_frame)
    except Error:
        # It belongs to a window that the page is only just opening, whose frame isn't there yet.
        return False


def _is_allowed(request: Any, *, is_main: bool) -> bool:
    """Whether it gets the page itself, or a script, style or data for it; frames and pictures show no text."""
    is_needed = request.resource_type in _NEEDED and (request.resource_type != "document" or is_main)
    is_web = urlsplit(request.url).scheme in {"http", "https"}
    return bool(is_needed and request.method == "GET" and is_web)


def _answer_request(route: Any, page: Any, start: dict[str, Any], parent: Conversation) -> None:
    request = route.request
    is_main = _is_main(request, page)
    if not _is_allowed(request, is_main=is_main):
        route.abort()
        return
    if is_main and "body" in start:
        # The parent has the document already.
        route.fulfill(status=200, content_type=start["type"], body=base64.b64decode(start.pop("body")))
        return
    parent.say({"ask": {"url": request.url, "headers": request.headers}})
    answer = parent.hear()
    if answer is None or answer.get("refused"):
        route.abort()
        return
    route.fulfill(status=answer["status"], headers=answer["headers"], body=base64.b64decode(answer["body"]))


def main(library_folder: str, arguments: dict[str, str]) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sys.path.append(library_folder)
    from playwright.sync_api import sync_playwright  # noqa: PLC0415

    # Of a duplicate: closing the file leaves descriptor 1 open, which nothing else may get.
    parent = Conversation(sys.stdin.buffer, os.fdopen(os.dup(1), "wb"))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=arguments["browser"],
            args=list(_SWITCHES),
            # Its sandbox can't be set up by root, who is expected in a container of its own.
            chromium_sandbox=os.geteuid() != 0,
            # Loopback would else go past the proxy.
            proxy={"server": arguments["proxy"], "bypass": "<-loopback>"},
            timeout=15_000,
        )
        while (start := parent.hear()) is not None:
            parent.say({"html": render(browser, start, parent, arguments["user_agent"])})


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]))
