"""A real SMTP server on loopback, which answers by a script and keeps what it took."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from email import message_from_bytes
from email.policy import default
from typing import TYPE_CHECKING, Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult

if TYPE_CHECKING:
    from email.message import EmailMessage

PASSWORD = "a-password-of-the-server"


@dataclass
class Taken:
    sender: str
    recipient: str
    raw: bytes
    session: int

    @property
    def message(self) -> EmailMessage:
        return message_from_bytes(self.raw, policy=default)  # type: ignore[return-value]


@dataclass
class MailServer:
    """`at_rcpt` and `at_end` map an address to the reply that it gets; `DROP` closes the connection in its place.

    A list is used up reply by reply; after it all is well.
    """

    at_mail: list[str] = field(default_factory=list)
    at_rcpt: dict[str, Any] = field(default_factory=dict)
    at_end: dict[str, Any] = field(default_factory=dict)
    taken: list[Taken] = field(default_factory=list)
    refuses_login: str = ""
    sessions: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)
    controller: Any = None
    tls: Any = None

    # --- What aiosmtpd calls ---

    async def handle_EHLO(self, server, session, envelope, hostname, responses):  # noqa: N802
        with self.lock:
            self.sessions += 1
            session.number = self.sessions
        session.host_name = hostname
        return responses

    async def handle_MAIL(self, server, session, envelope, address, options):  # noqa: N802
        if self.at_mail:
            return self.at_mail.pop(0)
        envelope.mail_from = address
        return "250 OK"

    async def handle_RCPT(self, server, session, envelope, address, options):  # noqa: N802
        reply = _next(self.at_rcpt, address)
        if reply:
            return reply
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):  # noqa: N802
        (address,) = envelope.rcpt_tos
        reply = _next(self.at_end, address)
        if reply and reply not in {"DROP", "TAKE_AND_DROP"}:
            return reply
        if reply != "DROP":
            with self.lock:
                self.taken.append(
                    Taken(envelope.mail_from, address, envelope.original_content, session.number)
                )
        if reply:
            server.transport.abort()
        return "250 2.0.0 OK"

    def authenticate(self, server, session, envelope, mechanism, data):
        if self.refuses_login:
            return AuthResult(success=False, handled=False, message=self.refuses_login)
        is_right = data.password == PASSWORD.encode()
        return AuthResult(success=is_right, handled=False)

    # --- What tests call ---

    def start(self) -> None:
        server = self

        class Open(Controller):
            def factory(self) -> SMTP:
                return SMTP(
                    server,
                    authenticator=server.authenticate,
                    auth_require_tls=server.tls is not None,
                    tls_context=server.tls,
                    data_size_limit=None,
                )

        self.controller = Open(self, hostname="127.0.0.1", port=0)
        _start_on_free_port(self.controller)

    @property
    def port(self) -> int:
        return int(self.controller.server.sockets[0].getsockname()[1])

    def stop(self) -> None:
        self.controller.stop()

    def recipients(self) -> list[str]:
        with self.lock:
            return [one.recipient for one in self.taken]


def _next(script: dict[str, Any], address: str) -> str:
    given = script.get(address, "")
    if isinstance(given, list):
        return given.pop(0) if given else ""
    return str(given)


def _start_on_free_port(controller: Controller) -> None:
    # The controller proves that it listens by connecting to its own port, which has to be known before.
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        controller.port = probe.getsockname()[1]
    controller.start()
