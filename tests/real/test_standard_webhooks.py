"""What really leaves is taken by the public libraries of Standard Webhooks, Python's and JavaScript's."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone
from standardwebhooks import Webhook, WebhookVerificationError

from tests.real.pds_server import INSTALLED, _npm
from tests.webhooks.factories import claimed, make_delivery, make_endpoint, make_event, make_workspace
from webhooks import deliver, endpoints, signing
from webhooks.models import Endpoint

pytestmark = [pytest.mark.real, pytest.mark.django_db]
OURS = Path(__file__).parent / "standard_webhooks"


@pytest.fixture(scope="session")
def modules():
    """The folder with node_modules, which comes from npm once; it is named after what is pinned."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        message = "There is no npm to install the library with."
        if os.environ.get("REQUIRE_SERVICES") == "1":
            pytest.fail(message)
        pytest.skip(message)
    pinned = [(OURS / name).read_bytes() for name in ("package.json", "package-lock.json")]
    folder = INSTALLED / f"standard-webhooks-{hashlib.sha256(b''.join(pinned)).hexdigest()[:12]}"
    INSTALLED.mkdir(parents=True, exist_ok=True)
    with (INSTALLED / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            coming = INSTALLED / "standard-webhooks-coming"
            shutil.rmtree(coming, ignore_errors=True)
            coming.mkdir()
            for name in ("package.json", "package-lock.json"):
                shutil.copy(OURS / name, coming)
            _npm(coming, "ci", "--ignore-scripts")
            coming.rename(folder)
    return folder


@pytest.fixture
def by_javascript(modules):
    """Asks the library of npm; gives the event's id and type, or why it was refused."""

    def ask(secret, headers, body):
        asked = json.dumps({"secret": secret, "headers": headers, "body": body.decode()})
        done = subprocess.run(
            ["node", str(OURS / "verify.mjs")],
            input=asked + "\n",
            env={"PATH": os.environ["PATH"], "MODULES": str(modules)},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return ask


def by_python(secret, headers, body):
    try:
        event = Webhook(secret).verify(body, headers)
    except WebhookVerificationError as error:
        return {"refused": str(error)}
    return {"id": event["id"], "type": event["type"]}


@pytest.fixture(params=["python", "javascript"])
def library(request):
    return by_python if request.param == "python" else request.getfixturevalue("by_javascript")


@pytest.fixture
def sent(httpserver):
    """Makes the service deliver an event to an endpoint and gives what came: its headers and its bytes."""

    def deliver_one(endpoint, event_type="raw.ingested"):
        httpserver.clear()
        httpserver.expect_request("/hook").respond_with_data("")
        event = make_event(endpoint.workspace_id, event_type)
        deliver.deliver(claimed(make_delivery(Endpoint.everywhere.get(pk=endpoint.pk), event)))
        [(request, _)] = httpserver.log
        return {name.lower(): value for name, value in request.headers.items()}, request.data

    return deliver_one


@pytest.fixture
def endpoint(httpserver):
    return make_endpoint(make_workspace(), url=httpserver.url_for("/hook"))


def test_what_is_sent_is_taken(library, sent, endpoint):
    headers, body = sent(endpoint)
    taken = library(endpoint.secret, headers, body)
    assert taken == {"id": headers["webhook-id"], "type": "raw.ingested"}


def test_either_secret_takes_it_during_a_rotation_and_the_old_one_not_afterwards(library, sent, endpoint):
    older = endpoint.secret
    newer = endpoints.rotate_secret(endpoint, actor="alice")
    headers, body = sent(endpoint)
    assert len(headers["webhook-signature"].split()) == 2
    for secret in (older, newer):
        assert library(secret, headers, body)["id"] == headers["webhook-id"]
    past = timezone.now() - timedelta(seconds=1)
    Endpoint.everywhere.filter(pk=endpoint.pk).update(previous_secret_until=past)
    headers, body = sent(endpoint)
    assert library(newer, headers, body)["id"] == headers["webhook-id"]
    assert "refused" in library(older, headers, body)


def test_nothing_else_is_taken(library, sent, endpoint):
    headers, body = sent(endpoint)
    assert "refused" in library(signing.make_secret(), headers, body)
    assert "refused" in library(endpoint.secret, headers, body.replace(b"Gr", b"gr"))
    assert "refused" in library(endpoint.secret, {**headers, "webhook-id": "evt_other"}, body)
    old = str(int(headers["webhook-timestamp"]) - 3600)
    assert "refused" in library(endpoint.secret, {**headers, "webhook-timestamp": old}, body)
