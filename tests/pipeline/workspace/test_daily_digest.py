"""Daily digest counts what waits for review."""

from __future__ import annotations

from datetime import timedelta

from accounts.models import Notice, NoticeDigest
from pipeline.models import GeneratedItem
from pipeline.review import decisions
from pipeline.workspace import daily_digest
from tests.pipeline.steps import NOON, OTHER_TEXT, claimed, make_items


def work(workspace, now):
    row = NoticeDigest.everywhere.get(workspace=workspace)
    # The workspace's clocks are at UTC.
    NoticeDigest.everywhere.filter(pk=row.pk).update(due_at=now.replace(hour=8))
    daily_digest.send_digest(claimed(row), now=now)


def digests():
    return list(Notice.everywhere.filter(kind="digest").values_list("title", "text"))


def test_it_says_how_many_wait_and_since_when(workspace, alice, charlies, clock):
    make_items(workspace)
    clock.shift(timedelta(days=1))
    [second] = make_items(workspace, url="https://news.example/second", body=OTHER_TEXT)
    make_items(charlies)
    make_items(workspace, test=True)
    work(workspace, NOON + timedelta(days=2))
    assert digests() == [
        (
            "1 event from Alice's newsroom",
            "2 items to review. Oldest: 2 days.",
        )
    ]
    decisions.reject(second, reason="Not now.", by="alice", now=NOON)
    work(workspace, NOON + timedelta(days=3))
    assert digests()[1][1] == "1 item to review. Oldest: 3 days."


def test_nothing_waits_and_nothing_is_sent(workspace):
    work(workspace, NOON)
    make_items(workspace)
    GeneratedItem.everywhere.update(deleted_at=NOON)
    work(workspace, NOON + timedelta(days=1))
    assert digests() == []


def test_a_deleted_workspace_has_no_mornings(workspace):
    make_items(workspace)
    type(workspace).everywhere.filter(pk=workspace.pk).update(deleted_at=NOON)
    work(workspace, NOON)
    assert digests() == []
    assert NoticeDigest.everywhere.get(workspace=workspace).wake_at is None
