"""manage.py rotate_keys: every sealed value anew, under load, and nothing that others write is lost."""

from __future__ import annotations

import threading
import time

import pytest
from cryptography.fernet import Fernet
from django.apps import apps
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.urls import reverse

from accounts import model_keys, workspaces
from config.core.encrypted_fields import SealedTextField
from config.operations import rotate_keys
from pipeline.models import Outlet
from tests.factories import UserFactory
from tests.webhooks.factories import make_endpoint

OLD, NEW = (f"{name}:{Fernet.generate_key().decode()}" for name in ("old", "new"))


@pytest.fixture
def newsroom(db, settings):
    settings.FIELD_KEYS = [OLD]
    alice = UserFactory(email="alice@example.test")
    workspace = workspaces.create("Newsroom", owner=alice)
    workspaces.whitelist(workspace, "operator@example.test")
    model_keys.set_model_key(workspace, "sk-ant-1234567890123456", "alice")
    make_endpoint(workspace, url="http://127.0.0.1:9/hook")
    workspace.alice = alice
    return workspace


def make_outlets(workspace, count):
    return [
        Outlet.everywhere.create(
            workspace=workspace, platform="feed", name=f"Outlet {number}", credentials={"n": 0, "of": number}
        )
        for number in range(count)
    ]


def run(*arguments):
    try:
        call_command("rotate_keys", *arguments)
    except SystemExit as stop:
        return stop.code
    return 0


def stored(outlet):
    with connection.cursor() as cursor:
        cursor.execute("SELECT credentials FROM outlet WHERE name = %s", [outlet.name])
        return cursor.fetchone()[0]


def opened(outlet):
    return Outlet.everywhere.get(pk=outlet.pk).credentials.open_object()


def test_every_sealed_column_is_known():
    found = {
        f"{model._meta.db_table}.{field.column}"
        for model in apps.get_models()
        for field in model._meta.get_fields()
        if isinstance(field, SealedTextField)
    }
    assert found == set(map(str, rotate_keys.sealed_columns()))
    assert {"outlet.credentials", "endpoint.secret", "workspace.model_key"} <= found


def test_everything_is_sealed_anew_and_opens(newsroom, settings, capsys):
    outlets = make_outlets(newsroom, rotate_keys.BATCH_SIZE + 3)
    settings.FIELD_KEYS = [NEW, OLD]
    assert run("--check") == 1
    said = capsys.readouterr().out
    assert f"outlet.credentials: {len(outlets)} encrypted with old" in said
    assert "Not everything is encrypted with new." in said
    assert run() == 0
    said = capsys.readouterr().out
    assert f"outlet.credentials: {len(outlets)} encrypted again\n" in said
    assert "Everything is encrypted with new." in said
    # The old one can go now.
    settings.FIELD_KEYS = [NEW]
    assert run("--check") == 0
    assert [opened(one)["of"] for one in outlets] == list(range(len(outlets)))
    workspace = type(newsroom).everywhere.get(pk=newsroom.pk)
    assert workspace.model_key.open() == "sk-ant-1234567890123456"


def test_begun_again_it_does_only_what_is_left(newsroom, settings, capsys, monkeypatch):
    outlets = make_outlets(newsroom, 5)
    settings.FIELD_KEYS = [NEW, OLD]
    original, turned = rotate_keys._rotate_value, []

    def dies(column, key, value):
        if len(turned) == 3:
            raise KeyboardInterrupt
        turned.append(key)
        return original(column, key, value)

    monkeypatch.setattr(
        rotate_keys, "sealed_columns", lambda: [rotate_keys.Column("outlet", "id", "credentials")]
    )
    with monkeypatch.context() as patch:
        patch.setattr(rotate_keys, "_rotate_value", dies)
        with pytest.raises(KeyboardInterrupt):
            run()
    assert run() == 0
    assert "outlet.credentials: 2 encrypted again" in capsys.readouterr().out
    assert [opened(one)["of"] for one in outlets] == [0, 1, 2, 3, 4]


def test_what_somebody_writes_meanwhile_is_kept(newsroom, settings, capsys, monkeypatch):
    (outlet,) = make_outlets(newsroom, 1)
    settings.FIELD_KEYS = [NEW, OLD]
    original = rotate_keys.seal

    def meanwhile(value):
        if '"n": 0' in value:
            Outlet.everywhere.filter(pk=outlet.pk).update(credentials={"n": 1, "of": 0})
        return original(value)

    monkeypatch.setattr(rotate_keys, "seal", meanwhile)
    assert run() == 0
    assert (
        "outlet.credentials: 0 encrypted again, 1 changed by others in the meantime"
        in capsys.readouterr().out
    )
    assert opened(outlet) == {"n": 1, "of": 0}


def test_what_no_key_opens_is_told_and_left(newsroom, settings, capsys):
    (outlet,) = make_outlets(newsroom, 1)
    before = stored(outlet)
    settings.FIELD_KEYS = [NEW]
    assert run() == 1
    said = capsys.readouterr().out
    assert "outlet.credentials: 0 encrypted again, 1 that no key decrypts" in said
    assert "old: " in said
    assert "which isn't in FIELD_KEYS" in said
    assert stored(outlet) == before


class Load:
    """Threads that read, write and ask until they are told to stop; `written` is what each outlet holds in the end."""

    def __init__(self, workspace, outlets):
        self.outlets, self.workspace = outlets, workspace
        self.done = threading.Event()
        self.faults, self.written = [], {}
        self.count = {"read": 0, "write_even": 0, "write_odd": 0, "ask": 0}
        self.browser = Client()
        self.browser.force_login(workspace.alice)
        self.threads = [threading.Thread(target=self.loop, args=[name]) for name in self.count]

    def loop(self, name):
        try:
            while not self.done.is_set():
                getattr(self, name)()
                self.count[name] += 1
        except Exception as error:
            self.faults.append(f"{name}: {error!r}")
        finally:
            connection.close()

    def read(self):
        for number, one in enumerate(self.outlets[::7]):
            assert opened(one)["of"] == 7 * number

    def write(self, first):
        for number in range(first, 20, 2):
            n = self.written.get(number, 0) + 1
            Outlet.everywhere.filter(pk=self.outlets[number].pk).update(credentials={"n": n, "of": number})
            self.written[number] = n

    def write_even(self):
        self.write(0)

    def write_odd(self):
        self.write(1)

    def ask(self):
        pages = (("outlets_page", {}), ("outlet_page", {"out": self.outlets[3].pk}), ("webhooks", {}))
        for name, more in pages:
            answer = self.browser.get(reverse(name, kwargs={"ws": self.workspace.pk, **more}))
            assert answer.status_code == 200, (name, answer.status_code)

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.done.set()
        for thread in self.threads:
            thread.join(60)


@pytest.mark.django_db(transaction=True)
def test_no_request_fails_while_it_runs(newsroom, settings):
    outlets = make_outlets(newsroom, 60)
    settings.FIELD_KEYS = [NEW, OLD]
    with Load(newsroom, outlets) as load:
        assert run() == 0
        until = time.monotonic() + 30
        while min(load.count.values()) < 2 and not load.faults and time.monotonic() < until:
            time.sleep(0.05)
    assert load.faults == []
    assert min(load.count.values()) >= 2
    settings.FIELD_KEYS = [NEW]
    assert run("--check") == 0
    assert [opened(one) for one in outlets] == [
        {"n": load.written.get(number, 0), "of": number} for number in range(len(outlets))
    ]
