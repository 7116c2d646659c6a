"""A platform's server on loopback that keeps a ledger, with the faults that every platform has to bear.

Each kind has a file here of its name with a class `Server(LedgerServer)` and a function `case(server) -> Case`. The
server answers in `handle` as the platform's documents say, and files every post that is public in `posts`. Faults are
played at the call that makes a post public, which `is_commit` knows.
"""

from __future__ import annotations

import io
import json
import threading
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self
from urllib.parse import parse_qs, urlsplit

from PIL import Image

from pipeline.platforms.payload_types import Payload, PayloadAsset

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pipeline.engines.base import Bucket
    from pipeline.platforms.base import Account, Platform

FAULTS = (
    "slow",
    "never_answers",
    "drops_before",
    "drops_after",
    "500_before",
    "500_after",
    "502_html",
    "429",
    "expired",
    "wrong_json",
    "empty",
    "huge",
    "redirect",
)
"""What befalls one call: `_before` and `_after` say whether the platform took the post. `429` and `expired` take
nothing, `wrong_json`, `empty`, `huge` and `never_answers` come after the post was taken.
"""
TAKES_IT = frozenset(
    {"slow", "never_answers", "drops_after", "500_after", "502_html", "wrong_json", "empty", "huge"}
)


NOW: Final = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    query: Mapping[str, list[str]]
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)

    def form(self) -> dict[str, str]:
        return {name: values[0] for name, values in parse_qs(self.body.decode()).items()}


@dataclass(frozen=True)
class Answer:
    """`body` is JSON unless it is given as bytes or text."""

    status: int = 200
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)

    def as_bytes(self) -> bytes:
        if isinstance(self.body, bytes):
            return self.body
        if isinstance(self.body, str):
            return self.body.encode()
        return b"" if self.body is None else json.dumps(self.body).encode()


@dataclass
class Case:
    """What the suite publishes to the server, and what it may expect.

    `payloads` are by bucket. `finds_what_was_sent`: after a lost answer `reconcile` proves it either way.
    """

    platform: Platform
    account: Account
    payloads: Mapping[Bucket, Payload]
    finds_what_was_sent: bool = True


class LedgerServer:
    """Start it with `with Server() as server`; `server.url` is its base address."""

    seconds_of_slow: ClassVar[float] = 0.3

    def __init__(self) -> None:
        self.posts: list[dict[str, Any]] = []
        """What is public, in the order in which it became so; never shortened but by a removal."""
        self.requests: list[Request] = []
        self.faults: list[str] = []
        """Words of `FAULTS`, or `ok`, played one for each call that makes a post public; then `ok` for ever."""
        self.clock: Callable[[], datetime] = lambda: NOW
        """What the platform says of when a post was made."""
        self.lock = threading.RLock()
        self._let_go = threading.Event()
        self._server: ThreadingHTTPServer | None = None
        self._thread: threading.Thread | None = None
        self.url = ""

    # --- what a kind fills in

    def handle(self, request: Request) -> Answer:
        """The platform's answer to a call, under the lock."""
        raise NotImplementedError

    def is_commit(self, request: Request) -> bool:
        """Whether this call makes a post public."""
        raise NotImplementedError

    def too_many(self) -> Answer:
        """429 with the platform's own form of saying when; it has to ask for 7 s.

        A `Retry-After` of 7 where the vendor names no time.
        """
        raise NotImplementedError

    def expired(self) -> Answer:
        """The platform's answer to a credential that has ended, for which logging in again doesn't help.

        A plug-in that logs in again by itself gets the answer to an account that was withdrawn.
        """
        raise NotImplementedError

    # --- running

    def __enter__(self) -> Self:
        handler = type("Handler", (_Handler,), {"ledger": self})
        self._server = _Server(("127.0.0.1", 0), handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._let_go.set()
        assert self._server is not None
        assert self._thread is not None
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answer(self, request: Request) -> tuple[Answer | None, bool]:
        """The answer, None where there is none, and whether the connection is dropped."""
        with self.lock:
            self.requests.append(request)
            is_commit = self.is_commit(request)
            fault = self.faults.pop(0) if is_commit and self.faults else "ok"
            if fault == "429":
                return self.too_many(), False
            if fault == "expired":
                return self.expired(), False
            if fault == "500_before":
                return Answer(500, {"error": "It broke before."}), False
            if fault == "drops_before":
                return None, True
            if fault == "redirect":
                return Answer(302, b"", {"Location": f"{self.url}/elsewhere"}), False
            answer = self.handle(request)
        return self._after(fault, answer)

    def _after(self, fault: str, answer: Answer) -> tuple[Answer | None, bool]:
        if fault == "slow":
            self._let_go.wait(self.seconds_of_slow)
        elif fault == "never_answers":
            self._let_go.wait(60)
            return None, True
        elif fault == "drops_after":
            return None, True
        faulty = {
            "500_after": Answer(500, {"error": "It broke after."}),
            "502_html": Answer(502, b"<html><h1>Bad gateway</h1></html>", {"Content-Type": "text/html"}),
            "wrong_json": replace(answer, body=b'{"id": '),
            "empty": replace(answer, body=b""),
            "huge": replace(answer, body=b'{"x": "' + b"a" * (6 * 1024 * 1024) + b'"}'),
        }
        return faulty.get(fault, answer), False


class _Handler(BaseHTTPRequestHandler):
    ledger: LedgerServer
    protocol_version = "HTTP/1.1"

    def _respond(self) -> None:
        parts = urlsplit(self.path)
        length = int(self.headers.get("content-length") or 0)
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Request(
            self.command,
            parts.path,
            parse_qs(parts.query, keep_blank_values=True),
            headers,
            self.rfile.read(length),
        )
        answer, is_dropped = self.ledger.answer(request)
        if is_dropped or answer is None:
            self.close_connection = True
            return
        content = answer.as_bytes()
        try:
            self.send_response(answer.status)
            there = {name.lower() for name in answer.headers}
            if "content-type" not in there:
                self.send_header("Content-Type", "application/json")
            for name, value in answer.headers.items():
                self.send_header(name, value)
            if answer.status != 204:
                self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)
        except OSError:
            # The caller has given up, which is what some faults are for.
            self.close_connection = True

    # The names that the library calls.
    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = _respond  # noqa: N815

    def log_message(self, *_: object) -> None:
        pass


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


def picture(name: str = "picture.png", *, alt_text: str = "A red square.") -> PayloadAsset:
    """A real PNG of 40 × 30 pixels."""
    content = _png()
    return PayloadAsset(
        url=f"https://media.example.com/{name}",
        mime_type="image/png",
        role="image",
        alt_text=alt_text,
        bytes=len(content),
        name=name,
        width=40,
        height=30,
        open=opened(content),
    )


def video() -> PayloadAsset:
    """A file that calls itself a film of three seconds, with a picture's bytes: who only passes it on doesn't look."""
    return replace(picture("clip.mp4"), mime_type="video/mp4", role="video", duration=3.0)


def opened(content: bytes) -> Callable[[], Any]:
    return lambda: io.BytesIO(content)


def _png() -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (40, 30), (200, 30, 30)).save(file, "PNG")
    return file.getvalue()
