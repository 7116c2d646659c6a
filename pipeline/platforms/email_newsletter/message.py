"""Composes a newsletter's mail: HTML and plain text, the headers that big mailbox providers ask for, DKIM.

It follows RFC 5322, 2919 (List-Id), 8058 (one-click) and 6376 (DKIM), read 2026-11-20, and makes no calls.
"""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime
from html import escape
from typing import TYPE_CHECKING, Any, Final

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)

from pipeline.platforms.email_newsletter import frame
from pipeline.platforms.email_newsletter.frame import NewsletterStyle
from pipeline.plugins import Refused

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from pipeline.platforms.base import Account
    from pipeline.platforms.payload_types import Payload

MIN_KEY_BITS: Final = 1024
"""The shortest key, in bits, that verifiers may accept: RFC 8301, 3.2, read 2026-11-20."""
SIGNED_HEADERS: Final = (
    b"from",
    b"to",
    b"subject",
    b"date",
    b"message-id",
    b"reply-to",
    b"mime-version",
    b"content-type",
    b"list-id",
    b"list-unsubscribe",
    b"list-unsubscribe-post",
)
_PEM: Final = re.compile(r"-----BEGIN ((?:RSA )?PRIVATE KEY)-----(.*?)-----END \1-----", re.DOTALL)
_LANGUAGE_TAG: Final = re.compile(r"[A-Za-z]{1,8}(?:-[A-Za-z0-9]{1,8})*")


@dataclass(frozen=True)
class Issue:
    """The part of a mail that every recipient gets: subject, and content as HTML fragment and plain text."""

    subject: str
    html: str
    text: str
    language: str = ""


@dataclass(frozen=True)
class Footer:
    """The sentences below the content, in the language of the pages."""

    reason: str = ""
    unsubscribe: str = ""


@dataclass(frozen=True)
class Envelope:
    """One recipient's part of a mail; without `unsubscribe_url`, the mail isn't to a list, like a confirmation."""

    recipient: str
    message_id: str
    list_id: str = ""
    unsubscribe_url: str = ""
    unsubscribe_mailto: str = ""
    footer: Footer = Footer()


def issue_of(payload: Payload, config: Mapping[str, Any]) -> Issue:
    """Return an item as an issue of the outlet with these settings; its subject is the item's, or else its title."""
    subject = " ".join(str(payload.content.get("subject") or payload.title).split())
    rendered = frame.render_sections(payload, style_of(config))
    language = payload.language if _LANGUAGE_TAG.fullmatch(payload.language) else ""
    return Issue(subject, rendered.html, rendered.text, language)


def style_of(config: Mapping[str, Any]) -> NewsletterStyle:
    """Return the style that an outlet's settings choose."""
    return NewsletterStyle(str(config.get("accent", "")), str(config.get("utm_source", "")))


def compose_mail(account: Account, issue: Issue, envelope: Envelope, *, now: datetime) -> bytes:
    """Return the mail as it is sent, signed if the account has a key and a domain for DKIM.

    Raises `Refused` if the key can't be used.
    """
    message = EmailMessage(policy=SMTP)
    message["From"] = Address(
        str(account.config.get("from_name", "")), addr_spec=account.config["from_address"]
    )
    message["To"] = Address(addr_spec=envelope.recipient)
    message["Subject"] = issue.subject
    message["Date"] = format_datetime(now)
    if account.config.get("reply_to"):
        message["Reply-To"] = Address(addr_spec=account.config["reply_to"])
    # Quoted-printable, because a relay that re-codes 8-bit text breaks the signature.
    message.set_content(_plain_text_body(account, issue, envelope), cte="quoted-printable")
    message.add_alternative(_html_body(account, issue, envelope), subtype="html", cte="quoted-printable")
    mail = "\r\n".join((*_plain_headers(envelope), "")).encode("ascii") + message.as_bytes()
    key = account.credentials.get("dkim_key")
    return _sign_with_dkim(account, mail, str(key)) if key and account.config.get("dkim_domain") else mail


def _plain_headers(envelope: Envelope) -> list[str]:
    """Return the headers, all ASCII, that the standard library would fold within an address."""
    headers = [f"Message-ID: {envelope.message_id}"]
    if not envelope.unsubscribe_url:
        return [*headers, "Auto-Submitted: auto-generated"]
    targets = [f"<{target}>" for target in (envelope.unsubscribe_url, envelope.unsubscribe_mailto) if target]
    return [
        *headers,
        f"List-Id: <{envelope.list_id}>",
        f"List-Unsubscribe: {(',' + chr(13) + chr(10) + ' ').join(targets)}",
        "List-Unsubscribe-Post: List-Unsubscribe=One-Click",
        "Precedence: bulk",
    ]


def _plain_text_body(account: Account, issue: Issue, envelope: Envelope) -> str:
    """Return the plain text with its footer."""
    footer = [envelope.footer.reason, str(account.config.get("imprint", ""))]
    if envelope.unsubscribe_url:
        footer.append(f"{envelope.footer.unsubscribe}: {envelope.unsubscribe_url}")
    lines = "\n".join(line for line in footer if line)
    return f"{issue.text.strip()}\n\n-- \n{lines}\n" if lines else f"{issue.text.strip()}\n"


def _html_body(account: Account, issue: Issue, envelope: Envelope) -> str:
    """Return the HTML page with its footer."""
    sentences = (envelope.footer.reason, str(account.config.get("imprint", "")))
    footer = [escape(sentence) for sentence in sentences if sentence]
    if envelope.unsubscribe_url:
        footer.append(
            f'<a href="{escape(envelope.unsubscribe_url)}">{escape(envelope.footer.unsubscribe)}</a>'
        )
    return frame.mail_page(
        issue.html,
        title=issue.subject,
        name=str(account.config.get("from_name", "")),
        footer=[line.replace("\n", "<br>") for line in footer],
        language=issue.language,
        style=style_of(account.config),
    )


# --- DKIM ------------------------------------------------------------------------------------------------------------


def _sign_with_dkim(account: Account, mail: bytes, key: str) -> bytes:
    """Return the mail with a DKIM signature before it. Raises `Refused` if the key can't be used."""
    # It is imported here because it brings a whole client of DNS.
    import dkim  # type: ignore[import-untyped]  # noqa: PLC0415

    present_headers = {
        line.partition(b":")[0].lower() for line in mail.partition(b"\r\n\r\n")[0].split(b"\r\n")
    }
    signature = dkim.sign(
        mail,
        account.config["dkim_selector"].encode("ascii"),
        account.config["dkim_domain"].encode("ascii"),
        _to_pem(read_key(key)),
        canonicalize=(b"relaxed", b"relaxed"),
        include_headers=[name for name in SIGNED_HEADERS if name in present_headers],
    )
    return bytes(signature) + mail


def _to_pem(key: RSAPrivateKey) -> bytes:
    """Return the key in the PEM form that `dkim` reads."""
    return key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())


def read_key(text: str) -> RSAPrivateKey:
    """Return the RSA key of a text in PEM, whose line breaks a form may have removed.

    Raises `Refused`, which quotes nothing of the key, if it is no RSA key in PEM of `MIN_KEY_BITS` or more.
    """
    action = "Give an RSA key in PEM, without a passphrase."
    match = _PEM.search(text)
    if match is None:
        message = "The DKIM key is no private key in PEM."
        raise Refused(message, code="dkim_key", field="credentials.dkim_key", action=action)
    lines = "\n".join("".join(match[2].split())[start : start + 64] for start in range(0, len(match[2]), 64))
    pem = f"-----BEGIN {match[1]}-----\n{lines.strip()}\n-----END {match[1]}-----\n"
    try:
        key = load_pem_private_key(pem.encode(), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        message = "The DKIM key can't be read."
        raise Refused(message, code="dkim_key", field="credentials.dkim_key", action=action) from error
    if not isinstance(key, RSAPrivateKey) or key.key_size < MIN_KEY_BITS:
        message = f"The DKIM key has to be an RSA key of at least {MIN_KEY_BITS} bits."
        raise Refused(message, code="dkim_key", field="credentials.dkim_key", action=action)
    return key


def dns_record(account: Account) -> str:
    """Return the TXT record to publish, as a line of a zone file. Raises `Refused` if the key can't be used."""
    key = read_key(str(account.credentials["dkim_key"]))
    public = key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    name = f"{account.config['dkim_selector']}._domainkey.{account.config['dkim_domain']}"
    return f'{name} TXT "v=DKIM1; k=rsa; p={base64.b64encode(public).decode()}"'
