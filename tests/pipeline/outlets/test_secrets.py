"""One canary in every secret of a workspace: wherever it is told what went wrong, the canary isn't."""

from __future__ import annotations

import io
import json
import logging
import re
import zipfile
from base64 import b64encode
from contextlib import suppress
from datetime import timedelta
from urllib.parse import quote

import pytest
from django.apps import apps
from django.core import mail
from django.core.management import call_command
from django.db import connection as database
from django.test import Client
from django.urls import reverse

from accounts import export, model_keys
from accounts.access import tokens
from accounts.models import Membership, Workspace
from analytics import measure
from analytics.models import Measuring
from config.core import task_runner
from config.core.errors import AppError
from config.core.ids import encode
from pipeline import outlets
from pipeline.models import Outlet, Publication
from pipeline.outlets.outlet_client import OutletConnection, connect, platform_of
from pipeline.platforms.base import Account
from pipeline.publish import steps as publish_steps
from tests.factories import UserFactory
from tests.pages.test_roles import workspace_pages
from tests.pipeline.steps import NOON, claimed, make_items, promise, reread
from tests.webhooks.factories import make_endpoint

CANARY = "canary/+7f3a9c&4711"
"""With signs that an address and JSON write otherwise."""
SHOWN_ONCE = {"webhook_secret", "key_secret", "source_secret", "outlet_secret"}
FAILING = [
    (401, "Token {token} has expired"),
    (403, "{token} lacks a right"),
    (422, "What {token} sent is too rude"),
    (429, "{token} is too fast"),
    (500, "Broke at {token}"),
    (503, "Later, {token}"),
    (418, "x" * 285 + "{token}"),
]


def forms_of(secret):
    return {
        secret,
        quote(secret, safe=""),
        quote(secret),
        json.dumps(secret)[1:-1],
        b64encode(secret.encode()).decode().rstrip("="),
        b64encode(f"alice:{secret}".encode()).decode()[10:-4],
    }


def assert_silent(text, where):
    for form in forms_of(CANARY):
        at = text.find(form)
        assert at < 0, f"{where}: …{text[max(0, at - 80) : at + 40]}…"
    # Nor a half of it.
    assert CANARY[:12] not in text, where


def whole_database():
    """Every value of every table, as it is stored."""
    with database.cursor() as cursor:
        for model in apps.get_models():
            cursor.execute(f'SELECT * FROM "{model._meta.db_table}"')
            names = [column[0] for column in cursor.description]
            for row in cursor.fetchall():
                for name, value in zip(names, row, strict=True):
                    text = (
                        bytes(value).decode("utf-8", "replace")
                        if isinstance(value, bytes | memoryview)
                        else value
                    )
                    yield f"{model._meta.db_table}.{name}", str(text)


@pytest.fixture
def outlet(connect, wall, workspace):
    wall.good.add(CANARY)
    made = make_endpoint(workspace, url="http://127.0.0.1:9/hook", description="CRM")
    type(made).everywhere.filter(pk=made.pk).update(secret=CANARY)
    return connect(credentials={"token": CANARY, "refresh": f"refresh-{CANARY}"})


@pytest.fixture
def failed(workspace, outlet, wall, caplog, clock):
    """A workspace in which everything failed in turn, with the canary in the platform's every answer."""
    caplog.set_level(logging.DEBUG)
    items = [
        make_items(workspace, title=f"Tram {number}", url=f"https://n.example/{number}")[0]
        for number in range(len(FAILING))
    ]
    # After the items were made, because no test asks a model.
    model_keys.set_model_key(workspace, CANARY, "alice")
    for item, (status, words) in zip(items, FAILING, strict=True):
        Outlet.everywhere.filter(pk=outlet.pk).update(status="ok", last_error=None, rests_until=None)
        publication = promise(item, outlet)
        wall.failing = (status, words)
        publish_steps.advance_publication(claimed(publication))
        row = reread(publication)
        assert row.error["code"]
        Outlet.everywhere.filter(pk=outlet.pk).update(status="ok", last_error=None)
        outlets.maintain_outlet(claimed(outlet))
        Outlet.everywhere.filter(pk=outlet.pk).update(expires_at=NOON - timedelta(hours=1))
        outlets.maintain_outlet(claimed(outlet))
        Outlet.everywhere.filter(pk=outlet.pk).update(expires_at=None)
    wall.failing = None
    task_runner.work_all_due("mail.spread_notice", "webhooks.fan_out")
    return reread(outlet)


def test_nothing_that_is_stored_holds_it(failed):
    for where, text in whole_database():
        assert_silent(text, where)
    # The words that it stood in are told.
    told = [one.error["message"] for one in Publication.everywhere.filter(error__isnull=False)]
    assert any("[secret]" in one for one in told)
    assert any("xxx[secret]." in one for one in told)


def test_no_log_holds_it(failed, caplog):
    records = caplog.get_records("setup")
    assert len(records) > 10
    assert any("check_put_off" in str(record.msg) for record in records)
    for record in records:
        assert_silent(f"{record.msg} {record.args} {record.exc_text or ''}", record.name)


def test_no_mail_and_no_notice_holds_it(failed):
    task_runner.work_all_due()
    for message in mail.outbox:
        assert_silent(f"{message.subject} {message.body} {message.alternatives}", "mail")


def test_no_page_shows_it(workspace, failed, alice, settings):
    settings.OUTBOUND_ALLOW_LOOPBACK = True
    member = Client()
    member.force_login(alice)
    assert Membership.objects.of(workspace).filter(user=alice).count() == 1
    endpoint = apps.get_model("webhooks", "Endpoint").everywhere.get()
    known = {"ws": workspace.pk, "out": failed.pk, "whe": endpoint.pk, "kind": "letterbox"}
    looked_at = 0
    for name, _, converters in workspace_pages():
        if name in SHOWN_ONCE or not set(converters) <= set(known):
            continue
        answer = member.get(reverse(name, kwargs={key: known[key] for key in converters}))
        content = b"".join(answer.streaming_content) if answer.streaming else answer.content
        assert_silent(content.decode("utf-8", "replace"), name)
        looked_at += answer.status_code == 200
    assert looked_at > 20


def test_a_refused_form_shows_it_not(workspace, failed, alice, wall):
    member = Client()
    member.force_login(alice)
    wall.failing = (401, "{token} is no good")
    form = {
        "config_server": wall.url,
        "secret_token": CANARY,
        "config_too_long": "refuse",
        "config_link": "none",
    }
    for name, more in (("outlet_connect", {"kind": "letterbox"}), ("outlet_reconnect", {"out": failed.pk})):
        answer = member.post(reverse(name, kwargs={"ws": workspace.pk, **more}), form)
        assert b"[secret] is no good" in answer.content
        assert_silent(answer.content.decode(), name)


def test_no_answer_of_the_api_holds_it(workspace, failed):
    secret = tokens.issue(workspace, name="Integration").secret
    api = Client(headers={"Authorization": f"Bearer {secret}"})
    publication = Publication.everywhere.filter(outlet=failed).first()
    for path in (
        "/v1/outlets",
        f"/v1/outlets/{encode('out', failed.pk)}",
        "/v1/publications?limit=100",
        f"/v1/publications/{encode('pub', publication.pk)}",
        "/v1/generated?limit=100",
        "/v1/events",
        "/v1/analytics",
    ):
        answer = api.get(path)
        assert answer.status_code == 200, path
        assert_silent(answer.content.decode(), path)


def test_no_operator_s_page_shows_it(failed):
    boss = UserFactory(email="boss@example.test", is_staff=True, is_superuser=True)
    operator = Client()
    operator.force_login(boss)
    looked_at = 0
    # An attempt is shown with its publication.
    for model in ("outlet", "publication"):
        name = f"pipeline_{model}"
        rows = apps.get_model("pipeline", model).everywhere.all()[:20]
        pages = [reverse(f"admin:{name}_changelist")]
        pages += [reverse(f"admin:{name}_change", args=[row.pk]) for row in rows]
        for address in pages:
            answer = operator.get(address)
            assert answer.status_code == 200, address
            assert_silent(answer.content.decode(), address)
            looked_at += 1
    for address in (
        reverse("admin:accounts_workspace_change", args=[failed.workspace_id]),
        reverse("admin:webhooks_endpoint_changelist"),
        reverse("admin_dead_rows"),
    ):
        assert_silent(operator.get(address).content.decode(), address)
    assert looked_at > 10


def test_no_export_and_no_doctor_holds_it(workspace, failed, capsys):
    fresh = Workspace.everywhere.get(pk=workspace.pk)
    archive = zipfile.ZipFile(io.BytesIO(b"".join(export.stream_export(fresh, actor="alice"))))
    assert "outlets.jsonl" in " ".join(archive.namelist())
    for name in archive.namelist():
        assert_silent(archive.read(name).decode("utf-8", "replace"), name)
    # Whether all is well on the machine that runs the tests isn't asked here.
    with suppress(SystemExit):
        call_command("doctor")
    assert_silent(capsys.readouterr().out, "doctor")


def test_a_number_s_failure_is_told_without_it(workspace, outlet, wall, platform, monkeypatch):
    publication = promise(make_items(workspace)[0], outlet)
    publish_steps.advance_publication(claimed(publication))
    task_runner.work_all_due("analytics.count_events")

    def metrics(self, account, sent, *, http, now):
        self._ask(account, http, "GET", "/me", now)

    monkeypatch.setattr(type(platform), "metrics", metrics)
    wall.failing = (503, "Later, {token}")
    row = Measuring.everywhere.filter(publication=publication).first()
    measure.measure(claimed(row))
    assert "[secret]" in reread(row).last_error
    for where, text in whole_database():
        assert_silent(text, where)


# --- The forms of a secret -------------------------------------------------------------------------------------------


def redactor(**credentials):
    return OutletConnection(platform_of("simulated"), Account("out", credentials=credentials), None).redact


@pytest.mark.parametrize("before", ["", "a", "ab", "alice:", "someone@example.test:"])
def test_a_secret_inside_of_base64_is_found(before):
    secret = "s3cret/pässword-4711"
    sent = b64encode(f"{before}{secret}".encode()).decode()
    told = redactor(password=secret)(f"Bad header Basic {sent} here")
    assert "[secret]" in told
    assert secret.encode()[3:-3] not in b"".join(
        piece.encode() for piece in re.findall(r"[A-Za-z0-9+/]{12,}", told)
    )
    # What is left of the header can't be read back to most of the secret.
    left = told.replace("Bad header Basic ", "").replace(" here", "")
    assert len(left.replace("[secret]", "")) <= len(sent) - len(b64encode(secret.encode())) + 8


@pytest.mark.parametrize("form", [CANARY, quote(CANARY), quote(CANARY, safe=""), json.dumps(CANARY)])
def test_a_secret_as_it_stands_in_addresses_and_json_is_found(form):
    assert (
        redactor(token=CANARY)(f"?key={form}&x") == f"?key={form.replace(form.strip(chr(34)), '[secret]')}&x"
    )


def test_a_secret_that_was_cut_is_found():
    assert redactor(token=CANARY)(f"It was {CANARY[:9]}") == "It was [secret]"
    assert redactor(token=CANARY)(f"It was {CANARY[:9]}. Later") == "It was [secret]. Later"
    assert redactor(token=CANARY)("It was canar") == "It was canar"
    # An address that only begins like a secret one is no secret.
    secret = "https://hooks.example/services/T0/B0/x"
    assert redactor(url=secret)("See https://docs.example.") == "See https://docs.example."


def test_nested_secrets_are_found_and_short_ones_left():
    redact = redactor(keys={"a": ["first-secret"]}, pin="1234")
    assert redact("first-secret 1234") == "[secret] 1234"


def test_an_open_connection_is_told_without_it(outlet):
    shown = repr(connect(outlet)) + repr(outlet.credentials) + repr(reread(outlet).__dict__)
    assert_silent(shown, "repr")


def test_an_error_of_connecting_holds_it_nowhere(connect, wall):
    wall.failing = (401, "{token} is wrong")
    with pytest.raises(AppError) as raised:
        connect(credentials={"token": CANARY})
    told, error = "", raised.value
    while error is not None:
        told += f"{error} {error.args}"
        error = None if error.__suppress_context__ else error.__context__
    assert_silent(told, "error")
