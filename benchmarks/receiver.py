"""Serves a benchmark's other servers in one process: a receiver of webhooks, and sites with feeds. It counts the requests.

POST `/in/…` answers 200, `/hang…` takes the event and never answers, `/drip/head` and `/drip/body` answer a byte a second.
Signatures are verified. GET `/304/…` answers "not modified" after 200 ms, and `/feed/N` answers with document N at once.
GET `/counts` returns the counts. GET `/arrivals` returns when each event first came, by its id and path and, for `/in/…`,
also by the ids of the raw items in it. POST `/forget` clears both. Times are `time.time()`.
The process listens at all of 127.0.0.0/8, each address of which is a different host.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import re
import time
from collections import Counter
from typing import Any, Final

from standardwebhooks import Webhook, WebhookVerificationError

HEAD_END: Final = b"\r\n\r\n"
# For each path the beginning of an answer without an end, and the byte that is sent each second.
DRIPPING_ANSWERS: Final = {
    "/drip/head": (b"HTTP/1.1 200 OK\r\nx-slow: ", b"a"),
    "/drip/body": (b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n", b"b"),
}
POLL_ANSWER_SECONDS: Final = 0.2
RAW_ID: Final = re.compile(rb"raw_[0-9a-z]+")
ENTRIES: Final = 100
"""Entries of each feed document."""
SENTENCE: Final = (
    "The city <b>council</b> approved the <a href='https://news.example/tram'>new tram line</a> on Monday evening "
    "after six hours of debate &amp; two of silence. "
)


def feed_document(number: int) -> bytes:
    """Return a feed with `ENTRIES` entries that no other number has, of about 2 kB each, like a blog's."""
    items = "".join(
        f"<item><guid isPermaLink='false'>{number}-{entry}</guid><title>Story {entry} of round {number}</title>"
        f"<link>https://news.example/{number}/{entry}</link><dc:creator>Ada</dc:creator><category>City</category>"
        f"<pubDate>Mon, 02 Nov 2026 {entry % 24:02}:{entry % 60:02}:00 GMT</pubDate>"
        f"<description>Short words on story {entry}</description>"
        f"<content:encoded><![CDATA[<p>{SENTENCE * 10}{number}-{entry}</p>]]></content:encoded></item>"
        for entry in range(ENTRIES)
    )
    return (
        "<?xml version='1.0' encoding='UTF-8'?><rss version='2.0' xmlns:dc='http://purl.org/dc/elements/1.1/' "
        "xmlns:content='http://purl.org/rss/1.0/modules/content/'><channel><title>News</title>"
        f"<link>https://news.example/</link><description>d</description>{items}</channel></rss>"
    ).encode()


class ReceivedEvents:
    """The events and polls that were received since the last `/forget`."""

    def __init__(self, secret: str) -> None:
        self.webhook = Webhook(secret)
        self.forget()

    def forget(self) -> None:
        self.refused = self.polls = 0
        self.hanging = self.max_hanging = 0
        # Verified deliveries, by the event's id and the path, and by the second of their arrival.
        self.deliveries: Counter[str] = Counter()
        self.deliveries_by_second: Counter[int] = Counter()
        self.first_arrivals: dict[str, float] = {}
        # How many seconds a dripping answer lasted, by path.
        self.dripped: dict[str, float] = {}
        # Polls that aren't answered yet, by host, and the most that a host had at once.
        self.open_polls: Counter[str] = Counter()
        self.max_open_polls = 0

    def record(self, path: str, headers: dict[str, str], body: bytes) -> None:
        """Record a delivery; one with a wrong signature is only counted as refused."""
        now = time.time()
        try:
            self.webhook.verify(body, headers)
        except WebhookVerificationError:
            self.refused += 1
            return
        key = f"{headers['webhook-id']} {path}"
        self.deliveries[key] += 1
        self.deliveries_by_second[int(now)] += 1
        self.first_arrivals.setdefault(key, now)
        if path.startswith("/in/"):
            for raw in RAW_ID.findall(body):
                self.first_arrivals.setdefault(f"{raw.decode()} {path}", now)

    def counts(self) -> dict[str, Any]:
        return {
            "verified": self.deliveries.total(),
            "unique": len(self.deliveries),
            "refused": self.refused,
            "most_hanging": self.max_hanging,
            "hung": sum(count for key, count in self.deliveries.items() if "/hang" in key),
            "seconds": {str(second): count for second, count in self.deliveries_by_second.items()},
            "dripped": self.dripped,
            "polls": self.polls,
            "most_open": self.max_open_polls,
        }


class Connection(asyncio.Protocol):
    """Reads the requests of one connection and answers them by their path."""

    def __init__(self, received: ReceivedEvents) -> None:
        self.received = received
        self.buffer = b""
        self.is_hanging = False
        self.dripping: tuple[str, float] | None = None

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def connection_lost(self, _: Exception | None) -> None:
        self.received.hanging -= self.is_hanging
        if self.dripping:
            path, since = self.dripping
            self.received.dripped[path] = round(time.monotonic() - since, 3)

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        while (request := self._next_request()) is not None:
            self._answer(*request)

    def _next_request(self) -> tuple[str, str, dict[str, str], bytes] | None:
        """Take the next request from the buffer: method, path, headers, body; `None` if it isn't complete yet."""
        head, separator, rest = self.buffer.partition(HEAD_END)
        if not separator:
            return None
        request_line, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
        length = int(headers.get("content-length", 0))
        if len(rest) < length:
            return None
        self.buffer = rest[length:]
        method, path, _ = request_line.split(" ")
        return method, path, headers, rest[:length]

    def _answer(self, method: str, path: str, headers: dict[str, str], body: bytes) -> None:
        """Answer a request by its path, as the module's description lists them."""
        if path == "/counts":
            self._send(json.dumps(self.received.counts()).encode(), headers)
        elif path == "/arrivals":
            self._send(json.dumps(self.received.first_arrivals).encode(), headers)
        elif path == "/forget":
            self.received.forget()
            self._send(b"{}", headers)
        elif path.startswith("/feed/"):
            self._send(feed_document(int(path.rpartition("/")[2])), headers, kind="application/rss+xml")
        elif path.startswith("/304/"):
            self._answer_poll(headers)
        elif method == "POST":
            self._answer_delivery(path, headers, body)
        else:
            # A reader requests further paths, such as robots.txt.
            self._send(b"", headers, status="404 Not Found")

    def _answer_delivery(self, path: str, headers: dict[str, str], body: bytes) -> None:
        """Record a delivery, and answer at once, byte by byte or never."""
        received = self.received
        received.record(path, headers, body)
        if path.startswith("/hang"):
            self.is_hanging = True
            received.hanging += 1
            received.max_hanging = max(received.max_hanging, received.hanging)
        elif path in DRIPPING_ANSWERS:
            self.dripping = path, time.monotonic()
            start, drop = DRIPPING_ANSWERS[path]
            self.transport.write(start)
            self._drip(drop)
        else:
            self._send(b"", headers)

    def _answer_poll(self, headers: dict[str, str]) -> None:
        """Answer as a slow site does, and count how many requests its host has open at once."""
        received, host = self.received, headers.get("host", "")
        received.polls += 1
        received.open_polls[host] += 1
        received.max_open_polls = max(received.max_open_polls, received.open_polls[host])

        def answer() -> None:
            received.open_polls[host] -= 1
            self._send(b"", headers, status="304 Not Modified")

        asyncio.get_running_loop().call_later(POLL_ANSWER_SECONDS, answer)

    def _drip(self, drop: bytes) -> None:
        if not self.transport.is_closing():
            self.transport.write(drop)
            asyncio.get_running_loop().call_later(1.0, self._drip, drop)

    def _send(
        self, body: bytes, headers: dict[str, str], *, status: str = "200 OK", kind: str = "application/json"
    ) -> None:
        head = f"HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n\r\n"
        self.transport.write(head.encode() + body)
        if headers.get("connection", "").lower() == "close":
            self.transport.close()


async def serve() -> None:
    secret = f"whsec_{base64.b64encode(os.urandom(32)).decode()}"
    received = ReceivedEvents(secret)
    server = await asyncio.get_running_loop().create_server(
        lambda: Connection(received), "0.0.0.0", 0, backlog=512
    )
    # The parent reads the port, and the secret to sign with.
    print(server.sockets[0].getsockname()[1], secret, flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve())
