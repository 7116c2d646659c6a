"""Which addresses may be called, and raw sockets under the same guard."""

from __future__ import annotations

import socket
import threading
import time
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any

import pytest

from config.core.http_client import AddressRefused, ConnectFailed, Policy, TimedOut, connect, is_allowed
from config.core.http_client.guard import MAX_LOOKUPS_AT_ONCE, read_host

if TYPE_CHECKING:
    from collections.abc import Iterator

STRICT = Policy(user_agent="test")
LOOPBACK = Policy(user_agent="test", allow_loopback=True)
PRIVATE = Policy(user_agent="test", allow_private=True)
BOTH = Policy(user_agent="test", allow_loopback=True, allow_private=True)


@pytest.mark.parametrize(
    ("text", "allowed_by"),
    [
        # Public space, with the neighbours of refused networks.
        ("8.8.8.8", "strict loopback private"),
        ("1.0.0.0", "strict loopback private"),
        ("9.255.255.255", "strict loopback private"),
        ("11.0.0.0", "strict loopback private"),
        ("100.63.255.255", "strict loopback private"),
        ("100.128.0.0", "strict loopback private"),
        ("126.255.255.255", "strict loopback private"),
        ("128.0.0.0", "strict loopback private"),
        ("168.63.129.15", "strict loopback private"),
        ("168.63.129.17", "strict loopback private"),
        ("169.253.255.255", "strict loopback private"),
        ("169.255.0.0", "strict loopback private"),
        ("172.15.255.255", "strict loopback private"),
        ("172.32.0.0", "strict loopback private"),
        ("192.0.1.0", "strict loopback private"),
        ("192.0.3.0", "strict loopback private"),
        ("192.167.255.255", "strict loopback private"),
        ("192.169.0.0", "strict loopback private"),
        ("198.17.255.255", "strict loopback private"),
        ("198.20.0.0", "strict loopback private"),
        ("223.255.255.255", "strict loopback private"),
        ("2001:200::1", "strict loopback private"),
        ("2606:4700:4700::1111", "strict loopback private"),
        ("2a00:1450:4001::1", "strict loopback private"),
        ("::ffff:8.8.8.8", "strict loopback private"),
        ("64:ff9b::808:808", "strict loopback private"),
        ("2002:808:808::1", "strict loopback private"),
        # Only with the operator's switches.
        ("127.0.0.1", "loopback"),
        ("127.255.255.255", "loopback"),
        ("::1", "loopback"),
        ("::ffff:127.0.0.1", "loopback"),
        ("10.0.0.0", "private"),
        ("10.255.255.255", "private"),
        ("172.16.0.1", "private"),
        ("172.31.255.255", "private"),
        ("192.168.1.1", "private"),
        ("fc00::1", "private"),
        ("fdff::1", "private"),
        # Never.
        ("0.0.0.0", ""),
        ("0.255.255.255", ""),
        ("100.64.0.0", ""),
        ("100.127.255.255", ""),
        ("100.100.100.200", ""),
        ("168.63.129.16", ""),
        ("169.254.0.1", ""),
        ("169.254.169.254", ""),
        ("192.0.0.1", ""),
        ("192.0.0.192", ""),
        ("192.0.2.1", ""),
        ("192.88.99.1", ""),
        ("198.18.0.0", ""),
        ("198.19.255.255", ""),
        ("198.51.100.1", ""),
        ("203.0.113.1", ""),
        ("224.0.0.1", ""),
        ("239.255.255.255", ""),
        ("240.0.0.1", ""),
        ("255.255.255.255", ""),
        ("::", ""),
        ("::2", ""),
        ("::127.0.0.1", ""),
        ("::10.0.0.1", ""),
        ("::ffff:10.0.0.1", ""),
        ("::ffff:169.254.169.254", ""),
        ("::ffff:168.63.129.16", ""),
        ("::ffff:0:127.0.0.1", ""),
        ("64:ff9b::7f00:1", ""),
        ("64:ff9b::a9fe:a9fe", ""),
        ("64:ff9b::a00:1", ""),
        ("64:ff9b:1::808:808", ""),
        ("64:ff9b:1::7f00:1", ""),
        ("2002:7f00:1::", ""),
        ("2002:a00:1::1", ""),
        ("2002:a9fe:a9fe::1", ""),
        ("100::1", ""),
        ("2001::1", ""),
        ("2001:0:4136:e378:8000:63bf:3fff:fdd2", ""),
        ("2001:20::1", ""),
        ("2001:1ff:ffff::1", ""),
        ("2001:db8::1", ""),
        ("3fff::1", ""),
        ("3fff:fff::1", ""),
        ("4000::1", ""),
        ("5f00::1", ""),
        ("fe80::1", ""),
        ("fe80::1%eth0", ""),
        ("2606:4700::1%eth0", ""),
        ("fec0::1", ""),
        ("ff02::1", ""),
        ("fd00:ec2::254", ""),
        ("fd00:ec2::23", ""),
        ("fd20:ce::254", ""),
        ("fd00:c1::a9fe:a9fe", ""),
        ("fd00:42::42", ""),
    ],
)
def test_address_is_allowed_by_exactly_these_policies(text: str, allowed_by: str) -> None:
    policies = {"strict": STRICT, "loopback": LOOPBACK, "private": PRIVATE}
    assert [
        name for name, policy in policies.items() if is_allowed(ip_address(text), policy)
    ] == allowed_by.split()
    assert is_allowed(ip_address(text), BOTH) is bool(allowed_by)


@pytest.mark.parametrize(
    ("text", "name", "address"),
    [
        ("example.com", "example.com", None),
        ("EXAMPLE.com.", "example.com.", None),
        ("bücher.example", "xn--bcher-kva.example", None),
        ("my_host.example", "my_host.example", None),
        ("1e100.net", "1e100.net", None),
        ("8.8.8.8", "8.8.8.8", "8.8.8.8"),
        ("127.1", "127.0.0.1", "127.0.0.1"),
        ("127.0.0.1.", "127.0.0.1", "127.0.0.1"),
        ("2130706433", "127.0.0.1", "127.0.0.1"),
        ("0x7F000001", "127.0.0.1", "127.0.0.1"),
        ("0x7f.1", "127.0.0.1", "127.0.0.1"),
        ("0177.0.0.1", "127.0.0.1", "127.0.0.1"),
        ("010.8.8.8", "8.8.8.8", "8.8.8.8"),
        ("0", "0.0.0.0", "0.0.0.0"),
        ("\uff11\uff12\uff17.0.0.1", "127.0.0.1", "127.0.0.1"),
        ("127\u30020\u30020\u30021", "127.0.0.1", "127.0.0.1"),
        ("0:0:0:0:0:0:0:1", "::1", "::1"),
    ],
)
def test_host_is_read_as_the_resolver_would(text: str, name: str, address: str | None) -> None:
    host = read_host(text)
    assert (host.name, host.address) == (name, address and ip_address(address))


@pytest.mark.parametrize(
    "text",
    [
        "",
        ".",
        "..",
        "a..b",
        ".example.com",
        "256.256.256.256",
        "1.2.3.4.5",
        "08.8.8.8",
        "4294967296",
        "1.2.3.0x",
        "a b",
        "a%2eb",
        "fe80::1%eth0",
        "fe80::1%25eth0",
        ":::1",
        "1.2.3.4:80",
        "a" * 64,
        "a." * 127 + "a",
        "\u00fc" * 300,
        "\u2260.example",
        "exa\u200bmple\u0000.com",
    ],
)
def test_host_that_is_no_host_is_refused(text: str) -> None:
    with pytest.raises(AddressRefused) as caught:
        read_host(text)
    assert caught.value.may_have_reached is False


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(5)
        yield server


def test_connect_reaches_an_allowed_peer(listener: socket.socket) -> None:
    with connect("localhost", listener.getsockname()[1], timeout=3, policy=LOOPBACK) as sock:
        accepted, _ = listener.accept()
        with accepted:
            accepted.sendall(b"220 ready")
            assert (sock.recv(9), sock.gettimeout()) == (b"220 ready", 3)


def test_connect_takes_ipv6_with_and_without_brackets() -> None:
    for host in ("[fc00::1]", "fc00::1"):
        with pytest.raises(AddressRefused, match="fc00::1 leads to fc00::1, which is not a public"):
            connect(host, 25, timeout=1, policy=STRICT)


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.1", "::1", "10.0.0.1"])
def test_connect_refuses_an_inner_peer(host: str, listener: socket.socket) -> None:
    listener.setblocking(False)
    with pytest.raises(AddressRefused):
        connect(host, listener.getsockname()[1], timeout=1, policy=STRICT)
    with pytest.raises(BlockingIOError):
        listener.accept()


@pytest.mark.parametrize("port", [0, -1, 65536])
def test_connect_refuses_an_impossible_port(port: int) -> None:
    with pytest.raises(AddressRefused, match=f"Port {port} cannot be connected to"):
        connect("127.0.0.1", port, timeout=1, policy=LOOPBACK)


def test_connect_says_when_nobody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(ConnectFailed, match=f"No connection to 127.0.0.1, port {port}: Connection refused"):
        connect("127.0.0.1", port, timeout=1, policy=LOOPBACK)


def test_connect_gives_up_on_a_silent_peer(monkeypatch: pytest.MonkeyPatch) -> None:
    timeouts: list[float | None] = []

    def time_out(sock: socket.socket, _address: object) -> None:
        timeouts.append(sock.gettimeout())
        raise TimeoutError

    monkeypatch.setattr(socket.socket, "connect", time_out)
    with pytest.raises(TimedOut) as caught:
        connect("8.8.8.8", 25, timeout=2, policy=STRICT)
    assert caught.value.may_have_reached is False
    assert [round(timeout or 0) for timeout in timeouts] == [2]


def test_lookups_that_hang_are_bounded_in_time_and_number(monkeypatch: pytest.MonkeyPatch) -> None:
    release = threading.Event()
    lookups: list[str] = []

    def hang(host: str, *_: Any, **__: Any) -> list[Any]:
        lookups.append(host)
        release.wait(60)
        return []

    monkeypatch.setattr(socket, "getaddrinfo", hang)
    errors: list[Exception] = []

    def call() -> None:
        try:
            connect("slow.test", 25, timeout=0.5, policy=STRICT)
        except TimedOut as error:
            errors.append(error)

    threads = [threading.Thread(target=call) for _ in range(MAX_LOOKUPS_AT_ONCE + 8)]
    started = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    took = time.monotonic() - started
    release.set()
    assert len(errors) == MAX_LOOKUPS_AT_ONCE + 8
    assert len(lookups) == MAX_LOOKUPS_AT_ONCE
    assert 0.4 < took < 20

    # The permits come back when the resolver does.
    with pytest.raises(ConnectFailed, match=r"No site was found under slow\.test\."):
        connect("slow.test", 25, timeout=5, policy=STRICT)


def test_lookup_without_a_thread_fails_and_gives_its_permit_back(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_thread: threading.Thread) -> None:
        message = "can't start new thread"
        raise RuntimeError(message)

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", fail)
        for _ in range(MAX_LOOKUPS_AT_ONCE + 1):
            with pytest.raises(ConnectFailed, match="this process can start no more threads"):
                connect("any.test", 25, timeout=5, policy=STRICT)
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: [(2, 1, 6, "", ("10.0.0.1", 25))])
    with pytest.raises(AddressRefused):
        connect("any.test", 25, timeout=5, policy=STRICT)
