"""What the web worker's loop reads and sends by itself; tests/faults/test_slow_clients.py has the clients."""

from __future__ import annotations

import json
import socket
from http import HTTPStatus
from typing import TYPE_CHECKING
from unittest import mock

import pytest
from django.core.management import load_command_class
from gunicorn.config import Config
from gunicorn.http import errors as parse_errors

from config.connections.client_connection import ClientConnection
from config.connections.request_buffer import IncomingRequest, RefusedError, refusal_bytes
from config.connections.response_socket import ResponseSocket
from config.connections.worker import ConnectionsWorker, _network
from config.core import limits
from pipeline import limits as pipeline_limits
from tests.operations.deployment import image

if TYPE_CHECKING:
    from pathlib import Path

HEAD = b"POST /v1/raw HTTP/1.1\r\nHost: x\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"


def taken(*pieces):
    """After which of them the request was whole, and what is said of it."""
    incoming = IncomingRequest()
    with incoming.kept:
        return _taken(incoming, pieces)


def _taken(incoming, pieces):
    for number, piece in enumerate(pieces):
        if incoming.take(piece):
            return number, incoming
    return None, incoming


@pytest.mark.parametrize(
    "whole",
    [
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        HEAD + b"content-LENGTH:  3 \r\n\r\nabc",
        HEAD + b"Content-Length: 0\r\n\r\n",
        CHUNKED + b'3\r\nabc\r\n10;a="b"\r\n0123456789abcdef\r\n0\r\n\r\n',
        CHUNKED + b"0\r\nTrailer: one\r\nOther: two\r\n\r\n",
    ],
)  # fmt: skip
def test_a_request_is_whole_with_its_last_byte_however_it_is_cut(whole):
    assert taken(whole)[0] == 0
    number, incoming = taken(*[whole[at : at + 1] for at in range(len(whole))])
    assert (number, incoming.is_cut) == (len(whole) - 1, False)
    for at in range(1, len(whole)):
        assert taken(whole[:at], whole[at:] + b"GET /next")[0] == 1


@pytest.mark.parametrize(
    "sent",
    [
        b"GET / HTTP/1.1\nHost",
        HEAD + b"Content-Length: 1\r\nContent-Length: 1\r\n\r\n",
        HEAD + b"Content-Length: -1\r\n\r\n",
        HEAD + b"Content-Length: 1_0\r\n\r\n",
        HEAD + b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n",
        HEAD + b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        HEAD + b"Transfer-Encoding: gzip, chunked\r\n\r\n",
        HEAD + b"Content-Length: %d\r\n\r\n" % (pipeline_limits.UPLOAD_BODY_BYTES + 1),
    ],
)
def test_what_will_be_refused_is_handed_on_at_once_and_its_connection_ends(sent):
    number, incoming = taken(sent)
    assert (number, incoming.is_cut) == (0, True)


@pytest.mark.parametrize("chunk", [b"zz\r\n", b"\r\n", b"1" * 9000])
def test_chunks_that_gunicorn_will_refuse_are_not_waited_for(chunk):
    assert taken(CHUNKED + chunk)[0] == 0


def test_endless_chunks_end_at_a_bound():
    piece = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
    number, incoming = taken(CHUNKED, *[piece] * 1000)
    assert incoming.is_cut
    assert (
        limits.REFUSED_BODY_READ_BYTES / len(piece)
        <= number
        <= limits.REFUSED_BODY_READ_BYTES / len(piece) + 2
    )


def test_a_head_without_end_is_refused():
    incoming = IncomingRequest()
    with incoming.kept:
        assert not incoming.take(b"x" * limits.HEAD_BYTES)
        with pytest.raises(RefusedError, match="431"):
            incoming.take(b"x")


def made_wire():
    ours, theirs = socket.socketpair()
    connection = mock.Mock(spec=ClientConnection)
    return ResponseSocket(connection, ours), theirs, connection


def read_all(wire, theirs):
    read = b""
    theirs.settimeout(5)
    while wire.has_left:
        read += theirs.recv(100_000)
        wire.flush()
    wire.close()
    with theirs:
        while more := theirs.recv(100_000):
            read += more
    return read


@pytest.mark.parametrize(
    ("status", "error", "waits"),
    [
        (429, "rate_limited", True),
        (408, "invalid_request", True),
        (503, "unavailable", True),
        (414, "invalid_request", False),
        (431, "invalid_request", False),
        (400, "invalid_request", False),
        (500, "internal_error", False),
    ],
)
def test_a_refusal_has_the_form_of_every_error(status: int, error: str, waits: bool) -> None:
    head, _, body = refusal_bytes(HTTPStatus(status)).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 %d " % status)
    assert f"Content-Length: {len(body)}".encode() in head
    assert (b"Retry-After: " in head) is waits
    assert b"\r\nX-Request-Id: req_" in head
    told = json.loads(body)
    assert (told["error"], set(told["detail"][0])) == (error, {"field", "code", "message"})
    assert body.decode() == json.dumps(told, ensure_ascii=False, separators=(",", ":"))


def test_what_nobody_takes_yet_is_kept_in_its_order(tmp_path: Path):
    wire, theirs, connection = made_wire()
    film = tmp_path / "film"
    film.write_bytes(bytes(range(256)) * 8000)
    written = b""
    for number in range(60):
        piece = b"%d," % number * 10_000
        wire.sendall(piece)
        written += piece
    with film.open("rb") as file:
        wire.sendfile(file, offset=256, count=256 * 5000)
    wire.sendall(b"the end")
    written += film.read_bytes()[256 : 256 * 5001] + b"the end"
    assert wire.has_left
    assert read_all(wire, theirs) == written
    assert sum(call.args[0] for call in connection.hold.call_args_list) == sum(
        call.args[0] for call in connection.let_go.call_args_list
    )


def test_what_is_kept_is_let_go_when_the_client_goes():
    wire, theirs, connection = made_wire()
    wire.sendall(b"x" * 3_000_000)
    theirs.close()
    with pytest.raises(OSError, match="pipe"):
        wire.flush()
    wire.close()
    assert connection.let_go.call_args.args == connection.hold.call_args.args


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (parse_errors.LimitRequestLine(9000, 8190), 414, "address_too_long"),
        (parse_errors.LimitRequestHeaders("too many"), 431, "headers_too_large"),
        (parse_errors.InvalidRequestMethod("get"), 400, "malformed_request"),
        (parse_errors.InvalidHTTPVersion((9, 9)), 400, "malformed_request"),
        (parse_errors.InvalidHeader("a b: c"), 400, "malformed_request"),
        (parse_errors.InvalidResponseHeader("x"), 500, "internal_error"),
        (RuntimeError("broken"), 500, "internal_error"),
    ],
)
def test_what_gunicorn_can_not_read_is_answered_as_every_error(error, status, code):
    client = mock.Mock()
    made = worker()
    made.handle_error(None, client, ("127.0.0.1", 5), error)
    head, _, body = client.sendall.call_args.args[0].partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 %d " % status)
    request_id = head.partition(b"X-Request-Id: ")[2].partition(b"\r\n")[0].decode()
    # The same id is in the log.
    (call,) = (made.log.error if status == 500 else made.log.warning).call_args_list
    assert request_id in call.args
    assert json.loads(body)["detail"][0]["code"] == code


def worker():
    made = ConnectionsWorker(0, 0, [], None, 30, Config(), mock.Mock())
    made.tmp.close()
    return made


def test_files_of_all_connections_together_have_a_bound():
    ours, theirs = socket.socketpair()
    with theirs:
        made = worker()
        connection = ClientConnection(made, ours, "one", ("127.0.0.1", 1), ("127.0.0.1", 2))
        made.by_address["one"] = 1
        connection.hold(limits.BODIES_KEPT_BYTES)
        with pytest.raises(RefusedError, match="503"):
            connection.hold(1)
        connection.close()
        assert (made.held, dict(made.by_address)) == (0, {})


@pytest.mark.parametrize(
    ("proxies", "address", "network"),
    [
        (0, "127.0.0.1", "127.0.0.1"),
        (1, "127.0.0.1", ""),
        (1, "172.18.0.1", ""),
        (1, "93.184.216.34", "93.184.216.34"),
        (0, "2a00:1450:4001:81b::200e", "2a00:1450:4001:81b::/64"),
        (0, "::ffff:93.184.216.34", "93.184.216.34"),
        (0, "fe80::1%eth0", "fe80::/64"),
    ],
)
def test_connections_are_counted_by_network_but_not_those_of_our_own_proxy(
    settings, proxies, address, network
):
    settings.TRUSTED_PROXIES = proxies
    assert _network.__wrapped__((address,)) == network


def test_the_service_listens_at_this_machine_alone_unless_it_is_told(settings):
    assert settings.WEB_HOST == "127.0.0.1"
    parser = load_command_class("config", "serve").create_parser("manage.py", "serve")
    assert parser.parse_args([]).host == "127.0.0.1"
    assert image().environment["WEB_HOST"] == "0.0.0.0"


@pytest.mark.parametrize(("is_old", "dropped"), [(True, "half-open"), (False, "kept")])
def test_room_is_made_by_the_slowest_or_else_by_who_is_idle(is_old, dropped):
    made = worker()
    made.poller = mock.MagicMock()
    pairs = {name: socket.socketpair() for name in ("half-open", "fast", "kept")}
    ours = {
        name: ClientConnection(made, pair[0], name, ("127.0.0.1", 1), ("127.0.0.1", 2))
        for name, pair in pairs.items()
    }
    made.nr_conns = len(ours)
    for name, one in ours.items():
        made.by_address[name] += 1
        one.begin()
        if name != "kept":
            made._watch(one, 1, mock.Mock())
    made.keepalived_conns.append(ours["kept"])
    ours["half-open"]._since -= 9 if is_old else 0
    ours["fast"].sock.moved += 1_000_000
    made._drop_slowest()
    assert set(made.by_address) == set(ours) - {dropped}
    assert made.nr_conns == 2
    for name, pair in pairs.items():
        if name != dropped:
            ours[name].close()
        pair[1].close()
