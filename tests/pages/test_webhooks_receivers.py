"""The example receivers: whole programs that take what the service really sends, and nothing else."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from http.client import HTTPConnection

import pytest
from django.urls import reverse

from config.core import task_runner
from tests.webhooks.factories import make_endpoint
from webhooks import endpoints, signing
from webhooks.models import Delivery
from webhooks.pages.receivers import LANGUAGES, render_receiver

PROGRAMS = {
    "python": [sys.executable],
    "node": [shutil.which("node")],
    "go": [shutil.which("go"), "run"],
}


@pytest.fixture
def free_port():
    with socket.socket() as there:
        there.bind(("127.0.0.1", 0))
        return there.getsockname()[1]


@pytest.fixture
def start(tmp_path, free_port):
    """Runs the program as the page shows it, with this secret, until the test is over."""
    started = []

    def run(language, code, secret):
        program = PROGRAMS[language]
        if program[0] is None:
            if os.environ.get("REQUIRE_SERVICES") == "1" and language != "go":
                pytest.fail(f"There is no {language} on this machine.")
            pytest.skip(f"There is no {language} on this machine.")
        file = tmp_path / LANGUAGES[language].file
        file.write_text(code)
        with (tmp_path / "said").open("w") as out:
            process = subprocess.Popen(
                [*program, file.name],
                cwd=tmp_path,
                env={**os.environ, "WEBHOOK_SECRET": secret},
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        started.append(process)
        until = time.monotonic() + 60
        while time.monotonic() < until:
            assert process.poll() is None, (tmp_path / "said").read_text()
            with socket.socket() as there:
                if there.connect_ex(("127.0.0.1", free_port)) == 0:
                    return process
            time.sleep(0.05)
        raise AssertionError((tmp_path / "said").read_text())

    yield run
    for process in started:
        # `go run` starts the program as a child of its own; both are of this session.
        os.killpg(process.pid, 15)
        process.wait(10)


def send(endpoint):
    delivery = endpoints.send_test(endpoint, actor="alice")
    task_runner.work_all_due("webhooks.deliver_to_endpoint", "webhooks.probe_endpoint")
    row = Delivery.everywhere.get(pk=delivery.pk)
    return row.status, row.last_status


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_receiver_takes_what_is_sent_and_refuses_the_rest(newsroom, start, free_port, tmp_path, language):
    # Whatever a path may hold: the client writes some of it with a %, and the program must expect the same.
    endpoint = make_endpoint(newsroom, url=f"http://127.0.0.1:{free_port}/in/a$b'\"\\[1]é%20x?team=1")
    start(language, render_receiver(endpoint, language), endpoint.secret)
    assert send(endpoint) == ("delivered", 204)
    # While a secret is being rotated the old one still signs, as one of two.
    endpoints.rotate_secret(endpoint, actor="alice")
    assert send(endpoint) == ("delivered", 204)
    # Once it has signed for the last time, what comes is somebody else's.
    endpoints.rotate_secret(endpoint, actor="alice")
    assert send(endpoint) == ("pending", 401)
    lines = (tmp_path / "said").read_text().splitlines()
    assert [line.split()[0] for line in lines if line.startswith("webhook.test")] == ["webhook.test"] * 2


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_receiver_works_once_on_what_comes_twice_and_never_on_what_is_old(
    newsroom, start, free_port, tmp_path, language
):
    endpoint = make_endpoint(newsroom, url=f"http://127.0.0.1:{free_port}/in")
    start(language, render_receiver(endpoint, language), endpoint.secret)

    def post(body, path="/in", *, at=None, signed=None):
        at = at or datetime.now(UTC)
        connection = HTTPConnection("127.0.0.1", free_port, timeout=10)
        connection.request(
            "POST",
            path,
            body,
            {
                "webhook-id": "evt_1",
                "webhook-timestamp": str(int(at.timestamp())),
                "webhook-signature": signing.sign([endpoint.secret], "evt_1", at, signed or body),
            },
        )
        status = connection.getresponse().status
        connection.close()
        return status

    body = '{"id":"evt_1","type":"raw.ingested","data":{"title":"Grüße ✓"}}'.encode()
    now = datetime.now(UTC)
    assert [post(body), post(body)] == [204, 204]
    assert [post(body, at=now + timedelta(minutes=minutes)) for minutes in (-6, 6)] == [401, 401]
    assert post(body + b" ", signed=body) == 401
    assert post(body, "/elsewhere") == 404
    said = (tmp_path / "said").read_text()
    assert said.count("raw.ingested evt_1\n") == 1


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_page_shows_the_program(as_person, alice, newsroom, language):
    endpoint = make_endpoint(newsroom, url="https://crm.example.com/hooks/in?team=1")
    page = reverse("webhook_receiver", kwargs={"ws": newsroom.pk, "whe": endpoint.pk})
    shown = as_person(alice).get(f"{page}?language={language}")
    code = shown.context["code"]
    assert (shown.context["language"], code) == (language, render_receiver(endpoint, language))
    assert '"/hooks/in"' in code
    assert "https://crm.example.com/hooks/in?team=1" in code
    assert "8080" in code
    assert endpoint.secret not in shown.content.decode()


def test_an_unknown_language_shows_the_first(as_person, alice, newsroom):
    endpoint = make_endpoint(newsroom)
    page = reverse("webhook_receiver", kwargs={"ws": newsroom.pk, "whe": endpoint.pk})
    assert as_person(alice).get(f"{page}?language=cobol").context["language"] == "python"


def test_an_address_cannot_write_code(newsroom):
    endpoint = make_endpoint(newsroom, url='https://example.com/"+__import__("os").x+"\\${x}`')
    for language in LANGUAGES:
        assert '%22+__import__(%22os%22).x+%22%5C$%7Bx%7D%60"' in render_receiver(endpoint, language)
