"""A server on loopback that speaks the Messages API over real HTTP and answers as the test has scripted."""

from __future__ import annotations

import json
import socket
import struct
import threading
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Self

from tests.writers.batches_server import PATH, Batches, succeeded
from tests.writers.metering import Declined

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tests.writers.metering import Meter

USAGE = {
    "input_tokens": 700,
    "cache_creation_input_tokens": 300,
    "cache_creation": {"ephemeral_5m_input_tokens": 300, "ephemeral_1h_input_tokens": 0},
    "cache_read_input_tokens": 2_000,
    "output_tokens": 150,
    "output_tokens_details": {"thinking_tokens": 40},
    "service_tier": "standard",
}


@dataclass(frozen=True)
class Scripted:
    """One answer. `seconds` is how long it takes, `is_reset` that the connection breaks instead, `is_cut`
    half-way. `keeps_open` leaves the connection for the next request."""

    body: str = ""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    is_reset: bool = False
    is_cut: bool = False
    drip_seconds: float = 0.0
    """Between two bytes, those of the headers too."""
    drips_body_only: bool = False
    keeps_open: bool = False


def ok(answer: Any, **changes: Any) -> Scripted:
    """A message whose text is `answer`, as JSON unless it is text already; `changes` replace fields of it."""
    text = answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False)
    message = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-haiku-5-5",
        "content": [{"type": "text", "text": text}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "stop_details": None,
        "usage": USAGE,
    }
    return Scripted(json.dumps({**message, **changes}))


def refusal(category: str | None) -> Scripted:
    details = {"type": "refusal", "category": category, "explanation": None}
    return ok("", content=[], stop_reason="refusal", stop_details=details)


def error(status: int, kind: str, code: str | None = None, **headers: str) -> Scripted:
    details = {"error_code": code} if code else None
    body = {"type": "error", "error": {"type": kind, "message": "Said by the server.", "details": details}}
    spelled = {name.replace("_", "-"): value for name, value in headers.items()}
    return Scripted(json.dumps(body), status=status, headers=spelled)


@dataclass(frozen=True)
class Recorded:
    path: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]
    raw: str


def material_of(request: Recorded) -> str:
    """What stands between the two marks of the first turn: the source, or facts as JSON.

    Text blocks alone are read, as gateways in front of other vendors' models do.
    """
    text = "\n".join(
        block["text"] for block in request.body["messages"][0]["content"] if block["type"] == "text"
    )
    _, marker, rest = text.split("\n", 2)
    words, is_closed, _ = rest.rpartition(f"\n{marker}\n")
    assert marker.startswith("[["), "the words stand between marks"
    assert is_closed, "the words stand between marks"
    return words


class MessagesServer:
    """Answers the scripted ones in their order; once they are used up, 500."""

    def __init__(self) -> None:
        self.requests: list[Recorded] = []
        self.script: list[Scripted] = []
        self.answer: Callable[[Recorded], Scripted] | None = None
        """Instead of a script: what is answered follows from what is asked."""
        self.batched: list[Recorded] = []
        """Requests of batches that were worked."""
        self.refuses_batches: Scripted | None = None
        """What every call to the batches is answered with instead."""
        self.meter: Meter | None = None
        """Counts tokens and keeps prompts as the service does, in place of `USAGE`."""
        self.connections = 0
        self.hung_up = threading.Event()
        """Somebody hung up on an answer that dripped."""
        self.batches = Batches(self._result_of)
        self._stopped = threading.Event()
        owner = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self) -> None:
                owner.connections += 1
                super().setup()

            def do_POST(self) -> None:
                owner._answer(self)

            def do_GET(self) -> None:
                owner._answer(self)

            def log_message(self, *ignored: object) -> None:
                """Says nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = False
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *ignored: object) -> None:
        self._stopped.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _answer(self, handler: BaseHTTPRequestHandler) -> None:
        raw = handler.rfile.read(int(handler.headers.get("content-length", "0"))).decode()
        headers = {name.lower(): value for name, value in handler.headers.items()}
        if handler.path.startswith(PATH):
            self._answer_batch(handler, headers, json.loads(raw) if raw else {})
            return
        self.requests.append(Recorded(handler.path, headers, json.loads(raw), raw))
        if not headers.get("authorization", "").startswith("Bearer "):
            scripted = error(401, "authentication_error")
        else:
            scripted = self._next()
        if scripted.seconds:
            self._stopped.wait(scripted.seconds)
        handler.close_connection = not scripted.keeps_open
        if scripted.is_reset:
            linger = struct.pack("ii", 1, 0)
            handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            handler.connection.close()
            return
        self._write(handler, scripted)

    def _answer_batch(self, handler: BaseHTTPRequestHandler, headers: Mapping[str, str], body: Any) -> None:
        if not headers.get("authorization", "").startswith("Bearer "):
            self._write(handler, error(401, "authentication_error"))
            return
        if self.refuses_batches is not None:
            self._write(handler, self.refuses_batches)
            return
        status, words = self.batches.handle(handler.command, handler.path, body)
        handler.close_connection = True
        if not status:
            # It was taken in, and the connection breaks before the answer.
            handler.connection.close()
            return
        self._write(handler, Scripted(words, status=status))

    def _result_of(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """What a request of a batch comes to: as if it were asked live."""
        raw = json.dumps(request["params"], ensure_ascii=False)
        self.batched.append(Recorded(PATH, {}, request["params"], raw))
        if self.answer is not None:
            return succeeded(self._metered(self.batched[-1], self.answer(self.batched[-1])).body)
        return succeeded(self._metered(self.batched[-1], self.script.pop(0)).body)

    def _next(self) -> Scripted:
        if self.answer is not None:
            return self._metered(self.requests[-1], self.answer(self.requests[-1]))
        scripted = self.script.pop(0) if self.script else error(500, "api_error")
        return self._metered(self.requests[-1], scripted)

    def _metered(self, request: Recorded, scripted: Scripted) -> Scripted:
        """The same answer with what it used, by the request itself; others than messages use nothing."""
        if self.meter is None or scripted.status != 200:
            return scripted
        message = json.loads(scripted.body)
        said = "".join(block.get("text", "") for block in message["content"])
        try:
            usage = self.meter.usage(request.body, said)
        except Declined:
            return error(400, "invalid_request_error")
        return replace(scripted, body=json.dumps({**message, "model": request.body["model"], "usage": usage}))

    def _write(self, handler: BaseHTTPRequestHandler, scripted: Scripted) -> None:
        body = scripted.body.encode()
        if scripted.drip_seconds:
            self._drip(handler, scripted, body)
            return
        try:
            handler.send_response(scripted.status)
            handler.send_header("content-type", "application/json")
            handler.send_header("request-id", f"req_{len(self.requests)}")
            handler.send_header("content-length", str(len(body)))
            handler.send_header("connection", "keep-alive" if scripted.keeps_open else "close")
            for name, value in scripted.headers.items():
                handler.send_header(name, value)
            handler.end_headers()
            handler.wfile.write(body[: len(body) // 2] if scripted.is_cut else body)
        except OSError:
            # Who asked has gone away meanwhile.
            return

    def _drip(self, handler: BaseHTTPRequestHandler, scripted: Scripted, body: bytes) -> None:
        head = f"HTTP/1.1 {scripted.status} OK\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
        whole = body if scripted.drips_body_only else head.encode() + body
        try:
            if scripted.drips_body_only:
                handler.wfile.write(head.encode())
            for place in range(len(whole)):
                handler.wfile.write(whole[place : place + 1])
                if self._stopped.wait(scripted.drip_seconds):
                    return
        except OSError:
            # Who asked has hung up.
            self.hung_up.set()
