"""Connections that are kept between requests: used again, never one that is dead, strange or old."""

from __future__ import annotations

import gc
import socket
import threading
from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from config.core.http_client import (
    AddressRefused,
    BadResponse,
    Client,
    ConnectFailed,
    TimedOut,
    connection,
    pool,
)
from tests.core.test_http_client import (
    OPEN,
    PUBLIC,
    STRICT,
    Internet,
    Peer,
    certificate,
    client_tls,
    internet,
    receive,
    reply,
    server_tls,
)

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Iterator

__all__ = ["certificate", "client_tls", "internet", "server_tls"]

OK = reply(b"{}")


class Keeping:
    """A peer that answers one request after another on each connection, as `answer(number, request)` says."""

    def __init__(
        self, answer: Callable[[int, bytes], bytes | None], tls: ssl.SSLContext | None = None
    ) -> None:
        self.requests: list[bytes] = []
        self._answer = answer
        self.peer = Peer(self._talk, tls)
        self.url = self.peer.url

    @property
    def connections(self) -> int:
        return self.peer.connections

    def _talk(self, connection: socket.socket) -> None:
        while request := receive(connection):
            self.requests.append(request)
            answer = self._answer(len(self.requests), request)
            if answer is None:
                return
            connection.sendall(answer)


@pytest.fixture
def keeping() -> Iterator[Callable[..., Keeping]]:
    made: list[Keeping] = []

    def start(
        answer: Callable[[int, bytes], bytes | None] = lambda *_: OK, tls: ssl.SSLContext | None = None
    ) -> Keeping:
        made.append(Keeping(answer, tls))
        return made[-1]

    yield start
    for one in made:
        one.peer.close()


@pytest.fixture
def client() -> Iterator[Client]:
    made = Client(OPEN)
    yield made
    _close_all(made)


def _close_all(client: Client) -> None:
    for one in client._connections._idle:
        one.close()


def post(client: Client, keeping: Keeping, **options: Any) -> int:
    return client.post(f"{keeping.url}/in", body=b"x" * 10, keep_alive=True, **options).status


def test_one_connection_serves_many_requests(client: Client, keeping: Any) -> None:
    there = keeping()
    assert [post(client, there) for _ in range(5)] == [200] * 5
    assert (there.connections, len(there.requests)) == (1, 5)
    assert b"connection: close" not in b"".join(there.requests).lower()


def test_so_it_is_under_tls(keeping: Any, server_tls: ssl.SSLContext, client_tls: ssl.SSLContext) -> None:
    there = keeping(tls=server_tls)
    client = Client(OPEN, tls=client_tls)
    assert [post(client, there) for _ in range(3)] == [200] * 3
    assert there.connections == 1
    _close_all(client)


def test_whoever_does_not_ask_for_it_gets_a_connection_of_its_own(client: Client, keeping: Any) -> None:
    there = keeping()
    post(client, there)
    assert client.post(f"{there.url}/in", body=b"x").status == 200
    assert there.connections == 2
    assert b"Connection: close" in there.requests[1]


@pytest.mark.parametrize(
    "answer",
    [
        reply(b"{}", "Connection: close"),
        reply(b"{}").replace(b"HTTP/1.1", b"HTTP/1.0"),
        # Its end is the connection's.
        b"HTTP/1.1 200 OK\r\n\r\n{}",
    ],
    ids=["says_so", "http_1_0", "without_length"],
)
def test_a_server_that_closes_is_not_kept(client: Client, answer: bytes) -> None:
    there = Peer(lambda connection: (receive(connection), connection.sendall(answer))[1])
    try:
        assert [client.post(f"{there.url}/in", body=b"x", keep_alive=True).status for _ in range(2)] == [
            200
        ] * 2
        assert there.connections == 2
        assert client._connections._idle == {}
    finally:
        there.close()


def test_a_cut_answer_is_not_kept(client: Client, keeping: Any) -> None:
    there = keeping(lambda *_: reply(b"x" * 5000))
    assert client.post(there.url, body=b"x", keep_alive=True, max_bytes=100, truncate=True).truncated
    assert client.post(there.url, body=b"x", keep_alive=True, max_bytes=100, truncate=True).truncated
    assert there.connections == 2


def test_one_that_the_server_closed_meanwhile_is_noticed(client: Client) -> None:
    ends = threading.Event()

    def talk(connection: socket.socket) -> None:
        receive(connection)
        connection.sendall(OK)
        connection.shutdown(socket.SHUT_RDWR)
        ends.set()

    there = Peer(talk)
    try:
        for _ in range(3):
            ends.clear()
            assert client.post(f"{there.url}/in", body=b"x", keep_alive=True).status == 200
            assert ends.wait(20)
        assert there.connections == 3
    finally:
        there.close()


def test_one_that_breaks_in_the_moment_of_its_use_is_made_anew(client: Client, keeping: Any) -> None:
    # The second request is read, and never answered.
    there = keeping(lambda number, _: None if number == 2 else OK)
    assert [post(client, there), post(client, there)] == [200, 200]
    assert (there.connections, len(there.requests)) == (2, 3)


def test_what_may_have_arrived_the_first_time_is_said_so(
    client: Client, keeping: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: connection.GuardedConnection) -> socket.socket:
        message = "Nobody listens."
        raise ConnectFailed(message)

    def answer(number: int, _request: bytes) -> bytes | None:
        if number == 1:
            return OK
        monkeypatch.setattr(connection.GuardedConnection, "_new_conn", refuse)
        return None

    there = keeping(answer)
    post(client, there)
    with pytest.raises(ConnectFailed) as raised:
        post(client, there)
    assert raised.value.may_have_reached
    assert len(there.requests) == 2


def test_a_kept_one_holds_nothing_of_the_request(client: Client, keeping: Any) -> None:
    there = keeping()
    assert client.post(there.url, body=b"x" * 10_000, keep_alive=True).status == 200
    [kept] = client._connections._idle
    assert len(kept._unsent) == 0


def test_a_new_one_that_breaks_is_not_tried_again(client: Client, keeping: Any) -> None:
    there = keeping(lambda *_: None)
    with pytest.raises(BadResponse) as raised:
        post(client, there)
    assert raised.value.may_have_reached
    assert len(there.requests) == 1


def test_once_an_answer_has_begun_nothing_is_sent_again(client: Client, keeping: Any) -> None:
    def answer(number: int, _request: bytes) -> bytes | None:
        return OK if number == 1 else b"HTTP/1.1 2"

    there = keeping(answer)
    post(client, there)
    with pytest.raises((BadResponse, TimedOut)):
        post(client, there, timeout=0.5)
    assert len(there.requests) == 2


def test_what_nobody_asked_for_makes_it_unusable(client: Client, keeping: Any) -> None:
    there = keeping(lambda *_: OK + b"HTTP/1.1 500 Smuggled\r\nContent-Length: 0\r\n\r\n")
    assert [post(client, there) for _ in range(3)] == [200] * 3


def test_old_and_idle_ones_are_closed(client: Client, keeping: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    there = keeping()
    post(client, there)
    monkeypatch.setattr(connection, "IDLE_SECONDS", 0.0)
    post(client, there)
    assert there.connections == 2
    client.sweep()
    assert client._connections._idle == {}
    monkeypatch.undo()
    monkeypatch.setattr(connection, "MAX_AGE_SECONDS", 0.0)
    post(client, there)
    post(client, there)
    assert there.connections == 4


def test_there_are_never_more_than_so_many(keeping: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "MAX_PER_ORIGIN", 2)
    monkeypatch.setattr(pool, "MAX_TOTAL", 3)
    client = Client(OPEN)
    places = [keeping() for _ in range(4)]
    for there in places:
        ready = threading.Barrier(3)
        threads = [
            threading.Thread(target=lambda: (ready.wait(), post(client, there)))  # noqa: B023  joined below
            for _ in range(3)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        held = client._connections._idle
        assert all(not one.is_closed for one in held)
        assert len(held) <= 3
        assert max(Counter(one.port for one in held).values()) <= 2
    _close_all(client)


def test_one_that_was_closed_for_another_is_opened_anew(
    keeping: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "MAX_TOTAL", 1)
    client = Client(OPEN)
    here, there = keeping(), keeping()
    assert [post(client, each) for each in (here, there, there, here)] == [200] * 4
    assert (here.connections, there.connections) == (2, 1)
    _close_all(client)


def test_the_address_is_checked_again_when_one_is_opened_anew(
    internet: Internet, keeping: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = keeping()
    internet.names = {"rebind.test": [[PUBLIC], ["127.0.0.1"]]}
    internet.routes = {PUBLIC: there.peer}
    monkeypatch.setattr(connection, "IDLE_SECONDS", 0.0)
    client = Client(STRICT)
    address = f"http://rebind.test:{there.peer.port}/"
    assert client.get(address, keep_alive=True).status == 200
    with pytest.raises(AddressRefused):
        client.get(address, keep_alive=True)
    assert (internet.connects, len(there.requests)) == ([PUBLIC], 1)


def test_no_socket_is_lost(client: Client, keeping: Any) -> None:
    """An unclosed one would be a ResourceWarning, which is an error here."""
    there = keeping(lambda number, _: None if number % 3 == 0 else OK)
    for _ in range(12):
        with suppress(BadResponse):
            post(client, there)
    _close_all(client)
    gc.collect()
