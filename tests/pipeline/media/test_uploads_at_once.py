"""An upload that one lets go while another begins to use it, and one that is due though it is used."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Event
from time import monotonic, sleep

import pytest
from django.db import connection, transaction

from pipeline.media import media_root_id, uploads
from pipeline.models import Upload, UploadUse
from tests.pipeline.steps import NOON, push_raw

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def upload(workspace, settings, tmp_path):
    settings.MEDIA_ROOT = tmp_path / "media"
    # Its file isn't there; the folder is the database's all the same.
    media_root_id.adopt_folder()
    return Upload.everywhere.create(
        workspace=workspace, kind="image", mime_type="image/png", path="a/b.png", bytes=1, sha256="0" * 64
    )


def use(upload, raw):
    with transaction.atomic():
        uploads.mark_used(upload.workspace_id, [upload.pk], raw_item=raw, now=NOON)


def test_a_used_upload_is_never_forgotten(workspace, upload):
    use(upload, push_raw(workspace).raw_item)
    Upload.everywhere.update(expires_at=NOON - timedelta(days=1))
    assert uploads.delete_expired(NOON) == 0
    assert Upload.everywhere.get().expires_at is None
    assert UploadUse.everywhere.count() == 1


@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite has one writer at a time")
def test_what_another_begins_to_use_stays(workspace, upload):
    first, second = (push_raw(workspace, title=title).raw_item for title in ("One", "Two"))
    use(upload, first)
    is_used = Event()

    def uses():
        try:
            with transaction.atomic():
                uploads.mark_used(workspace.pk, [upload.pk], raw_item=second, now=NOON)
                is_used.set()
                wait_for_waiting()
        finally:
            connection.close()

    def lets_go():
        try:
            is_used.wait(60)
            with transaction.atomic():
                uploads.release(now=NOON, raw_item=first)
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as threads:
        for one in [threads.submit(uses), threads.submit(lets_go)]:
            one.result(90)
    assert Upload.everywhere.get().expires_at is None
    assert uploads.delete_expired(NOON + timedelta(days=30)) == 0


def wait_for_waiting():
    """Until the other waits for a lock of ours."""
    until = monotonic() + 60
    with connection.cursor() as cursor:
        while monotonic() < until:
            cursor.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE pg_backend_pid() = ANY(pg_blocking_pids(pid))"
            )
            if cursor.fetchone()[0]:
                return
            sleep(0.05)
    raise AssertionError("nobody waited")
