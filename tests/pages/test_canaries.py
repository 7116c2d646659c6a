"""One canary of each kind of secret in a workspace that is used: it stands where it has to, and nowhere else.

The credentials of outlets have tests of their own: tests/pipeline/outlets/test_secrets.py.
"""

from __future__ import annotations

import io
import logging
import re
import zipfile
from base64 import b64encode

import pytest
from allauth.usersessions.models import UserSession
from django.apps import apps
from django.contrib.admin.models import LogEntry
from django.core import mail
from django.db import connection
from django.test import Client
from django.urls import NoReverseMatch, reverse

from accounts import export, members, model_keys, notices
from accounts.access import tokens
from accounts.models import AuditEntry
from config.core import task_runner
from config.core.ids import encode
from pipeline.ingest import collect
from pipeline.ingest.inbound_deliveries import secrets
from pipeline.models import Event, InboundDelivery, Outlet, Source
from pipeline.pages import public_feed
from tests.factories import UserFactory
from tests.pages.test_roles import workspace_pages
from tests.webhooks.factories import make_endpoint

PASSWORD = "a long enough canary 9"
# Addresses that work for whoever knows them are looked up by themselves; sessions are Django's.
STORED = {
    "inbound address": {"source.inbound_token"},
    "feed address": {"outlet.secret"},
    "session": {"django_session.session_key", "usersessions_usersession.session_key"},
}
# What an owner may see again: an address has to be given to whoever sends, or reads.
SHOWN_TO = {"inbound address": {"owner", "editor"}, "feed address": {"owner", "editor", "viewer"}}


@pytest.fixture
def canaries(newsroom, alice, bob, vera, django_capture_on_commit_callbacks, caplog):
    """Each secret by its kind, after everything that has one was used, in a wrong way too."""
    handler = logging.getLogger().handlers[0]
    caplog.handler.setFormatter(handler.formatter)
    caplog.set_level(logging.INFO)
    alice.set_password(PASSWORD)
    alice.save(update_fields=["password"])
    alice.mark_email_verified()
    key = tokens.issue(newsroom, name="Canary", created_by=alice).secret
    given = collect.SourceSettings(
        type="webhook",
        name="Bridge",
        config={"verification": {"type": "header", "secret": "canary-of-the-sender"}},
    )
    source = secrets.register(newsroom, given).source
    endpoint = make_endpoint(newsroom, url="http://127.0.0.1:9/hook")
    type(endpoint).everywhere.filter(pk=endpoint.pk).update(secret="whsec_Y2FuYXJ5LWNhbmFyeS1jYW5hcnkh")
    model_keys.set_model_key(newsroom, "sk-ant-canary-of-the-model", "alice@example.test")
    feed = Outlet.everywhere.get(workspace=newsroom, platform="feed")
    notices.save_preferences(
        newsroom,
        alice,
        {"post_failed": "now"},
        by_mail=True,
        slack_url="https://hooks.slack.com/services/T0001/B0001/canarycanary",
        telegram_token="123456:canary-of-the-telegram-bot",
        telegram_chat="1",
    )
    with django_capture_on_commit_callbacks(execute=True):
        members.invite(newsroom, "dora@example.test", "editor", by=alice)
    link = re.search(r"/invitations/([A-Za-z0-9_-]{43})", mail.outbox[-1].body)[1]
    browser = Client(raise_request_exception=False)
    browser.post("/account/login/", {"login": alice.email, "password": PASSWORD})
    browser.post("/account/login/", {"login": alice.email, "password": f"{PASSWORD}!"})
    Client().post("/account/login/code/", {"email": alice.email})
    code = re.search(r"\b[A-Z0-9]{3,4}-[A-Z0-9]{3,4}\b", mail.outbox[-1].body)
    assert code, mail.outbox[-1].body
    found = {
        "API key": key,
        "secret of a sender": "canary-of-the-sender",
        "secret of an endpoint": "whsec_Y2FuYXJ5LWNhbmFyeS1jYW5hcnkh",
        "model key": "sk-ant-canary-of-the-model",
        "Slack address": "hooks.slack.com/services/T0001/B0001/canarycanary",
        "Telegram token": "123456:canary-of-the-telegram-bot",
        "inbound address": source.inbound_token,
        "feed address": feed.secret,
        "invitation": link,
        "password": PASSWORD,
        "session": browser.cookies["sessionid"].value,
    }
    use(found)
    found["log-in code"] = code[0]
    return found


def use(found):
    client = Client(raise_request_exception=False)
    headers = {"Authorization": f"Bearer {found['API key']}"}
    client.post("/v1/raw", {"title": "Canary", "body": "Sings."}, "application/json", headers=headers)
    client.get("/v1/nothing", headers=headers)
    client.get("/v1/raw", headers={"Authorization": f"Bearer {found['API key']}x"})
    door = f"/hooks/{found['inbound address']}"
    for secret in (found["secret of a sender"], f"{found['secret of a sender']}x"):
        body = {"title": "Bird", "body": "Sings too."}
        client.post(door, body, "application/json", headers={"X-Webhook-Secret": secret})
    client.get(f"/feeds/{found['feed address']}.atom")
    client.get(f"/invitations/{found['invitation']}")
    task_runner.work_all_due(
        "generate.run_item", "webhooks.fan_out", "webhooks.deliver_to_endpoint", "mail.spread_notice"
    )


def found_in(canaries, text):
    return {
        kind
        for kind, secret in canaries.items()
        if secret in text or b64encode(secret.encode()).decode().rstrip("=") in text
    }


def test_no_table_holds_a_secret_in_plain(canaries):
    held = {}
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names():
            cursor.execute(f'SELECT * FROM "{table}"')
            names = [column[0] for column in cursor.description]
            for row in cursor.fetchall():
                for name, value in zip(names, row, strict=True):
                    raw = (
                        bytes(value).decode("latin-1")
                        if isinstance(value, bytes | memoryview)
                        else str(value)
                    )
                    for kind in found_in(canaries, raw):
                        held.setdefault(kind, set()).add(f"{table}.{name}")
    assert held == STORED


def test_no_log_no_mail_and_no_history_holds_a_secret(canaries, caplog, newsroom, monkeypatch):
    """Nor a page that broke: what Django tells of a failed request names its address."""

    def broken(*_, **__):
        message = "Broke"
        raise RuntimeError(message)

    monkeypatch.setattr(public_feed, "_load_entries", broken)
    monkeypatch.setattr(members, "find_invitation", broken)
    monkeypatch.setattr(secrets, "kind_of", broken)
    client = Client(raise_request_exception=False)
    for address in (
        f"/feeds/{canaries['feed address']}.atom",
        f"/invitations/{canaries['invitation']}",
        f"/hooks/{canaries['inbound address']}",
    ):
        answer = client.post(address) if "hooks" in address else client.get(address)
        assert answer.status_code == 500
        assert found_in(canaries, answer.content.decode()) == set()
    assert "unexpected_fault" in caplog.text
    assert "Internal Server Error" in caplog.text
    assert found_in(canaries, caplog.text) == set()
    letters = [f"{one.subject} {one.body} {one.alternatives}" for one in mail.outbox]
    # Those that they were sent for.
    assert set().union(*(found_in(canaries, one) for one in letters)) == {"invitation", "log-in code"}
    told = [
        str(row.__dict__)
        for row in [*AuditEntry.everywhere.all(), *Event.everywhere.all(), *LogEntry.objects.all()]
    ]
    assert len(told) > 5
    assert found_in(canaries, " ".join(told)) == set()


def test_no_export_and_no_api_holds_a_secret(canaries, newsroom):
    archive = zipfile.ZipFile(io.BytesIO(b"".join(export.stream_export(newsroom, actor="alice"))))
    for name in archive.namelist():
        assert found_in(canaries, archive.read(name).decode("utf-8", "replace")) == set(), name
    api = Client(headers={"Authorization": f"Bearer {canaries['API key']}"})
    source = encode("src", Source.objects.of(newsroom).get(name="Bridge").pk)
    shown = set()
    for path in (
        *(
            "workspace",
            "usage",
            "usage/ledger",
            "sources",
            "raw",
            "generated",
            "publications",
            "events",
            "outlets",
        ),
        *(
            "personas",
            "topics",
            "series",
            "recurrences",
            "queues",
            "openapi.json",
            f"sources/{source}/deliveries",
        ),
    ):
        answer = api.get(f"/v1/{path}")
        assert answer.status_code == 200, path
        shown |= found_in(canaries, answer.content.decode())
    assert InboundDelivery.objects.of(newsroom).count() == 2
    # Where to send and what to read is what these are for.
    assert shown == {"inbound address", "feed address"}


@pytest.mark.parametrize("who", ["owner", "editor", "viewer"])
def test_no_page_shows_a_secret(canaries, newsroom, alice, bob, vera, as_person, who):
    client = as_person({"owner": alice, "editor": bob, "viewer": vera}[who])
    client.raise_request_exception = False
    rows = {
        "src": Source.objects.of(newsroom).get(name="Bridge").pk,
        "out": Outlet.everywhere.get(workspace=newsroom, platform="feed").pk,
        "whe": apps.get_model("webhooks", "Endpoint").everywhere.get().pk,
        "tok": apps.get_model("accounts", "ApiToken").everywhere.get().pk,
    }
    opened, shown = 0, set()
    for name, _, converters in workspace_pages():
        named = {key: value for key, value in rows.items() if key in {str(key) for key in converters}}
        try:
            address = reverse(name, kwargs={"ws": newsroom.pk, **named})
        except NoReverseMatch:
            continue
        answer = client.get(address)
        content = b"".join(answer.streaming_content) if answer.streaming else answer.content
        opened += answer.status_code == 200
        shown |= {(kind, name) for kind in found_in(canaries, content.decode("utf-8", "replace"))}
    assert opened > 20
    allowed = {kind for kind, roles in SHOWN_TO.items() if who in roles}
    assert {kind for kind, _ in shown} <= allowed, shown


def test_no_operator_s_page_shows_a_secret(canaries, newsroom, as_person):
    operator = as_person(UserFactory(email="boss@example.test", is_staff=True, is_superuser=True))
    opened = 0
    pages = [reverse("workspace_overview", args=[newsroom.public_id]), "/metrics"]
    for model in apps.get_models():
        name = f"admin:{model._meta.app_label}_{model._meta.model_name}"
        try:
            pages.append(reverse(f"{name}_changelist"))
        except NoReverseMatch:
            continue
        for row in model._base_manager.all()[:2]:
            pages += [reverse(f"{name}_{one}", args=[row.pk]) for one in ("change", "history")]
    for address in pages:
        answer = operator.get(address)
        assert answer.status_code == 200, address
        opened += 1
        assert found_in(canaries, answer.content.decode()) == set(), address
    assert opened > 40


def test_no_model_tells_a_secret_of_itself(canaries):
    """What a debugger, a report of an error or a log of ours writes of a row."""
    for model in apps.get_models():
        for row in model._base_manager.all()[:20]:
            where = model._meta.label
            known = {"session"} if where in {"sessions.Session", "usersessions.UserSession"} else set()
            assert found_in(canaries, f"{row!r} {row}") - known == set(), where
    assert UserSession.objects.count() > 0
