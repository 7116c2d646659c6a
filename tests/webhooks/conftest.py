"""A receiver on loopback, and threads that work beside the test."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from time import monotonic
from typing import TYPE_CHECKING, Any

import pytest
from django.conf import settings
from django.db import connection

from config.core import dispatcher, jobs, task_runner, work_leases, work_queue

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping


@dataclass(frozen=True)
class Received:
    path: str
    headers: dict[str, str]
    body: bytes
    at: float


@dataclass
class Receiver:
    """Answers each path as `answers` says: a status, or (status, headers, body), or a callable that gives them."""

    url: str = ""
    answers: dict[str, Any] = field(default_factory=dict)
    received: list[Received] = field(default_factory=list)
    let_go: threading.Event = field(default_factory=threading.Event)
    open_now: dict[str, int] = field(default_factory=dict)
    open_most: dict[str, int] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def at(self, path: str) -> list[Received]:
        with self.lock:
            return [one for one in self.received if one.path == path]

    def hang(self) -> int:
        self.let_go.wait(60)
        return 500

    def wait_for(self, path: str, count: int = 1, seconds: float = 30) -> float:
        """The moment at which the path got its `count`th request."""
        until = monotonic() + seconds
        while monotonic() < until:
            there = self.at(path)
            if len(there) >= count:
                return there[count - 1].at
            threading.Event().wait(0.01)
        raise AssertionError(f"{path} got {len(self.at(path))} of {count} requests in {seconds} s")


class _Handler(BaseHTTPRequestHandler):
    receiver: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        receiver = self.receiver
        headers = {name.lower(): value for name, value in self.headers.items()}
        with receiver.lock:
            receiver.received.append(Received(self.path, headers, body, monotonic()))
            now = receiver.open_now[self.path] = receiver.open_now.get(self.path, 0) + 1
            receiver.open_most[self.path] = max(now, receiver.open_most.get(self.path, 0))
        try:
            answer = receiver.answers.get(self.path, 200)
            answer = answer() if callable(answer) else answer
            status, extra, content = answer if isinstance(answer, tuple) else (answer, {}, b"")
            self.send_response(status)
            for name, value in extra.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)
        except OSError:
            # The caller gave up first, which some tests want.
            self.close_connection = True
        finally:
            with receiver.lock:
                receiver.open_now[self.path] -= 1

    def log_message(self, *_: object) -> None:
        pass


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    there = Receiver()
    server = _Server(("127.0.0.1", 0), type("Handler", (_Handler,), {"receiver": there}))
    there.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield there
    there.let_go.set()
    server.shutdown()
    server.server_close()
    thread.join()


class Workers:
    """A broker whose messages are worked at once by threads, as many as a worker has for webhooks."""

    def __init__(self) -> None:
        self.pool = ThreadPoolExecutor(settings.QUEUE_SLOTS["webhooks"] + 8)
        self.is_over = threading.Event()

    def send(self, job: jobs.Job, lease: work_leases.QueuedTask) -> None:
        self.pool.submit(task_runner.run, job.name, lease.subject, lease.token, lease.holder)

    def count_waiting(self, queues: Collection[str]) -> Mapping[str, int]:
        return dict.fromkeys(queues, 0)

    def wake(self) -> None:
        if not self.is_over.is_set():
            self.pool.submit(self._round)

    def _round(self) -> None:
        try:
            dispatcher.run_round(self, settings.QUEUE_SLOTS)
        finally:
            work_queue.release_connections()

    def rearm_wake(self) -> None:
        pass


@pytest.fixture
def at_work(monkeypatch: pytest.MonkeyPatch, receiver: Receiver) -> Iterator[Callable[[], None]]:
    """Call it to have what is due worked beside the test, with wakes after commits and each second as in a worker."""
    workers = Workers()

    def tick() -> None:
        while not workers.is_over.is_set():
            # A worker that isn't seen for some seconds counts as dead, and what it runs no more.
            work_leases.note_worker("test", settings.QUEUE_SLOTS)
            workers.wake()
            workers.is_over.wait(1)
        work_queue.release_connections()
        connection.close()

    ticker = threading.Thread(target=tick, daemon=True)

    def start() -> None:
        # The deliveries alone: a test writes the deliveries itself, and must not meet the task that does.
        delivering = {name: job for name, job in jobs.jobs().items() if isinstance(job, jobs.HolderJob)}
        monkeypatch.setattr(jobs, "_jobs", delivering)
        work_leases.start_worker()
        work_leases.note_worker("test", settings.QUEUE_SLOTS)
        dispatcher.set_waker(workers.wake)
        ticker.start()

    yield start
    workers.is_over.set()
    receiver.let_go.set()
    if ticker.is_alive():
        ticker.join()
    workers.pool.shutdown(wait=True)
