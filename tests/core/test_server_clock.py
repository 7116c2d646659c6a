"""The database server's time: asked seldom, extrapolated, and never from a slow answer."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Self

import pytest
from django.db import connection

from config.core.database import server_clock

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)


class Server:
    """A database whose clock and the machine's uptime the test moves; an answer takes `delay` seconds."""

    def __init__(self) -> None:
        self.uptime, self.offset, self.delay, self.asked = 1000.0, 0.0, 0.0, 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    cursor = __enter__

    def execute(self, _sql: str) -> None:
        self.asked += 1
        self.uptime += self.delay

    def fetchone(self) -> tuple[datetime]:
        return (self.now(),)

    def now(self) -> datetime:
        return NOON + timedelta(seconds=self.uptime + self.offset)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    made = Server()
    monkeypatch.setattr(server_clock, "connection", made)
    monkeypatch.setattr(server_clock._last, "value", None)
    monkeypatch.setattr(server_clock.time, "clock_gettime", lambda _clock: made.uptime)
    return made


def test_it_is_asked_once_and_extrapolated(server: Server) -> None:
    server_clock.now()
    server.uptime += server_clock.MAX_READING_AGE_SECONDS - 0.5
    assert (server_clock.now(), server.asked) == (server.now(), 1)


def test_it_is_asked_again_after_some_seconds(server: Server) -> None:
    server_clock.now()
    server.offset = 30.0
    server.uptime += server_clock.MAX_READING_AGE_SECONDS
    assert (server_clock.now(), server.asked) == (server.now(), 2)


def test_a_slow_answer_is_not_extrapolated(server: Server) -> None:
    server.delay = server_clock.MAX_ERROR_SECONDS * 2
    assert server_clock.now() == server.now()
    server_clock.now()
    assert server.asked == 2


@pytest.mark.django_db
def test_it_is_the_servers_time() -> None:
    if connection.vendor != "postgresql":
        pytest.skip("SQLite has no clock of its own")
    server_clock._last.value = None
    for _ in range(2):
        assert abs(server_clock.now() - datetime.now(UTC)) < timedelta(seconds=1)
