"""Runs one SMTP session through the guarded socket, and classifies each reply.

The commands are those of RFC 5321, the enhanced codes those of RFC 3463, read 2026-11-20. A mail is handed over in
two halves, so that the caller can save "it may be on its way" between them.
"""

from __future__ import annotations

import re
import smtplib
import socket
import ssl
import threading
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from config.core import http_client
from pipeline.plugins import NeedsReconnect, Refused, TryLater

if TYPE_CHECKING:
    from collections.abc import Iterator

    from config.core.http_client import Policy
    from pipeline.platforms.base import Account

COMMAND_SECONDS: Final = 20.0
END_REPLY_SECONDS: Final = 60.0
"""The time limit of the reply to a message's end, for which servers may take long."""
WHOLE_SECONDS: Final = 150.0
"""The time limit of a whole mail, and of opening the session: a worker's lease is longer."""
MAX_REPLY_CHARACTERS: Final = 300

Stage = Literal["mail", "rcpt", "data", "end"]
Verdict = Literal["sent", "later", "wait", "reconnect", "policy", "too_big", "bounced", "failed"]
"""The meaning of a reply.

After `later`, this recipient is tried again; after `bounced` and `failed`, not any more. `wait` ends the session,
which is opened again later. `reconnect`, `policy` and `too_big` end the run until a person acts.
"""

_ENHANCED_CODE: Final = re.compile(r"\s*([245])\.(\d{1,3})\.(\d{1,3})\b")
_AUTH_CODES: Final = frozenset({530, 534, 535, 538})
_NO_MAILBOX_CODES: Final = frozenset({550, 551, 553})
_SENDER_DETAILS: Final = frozenset({7, 8})
"""The details of the codes 5.1.x that blame the sender's address, not the recipient's."""


class SessionLost(Exception):
    """Raised if the session broke before the message's end was sent, so that the server can't have taken it."""


class NoAnswer(Exception):
    """Raised if the message was sent to its end and no reply came, so that the server may have taken it."""


@dataclass(frozen=True)
class SmtpReply:
    """A server's reply to one stage of a mail."""

    stage: Stage
    code: int
    text: str

    @property
    def verdict(self) -> Verdict:
        """The meaning of the reply."""
        return classify_reply(self.stage, self.code, self.text)


def classify_reply(stage: Stage, code: int, text: str) -> Verdict:
    """Return the meaning of a reply at this stage, by its code and the enhanced code in its text.

    The order of the checks counts: a wait or a refused log-in goes before the codes of a recipient.
    """
    match = _ENHANCED_CODE.match(text)
    subject, detail = (int(match[2]), int(match[3])) if match else (None, None)
    if 200 <= code < 400:
        return "sent"
    if code == 421:
        return "wait"
    if code in _AUTH_CODES:
        return "reconnect"
    if code < 500:
        # Before a recipient is named, "not now" concerns all recipients.
        return "wait" if stage == "mail" else "later"
    if subject == 7 or (subject == 1 and detail in _SENDER_DETAILS):
        return "policy"
    if (subject, detail) == (3, 4) or (code == 552 and subject is None):
        return "too_big"
    if stage == "mail":
        return "policy"
    if subject == 1 or (subject is None and stage == "rcpt" and code in _NO_MAILBOX_CODES):
        return "bounced"
    return "failed"


def tls_context() -> ssl.SSLContext:
    """Return a TLS context that verifies certificates and needs TLS 1.2 or later."""
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


class _GuardedSmtp(smtplib.SMTP):
    """An SMTP client that connects through the guard; with `is_tls` it speaks TLS from the first byte."""

    def __init__(self, host: str, name: str, *, policy: Policy, is_tls: bool) -> None:
        super().__init__(local_hostname=name, timeout=COMMAND_SECONDS)
        self._host = host
        self._policy = policy
        self._is_tls = is_tls

    def _get_socket(self, host: str, port: int, timeout: float) -> socket.socket:
        sock = http_client.connect(host, port, timeout=timeout, policy=self._policy)
        if not self._is_tls:
            return sock
        try:
            return tls_context().wrap_socket(sock, server_hostname=host)
        except (OSError, ValueError):
            sock.close()
            raise


@contextmanager
def _time_limit(smtp: smtplib.SMTP) -> Iterator[None]:
    """Break off a session after `WHOLE_SECONDS`, because a server that sends a byte now and then never times out."""

    def end() -> None:
        with suppress(OSError):
            if smtp.sock is not None:
                # This is the plain socket's method: the TLS socket's would drop the encryption while a read runs.
                socket.socket.shutdown(smtp.sock, socket.SHUT_RDWR)

    timer = threading.Timer(WHOLE_SECONDS, end)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


class SmtpSession:
    """A session that can send mails until `close`, or until a `SessionLost`, a `NoAnswer` or a 421."""

    def __init__(self, smtp: smtplib.SMTP) -> None:
        self._smtp = smtp

    @contextmanager
    def one_mail(self) -> Iterator[None]:
        """Put both halves of a mail under one deadline, `WHOLE_SECONDS`."""
        with _time_limit(self._smtp):
            yield

    def begin(self, sender: str, recipient: str) -> SmtpReply:
        """Send everything up to the server's "go on" (354). A reply that isn't `sent` ends this mail.

        Raises `SessionLost` if the connection breaks or the server's reply is no SMTP reply or not "go on".
        """
        commands: tuple[tuple[Stage, str], ...] = (
            ("mail", f"MAIL FROM:<{sender}>"),
            ("rcpt", f"RCPT TO:<{recipient}>"),
            ("data", "DATA"),
        )
        for stage, command in commands:
            reply = self._reply(stage, command)
            if reply.verdict != "sent":
                if reply.code != 421:
                    self._reply(stage, "RSET")
                return reply
        if reply.code != 354:
            message = f"The mail server answered {reply.code} where it should have said 354."
            raise SessionLost(message)
        return reply

    def end(self, message: bytes) -> SmtpReply:
        """Send the message, and return the reply to its end.

        Raises `SessionLost` if the connection breaks before the end is sent, and `NoAnswer` if no readable reply
        comes after it.
        """
        sock = self._smtp.sock
        if sock is None:
            closed = "The connection is closed."
            raise SessionLost(closed)
        # A line that begins with a dot gets another one, because a dot alone ends the message.
        body = re.sub(rb"(?m)^\.", b"..", message)
        body = body if body.endswith(b"\r\n") else body + b"\r\n"
        try:
            # Without the final dot no server can take the message as complete.
            sock.sendall(body)
        except OSError as error:
            broken = f"The connection broke while the mail was sent: {error}"
            raise SessionLost(broken) from error
        try:
            sock.settimeout(END_REPLY_SECONDS)
            sock.sendall(b".\r\n")
            code, text = self._smtp.getreply()
            sock.settimeout(COMMAND_SECONDS)
        except (OSError, smtplib.SMTPException) as error:
            unanswered = "The mail was sent to its end, and the server never said whether it took it."
            raise NoAnswer(unanswered) from error
        if not 200 <= code < 600:
            unreadable = "The mail was sent to its end, and the server's answer can't be read."
            raise NoAnswer(unreadable)
        return SmtpReply("end", code, _clean_reply_text(text))

    def close(self) -> None:
        """Log out and close the connection; errors are ignored."""
        with suppress(OSError, smtplib.SMTPException):
            self._smtp.quit()
        self._smtp.close()

    def _reply(self, stage: Stage, command: str) -> SmtpReply:
        """Send a command and return the reply. Raises `SessionLost` if no readable reply comes."""
        try:
            code, text = self._smtp.docmd(command)
        except (OSError, smtplib.SMTPException, ValueError) as error:
            message = "The mail server ended the connection."
            raise SessionLost(message) from error
        if not 200 <= code < 600:
            message = "The mail server's answer can't be read."
            raise SessionLost(message)
        return SmtpReply(stage, code, _clean_reply_text(text))


def open_session(account: Account, policy: Policy) -> SmtpSession:
    """Connect, encrypt if the settings say so, log in if they have a user, and return the session.

    Raises `TryLater` if the server can't be reached or isn't ready, `NeedsReconnect` if it refuses the log-in, and
    `Refused` if the settings can't be right. None quotes a secret.
    """
    config = account.config
    host, port, encryption = str(config["host"]), int(config["port"]), config["encryption"]
    user, password = str(config.get("user", "")), str(account.credentials.get("password", ""))
    if encryption == "none" and password:
        message = "The password would be sent in the clear: choose an encryption, or remove the password."
        raise Refused(
            message, code="password_in_clear", field="config.encryption", action="Change the outlet."
        )
    name = str(config["from_address"]).rpartition("@")[2]
    smtp = _GuardedSmtp(host, name, policy=policy, is_tls=encryption == "tls")
    try:
        with _time_limit(smtp):
            _greet(smtp, host, port)
            if encryption == "starttls":
                _start_tls(smtp)
            smtp.ehlo_or_helo_if_needed()
            if user:
                smtp.login(user, password)
    except (smtplib.SMTPException, http_client.OutboundError, OSError) as error:
        smtp.close()
        raise _to_plugin_error(error, host) from error
    return SmtpSession(smtp)


def _greet(smtp: smtplib.SMTP, host: str, port: int) -> None:
    """Connect and send EHLO. Raises `SMTPConnectError` if the server doesn't greet with 220."""
    code, text = smtp.connect(host, port)
    if code != 220:
        raise smtplib.SMTPConnectError(code, text)
    smtp.ehlo_or_helo_if_needed()


def _start_tls(smtp: smtplib.SMTP) -> None:
    """Switch to TLS. Raises `SMTPConnectError` if the server refuses."""
    code, text = smtp.starttls(context=tls_context())
    if code != 220:
        raise smtplib.SMTPConnectError(code, text)


def _to_plugin_error(error: Exception, host: str) -> TryLater | Refused | NeedsReconnect:
    """Return the plug-in error for a failure to open the session."""
    change = "Change the outlet's settings."
    if isinstance(error, http_client.AddressRefused):
        return Refused(f"The mail server can't be used: {error}", code="address_refused", action=change)
    if isinstance(error, http_client.OutboundError):
        return TryLater(f"The mail server couldn't be reached: {error}", code="unreachable")
    if isinstance(error, ssl.SSLCertVerificationError):
        message = f"The certificate of {host} can't be trusted: {error.verify_message}."
        return Refused(message, code="certificate", action=change)
    if isinstance(error, ssl.SSLError):
        message = f"{host} doesn't support the chosen encryption. Check port and encryption."
        return Refused(message, code="tls_failed", action=change)
    if isinstance(error, smtplib.SMTPNotSupportedError):
        message = f"{host} doesn't offer what the settings ask for (STARTTLS, or a log-in)."
        return Refused(message, code="not_offered", action=change)
    if isinstance(error, smtplib.SMTPResponseException):
        return _error_of_reply(error, host)
    # `smtplib` raises its base class itself if no log-in method is common to both sides.
    if type(error) is smtplib.SMTPException:
        message = f"{host} offers no way to log in that is known here."
        return Refused(message, code="not_offered", action=change)
    return TryLater(f"{host} ended the connection.", code="unreachable")


def _error_of_reply(error: smtplib.SMTPResponseException, host: str) -> TryLater | Refused | NeedsReconnect:
    """Return the plug-in error for a reply that ended the opening of the session."""
    code, reply_text = error.smtp_code, _clean_reply_text(error.smtp_error)
    if isinstance(error, smtplib.SMTPAuthenticationError) and code >= 500:
        message = f"{host} doesn't take the user and password (status {code})."
        return NeedsReconnect(
            message, code="login_refused", platform_status=code, platform_message=reply_text
        )
    message = f"{host} answered {code}."
    if 500 <= code < 600:
        return Refused(
            message,
            code="server_refused",
            action="Read the server's answer, and ask its administrator.",
            platform_status=code,
            platform_message=reply_text,
        )
    return TryLater(message, code="busy", platform_status=code, platform_message=reply_text)


def _clean_reply_text(text: bytes | str) -> str:
    """Return a reply's text on one line, without control characters, cut to `MAX_REPLY_CHARACTERS`."""
    raw = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
    return " ".join("".join(character if character.isprintable() else " " for character in raw).split())[
        :MAX_REPLY_CHARACTERS
    ]
