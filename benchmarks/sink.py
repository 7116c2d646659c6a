"""A receiver of webhooks in a process of its own: it verifies every signature and remembers what came when.

`/in/…` answers 200; `/hang` takes the event and never answers; `/drip/head` and `/drip/body` answer a byte a second.
GET `/told` gives the counts, GET `/arrivals` the moment of each event's first arrival; POST `/forget` begins anew.
Moments are `time.time()`. Connections are kept open where the caller keeps them.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections import Counter
from typing import Any, Final

from standardwebhooks import Webhook, WebhookVerificationError

HEAD_ENDS: Final = b"\r\n\r\n"
DRIPS: Final = {
    "/drip/head": (b"HTTP/1.1 200 OK\r\nx-slow: ", b"a"),
    "/drip/body": (b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n", b"b"),
}


class Ledger:
    """What was received since the last `/forget`."""

    def __init__(self, secret: str) -> None:
        self.webhook = Webhook(secret)
        self.forget()

    def forget(self) -> None:
        self.refused = 0
        self.hanging = self.most_hanging = 0
        self.times: Counter[str] = Counter()
        self.first: dict[str, float] = {}
        self.seconds: Counter[int] = Counter()
        self.dripped: dict[str, float] = {}

    def take(self, path: str, headers: dict[str, str], body: bytes) -> None:
        now = time.time()
        try:
            self.webhook.verify(body, headers)
        except WebhookVerificationError:
            self.refused += 1
            return
        key = f"{headers['webhook-id']} {path}"
        self.times[key] += 1
        self.seconds[int(now)] += 1
        self.first.setdefault(key, now)

    def told(self) -> dict[str, Any]:
        return {
            "verified": self.times.total(),
            "unique": len(self.times),
            "refused": self.refused,
            "most_hanging": self.most_hanging,
            "seconds": {str(second): count for second, count in self.seconds.items()},
            "dripped": self.dripped,
        }


class Connection(asyncio.Protocol):
    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.buffer = b""
        self.is_hanging = False
        self.dripping: tuple[str, float] | None = None

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def connection_lost(self, _: Exception | None) -> None:
        self.ledger.hanging -= self.is_hanging
        if self.dripping:
            path, since = self.dripping
            self.ledger.dripped[path] = round(time.monotonic() - since, 3)

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        while (request := self._take_request()) is not None:
            self._answer(*request)

    def _take_request(self) -> tuple[str, str, dict[str, str], bytes] | None:
        head, found, rest = self.buffer.partition(HEAD_ENDS)
        if not found:
            return None
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
        length = int(headers.get("content-length", 0))
        if len(rest) < length:
            return None
        self.buffer = rest[length:]
        method, path, _ = first.split(" ")
        return method, path, headers, rest[:length]

    def _answer(self, method: str, path: str, headers: dict[str, str], body: bytes) -> None:
        ledger = self.ledger
        if path == "/told":
            self._send(json.dumps(ledger.told()).encode(), headers)
        elif path == "/arrivals":
            self._send(json.dumps(ledger.first).encode(), headers)
        elif path == "/forget":
            ledger.forget()
            self._send(b"{}", headers)
        elif method == "POST":
            ledger.take(path, headers, body)
            if path == "/hang":
                self.is_hanging = True
                ledger.hanging += 1
                ledger.most_hanging = max(ledger.most_hanging, ledger.hanging)
            elif path in DRIPS:
                self.dripping = path, time.monotonic()
                start, drop = DRIPS[path]
                self.transport.write(start)
                self._drip(drop)
            else:
                self._send(b"", headers)
        else:
            self.transport.close()

    def _drip(self, drop: bytes) -> None:
        if not self.transport.is_closing():
            self.transport.write(drop)
            asyncio.get_running_loop().call_later(1.0, self._drip, drop)

    def _send(self, body: bytes, headers: dict[str, str]) -> None:
        self.transport.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body) + body)
        if headers.get("connection", "").lower() == "close":
            self.transport.close()


async def serve(secret: str) -> None:
    ledger = Ledger(secret)
    server = await asyncio.get_running_loop().create_server(
        lambda: Connection(ledger), "127.0.0.1", 0, backlog=512
    )
    # The parent reads where it listens.
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1]))
