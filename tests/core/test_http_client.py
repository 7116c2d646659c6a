"""The guarded HTTP client, against peers on loopback that do what no honest server does."""

from __future__ import annotations

import datetime as dt
import gzip
import itertools
import json
import pickle
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time
import tracemalloc
import zlib
from contextlib import ExitStack, suppress
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from config.core.http_client import (
    AddressRefused,
    BadResponse,
    Client,
    ConnectFailed,
    OutboundError,
    Policy,
    ResponseTooLarge,
    TimedOut,
    TooManyRedirects,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

PUBLIC = "93.184.215.14"
OTHER_PUBLIC = "151.101.1.6"
STRICT = Policy(user_agent="pipeline/1.0")
OPEN = Policy(user_agent="pipeline/1.0", allow_loopback=True)
MEBIBYTE = 1024 * 1024
# Seconds that no bounded call takes, on however slow a machine.
LONG = 20


class Peer:
    """A server on loopback which does with each connection what its script says."""

    def __init__(self, script: Callable[[socket.socket], None], tls: ssl.SSLContext | None = None) -> None:
        self._script = script
        self._tls = tls
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._server.getsockname()[1]
        self.scheme = "https" if tls else "http"
        self.url = f"{self.scheme}://127.0.0.1:{self.port}"
        self.connections = 0
        self.closing = threading.Event()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._server.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._run, args=(connection,), daemon=True).start()

    def _run(self, connection: socket.socket) -> None:
        # A client that hangs up in the middle is what many tests are about.
        with suppress(OSError), ExitStack() as stack:
            stack.enter_context(connection)
            connection.settimeout(10)
            if self._tls:
                connection = stack.enter_context(self._tls.wrap_socket(connection, server_side=True))
            self._script(connection)

    def close(self) -> None:
        self.closing.set()
        # A blocked accept() only notices a shutdown, not a close.
        with suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()


class Requests(list[bytes]):
    """What a peer was sent, whole requests in order."""

    def header(self, index: int, name: str) -> str | None:
        for line in self[index].partition(b"\r\n\r\n")[0].split(b"\r\n")[1:]:
            key, _, value = line.decode("latin-1").partition(": ")
            if key.lower() == name.lower():
                return value
        return None

    def body(self, index: int) -> bytes:
        return self[index].partition(b"\r\n\r\n")[2]

    def line(self, index: int) -> str:
        return self[index].partition(b"\r\n")[0].decode()


def receive(connection: socket.socket) -> bytes:
    """Receive one whole request."""
    data = b""
    while b"\r\n\r\n" not in data:
        piece = connection.recv(65536)
        if not piece:
            return data
        data += piece
    head, _, rest = data.partition(b"\r\n\r\n")
    length = 0
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            length = int(line.partition(b":")[2])
    while len(rest) < length:
        rest += connection.recv(65536)
    return head + b"\r\n\r\n" + rest


def reply(body: bytes = b"", *headers: str, status: str = "200 OK", length: int | None = None) -> bytes:
    size = len(body) if length is None else length
    return "\r\n".join([f"HTTP/1.1 {status}", f"Content-Length: {size}", *headers, "", ""]).encode() + body


@pytest.fixture
def serve() -> Iterator[Callable[..., tuple[Peer, Requests]]]:
    """Start peers; each answers its requests with the given replies in turn, or runs a script."""
    with ExitStack() as stack:

        def start(
            *replies: bytes,
            script: Callable[[socket.socket], None] | None = None,
            tls: ssl.SSLContext | None = None,
        ) -> tuple[Peer, Requests]:
            requests = Requests()
            answers = itertools.chain(replies, itertools.repeat(replies[-1] if replies else b""))

            def answer(connection: socket.socket) -> None:
                requests.append(receive(connection))
                if script:
                    script(connection)
                else:
                    connection.sendall(next(answers))

            peer = Peer(answer, tls)
            stack.callback(peer.close)
            return peer, requests

        yield start


class Internet:
    """A pretended internet: names, what they resolve to at each lookup, and which peer answers where."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.names: dict[str, list[list[str]]] = {}
        self.routes: dict[str, Peer] = {}
        self.lookups: list[str] = []
        self.connects: list[str] = []
        self.is_lying_about_peers = False
        self._public: dict[int, tuple[str, int]] = {}
        connect, getpeername = socket.socket.connect, socket.socket.getpeername

        def fake_getaddrinfo(host: str, port: int, **_: Any) -> list[Any]:
            self.lookups.append(host)
            answers = self.names.get(host)
            if answers is None:
                raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
            addresses = answers.pop(0) if len(answers) > 1 else answers[0]
            families = {4: socket.AF_INET, 6: socket.AF_INET6}
            return [
                (families[ip_address(text).version], socket.SOCK_STREAM, 6, "", (text, port))
                for text in addresses
            ]

        def fake_connect(sock: socket.socket, address: tuple[str, int]) -> None:
            self.connects.append(address[0])
            peer = self.routes.get(address[0])
            if peer is not None:
                connect(sock, ("127.0.0.1", peer.port))
                self._public[id(sock)] = address
            elif address[0].startswith("127."):
                connect(sock, address)
            else:
                raise ConnectionRefusedError(111, "Connection refused")

        def fake_getpeername(sock: socket.socket) -> Any:
            if self.is_lying_about_peers:
                return getpeername(sock)
            return self._public.get(id(sock)) or getpeername(sock)

        monkeypatch.setattr(socket, "getaddrinfo", fake_getaddrinfo)
        monkeypatch.setattr(socket.socket, "connect", fake_connect)
        monkeypatch.setattr(socket.socket, "getpeername", fake_getpeername)


@pytest.fixture
def internet(monkeypatch: pytest.MonkeyPatch) -> Internet:
    return Internet(monkeypatch)


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A self-signed certificate for shop.test and 127.0.0.1, with its key, in one PEM file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "shop.test")])
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.DNSName("shop.test"), x509.IPAddress(ip_address("127.0.0.1"))]),
            critical=False,
        )
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path_factory.mktemp("tls") / "peer.pem"
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        + made.public_bytes(serialization.Encoding.PEM)
    )
    return path


@pytest.fixture
def server_tls(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context


@pytest.fixture
def client_tls(certificate: Path) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(certificate))


# --- Requests and responses


def test_get_returns_the_response(serve: Any) -> None:
    peer, requests = serve(reply(b"hello", "Content-Type: text/plain", "X-Two: a", "X-Two: b"))
    response = Client(OPEN).get(f"{peer.url}/a%20b?q=1&r=%2F#part")
    assert (response.status, response.body, response.truncated, response.redirects) == (
        200,
        b"hello",
        False,
        (),
    )
    assert response.url == f"{peer.url}/a%20b?q=1&r=%2F"
    assert (response.headers["CONTENT-type"], response.headers["x-two"]) == ("text/plain", "a, b")
    assert len(response.headers) == 3
    assert set(response.headers) == {"content-length", "content-type", "x-two"}
    assert requests == [
        f"GET /a%20b?q=1&r=%2F HTTP/1.1\r\nHost: 127.0.0.1:{peer.port}\r\nUser-Agent: pipeline/1.0\r\n"
        "Accept: */*\r\nAccept-Encoding: gzip\r\nConnection: close\r\n\r\n".encode()
    ]


@pytest.mark.parametrize(
    ("options", "content_type", "body"),
    [
        ({"json": {"ä": [1, None]}}, "application/json", b'{"\\u00e4": [1, null]}'),
        ({"form": {"a b": "1&2", "ü": ""}}, "application/x-www-form-urlencoded", b"a+b=1%262&%C3%BC="),
        ({"body": b"\x00\xff"}, None, b"\x00\xff"),
        ({"json": {}, "headers": {"content-type": "application/ld+json"}}, "application/ld+json", b"{}"),
        ({}, None, b""),
    ],
)
def test_post_sends_the_body(
    serve: Any, options: dict[str, Any], content_type: str | None, body: bytes
) -> None:
    peer, requests = serve(reply())
    assert Client(OPEN).post(peer.url, **options).status == 200
    assert requests.line(0) == "POST / HTTP/1.1"
    assert (requests.header(0, "Content-Type"), requests.body(0)) == (content_type, body)
    assert requests.header(0, "Content-Length") == str(len(body))


def test_large_body_arrives_whole(serve: Any) -> None:
    body = bytes(range(256)) * 20_000
    peer, requests = serve(reply())
    Client(OPEN).request("put", peer.url, body=body)
    assert (requests.line(0), requests.body(0) == body) == ("PUT / HTTP/1.1", True)


def test_path_beyond_ascii_is_quoted(serve: Any) -> None:
    peer, requests = serve(reply())
    Client(OPEN).get(f"{peer.url}/ä{{}}?q=ü")
    assert requests.line(0) == "GET /%C3%A4%7B%7D?q=%C3%BC HTTP/1.1"


def test_error_status_is_a_response(serve: Any) -> None:
    peer, _ = serve(reply(b"no", status="503 Service Unavailable"))
    response = Client(OPEN).get(peer.url)
    assert (response.status, response.body) == (503, b"no")


def test_head_names_a_length_and_an_encoding_without_a_body(serve: Any) -> None:
    peer, _ = serve(reply(b"", "Content-Encoding: br", length=10 * MEBIBYTE))
    response = Client(OPEN).request("HEAD", peer.url)
    assert (response.status, response.body, response.headers["content-length"]) == (200, b"", "10485760")


def test_interim_answers_are_skipped(serve: Any) -> None:
    early = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
    peer, _ = serve(early + reply(b"real", status="201 Created"))
    response = Client(OPEN).get(peer.url)
    assert (response.status, response.body, "link" in response.headers) == (201, b"real", False)


def test_chunked_body_is_joined(serve: Any) -> None:
    peer, _ = serve(
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n"
    )
    assert Client(OPEN).get(peer.url).body == b"abcde"


def test_answer_before_the_whole_request_is_read_counts(serve: Any) -> None:
    def refuse_early(connection: socket.socket) -> None:
        connection.recv(1000)
        connection.sendall(reply(b"too big", status="413 Content Too Large"))
        # Closing on unread bytes resets the connection under the client, which is still sending.

    peer = Peer(refuse_early)
    response = Client(OPEN).post(peer.url, body=b"x" * 3 * MEBIBYTE)
    peer.close()
    assert (response.status, response.body) == (413, b"too big")


@pytest.mark.parametrize(
    "options",
    [
        {"headers": {"X-A": "1\r\nX-B: 2"}},
        {"headers": {"X-A": "1\n"}},
        {"headers": {"X-A": "\u20ac"}},
        {"headers": {"X A": "1"}},
        {"headers": {"X-A:": "1"}},
        {"headers": {"": "1"}},
        {"headers": {"Host": "other.test"}},
        {"headers": {"transfer-encoding": "chunked"}},
        {"headers": {"Content-Length": "1"}},
        {"body": b"a", "json": {}},
        {"json": {}, "form": {}},
        {"json": float("nan")},
    ],
)
def test_request_that_cannot_be_sent_is_the_callers_error(serve: Any, options: dict[str, Any]) -> None:
    peer, _ = serve(reply())
    with pytest.raises(ValueError, match=r"."):
        Client(OPEN).post(peer.url, **options)
    assert peer.connections == 0


@pytest.mark.parametrize("method", ["", "GET /", "GET\r\nX: 1", "GÈT"])
def test_method_must_be_a_token(serve: Any, method: str) -> None:
    peer, _ = serve(reply())
    with pytest.raises(ValueError, match="This is not an HTTP method"):
        Client(OPEN).request(method, peer.url)
    assert peer.connections == 0


def test_nothing_is_kept_or_taken_from_the_environment(
    serve: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    proxy, _ = serve(reply(b"from the proxy"))
    peer, requests = serve(reply(b"direct", "Set-Cookie: session=1; Path=/"))
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, proxy.url)
        monkeypatch.setenv(name.upper(), proxy.url)
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login alice password secret\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    client = Client(OPEN)
    assert [client.get(peer.url).body, client.get(peer.url).body] == [b"direct", b"direct"]
    assert proxy.connections == 0
    assert [requests.header(i, name) for i in (0, 1) for name in ("Cookie", "Authorization")] == [None] * 4


def test_threads_share_a_client() -> None:
    asked = threading.Barrier(8)

    def echo(connection: socket.socket) -> None:
        path = receive(connection).split(b" ")[1]
        # None is answered before all have asked.
        asked.wait(LONG)
        connection.sendall(reply(path))

    peer = Peer(echo)
    client = Client(OPEN)
    bodies: dict[int, bytes] = {}
    threads = [
        threading.Thread(target=lambda i=i: bodies.update({i: client.get(f"{peer.url}/{i}").body}))
        for i in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    peer.close()
    assert bodies == {i: b"/%d" % i for i in range(8)}


# --- The guard


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "127.0.0.1.",
        "127.1",
        "127.0.1",
        "127.255.255.254",
        "2130706433",
        "0x7f000001",
        "0x7f.0.0.1",
        "0x7F.1",
        "0177.0.0.1",
        "017700000001",
        "0x7f.0.0x0.01",
        "0",
        "0.0.0.0",
        "00000000.1",
        "10.1.2.3",
        "167838211",
        "172.16.0.1",
        "192.168.0.1",
        "0xc0a80001",
        "100.64.0.1",
        "100.100.100.200",
        "168.63.129.16",
        "169.254.169.254",
        "2852039166",
        "0xa9fea9fe",
        "0251.0376.0251.0376",
        "169.254.43518",
        "192.0.0.192",
        "198.18.0.1",
        "224.0.0.1",
        "255.255.255.255",
        "\uff11\uff12\uff17.\uff10.\uff10.\uff11",
        "\u2460\u2461\u2466.\u24ea.\u24ea.\u2460",
        "127\u30020\u30020\u30021",
        "127\uff0e0\uff0e0\uff0e1",
        "localhost",
        "LOCALHOST",
        "localhost.",
        "\u24dbocalhost",
        "inner.test",
        "mixed.test",
        "mapped.test",
        "zoned.test",
        "[::1]",
        "[0:0:0:0:0:0:0:1]",
        "[::]",
        "[::127.0.0.1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[::ffff:a9fe:a9fe]",
        "[64:ff9b::127.0.0.1]",
        "[64:ff9b::a9fe:a9fe]",
        "[64:ff9b:1::8.8.8.8]",
        "[2002:7f00:1::]",
        "[2001:0:7f00:1::]",
        "[fe80::1]",
        "[fe80::1%25eth0]",
        "[fe80::1%eth0]",
        "[fec0::1]",
        "[fd00:ec2::254]",
        "[ff02::1]",
        "[::1]evil.test",
        "evil.test[::1]",
        "[::1",
        "::1",
        "[127.0.0.1]",
        "[v1.fe]",
        "user@public.test",
        "user:secret@public.test",
        "@public.test",
        "public.test\uff20127.0.0.1",
        "public.test\\@127.0.0.1",
        "public.test:80@127.0.0.1",
        "public.test:0",
        "public.test:65536",
        "public.test:99999",
        "public.test:8o",
        "public.test:-1",
        "public.test:\uff18\uff10",
        "public.test:80:80",
        "public.test%00.evil.test",
        "%31%32%37.0.0.1",
        "127.0.0.1%2f",
        "public test",
        "public\t.test",
        "public.test\n",
        "public.test\r\nX: 1",
        "public..test",
        "256.1.1.1",
        "1.1.1.1.1",
        "08.1.1.1",
        "",
        ":80",
    ],
)
def test_hostile_host_is_refused_without_a_connection(internet: Internet, host: str) -> None:
    internet.names = {
        "localhost": [["::1", "127.0.0.1"]],
        "localhost.": [["127.0.0.1"]],
        "inner.test": [["10.0.0.7"]],
        "mixed.test": [[PUBLIC, "127.0.0.1"]],
        "mapped.test": [["::ffff:127.0.0.1"]],
        "zoned.test": [["fe80::1%eth0"]],
        "public.test": [[PUBLIC]],
    }
    for scheme in ("http", "https"):
        with pytest.raises(AddressRefused) as caught:
            Client(STRICT).get(f"{scheme}://{host}/")
        assert (caught.value.code, caught.value.may_have_reached) == ("address_refused", False)
    assert internet.connects == []


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "ftp://public.test/",
        "gopher://public.test:70/_",
        "javascript:alert(1)",
        "data:text/plain,hi",
        "unix:///run/docker.sock",
        "//public.test/",
        "public.test/",
        "http:/public.test/",
        "http:public.test",
        "http:///public.test/",
        " http://public.test/",
        "http://public.test/a b",
        "http://public.test/\x00",
        "http://public.test/\x7f",
        "http://public.test/" + "a" * 9000,
        "http://[",
        "",
    ],
)
def test_malformed_url_is_refused(internet: Internet, url: str) -> None:
    internet.names = {"public.test": [[PUBLIC]]}
    with pytest.raises(AddressRefused):
        Client(STRICT).get(url)
    assert (internet.lookups, internet.connects) == ([], [])


def test_userinfo_is_named_as_the_reason(internet: Internet) -> None:
    with pytest.raises(AddressRefused) as caught:
        Client(STRICT).get("http://alice:s3cret@public.test/")
    assert str(caught.value) == "A URL with a user name or password in it cannot be called."
    assert internet.lookups == []


def test_http_is_refused_on_demand(internet: Internet, serve: Any) -> None:
    peer, _ = serve(reply())
    internet.names = {"public.test": [[PUBLIC]]}
    internet.routes = {PUBLIC: peer}
    sentence = "Only https URLs can be called here."
    with pytest.raises(AddressRefused, match=sentence):
        Client(STRICT).get("http://public.test/", https_only=True)
    with pytest.raises(AddressRefused, match=sentence):
        Client(Policy(user_agent="x", allow_http=False)).get("http://public.test/")
    assert Client(STRICT).get("HTTP://public.test/").status == 200


def test_public_name_is_reached_by_its_checked_address(internet: Internet, serve: Any) -> None:
    peer, requests = serve(reply(b"hi"))
    internet.names = {"public.test.": [[PUBLIC]]}
    internet.routes = {PUBLIC: peer}
    response = Client(STRICT).get("http://Public.test.:8080/x")
    assert (response.body, response.url) == (b"hi", "http://public.test:8080/x")
    assert requests.header(0, "Host") == "public.test:8080"
    assert (internet.lookups, internet.connects) == (["public.test."], [PUBLIC])


def test_rebinding_never_reaches_loopback(internet: Internet, serve: Any) -> None:
    victim, _ = serve(reply(b"secret"))
    internet.names = {"rebind.test": [[PUBLIC], ["127.0.0.1"]]}
    with pytest.raises(ConnectFailed):
        Client(STRICT).get(f"http://rebind.test:{victim.port}/")
    assert (internet.lookups, internet.connects) == (["rebind.test"], [PUBLIC])
    with pytest.raises(AddressRefused, match=r"rebind\.test leads to 127\.0\.0\.1, which is not a public"):
        Client(STRICT).get(f"http://rebind.test:{victim.port}/")
    assert (internet.connects, victim.connections) == ([PUBLIC], 0)


def test_rebinding_between_hops_is_caught(internet: Internet, serve: Any) -> None:
    peer, requests = serve(reply(b"", "Location: /again", status="302 Found"))
    internet.names = {"rebind.test": [[PUBLIC], ["127.0.0.1"]]}
    internet.routes = {PUBLIC: peer}
    with pytest.raises(AddressRefused) as caught:
        Client(STRICT).get("http://rebind.test/", max_redirects=3)
    assert caught.value.may_have_reached is True
    assert (internet.connects, len(requests)) == ([PUBLIC], 1)


def test_connection_that_ends_up_elsewhere_is_refused(internet: Internet, serve: Any) -> None:
    peer, requests = serve(reply(b"secret"))
    internet.names = {"public.test": [[PUBLIC]]}
    internet.routes = {PUBLIC: peer}
    internet.is_lying_about_peers = True
    with pytest.raises(AddressRefused, match=f"The connection to {PUBLIC} ended up at 127.0.0.1") as caught:
        Client(STRICT).get("http://public.test/")
    assert (caught.value.may_have_reached, [bytes(r) for r in requests if r]) == (False, [])


def test_next_address_is_tried(internet: Internet, serve: Any) -> None:
    peer, _ = serve(reply(b"second"))
    internet.names = {"public.test": [[OTHER_PUBLIC, OTHER_PUBLIC, PUBLIC]]}
    internet.routes = {PUBLIC: peer}
    assert Client(STRICT).get("http://public.test/").body == b"second"
    assert internet.connects == [OTHER_PUBLIC, PUBLIC]


def test_number_of_tried_addresses_is_bounded(internet: Internet) -> None:
    internet.names = {"many.test": [[f"8.8.4.{i}" for i in range(100)]]}
    with pytest.raises(ConnectFailed):
        Client(STRICT).get("http://many.test/")
    assert internet.connects == [f"8.8.4.{i}" for i in range(6)]


def test_last_of_many_answers_is_checked_too(internet: Internet) -> None:
    internet.names = {"many.test": [[*(f"8.8.4.{i}" for i in range(100)), "10.0.0.1"]]}
    with pytest.raises(AddressRefused):
        Client(STRICT).get("http://many.test/")
    assert internet.connects == []


# --- Redirects


@pytest.mark.parametrize(
    "location",
    [
        "http://127.0.0.1:{port}/",
        "//127.0.0.1:{port}/",
        "http://2130706433:{port}/",
        "http://inner.test:{port}/",
        "http://[::ffff:127.0.0.1]:{port}/",
        "http://169.254.169.254/latest/meta-data/",
        "file:///etc/passwd",
        "http://user@public.test/",
        "http://[",
    ],
)
def test_redirect_into_the_inside_is_refused(internet: Internet, serve: Any, location: str) -> None:
    victim, _ = serve(reply(b"secret"))
    peer, requests = serve(reply(b"", f"Location: {location.format(port=victim.port)}", status="302 Found"))
    internet.names = {"public.test": [[PUBLIC]], "inner.test": [["127.0.0.1"]]}
    internet.routes = {PUBLIC: peer}
    with pytest.raises(AddressRefused) as caught:
        Client(STRICT).get("http://public.test/", max_redirects=5)
    assert caught.value.may_have_reached is True
    assert (internet.connects, len(requests), victim.connections) == ([PUBLIC], 1, 0)


def test_redirect_is_a_response_unless_followed(serve: Any) -> None:
    peer, requests = serve(reply(b"moved", "Location: /new", status="301 Moved Permanently"))
    response = Client(OPEN).get(peer.url)
    assert (response.status, response.body, response.headers["location"]) == (301, b"moved", "/new")
    assert (response.redirects, len(requests)) == ((), 1)


def test_redirects_are_followed_and_listed(serve: Any) -> None:
    peer, requests = serve(
        reply(b"", "Location: two?x=1", status="301 Moved Permanently"),
        reply(b"", "Location: /th ree/\u00e4", status="307 Temporary Redirect"),
        reply(b"here"),
    )
    response = Client(OPEN).get(f"{peer.url}/one", max_redirects=2)
    assert (response.status, response.body, response.url) == (200, b"here", f"{peer.url}/th%20ree/%C3%A4")
    assert response.redirects == ((301, f"{peer.url}/two?x=1"), (307, f"{peer.url}/th%20ree/%C3%A4"))
    assert [requests.line(i).split()[1] for i in range(3)] == ["/one", "/two?x=1", "/th%20ree/%C3%A4"]


def test_too_many_redirects(serve: Any) -> None:
    peer, requests = serve(reply(b"", "Location: /", status="302 Found"))
    with pytest.raises(TooManyRedirects, match="more than 3 times") as caught:
        Client(OPEN).get(peer.url, max_redirects=3)
    assert (caught.value.code, caught.value.may_have_reached, len(requests)) == (
        "too_many_redirects",
        True,
        4,
    )


@pytest.mark.parametrize(
    ("status", "method", "next_method"),
    [
        (301, "POST", "GET"),
        (302, "POST", "GET"),
        (303, "POST", "GET"),
        (307, "POST", "POST"),
        (308, "POST", "POST"),
        (301, "PUT", "PUT"),
        (302, "DELETE", "DELETE"),
        (303, "PUT", "GET"),
        (303, "HEAD", "HEAD"),
        (301, "HEAD", "HEAD"),
    ],
)
def test_redirect_changes_the_method_as_browsers_do(
    serve: Any, status: int, method: str, next_method: str
) -> None:
    peer, requests = serve(reply(b"", "Location: /next", status=f"{status} Moved"), reply())
    options: dict[str, Any] = {} if method == "HEAD" else {"json": {"a": 1}}
    Client(OPEN).request(method, peer.url, max_redirects=1, **options)
    assert requests.line(1) == f"{next_method} /next HTTP/1.1"
    kept = ("application/json", b'{"a": 1}') if next_method in ("POST", "PUT", "DELETE") else (None, b"")
    assert (requests.header(1, "Content-Type"), requests.body(1)) == kept


@pytest.mark.parametrize("status", [300, 304, 305])
def test_other_3xx_are_not_followed(serve: Any, status: int) -> None:
    peer, requests = serve(reply(b"", "Location: /next", status=f"{status} Other"))
    assert Client(OPEN).get(peer.url, max_redirects=5).status == status
    assert len(requests) == 1


def test_secrets_stay_with_their_origin(serve: Any) -> None:
    secrets = {
        "Authorization": "Bearer t",
        "authorization-2": "x",
        "Cookie": "a=b",
        "Webhook-Signature": "v1,x",
        "Webhook-Id": "m",
        "X-Api-Key": "k",
        "X-Hub-Signature-256": "s",
        "Proxy-Authorization": "p",
        "X-Whatever": "secret",
    }
    harmless = {"Accept": "text/html", "If-None-Match": '"1"', "User-Agent": "mine"}
    other, seen_by_other = serve(reply())
    peer, seen = serve(
        reply(b"", "Location: /same", status="307 Temporary Redirect"),
        reply(b"", f"Location: {other.url}/", status="307 Temporary Redirect"),
    )
    Client(OPEN).post(peer.url, json={}, headers={**secrets, **harmless}, max_redirects=2)
    sent = {**secrets, **harmless}
    assert {name: seen.header(1, name) for name in sent} == sent
    assert {name: seen_by_other.header(0, name) for name in sent} == dict.fromkeys(secrets) | harmless
    assert (seen_by_other.header(0, "Host"), seen_by_other.body(0)) == (f"127.0.0.1:{other.port}", b"{}")


def test_secrets_do_not_come_back_with_a_return(serve: Any) -> None:
    ports: list[int] = []

    def send_back(connection: socket.socket) -> None:
        connection.sendall(reply(b"", f"Location: http://127.0.0.1:{ports[0]}/back", status="302 Found"))

    away, _ = serve(script=send_back)
    home, seen = serve(reply(b"", f"Location: {away.url}/", status="302 Found"), reply())
    ports.append(home.port)
    Client(OPEN).get(home.url, headers={"Authorization": "t"}, max_redirects=2)
    assert [seen.line(1), seen.header(0, "Authorization"), seen.header(1, "Authorization")] == [
        "GET /back HTTP/1.1",
        "t",
        None,
    ]


# --- TLS


def test_self_signed_certificate_fails_before_anything_is_sent(
    serve: Any, server_tls: ssl.SSLContext
) -> None:
    peer, requests = serve(reply(), tls=server_tls)
    with pytest.raises(ConnectFailed, match="could not be verified: self-signed certificate") as caught:
        Client(OPEN).post(peer.url, json={})
    assert (caught.value.code, caught.value.may_have_reached, requests) == ("connect_failed", False, [])


def test_tls_speaks_to_the_name_and_not_to_the_address(
    internet: Internet, serve: Any, server_tls: ssl.SSLContext, client_tls: ssl.SSLContext
) -> None:
    asked: list[str | None] = []
    server_tls.sni_callback = lambda _sock, name, _context: asked.append(name)
    peer, requests = serve(reply(b"sold"), tls=server_tls)
    internet.names = {"shop.test": [[PUBLIC]], "shop.test.": [[PUBLIC]], "other.test": [[PUBLIC]]}
    internet.routes = {PUBLIC: peer}
    client = Client(STRICT, tls=client_tls)
    assert client.get("https://shop.test/", https_only=True).body == b"sold"
    assert client.get("https://shop.test./").body == b"sold"
    with pytest.raises(ConnectFailed, match=r"Hostname mismatch.*other\.test"):
        client.get("https://other.test/")
    assert asked == ["shop.test", "shop.test", "other.test"]
    assert [requests.header(i, "Host") for i in range(len(requests))] == ["shop.test", "shop.test"]


def test_tls_verifies_a_literal_address(
    serve: Any, server_tls: ssl.SSLContext, client_tls: ssl.SSLContext
) -> None:
    peer, _ = serve(reply(b"by address"), tls=server_tls)
    assert Client(OPEN, tls=client_tls).get(peer.url).body == b"by address"


def test_downgrading_redirect_is_refused_only_with_https_only(
    serve: Any, server_tls: ssl.SSLContext, client_tls: ssl.SSLContext
) -> None:
    plain, _ = serve(reply(b"plain"))
    peer, requests = serve(reply(b"", f"Location: {plain.url}/", status="302 Found"), tls=server_tls)
    client = Client(OPEN, tls=client_tls)
    assert client.get(peer.url, max_redirects=1).body == b"plain"
    with pytest.raises(AddressRefused, match="Only https URLs can be called here") as caught:
        client.get(peer.url, max_redirects=1, https_only=True)
    assert (caught.value.may_have_reached, plain.connections, len(requests)) == (True, 1, 2)


def test_peer_without_tls_fails_the_handshake() -> None:
    chatty = Peer(lambda connection: connection.sendall(b"SSH-2.0-OpenSSH_9.2\r\n"))
    with pytest.raises(ConnectFailed, match=r"No TLS connection to 127\.0\.0\.1 could be made") as caught:
        Client(OPEN).get(f"https://127.0.0.1:{chatty.port}/")
    chatty.close()
    assert caught.value.may_have_reached is False


# --- Deadlines


def drip(prefix: bytes, filler: bytes) -> Callable[[socket.socket], None]:
    def script(connection: socket.socket) -> None:
        connection.sendall(prefix)
        for _ in range(600):
            connection.sendall(filler)
            time.sleep(0.1)

    return script


@pytest.mark.parametrize(
    ("prefix", "filler"),
    [
        (b"", b"H"),
        (b"HTTP/1.1 200 OK\r\nX-Slow: ", b"a"),
        (b"HTTP/1.1 200 OK\r\n", b"X-Slow: a\r\n"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n", b"a"),
        (b"HTTP/1.1 200 OK\r\n\r\n", b"a"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\na\r\n"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"0"),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    ],
)
def test_dripping_server_meets_the_total_deadline(serve: Any, prefix: bytes, filler: bytes) -> None:
    peer, _ = serve(script=drip(prefix, filler))
    started = time.monotonic()
    with pytest.raises(TimedOut, match="did not answer in full within 1 seconds") as caught:
        Client(OPEN).get(peer.url, timeout=1)
    assert 0.9 < time.monotonic() - started < LONG
    assert (caught.value.code, caught.value.may_have_reached) == ("timed_out", True)


def test_silent_server_leaves_the_outcome_unknown(serve: Any) -> None:
    peer, requests = serve(script=lambda connection: time.sleep(3))
    with pytest.raises(TimedOut) as caught:
        Client(OPEN).post(peer.url, json={"publish": 1}, timeout=0.5)
    assert (caught.value.may_have_reached, requests.body(0)) == (True, b'{"publish": 1}')


def test_redirects_share_one_deadline(serve: Any) -> None:
    def slow(connection: socket.socket) -> None:
        time.sleep(0.4)
        connection.sendall(reply(b"", "Location: /", status="302 Found"))

    peer, _ = serve(script=slow)
    started = time.monotonic()
    with pytest.raises(TimedOut):
        Client(OPEN).get(peer.url, timeout=1, max_redirects=100)
    assert 0.9 < time.monotonic() - started < LONG


def test_server_that_does_not_read_meets_the_deadline() -> None:
    done = threading.Event()

    def ignore(_connection: socket.socket) -> None:
        done.wait(2 * LONG)

    peer = Peer(ignore)
    started = time.monotonic()
    with pytest.raises(TimedOut) as caught:
        Client(OPEN).post(peer.url, body=b"x" * 50 * MEBIBYTE, timeout=1, connect_timeout=0.3)
    took = time.monotonic() - started
    done.set()
    peer.close()
    assert (0.9 < took < LONG, caught.value.may_have_reached) == (True, True)


@pytest.mark.parametrize("filler", [b"", b"\x00"])
def test_slow_tls_meets_the_deadline(filler: bytes) -> None:
    def stall(connection: socket.socket) -> None:
        # The head of a TLS record of 16 KiB, which then never gets full.
        connection.sendall(b"\x16\x03\x03\x40\x00")
        for _ in range(600):
            connection.sendall(filler)
            time.sleep(0.1)

    peer = Peer(stall)
    started = time.monotonic()
    with pytest.raises(TimedOut, match="TLS handshake") as caught:
        Client(OPEN).get(f"https://127.0.0.1:{peer.port}/", timeout=1, connect_timeout=0.3)
    took = time.monotonic() - started
    peer.close()
    assert (0.9 < took < LONG, caught.value.may_have_reached) == (True, False)


def test_slow_lookup_meets_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    release = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: release.wait(2 * LONG) and [])
    started = time.monotonic()
    with pytest.raises(TimedOut, match=r"The name slow\.test was not resolved in time") as caught:
        Client(STRICT).get("http://slow.test/", timeout=1)
    took = time.monotonic() - started
    release.set()
    assert (0.9 < took < LONG, caught.value.may_have_reached) == (True, False)


def test_connect_timeout_bounds_each_attempt(internet: Internet, monkeypatch: pytest.MonkeyPatch) -> None:
    timeouts: list[int] = []

    def time_out(sock: socket.socket, _address: object) -> None:
        timeouts.append(round(sock.gettimeout() or 0))
        raise TimeoutError

    monkeypatch.setattr(socket.socket, "connect", time_out)
    internet.names = {"public.test": [[PUBLIC, OTHER_PUBLIC]]}
    with pytest.raises(TimedOut, match="did not take the connection in time") as caught:
        Client(STRICT).get("http://public.test/", timeout=20, connect_timeout=3)
    assert (timeouts, caught.value.may_have_reached) == ([3, 3], False)
    with pytest.raises(TimedOut):
        Client(STRICT).get("http://public.test/", timeout=2, connect_timeout=3)
    assert timeouts == [3, 3, 2, 2]


def test_spent_timeout_sends_nothing(serve: Any) -> None:
    peer, requests = serve(reply())
    with pytest.raises(TimedOut) as caught:
        Client(OPEN).get(peer.url, timeout=0)
    assert (caught.value.may_have_reached, requests) == (False, [])


# --- Sizes and encodings


def chunk(body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)


def until_close(body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\n\r\n" + body


@pytest.mark.parametrize("frame", [reply, chunk, until_close])
def test_limit_is_exact(serve: Any, frame: Callable[[bytes], bytes]) -> None:
    body = bytes(range(250)) * 4
    peer, _ = serve(frame(body))
    client = Client(OPEN)
    full = client.get(peer.url, max_bytes=1000)
    assert (full.body, full.truncated) == (body, False)
    cut = client.get(peer.url, max_bytes=999, truncate=True)
    assert (cut.body, cut.truncated) == (body[:999], True)
    exact = client.get(peer.url, max_bytes=1000, truncate=True)
    assert (exact.body, exact.truncated) == (body, False)
    with pytest.raises(ResponseTooLarge, match="larger than 999 bytes") as caught:
        client.get(peer.url, max_bytes=999)
    assert (caught.value.code, caught.value.may_have_reached) == ("response_too_large", True)


def test_announced_size_is_refused_before_it_is_read(serve: Any) -> None:
    peer, _ = serve(script=drip(reply(b"", length=6 * MEBIBYTE), b"a"))
    # Else the time would be over first: the body never ends.
    with pytest.raises(ResponseTooLarge):
        Client(OPEN).get(peer.url, timeout=5)


def test_truncated_mode_stops_reading_an_endless_body(serve: Any) -> None:
    peer, _ = serve(script=drip(until_close(b"x" * 2000), b"a"))
    response = Client(OPEN).get(peer.url, max_bytes=1000, truncate=True, timeout=5)
    assert (response.body, response.truncated) == (b"x" * 1000, True)


def raw_deflate(body: bytes) -> bytes:
    engine = zlib.compressobj(wbits=-15)
    return engine.compress(body) + engine.flush()


@pytest.mark.parametrize(
    ("encoding", "encode"),
    [
        ("gzip", gzip.compress),
        ("X-GZIP", gzip.compress),
        ("deflate", zlib.compress),
        ("deflate", raw_deflate),
        ("gzip", lambda body: gzip.compress(body[:10]) + gzip.compress(b"") + gzip.compress(body[10:])),
        ("gzip", lambda body: gzip.compress(body) + b"\x00" * 512),
        ("identity", bytes),
    ],
)
def test_encoded_body_is_decoded(serve: Any, encoding: str, encode: Callable[[bytes], bytes]) -> None:
    body = b"".join(b"%d," % i for i in range(100_000))
    peer, _ = serve(reply(encode(body), f"Content-Encoding: {encoding}"))
    response = Client(OPEN).get(peer.url)
    assert response.body == body
    cut = Client(OPEN).get(peer.url, max_bytes=5, truncate=True)
    assert (cut.body, cut.truncated) == (body[:5], True)


def test_gzip_members_split_at_every_chunk_are_joined(serve: Any) -> None:
    # Members of odd sizes put their two-byte mark across the border of what is read at once.
    parts = [b"%d" % i * (i % 7) for i in range(5000)]
    peer, _ = serve(reply(b"".join(gzip.compress(part) for part in parts), "Content-Encoding: gzip"))
    assert Client(OPEN).get(peer.url).body == b"".join(parts)


def test_deflate_body_that_ends_near_the_border_of_a_piece_is_whole(serve: Any) -> None:
    # zlib may hold the rest of a match back when its output is full and its input is used up.
    lengths = range(65_530, 65_830, 3)
    peer, _ = serve(*(reply(raw_deflate(bytes(n)), "Content-Encoding: deflate") for n in lengths))
    client = Client(OPEN)
    assert [len(client.get(peer.url).body) for _ in lengths] == list(lengths)


@pytest.fixture(scope="session")
def bomb() -> bytes:
    """500 MB of zeros in about 500 kB."""
    engine = zlib.compressobj(9, wbits=31)
    zeros = bytes(1_000_000)
    return b"".join(engine.compress(zeros) for _ in range(500)) + engine.flush()


@pytest.mark.parametrize("truncate", [False, True])
def test_gzip_bomb_stays_within_bounded_memory(serve: Any, bomb: bytes, truncate: bool) -> None:
    assert 400_000 < len(bomb) < 600_000
    peer, _ = serve(reply(bomb, "Content-Encoding: gzip"))
    tracemalloc.start()
    try:
        if truncate:
            response = Client(OPEN).get(peer.url, truncate=True)
            assert (len(response.body), response.truncated) == (5 * MEBIBYTE, True)
        else:
            with pytest.raises(ResponseTooLarge) as caught:
                Client(OPEN).get(peer.url)
            assert caught.value.may_have_reached is True
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 16 * MEBIBYTE


def test_endless_empty_gzip_members_are_refused(serve: Any) -> None:
    def endless(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n")
        for _ in range(10_000):
            connection.sendall(gzip.compress(b"") * 100)

    peer, _ = serve(script=endless)
    with pytest.raises(ResponseTooLarge):
        Client(OPEN).get(peer.url, max_bytes=1000, timeout=10)


# --- What is no response


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"\r\n\r\n",
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"<html>no headers</html>",
        b"HTTP/1.1 abc OK\r\n\r\n",
        b"HTTP/1.1 99 Low\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"a" * 70_000,
        b"HTTP/1.1 200 OK\r\n" + b"X: a\r\n" * 200 + b"\r\n",
        reply(b"short", length=100),
        reply(gzip.compress(b"cut off" * 100)[:-9], "Content-Encoding: gzip"),
        reply(b"not gzip at all", "Content-Encoding: gzip"),
        reply(b"\xff\xff\xff", "Content-Encoding: deflate"),
        reply(b"brotli?", "Content-Encoding: br"),
        reply(gzip.compress(gzip.compress(b"x")), "Content-Encoding: gzip, gzip"),
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n" + b"a" * 1000,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\nabc",
        b"HTTP/1.1 103 Early Hints\r\n\r\n" * 20,
    ],
    ids=range(19),
)
def test_what_is_no_complete_response_is_a_bad_response(serve: Any, answer: bytes) -> None:
    peer, _ = serve(answer)
    with pytest.raises(BadResponse) as caught:
        Client(OPEN).get(peer.url, timeout=5)
    assert (caught.value.code, caught.value.may_have_reached) == ("bad_response", True)


def test_chunk_of_negative_size_does_not_fill_the_memory() -> None:
    def flood(connection: socket.socket) -> None:
        receive(connection)
        connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n")
        piece = bytes(MEBIBYTE)
        for _ in range(100):
            connection.sendall(piece)

    peer = Peer(flood)
    tracemalloc.start()
    with pytest.raises(BadResponse):
        Client(OPEN).get(peer.url)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    peer.close()
    assert peak < 8 * MEBIBYTE


# --- Whether the request may have reached the server


def test_refused_connection_has_reached_nobody() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(ConnectFailed) as caught:
        Client(OPEN).post(f"http://127.0.0.1:{port}/", json={})
    assert str(caught.value) == f"No connection to 127.0.0.1, port {port}: Connection refused."
    assert caught.value.may_have_reached is False


def test_unknown_name_has_reached_nobody(internet: Internet) -> None:
    with pytest.raises(ConnectFailed) as caught:
        Client(STRICT).get("http://nowhere.test/")
    assert str(caught.value) == "No site was found under nowhere.test. Check the address for typing errors."
    assert caught.value.may_have_reached is False


def test_reset_after_sending_leaves_the_outcome_unknown(serve: Any) -> None:
    def reset(connection: socket.socket) -> None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()

    peer, requests = serve(script=reset)
    with pytest.raises(BadResponse) as caught:
        Client(OPEN).post(peer.url, json={"publish": 1})
    assert (caught.value.may_have_reached, requests.body(0)) == (True, b'{"publish": 1}')


def test_failure_behind_a_redirect_has_reached_the_first_server(serve: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    peer, _ = serve(reply(b"", f"Location: http://127.0.0.1:{port}/", status="307 Temporary Redirect"))
    with pytest.raises(ConnectFailed) as caught:
        Client(OPEN).post(peer.url, json={}, max_redirects=1)
    assert caught.value.may_have_reached is True


def test_errors_survive_a_queue() -> None:
    error = pickle.loads(pickle.dumps(TimedOut("Late.", may_have_reached=True)))
    assert (type(error), str(error), error.may_have_reached) == (TimedOut, "Late.", True)
    assert [e.may_have_reached for e in (OutboundError("x"), BadResponse("y"))] == [False, False]


def test_sentences_do_not_tell_the_secrets_of_a_url(internet: Internet) -> None:
    internet.names = {"inner.test": [["10.0.0.1"]]}
    with pytest.raises(AddressRefused) as caught:
        Client(STRICT).get("http://inner.test/hook/s3cret?token=s3cret")
    assert str(caught.value) == "inner.test leads to 10.0.0.1, which is not a public internet address."


def test_package_imports_no_django() -> None:
    code = (
        "import sys, config.core.http_client; "
        "print([m for m in ('django', 'celery', 'rest_framework', 'accounts', 'pipeline') if m in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout, result.stderr) == (0, "[]\n", "")


def test_json_is_what_the_peer_reads(serve: Any) -> None:
    peer, requests = serve(reply(json.dumps({"ok": True}).encode()))
    response = Client(OPEN).post(peer.url, json={"text": "\u2764 \u00fc"})
    assert (json.loads(requests.body(0)), json.loads(response.body)) == (
        {"text": "\u2764 \u00fc"},
        {"ok": True},
    )
