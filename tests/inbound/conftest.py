"""A workspace, webhook sources of it, and senders that prove themselves as the real ones do."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from datetime import UTC, datetime

import pytest
from django.test import Client
from standardwebhooks import Webhook

from accounts import workspaces
from pipeline.ingest import collect
from pipeline.ingest.inbound_deliveries import secrets
from tests import caches


@pytest.fixture
def workspace(db):
    caches.clear()
    workspace = workspaces.create("Inbound")
    workspaces.whitelist(workspace, actor="operator")
    workspace.refresh_from_db()
    return workspace


@pytest.fixture
def source_of(workspace):
    """A webhook source with these settings; its secret is the attribute `told`."""

    def make(test=False, **config):
        given = collect.SourceSettings(type="webhook", name="Bridge", config=config)
        registered = secrets.register(workspace, given, test=test)
        registered.source.told = config.get("verification", {}).get("secret") or registered.secret
        return registered.source

    return make


def as_bytes(payload):
    if isinstance(payload, bytes):
        return payload
    return (payload if isinstance(payload, str) else json.dumps(payload)).encode()


def post(source, payload, content_type="application/json", **headers):
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    return Client().post(
        f"/hooks/{source.inbound_token}", as_bytes(payload), content_type=content_type, headers=given
    )


def _hex(secret, signed):
    return hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()


def standard_webhooks(secret, body, at, message_id="msg_1"):
    signature = Webhook(secret).sign(message_id, datetime.fromtimestamp(at, UTC), body.decode())
    return {"webhook-id": message_id, "webhook-timestamp": str(int(at)), "webhook-signature": signature}


def github(secret, body, at, delivery="72d3162e", event="release"):
    del at
    return {
        "x-hub-signature-256": f"sha256={_hex(secret, body)}",
        "x-github-event": event,
        "x-github-delivery": delivery,
    }


def slack(secret, body, at):
    signature = _hex(secret, b"v0:%d:%s" % (at, body))
    return {"x-slack-signature": f"v0={signature}", "x-slack-request-timestamp": str(int(at))}


def stripe(secret, body, at):
    return {"stripe-signature": f"t={int(at)},v1={_hex(secret, b'%d.%s' % (at, body))},v0=old"}


def ghost(secret, body, at):
    sent = str(int(at * 1000))
    return {"x-ghost-signature": f"sha256={_hex(secret, body + sent.encode())}, t={sent}"}


def header(secret, body, at):
    del body, at
    return {"x-webhook-secret": secret}


def bearer(secret, body, at):
    del body, at
    return {"authorization": f"Bearer {secret}"}


SENDERS = {
    "standard_webhooks": standard_webhooks,
    "github": github,
    "slack": slack,
    "stripe": stripe,
    "ghost": ghost,
    "header": header,
    "bearer": bearer,
}
SECRET = {"standard_webhooks": "whsec_" + base64.b64encode(b"k" * 32).decode()}


def send(kind, source, payload, *, secret=None, at=None, **more):
    """As the sender of that kind does it, at that moment."""
    body = as_bytes(payload)
    signed = SENDERS[kind](secret or source.told, body, time.time() if at is None else at, **more)
    return post(source, body, **signed)
