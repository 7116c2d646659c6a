"""What is forgotten, when, and what never: the table, each job at its border, and killed in the middle."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from django.contrib.sessions.models import Session

from accounts.access import idempotency
from accounts.models import IdempotencyKey
from config.core import crash_points, ids, jobs
from config.operations import media_sweep, retention
from pipeline.media import media_root_id
from pipeline.models import Asset, Event, GeneratedItem
from pipeline.states import ITEMS_IN_MAKING
from tests.documents.text import ROOT, between, read, rows
from tests.operations import machine
from tests.pipeline.steps import make_items
from tests.webhooks.factories import NOON, make_delivery, make_endpoint, make_event
from webhooks import retention as webhooks
from webhooks.models import Delivery, DeliveryAttempt

JUST = timedelta(microseconds=1)


@pytest.fixture(autouse=True)
def _fresh(monkeypatch, settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path / "media"
    monkeypatch.setattr(media_sweep, "_round", {})
    monkeypatch.setitem(media_sweep._refused_until, "at", 0.0)


def test_the_table_is_in_the_documents():
    listed = [cells[0] for cells in rows(between(read("running.md"), "retention"))]
    assert listed == [kept.what for kept in retention.RULES]


def test_the_hands_have_one_job_for_all_of_it():
    assert [name for name in jobs.jobs() if "retention" in name or "forget" in name] == [
        "housekeeping.forget_old_rows"
    ]


def keep(workspace, *ages):
    for number, age in enumerate(ages):
        IdempotencyKey.everywhere.create(
            workspace=workspace,
            key=f"k{number}",
            request_digest=b"d" * 32,
            status=201,
            body=b"{}",
            created_at=datetime.now(UTC) - age,
        )


def test_answers_are_forgotten_after_48_hours(workspace, monkeypatch):
    monkeypatch.setattr(idempotency, "_DELETED_AT_ONCE", 2)
    keep(workspace, *[timedelta(hours=49)] * 3, timedelta(hours=47))
    assert [retention.forget_some() for _ in range(3)] == [2, 1, 0]
    assert [row.key for row in IdempotencyKey.everywhere.all()] == ["k3"]


def test_a_round_that_finds_nothing_costs_so_many_queries(workspace, settings, django_assert_num_queries):
    settings.MEDIA_ROOT.mkdir()
    # The media folder was walked today.
    (settings.MEDIA_ROOT / media_sweep.MARK).touch()
    with django_assert_num_queries(26):
        assert retention.forget_some() == 0


def test_sessions_end_when_they_expire(db, monkeypatch):
    monkeypatch.setattr(retention, "BATCH_SIZE", 2)
    for number, expires in enumerate([NOON - JUST] * 3 + [NOON]):
        Session.objects.create(session_key=f"s{number}", session_data="", expire_date=expires)
    assert [retention.forget_sessions(NOON) for _ in range(3)] == [2, 1, 0]
    assert [row.pk for row in Session.objects.filter()] == ["s3"]


def test_events_are_emptied_after_30_days(db, monkeypatch):
    monkeypatch.setattr(webhooks, "RETENTION_ROWS", 2)
    workspace_id = make_endpoint().workspace_id
    for _ in range(3):
        make_event(workspace_id, created_at=NOON - timedelta(days=30) - JUST)
    young = make_event(workspace_id, created_at=NOON - timedelta(days=30))
    assert [webhooks.empty_events(NOON) for _ in range(3)] == [2, 1, 0]
    assert list(Event.everywhere.filter(body__isnull=False).values_list("pk", flat=True)) == [young.pk]
    assert Event.everywhere.count() == 4


def test_attempts_and_ended_deliveries_go_after_90_days(db):
    endpoint = make_endpoint()
    old, young = (
        ids.lowest_id_at(NOON - timedelta(days=90, milliseconds=1)),
        ids.lowest_id_at(NOON - timedelta(days=90)),
    )

    def deliver(key, status, *attempts):
        row = make_delivery(endpoint, pk=key)
        Delivery.everywhere.filter(pk=row.pk).update(status=status)
        for number, at in enumerate(attempts, start=1):
            DeliveryAttempt.everywhere.create(
                workspace_id=endpoint.workspace_id, delivery=row, number=number, started_at=at
            )
        return row.pk

    long_ago = NOON - timedelta(days=90)
    over = deliver(old, "delivered", long_ago - JUST)
    kept = {
        deliver(young, "delivered", long_ago),
        # Still tried; and sent again by hand the other day.
        deliver(ids.UUID(int=old.int + 1), "pending"),
        deliver(ids.UUID(int=old.int + 2), "failed", long_ago - JUST, NOON),
    }
    assert [webhooks.forget_attempts(NOON) for _ in range(2)] == [2, 0]
    assert [webhooks.forget_deliveries(NOON) for _ in range(2)] == [1, 0]
    there = set(Delivery.everywhere.values_list("pk", flat=True))
    assert (over in there, there) == (False, kept)


def test_first_of_is_the_border_between_ids():
    made = ids.uuid7()
    moment = datetime.fromtimestamp((made.int >> 80) / 1000, UTC)
    assert ids.lowest_id_at(moment) <= made < ids.lowest_id_at(moment + timedelta(milliseconds=1))


# --- Media -----------------------------------------------------------------------------------------------------------

NOW = datetime(2027, 3, 1, 12, tzinfo=UTC)


def put(root, name, **age):
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x")
    moment = (NOW - timedelta(**age)).timestamp()
    os.utime(path, (moment, moment))
    return path


def sweep():
    while media_sweep.sweep_some(NOW):
        pass


def there(root):
    found = {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}
    return {path for path in found if not path.startswith((".swept", ".instance", ".trash/"))}


def resting(root):
    return there(root / ".trash")


@pytest.fixture
def item(workspace):
    media_root_id.adopt_folder()
    return make_items(workspace)[0]


def asset(item, path, **changes):
    return Asset.everywhere.create(
        workspace_id=item.workspace_id,
        item=item,
        name=path,
        path=f"{item.pk.hex}/{path}",
        mime_type="image/png",
        bytes=1,
        sha256="0" * 64,
        **changes,
    )


def test_only_files_that_no_served_row_names_are_swept(item, settings):
    root, home = settings.MEDIA_ROOT, item.pk.hex
    # Its pictures, whose rows are served; by this test's clock they are months old.
    drawn = there(root)
    assert len(drawn) == 2
    asset(item, "served.png")
    asset(item, "revoked.png", revoked_at=NOW)
    for name in ("served.png", "revoked.png", "gone.png"):
        put(root, f"{home}/{name}", days=8)
    put(root, f"{home}/young.png", days=6)
    put(root, f"{home}/a.png.1.part", hours=25)
    put(root, f"{home}/b.png.2.part", hours=23)
    # Of a row that was deleted, of a kind that this job doesn't know, of a restore that was broken off.
    orphan = f"{uuid4().hex}/orphan.png"
    put(root, orphan, days=8)
    put(root, "uploads/logo.png", days=800)
    put(root, "uploads/logo.png.3.part", days=2)
    put(root, ".restoring/media/x.png", days=2)
    os.utime(root / ".restoring", (NOW.timestamp() - 2 * 86400,) * 2)
    sweep()
    assert there(root) == {
        *drawn,
        f"{home}/served.png",
        f"{home}/young.png",
        f"{home}/b.png.2.part",
        "uploads/logo.png",
    }
    assert resting(root) == {f"{home}/revoked.png", f"{home}/gone.png", orphan}


@pytest.mark.parametrize("status", sorted(ITEMS_IN_MAKING))
def test_what_was_deleted_while_it_was_made_goes(item, settings, status):
    GeneratedItem.everywhere.filter(pk=item.pk).update(status=status, deleted_at=NOW)
    Asset.everywhere.filter(item=item).delete()
    put(settings.MEDIA_ROOT, f"{item.pk.hex}/film.mp4", days=800)
    sweep()
    assert f"{item.pk.hex}/film.mp4" in resting(settings.MEDIA_ROOT)


@pytest.mark.parametrize("status", sorted(ITEMS_IN_MAKING))
def test_what_a_run_has_drawn_waits_for_its_rows(item, settings, status):
    GeneratedItem.everywhere.filter(pk=item.pk).update(status=status)
    Asset.everywhere.filter(item=item).delete()
    put(settings.MEDIA_ROOT, f"{item.pk.hex}/drawn.png", days=800)
    before = there(settings.MEDIA_ROOT)
    sweep()
    assert there(settings.MEDIA_ROOT) == before
    GeneratedItem.everywhere.filter(pk=item.pk).update(status="ready")
    os.utime(settings.MEDIA_ROOT / media_sweep.MARK, (0, 0))
    sweep()
    assert there(settings.MEDIA_ROOT) == set()


def test_a_round_begins_once_a_day_and_goes_in_pieces(db, settings, monkeypatch):
    monkeypatch.setattr(media_sweep, "FOLDERS_PER_BATCH", 2)
    for number in range(3):
        put(settings.MEDIA_ROOT, f"folder{number}/x.part", days=2)
    assert [media_sweep.sweep_some(NOW) for _ in range(3)] == [2, 1, 0]
    assert there(settings.MEDIA_ROOT) == set()
    put(settings.MEDIA_ROOT, "folder0/x.part", days=2)
    almost = NOW + timedelta(hours=23, minutes=59)
    assert [media_sweep.sweep_some(almost), media_sweep.sweep_some(NOW + timedelta(hours=24))] == [0, 1]
    assert there(settings.MEDIA_ROOT) == set()


# --- Killed in the middle --------------------------------------------------------------------------------------------

FILL = """
import os
from datetime import timedelta
from django.conf import settings
from django.utils import timezone
from accounts import workspaces
from accounts.models import IdempotencyKey
w = workspaces.create("Alice's newsroom")
for number, hours in enumerate((49, 49, 47)):
    IdempotencyKey.everywhere.create(workspace=w, key=str(number), request_digest=b"d" * 32, status=201, body=b"{}",
                                     created_at=timezone.now() - timedelta(hours=hours))
for name in ("a.part", "b.part", "c.png"):
    path = settings.MEDIA_ROOT / "folder" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x")
    os.utime(path, (0, 0))
"""
WORK = "from config.core import task_runner; task_runner.work_all_due('housekeeping.forget_old_rows')"
LEFT = """
import json, os
from django.conf import settings
from accounts.models import IdempotencyKey
print(json.dumps([IdempotencyKey.everywhere.count(), sorted(os.listdir(settings.MEDIA_ROOT / "folder"))]))
"""


def test_every_crash_point_of_the_operators_is_killed_at():
    said = "".join(path.read_text() for path in (ROOT / "tests/operations").glob("test_*.py"))
    points = {
        point for point in crash_points.POINTS if point.startswith(("backup.", "restore.", "retention."))
    }
    assert len(points) == 13
    assert {point for point in points if f'"{point}"' not in said} == set()


@pytest.mark.postgres_if_there
@pytest.mark.slow
def test_killed_in_the_middle_the_next_look_goes_on(tmp_path):
    one = machine.make(tmp_path / "data")
    one.shell(FILL)
    one.manage("shell", "-v", "0", "-c", WORK, crash_at="retention.forgotten")
    assert one.shell(LEFT) == '[1, ["a.part", "b.part", "c.png"]]'
    one.manage("shell", "-v", "0", "-c", WORK, crash_at="retention.unlinked")
    assert one.shell(LEFT) in {'[1, ["a.part", "c.png"]]', '[1, ["b.part", "c.png"]]'}
    # A round that broke off is walked again the next day.
    os.utime(one.media / ".swept", (0, 0))
    one.shell(WORK)
    assert one.shell(LEFT) == '[1, ["c.png"]]'
    one.drop()
