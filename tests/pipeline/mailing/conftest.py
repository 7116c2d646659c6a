"""A newsletter of Alice's with subscribers, and the server that takes its mails."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from typing import TYPE_CHECKING

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from django.utils import timezone

from config.core.ids import uuid7
from pipeline.mailing import send_mailings
from pipeline.models import GeneratedItem, Outlet, Subscriber
from pipeline.platforms.email_newsletter import session
from tests.pipeline.mailing.mail_server import PASSWORD, MailServer
from tests.pipeline.steps import NOON

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def server() -> Iterator[MailServer]:
    made = MailServer()
    made.start()
    yield made
    made.stop()


def certified(folder) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """The server's context, and a client's that trusts its certificate alone."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "mail server of a test")])
    now = datetime(2027, 1, 1, tzinfo=UTC)
    built = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=3650))
        .not_valid_after(now + timedelta(days=3650))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    path = folder / "certificate.pem"
    path.write_bytes(
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        + built.public_bytes(Encoding.PEM)
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    return context, ssl.create_default_context(cafile=str(path))


@pytest.fixture
def tls_server(monkeypatch, tmp_path) -> Iterator[MailServer]:
    """Speaks STARTTLS with a certificate of its own, which is trusted here alone."""
    context, trusting = certified(tmp_path)
    monkeypatch.setattr(session, "tls_context", lambda: trusting)
    made = MailServer(tls=context)
    made.start()
    yield made
    made.stop()


@pytest.fixture(autouse=True)
def pauses(monkeypatch) -> list[float]:
    """How long a hand would have sat between two mails."""
    sat: list[float] = []
    monkeypatch.setattr(send_mailings.time, "sleep", sat.append)
    return sat


@pytest.fixture
def letter(workspace, server) -> Outlet:
    return make_letter(workspace, server.port)


def make_letter(workspace, port, **config) -> Outlet:
    return Outlet.everywhere.create(
        workspace=workspace,
        platform="email_newsletter",
        name="Harbour letter",
        config={
            "host": "127.0.0.1",
            "port": port,
            "encryption": "none",
            "from_name": "Härbour News",
            "from_address": "news@harbour.example",
            "imprint": "Harbour News, 1 Quay Street",
            "mails_per_minute": 600,
            **config,
        },
        credentials={},
    )


def subscribe(letter, *names, status="active") -> list[Subscriber]:
    rows = [
        Subscriber(
            id=uuid7(),
            workspace_id=letter.workspace_id,
            outlet=letter,
            email=f"{name}@readers.example",
            confirmed_at=NOON,
        )
        for name in names
    ]
    for row in rows:
        row.status = status
    return Subscriber.everywhere.bulk_create(rows)


@pytest.fixture
def newsletter_item(ready) -> GeneratedItem:
    GeneratedItem.everywhere.filter(pk=ready.pk).update(bucket="newsletter", title="The tram is coming")
    ready.refresh_from_db()
    from pipeline.models import Revision

    Revision.everywhere.filter(item=ready).update(title="The tram is coming")
    return ready


def with_login(letter, password=PASSWORD) -> Outlet:
    letter.config = {**letter.config, "user": "alice", "encryption": "starttls"}
    letter.credentials = {"password": password}
    letter.save(update_fields=["config", "credentials"])
    return letter


__all__ = ["make_letter", "subscribe", "timezone", "with_login"]
