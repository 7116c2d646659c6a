"""The workspace's pages in a browser: settings, model key, export, deletion and its undo."""

from __future__ import annotations

import zipfile
from datetime import UTC, datetime, timedelta

import pytest
import time_machine
from django.core.cache import cache

from accounts.models import AuditEntry
from tests.browser.people import PASSWORD, log_in, look_over
from tests.pages.answers import at
from tests.pipeline.steps import reread

pytestmark = pytest.mark.django_db(transaction=True)
KEY = "sk-ant-api03-A1b2C3d4E5f6G7h8-wxyz"


def test_settings_key_and_cap(page, newsroom):
    log_in(page, newsroom.alice, at(newsroom, "workspace"))
    look_over(page, "workspace")
    page.get_by_label("Name").fill("Harbour news")
    page.get_by_label("Approval").check()
    page.get_by_role("button", name="Save").click()
    page.get_by_text("Saved.").wait_for()
    assert (reread(newsroom).name, reread(newsroom).requires_approval) == ("Harbour news", True)
    page.get_by_role("link", name="Add a model key").click()
    page.get_by_role("dialog").wait_for()
    look_over(page, "workspace-key-dialog")
    page.get_by_role("dialog").get_by_label("Key").fill(KEY)
    page.get_by_role("dialog").get_by_role("button", name="Save key").click()
    page.get_by_text("wxyz").wait_for()
    assert reread(newsroom).model_key.open() == KEY
    page.get_by_role("link", name="Set a cap").click()
    page.get_by_role("dialog").get_by_label("US dollars per month").fill("20")
    page.get_by_role("dialog").get_by_role("button", name="Save").click()
    page.get_by_text("20.00 US dollars per month").wait_for()
    look_over(page, "workspace-with-key")
    page.get_by_role("link", name="Remove the key").click()
    page.get_by_role("dialog").wait_for()
    look_over(page, "workspace-key-remove-dialog")
    page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    page.get_by_text("Key removed.").wait_for()
    assert reread(newsroom).model_key is None


def test_export(page, newsroom, tmp_path):
    log_in(page, newsroom.alice, at(newsroom, "workspace"))
    # A second one right away is refused; the button works again after a download, which leaves the page as it is.
    for _ in range(2):
        cache.clear()
        with page.expect_download() as waiting:
            page.get_by_role("button", name="Download").click()
        waiting.value.save_as(tmp_path / "export.zip")
        with zipfile.ZipFile(tmp_path / "export.zip") as archive:
            assert archive.testzip() is None
            assert b'"name": "Newsroom"' in archive.read("workspace.jsonl")
    assert AuditEntry.objects.of(newsroom).filter(action="workspace.exported").count() == 2


def test_delete_and_undo(page, newsroom):
    log_in(page, newsroom.alice, at(newsroom, "workspace"))
    # The log-in is older than a quarter of an hour.
    with time_machine.travel(datetime.now(UTC) + timedelta(minutes=16)):
        page.get_by_role("link", name="Delete").click()
        page.get_by_label("Password").fill(PASSWORD)
        look_over(page, "reauthenticate")
        page.get_by_role("button", name="Continue").click()
        page.get_by_role("heading", name="Delete Newsroom?").wait_for()
    look_over(page, "workspace-delete")
    page.get_by_label("Name").fill("newsroom")
    page.get_by_role("button", name="Delete workspace").click()
    page.get_by_text("Type the name exactly as it is: Newsroom").wait_for()
    page.get_by_label("Name").fill("Newsroom")
    page.get_by_role("button", name="Delete workspace").click()
    page.get_by_text("This workspace will be deleted on").wait_for()
    look_over(page, "workspace-deleting")
    assert reread(newsroom).deletes_at is not None
    page.goto(at(newsroom, "home"))
    page.get_by_role("button", name="Undo").click()
    page.get_by_text("Newsroom won't be deleted.").wait_for()
    assert reread(newsroom).deletes_at is None
