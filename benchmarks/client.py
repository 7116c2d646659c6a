"""A closed loop of keep-alive connections on one thread: as little work as can be beside the server's.

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
    """The server didn't answer as the benchmark needs it: nothing that was measured means anything."""


@dataclass
class Measured:
    """What one stretch of one kind of request came to; latencies in milliseconds."""

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
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\nAccept: */*\r\n"
        "User-Agent: benchmarks\r\n"
    )
    if body:
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    return f"{head}\r\n".encode() + body


def run(
    port: int,
    make_request: Callable[[int], bytes],
    *,
    seconds: float = math.inf,
    status: int,
    numbers: Iterator[int] | None = None,
) -> Measured:
    """Ask as fast as the answers come for that long, or until there are no more numbers.

    Raises `UnexpectedAnswer` for any other status.
    """
    numbers = numbers or count()
    measured = Measured()
    with selectors.DefaultSelector() as selector:
        for number in islice(numbers, CONNECTIONS):
            opened = socket.create_connection(("127.0.0.1", port), timeout=_TIMEOUT_SECONDS)
            opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            one = _Connection(opened)
            selector.register(opened, selectors.EVENT_READ, one)
            _send(one, make_request(number))
        started = perf_counter()
        until = started + seconds
        asking = len(selector.get_map())
        while asking:
            ready = selector.select(_TIMEOUT_SECONDS)
            if not ready:
                message = f"No answer came within {_TIMEOUT_SECONDS} s."
                raise UnexpectedAnswer(message)
            for key, _ in ready:
                one = key.data
                one.received += one.socket.recv(262_144)
                if not _is_whole(one.received, status):
                    continue
                now = perf_counter()
                measured.latencies.append((now - one.sent_at) * 1000)
                following = next(numbers, None) if now < until else None
                if following is not None:
                    _send(one, make_request(following))
                else:
                    asking -= 1
                    selector.unregister(one.socket)
                    one.socket.close()
        measured.seconds = perf_counter() - started
    return measured


def ask(port: int, request: bytes) -> tuple[int, dict[str, str], bytes]:
    """One request and its answer, whole."""
    with socket.create_connection(("127.0.0.1", port), timeout=_TIMEOUT_SECONDS) as one:
        one.sendall(request)
        received = b""
        while not _is_whole(received, None):
            piece = one.recv(262_144)
            if not piece:
                message = "The server hung up."
                raise UnexpectedAnswer(message)
            received += piece
    head, _, body = received.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return int(first.split()[1]), headers, body


def _send(one: _Connection, request: bytes) -> None:
    one.received = b""
    one.sent_at = perf_counter()
    one.socket.sendall(request)


def _is_whole(received: bytes, status: int | None) -> bool:
    head_end = received.find(b"\r\n\r\n")
    if head_end == -1:
        return False
    head = received[:head_end].lower()
    if status is not None and head[9:12] != b"%d" % status:
        raise UnexpectedAnswer(received[:2000].decode(errors="replace"))
    at = head.find(b"content-length:")
    if at == -1:
        message = f"An answer without Content-Length: {head.decode('latin-1')}"
        raise UnexpectedAnswer(message)
    end = head.find(b"\r\n", at)
    length = int(head[at + 15 : end if end != -1 else len(head)])
    return len(received) >= head_end + 4 + length


def post_for_ever(url: str, secret: str, bodies: Sequence[bytes], threads: int) -> None:
    """One process of the floor: each thread has a session with its kept connection."""
    now, signer, ready = datetime.now(UTC), Webhook(secret), []
    for body in bodies:
        event_id = json.loads(body)["id"]
        headers = {
            "content-type": "application/json",
            "webhook-id": event_id,
            "webhook-timestamp": str(int(now.timestamp())),
            "webhook-signature": signer.sign(event_id, now, body.decode()),
        }
        ready.append((body, headers))

    def run(start: int) -> None:
        with requests.Session() as http:
            http.trust_env = False
            for body, headers in cycle(ready[start:] + ready[:start]):
                http.post(url, data=body, headers=headers, timeout=30)

    for number in range(threads):
        threading.Thread(target=run, args=(number * len(ready) // threads,), daemon=True).start()
    threading.Event().wait()


if __name__ == "__main__":
    post_for_ever(sys.argv[1], sys.argv[2], [one.encode() for one in json.load(sys.stdin)], int(sys.argv[3]))
