"""Signatures, judged by the public library."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from datetime import timedelta

import pytest
from django.utils import timezone
from standardwebhooks import Webhook, WebhookVerificationError

from tests.webhooks.factories import NOON, make_endpoint
from webhooks import signing

BODY = json.dumps({"id": "evt_1", "data": {"title": "Grüße ✓"}}, ensure_ascii=False).encode()


def headers_of(secrets: list[str], at) -> dict[str, str]:
    return {
        "webhook-id": "evt_1",
        "webhook-timestamp": str(int(at.timestamp())),
        "webhook-signature": signing.sign(secrets, "evt_1", at, BODY),
    }


def test_secret_is_whsec_and_32_random_bytes():
    secret = signing.make_secret()
    assert secret[:6] == "whsec_"
    assert len(base64.b64decode(secret[6:], validate=True)) == 32
    assert signing.make_secret() != secret


def test_signature_is_hmac_of_id_timestamp_and_body():
    secret = "whsec_" + base64.b64encode(b"k" * 32).decode()
    signed = b"evt_1." + str(int(NOON.timestamp())).encode() + b"." + BODY
    expected = base64.b64encode(hmac.new(b"k" * 32, signed, hashlib.sha256).digest()).decode()
    assert signing.sign([secret], "evt_1", NOON, BODY) == f"v1,{expected}"


def test_public_library_verifies_and_refuses_another_secret():
    secret, other = signing.make_secret(), signing.make_secret()
    headers = headers_of([secret], timezone.now())
    assert Webhook(secret).verify(BODY, headers) == json.loads(BODY)
    with pytest.raises(WebhookVerificationError):
        Webhook(other).verify(BODY, headers)


def test_both_secrets_sign_during_the_overlap():
    new, old = signing.make_secret(), signing.make_secret()
    headers = headers_of([new, old], timezone.now())
    assert len(headers["webhook-signature"].split(" ")) == 2
    assert Webhook(new).verify(BODY, headers) == json.loads(BODY)
    assert Webhook(old).verify(BODY, headers) == json.loads(BODY)


@pytest.mark.django_db
def test_previous_secret_signs_until_its_time_and_not_at_it():
    endpoint = make_endpoint(secret="new", previous_secret="old", previous_secret_until=NOON)
    assert signing.secrets_of(endpoint, now=NOON - timedelta(microseconds=1)) == ["new", "old"]
    assert signing.secrets_of(endpoint, now=NOON) == ["new"]
    endpoint.previous_secret_until = None
    assert signing.secrets_of(endpoint, now=NOON) == ["new"]
