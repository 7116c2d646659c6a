"""Decides which addresses may be called, and connects sockets to allowed ones only."""

from __future__ import annotations

import queue
import re
import socket
import threading
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from time import monotonic

import idna

from config.core.http_client.errors import AddressRefused, ConnectFailed, NameNotFound, TimedOut

Address = IPv4Address | IPv6Address

MAX_ADDRESSES_TRIED = 6
"""The most addresses of one name that are tried."""
MAX_LOOKUPS_AT_ONCE = 32
"""The most lookups at once in a process; others wait until their deadlines."""
MAX_PORT = 65535
MAX_NAME_LENGTH = 253
"""The most characters of a host name, without its final dot."""

_LOOPBACK_V4 = IPv4Network("127.0.0.0/8")
_LOOPBACK_V6 = IPv6Address("::1")
_PRIVATE_V4 = (IPv4Network("10.0.0.0/8"), IPv4Network("172.16.0.0/12"), IPv4Network("192.168.0.0/16"))
_PRIVATE_V6 = IPv6Network("fc00::/7")

# The IANA registry of special-purpose addresses (RFC 6890), and what it leaves out: 6to4 relays (RFC 7526),
# multicast, and the two clouds whose metadata services sit at public-looking or shared addresses.
_REFUSED_V4 = tuple(
    IPv4Network(text)
    for text in (
        "0.0.0.0/8",
        "100.64.0.0/10",  # holds 100.100.100.200, the metadata service of Alibaba Cloud
        "168.63.129.16/32",  # Azure's platform address, inside public space
        "169.254.0.0/16",  # holds 169.254.169.254, the metadata service of most clouds
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",
        "240.0.0.0/4",
    )
)
# Metadata and credential services inside fc00::/7: refused even to an operator who allows private addresses.
_METADATA_V6 = (
    IPv6Network("fd00:ec2::/32"),  # Amazon
    IPv6Network("fd20:ce::/32"),  # Google
    IPv6Network("fd00:c1::/32"),  # Oracle
    IPv6Network("fd00:42::/32"),  # Scaleway
)
# Only 2000::/3 is assigned as global unicast, so everything else is refused without being listed.
_GLOBAL_V6 = IPv6Network("2000::/3")
_REFUSED_V6 = (IPv6Network("2001::/23"), IPv6Network("2001:db8::/32"), IPv6Network("3fff::/20"))
# Networks whose addresses carry an IPv4 address, with the number of bits to its right. The local NAT64 prefix
# 64:ff9b:1::/48 is not among them: it isn't globally routable, whatever it carries.
_EMBEDDING_V6 = ((IPv6Network("::/96"), 0), (IPv6Network("64:ff9b::/96"), 0), (IPv6Network("2002::/16"), 80))

# Labels with dots between them, such as `www.example.org` or `my_site.example.org.`.
_NAME = re.compile(r"[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*\.?")
# The last label of an address in numbers, such as the `1` of `127.1` or `0x7f000001`.
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")


@dataclass(frozen=True, kw_only=True)
class Policy:
    """The addresses that the operator allows; `allow_loopback` and `allow_private` are for development."""

    allow_loopback: bool = False
    allow_private: bool = False
    allow_http: bool = True
    user_agent: str


@dataclass(frozen=True)
class Deadline:
    """The moment (by `monotonic()`) until which everything must be done, and the seconds that were allowed."""

    at: float
    seconds: float

    @classmethod
    def after(cls, seconds: float) -> Deadline:
        """Return the deadline that is `seconds` from now."""
        return cls(monotonic() + seconds, seconds)

    def left(self) -> float:
        """Return the seconds left.

        Raises `TimeoutError` if none are, because 0 would tell a socket not to block.
        """
        seconds_left = self.at - monotonic()
        if seconds_left <= 0:
            raise TimeoutError
        return seconds_left


@dataclass(frozen=True)
class Host:
    """A host of a URL: `name` is for DNS, the Host header and SNI; `address` is set if it was a literal."""

    name: str
    address: Address | None

    @property
    def bare(self) -> str:
        """The name without the final dot of an absolute name, which certificates and servers don't know."""
        return self.name.removesuffix(".")

    @property
    def shown(self) -> str:
        """The name as people write it, in the script of its language."""
        try:
            return idna.decode(self.bare)
        except UnicodeError:
            return self.bare


def is_allowed(address: IPv4Address | IPv6Address, policy: Policy) -> bool:
    """Return whether this address may be connected to: it is globally routable, or the policy allows it."""
    if isinstance(address, IPv6Address):
        return _is_allowed_v6(address, policy)
    if address in _LOOPBACK_V4:
        return policy.allow_loopback
    if any(address in network for network in _PRIVATE_V4):
        return policy.allow_private
    return not any(address in network for network in _REFUSED_V4)


def _is_allowed_v6(address: IPv6Address, policy: Policy) -> bool:
    """Return whether the address may be connected to; one that carries an IPv4 address is judged by that."""
    # A zone id only makes sense on a link, and links are not the public internet.
    if address.scope_id is not None or any(address in network for network in _METADATA_V6):
        return False
    if address == _LOOPBACK_V6:
        return policy.allow_loopback
    if address in _PRIVATE_V6:
        return policy.allow_private
    mapped = address.ipv4_mapped
    if mapped is not None:
        return _is_public_v4(mapped) or (policy.allow_loopback and mapped in _LOOPBACK_V4)
    for network, shift in _EMBEDDING_V6:
        if address in network:
            return _is_public_v4(IPv4Address((int(address) >> shift) & 0xFFFFFFFF))
    return address in _GLOBAL_V6 and not any(address in network for network in _REFUSED_V6)


def _is_public_v4(address: IPv4Address) -> bool:
    return is_allowed(address, Policy(user_agent=""))


def read_host(text: str) -> Host:
    """Read a host name or an address in any form that getaddrinfo would take, without asking DNS.

    IPv4 in decimal, hexadecimal, octal or short form becomes the address that the C library makes of it, so that
    the decision about it doesn't depend on the platform's resolver. `text` has an IPv6 address without its
    brackets. Raises `AddressRefused` for a text that is neither a valid name nor an address.
    """
    if ":" in text:
        try:
            # ipaddress accepts a zone id, which only a link-local address could need.
            address = IPv6Address("" if "%" in text else text)
        except ValueError as error:
            message = "The host is not a valid IPv6 address; zone ids are not accepted."
            raise AddressRefused(message) from error
        return Host(str(address), address)
    # The length is checked first, because encoding a very long name takes quadratic time.
    name = text if len(text) <= MAX_NAME_LENGTH + 1 else ""
    if not name.isascii():
        try:
            name = idna.encode(name, uts46=True).decode("ascii")
        except UnicodeError as error:
            message = "The host is not a valid international domain name."
            raise AddressRefused(message) from error
    name = name.lower()
    bare = name.removesuffix(".")
    if _NAME.fullmatch(name) is None or len(bare) > MAX_NAME_LENGTH:
        message = "The host is not a valid name or address."
        raise AddressRefused(message)
    if _NUMBER.fullmatch(bare.rpartition(".")[2]):
        try:
            literal = IPv4Address(socket.inet_aton(bare))
        except OSError as error:
            message = "The host ends in a number, but it is not a valid IPv4 address."
            raise AddressRefused(message) from error
        return Host(str(literal), literal)
    return Host(name, None)


def connect(host: str, port: int, *, timeout: float, policy: Policy) -> socket.socket:
    """Connect a raw socket under the same guard as HTTP; `timeout` covers the lookup and all attempts.

    The socket has `timeout`, in seconds, set for each operation; a deadline over several is the caller's. Raises
    `AddressRefused` for a host or port that may not be called, `ConnectFailed` (`NameNotFound`) if there is no
    connection, and `TimedOut` if that takes too long.
    """
    sock = open_socket(
        read_host(host.removeprefix("[").removesuffix("]")),
        port,
        deadline=Deadline.after(timeout),
        connect_timeout=timeout,
        policy=policy,
    )
    sock.settimeout(timeout)
    return sock


def open_socket(
    host: Host, port: int, *, deadline: Deadline, connect_timeout: float, policy: Policy
) -> socket.socket:
    """Look the host up once, check every answer, and connect to the first address that takes the connection.

    At most `MAX_ADDRESSES_TRIED` are tried, each for `connect_timeout` seconds within the deadline. Raises as
    `connect` does.
    """
    if not 0 < port <= MAX_PORT:
        message = f"Port {port} cannot be connected to."
        raise AddressRefused(message)
    addresses = _resolve(host, port, deadline)
    for address in addresses:
        # One forbidden answer refuses the whole name: an honest name has no reason to mix them.
        if not is_allowed(address, policy):
            message = f"{host.bare} leads to {address}, which is not a public internet address."
            raise AddressRefused(message)
    failure: OSError | None = None
    for address in addresses[:MAX_ADDRESSES_TRIED]:
        try:
            return _connect_to(address, port, min(connect_timeout, deadline.left()))
        except OSError as error:
            failure = error
    if isinstance(failure, TimeoutError):
        message = f"{host.bare} did not take the connection in time."
        raise TimedOut(message) from failure
    reason = failure.strerror if failure is not None and failure.strerror else "no address answered"
    message = f"No connection to {host.bare}, port {port}: {reason}."
    raise ConnectFailed(message) from failure


def _connect_to(address: Address, port: int, timeout: float) -> socket.socket:
    """Connect to an address. Raises `OSError` if that fails, `AddressRefused` if it ended up elsewhere."""
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.settimeout(timeout)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.connect((str(address), port))
        _check_peer(sock, address)
    except BaseException:
        # Whatever went wrong, an interrupt included, the descriptor must not leak.
        sock.close()
        raise
    return sock


def _check_peer(sock: socket.socket, address: Address) -> None:
    """Raise `AddressRefused` if the socket is connected to another address."""
    peer = ip_address(sock.getpeername()[0])
    # A layer between (a patched socket, a SOCKS wrapper) could have led the connection elsewhere.
    if peer != address:
        message = f"The connection to {address} ended up at {peer}."
        raise AddressRefused(message)


_UNKNOWN_NAMES = frozenset(
    getattr(socket, name) for name in ("EAI_NONAME", "EAI_NODATA") if hasattr(socket, name)
)
"""The resolver's errors for a name that doesn't exist, rather than for a name server that doesn't answer."""

# getaddrinfo can't be interrupted, so a lookup that outlives its deadline keeps its thread until the system's
# resolver gives up. The semaphore keeps a dead name server from filling the process with such threads.
_lookups = threading.BoundedSemaphore(MAX_LOOKUPS_AT_ONCE)


def _resolve(host: Host, port: int, deadline: Deadline) -> list[Address]:
    """Return the addresses of the host, in the resolver's order.

    Raises `NameNotFound` if it has none, `TimedOut` after the deadline, and `ConnectFailed` for other failures.
    """
    if host.address is not None:
        return [host.address]
    answers: queue.SimpleQueue[list[str] | Exception] = queue.SimpleQueue()

    def look_up() -> None:
        try:
            results = socket.getaddrinfo(host.name, port, type=socket.SOCK_STREAM)
            answers.put([str(sockaddr[0]) for *_, sockaddr in results])
        except Exception as error:  # noqa: BLE001  this is the edge of a thread: the caller must hear of it
            answers.put(error)
        finally:
            _lookups.release()

    timeout_message = f"The name {host.bare} was not resolved in time."
    try:
        if not _lookups.acquire(timeout=deadline.left()):
            raise TimedOut(timeout_message)
        try:
            threading.Thread(target=look_up, name="outbound-lookup", daemon=True).start()
        except RuntimeError as error:
            # No thread was started, so nothing else will release the permit.
            _lookups.release()
            message = "The name could not be looked up: this process can start no more threads."
            raise ConnectFailed(message) from error
        answer = answers.get(timeout=deadline.left())
    except (TimeoutError, queue.Empty) as error:
        raise TimedOut(timeout_message) from error
    if isinstance(answer, socket.gaierror) and answer.errno in _UNKNOWN_NAMES:
        raise NameNotFound(host.shown) from answer
    if isinstance(answer, Exception):
        message = f"The name {host.bare} could not be resolved."
        raise ConnectFailed(message) from answer
    if not answer:
        raise NameNotFound(host.shown)
    return list(dict.fromkeys(ip_address(text) for text in answer))
