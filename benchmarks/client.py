"""Sends requests over kept connections on one thread, with as little work as possible in addition to the server's.

`python -m benchmarks.client URL SECRET THREADS` is one process of the webhooks' floor: it posts the bodies of standard input.
"""

from __future__ import annotations

import json
import math
import selectors
import socket
import sys
import threading
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import count, cycle, islice
from time import perf_counter
from typing import TYPE_CHECKING, Final

import requests
from standardwebhooks import Webhook

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

CONNECTIONS: Final = 4
_TIMEOUT_SECONDS: Final = 30


class UnexpectedAnswer(RuntimeError):
    """Raised if the server doesn't answer as the benchmark needs, so that no measurement is valid."""


@dataclass
class MeasuredRequests:
    """The requests of a period of `seconds`, with the latency of each in milliseconds."""

    seconds: float = 0.0
    latencies: list[float] = field(default_factory=list)

    @property
    def per_second(self) -> float:
        return len(self.latencies) / self.seconds


@dataclass
class _Connection:
    socket: socket.socket
    received: bytes = b""
    sent_at: float = 0.0


def request_bytes(method: str, path: str, token: str, body: bytes = b"") -> bytes:
    """Return an HTTP request as bytes; `body` is JSON."""
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\nAccept: */*\r\n"
        "User-Agent: benchmarks\r\n"
    )
    if body:
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    return f"{head}\r\n".encode() + body


def run_requests(
    port: int,
    make_request: Callable[[int], bytes],
    *,
    seconds: float = math.inf,
    status: int,
    numbers: Iterator[int] | None = None,
) -> MeasuredRequests:
    """Send requests as fast as they are answered for `seconds`, or until there are no more numbers.

    `make_request` returns the request of each number. Raises `UnexpectedAnswer` if an answer has another status
    or doesn't come in time.
    """
    numbers = numbers or count()
    measured = MeasuredRequests()
    with selectors.DefaultSelector() as selector:
        for number in islice(numbers, CONNECTIONS):
            opened = socket.create_connection(("127.0.0.1", port), timeout=_TIMEOUT_SECONDS)
            opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection = _Connection(opened)
            selector.register(opened, selectors.EVENT_READ, connection)
            _send_request(connection, make_request(number))
        started = perf_counter()
        deadline = started + seconds
        open_connections = len(selector.get_map())
        while open_connections:
            ready = selector.select(_TIMEOUT_SECONDS)
            if not ready:
                message = f"No answer came within {_TIMEOUT_SECONDS} s."
                raise UnexpectedAnswer(message)
            for key, _ in ready:
                connection = key.data
                connection.received += connection.socket.recv(262_144)
                if not _is_whole(connection.received, status):
                    continue
                now = perf_counter()
                measured.latencies.append((now - connection.sent_at) * 1000)
                following = next(numbers, None) if now < deadline else None
                if following is not None:
                    _send_request(connection, make_request(following))
                else:
                    open_connections -= 1
                    selector.unregister(connection.socket)
                    connection.socket.close()
        measured.seconds = perf_counter() - started
    return measured


def ask(port: int, request: bytes) -> tuple[int, dict[str, str], bytes]:
    """Send one request and return status, headers and body. Raises `UnexpectedAnswer` if the server hangs up."""
    with socket.create_connection(("127.0.0.1", port), timeout=_TIMEOUT_SECONDS) as connection:
        connection.sendall(request)
        received = b""
        while not _is_whole(received, None):
            chunk = connection.recv(262_144)
            if not chunk:
                message = "The server hung up."
                raise UnexpectedAnswer(message)
            received += chunk
    head, _, body = received.partition(b"\r\n\r\n")
    status_line, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return int(status_line.split()[1]), headers, body


def _send_request(connection: _Connection, request: bytes) -> None:
    connection.received = b""
    connection.sent_at = perf_counter()
    connection.socket.sendall(request)


def _is_whole(received: bytes, status: int | None) -> bool:
    """Return whether the response is complete.

    Raises `UnexpectedAnswer` if it has another status or no Content-Length.
    """
    head_end = received.find(b"\r\n\r\n")
    if head_end == -1:
        return False
    head = received[:head_end].lower()
    if status is not None and head[9:12] != b"%d" % status:
        raise UnexpectedAnswer(received[:2000].decode(errors="replace"))
    header_start = head.find(b"content-length:")
    if header_start == -1:
        message = f"An answer without Content-Length: {head.decode('latin-1')}"
        raise UnexpectedAnswer(message)
    end = head.find(b"\r\n", header_start)
    length = int(head[header_start + 15 : end if end != -1 else len(head)])
    return len(received) >= head_end + 4 + length


def post_forever(url: str, secret: str, bodies: Sequence[bytes], threads: int) -> None:
    """Post the signed bodies again and again, from threads that each keep a connection."""
    now, signer, signed = datetime.now(UTC), Webhook(secret), []
    for body in bodies:
        event_id = json.loads(body)["id"]
        headers = {
            "content-type": "application/json",
            "webhook-id": event_id,
            "webhook-timestamp": str(int(now.timestamp())),
            "webhook-signature": signer.sign(event_id, now, body.decode()),
        }
        signed.append((body, headers))

    def post_in_turn(start: int) -> None:
        with requests.Session() as http:
            http.trust_env = False
            for body, headers in cycle(signed[start:] + signed[:start]):
                http.post(url, data=body, headers=headers, timeout=30)

    for number in range(threads):
        threading.Thread(target=post_in_turn, args=(number * len(signed) // threads,), daemon=True).start()
    threading.Event().wait()


if __name__ == "__main__":
    post_forever(sys.argv[1], sys.argv[2], [body.encode() for body in json.load(sys.stdin)], int(sys.argv[3]))
