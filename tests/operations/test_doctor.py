"""manage.py doctor: a line per check, what to do, and an exit code."""

from __future__ import annotations

import io
import json
import os
import re
import time
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from cryptography.fernet import Fernet
from django.core.management import call_command
from django.db import connection

from config import database_connections
from config.core import work_leases
from config.operations import doctor, health, queue_stats, unfinished_restore
from pipeline.models import Outlet, Source, Worker

pytestmark = pytest.mark.django_db

NAMES = [
    "settings",
    "database",
    "migrations",
    "connections",
    "broker",
    "clock",
    "restore",
    "media",
    "fonts",
    "disk",
    "backups",
    "outbound",
    "keys",
    "platforms",
    "dispatcher",
    "late rows",
    "dead sources",
    "dead raw items",
    "dead generated items",
    "dead persona drafts",
    "dead publications",
    "dead deliveries",
]


@pytest.fixture(autouse=True)
def _ground(settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path / "media"
    settings.REDIS_URL = ""
    # Nobody listens there.
    settings.PORT = 9


def verdict(name):
    return next((one.verdict, one.said) for one in doctor.examine() if one.name == name)


def run(*options):
    out = io.StringIO()
    try:
        call_command("doctor", *options, stdout=out)
    except SystemExit as error:
        return error.code, out.getvalue()
    return 0, out.getvalue()


def test_a_sound_instance_passes(workspace):
    code, said = run("--json")
    told = json.loads(said)
    assert (code, told["ok"]) == (0, True)
    assert [check["name"] for check in told["checks"]] == NAMES
    assert {check["name"]: check["verdict"] for check in told["checks"] if check["verdict"] != "ok"} == {
        "dispatcher": "warn"
    }


def test_lines_say_what_to_do(workspace):
    code, said = run()
    assert code == 0
    assert "warn  dispatcher             No service answers at port 9.\n" in said
    assert "→ Start beat and a worker; in the embedded mode, manage.py serve." in said


def test_fonts_that_may_be_missing_are_named():
    (fonts,) = [one for one in doctor.examine() if one.name == "fonts"]
    assert "can't show Chinese, Japanese and Korean here" in fonts.said
    assert fonts.advice == "Install Debian's package fonts-noto-cjk."


def test_media_that_cannot_be_written_to_fails(settings, tmp_path):
    (tmp_path / "file").write_text("not a folder")
    settings.MEDIA_ROOT = tmp_path / "file"
    assert verdict("media")[0] == "FAIL"
    assert run()[0] == 1


@pytest.mark.parametrize(
    ("loopback", "private", "expected"), [(False, False, "ok"), (True, False, "FAIL"), (False, True, "warn")]
)
def test_the_guard_of_production(settings, loopback, private, expected):
    settings.IS_DEVELOPMENT = False
    settings.OUTBOUND_ALLOW_LOOPBACK = loopback
    settings.OUTBOUND_ALLOW_PRIVATE = private
    assert verdict("outbound")[0] == expected


def test_a_missing_key_is_named(settings, workspace):
    Outlet.everywhere.filter(workspace=workspace, platform="simulated").update(credentials={"secret": "x"})
    assert verdict("keys") == ("ok", "They decrypt the stored secrets (2 values tried).")
    settings.FIELD_KEYS = [f"k9:{Fernet.generate_key().decode()}"]
    found, said = verdict("keys")
    assert found == "FAIL"
    assert "outlet.credentials" in said


@pytest.mark.postgres
def test_connections_of_web_and_living_workers_are_compared_with_what_postgres_admits(settings):
    settings.WEB_PROCESSES = 2
    allowed = database_connections.connections_of_server()
    web = 2 * settings.WEB_CONNECTIONS
    work_leases.note_worker("one", {"generate": 2}, connections=6)
    work_leases.start_worker()
    work_leases.note_worker("two", {"publish": 24}, connections=allowed - web - 6)
    said = f"Web of one machine and 2 workers may open {allowed}; PostgreSQL admits {allowed}."
    assert verdict("connections") == ("ok", said)
    settings.WEB_PROCESSES = 3
    assert verdict("connections")[0] == "warn"
    # Its web process is the only one.
    Worker.everywhere.filter(name="one").update(name="embedded")
    assert verdict("connections")[0] == "ok"
    Worker.everywhere.filter(name="two").update(connections=5 * allowed)
    assert verdict("connections")[0] == "warn"
    Worker.everywhere.filter(name="two").update(seen_at=datetime.now(UTC) - timedelta(minutes=1))
    assert verdict("connections")[0] == "ok"


def test_a_clock_that_is_apart(monkeypatch):
    monkeypatch.setattr(doctor, "database_now", lambda: datetime.now(UTC) - timedelta(seconds=5))
    assert verdict("clock") == ("warn", "It is 5 s apart from the database's.")
    monkeypatch.setattr(doctor, "database_now", lambda: datetime.now(UTC) - timedelta(seconds=50))
    assert verdict("clock")[0] == "FAIL"


def test_a_redis_that_is_away(settings):
    settings.REDIS_URL = "redis://127.0.0.1:9/0"
    assert verdict("broker") == ("FAIL", "Redis doesn't answer.")
    assert verdict("dispatcher") == ("FAIL", "It didn't run within the last hour.")


def test_a_database_that_takes_no_writes(monkeypatch):
    full = health.HealthCheck("database", ok=False, detail="The disk of the database is full.")
    monkeypatch.setattr(health, "writable_database", lambda: full)
    (found,) = [one for one in doctor.examine() if one.name == "database"]
    assert (found.verdict, found.said) == ("FAIL", full.detail)
    assert found.advice.startswith("Free some space")


def test_a_migration_that_is_not_applied(monkeypatch):
    monkeypatch.setattr(
        doctor.MigrationExecutor, "migration_plan", lambda self, targets: [("x.0009_y", False)]
    )
    assert verdict("migrations") == ("FAIL", "Not applied: 1 (x.0009_y).")


def test_dead_and_late_rows_are_told(workspace, one_minute):
    long_ago = datetime.now(UTC) - timedelta(minutes=5)
    Source.everywhere.create(workspace=workspace, name="Old", type="rss", wake_at=long_ago)
    dead = Source(workspace=workspace, name="Gone", type="rss")
    dead.status = "gone"
    dead.save(force_insert=True)
    assert verdict("dead sources") == ("warn", "1.")
    # By the database's own clock, which doesn't stand.
    assert re.match(r"ingest.poll_source: 1 due, the oldest for 30\d s", verdict("late rows")[1])
    assert queue_stats.dead_counts() == {
        "sources": 1,
        "raw_items": 0,
        "generated_items": 0,
        "persona_drafts": 0,
        "publications": 0,
        "deliveries": 0,
    }


def test_a_check_that_breaks_hides_no_other(monkeypatch):
    def broken():
        raise RuntimeError("secret address")

    monkeypatch.setattr(doctor.health, "broker", broken)
    assert verdict("broker") == ("FAIL", "The check itself failed: RuntimeError.")
    assert verdict("migrations")[0] == "ok"


@pytest.fixture
def half(db):
    with connection.cursor() as cursor:
        cursor.execute(unfinished_restore.CREATE_TABLE_SQL)
    yield
    unfinished_restore.clear_mark()


@pytest.mark.usefixtures("half")
def test_a_restore_that_is_not_over_is_told_everywhere(client):
    assert verdict("restore") == ("FAIL", unfinished_restore.MESSAGE)
    answer = client.get("/readyz")
    assert answer.status_code == 503
    told = {check["name"]: check for check in answer.json()["checks"]}
    assert told["restore"] == {"name": "restore", "ok": False, "detail": unfinished_restore.MESSAGE}


def test_readiness_says_nothing_of_restores_otherwise(client):
    assert [check["name"] for check in client.get("/readyz").json()["checks"]] == [
        "database",
        "media",
        "broker",
        "dispatcher",
    ]


@pytest.mark.parametrize(("free", "expected"), [(100 * 2**20, "FAIL"), (2**30, "warn"), (50 * 2**30, "ok")])
def test_a_disk_that_fills_up(monkeypatch, settings, free, expected):
    def usage(path):
        return SimpleNamespace(free=50 * 2**30 if path == settings.DATA_DIR else free)

    monkeypatch.setattr(doctor.shutil, "disk_usage", usage)
    found, said = verdict("disk")
    assert (found, f"{settings.MEDIA_ROOT} has {free / 2**30:.1f} GiB free" in said) == (expected, True)


@pytest.mark.parametrize(("hours", "expected"), [(2, "ok"), (35, "ok"), (37, "warn")])
def test_the_age_of_the_newest_backup(settings, tmp_path, hours, expected):
    settings.BACKUP_DIR = str(tmp_path)
    assert verdict("backups") == ("FAIL", f"{tmp_path} holds no backup.")
    for name, age in (("pipeline-20260101T000000Z.tar.gz", 900), ("pipeline-20260102T000000Z.tar.gz", hours)):
        (tmp_path / name).write_bytes(b"x")
        os.utime(tmp_path / name, (time.time() - age * 3600 - 60,) * 2)
    # What a killed run left is no backup.
    (tmp_path / "pipeline-20260103T000000Z.tar.gz.part").write_bytes(b"x")
    assert verdict("backups") == (expected, f"2; the newest is {hours} h old.")


def test_production_is_told_to_keep_backups(settings):
    settings.BACKUP_DIR = ""
    assert verdict("backups")[0] == "ok"
    settings.IS_DEVELOPMENT = False
    assert verdict("backups")[0] == "warn"
