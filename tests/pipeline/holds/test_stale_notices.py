"""People hear of it when what is published was made of an entry that changed, or was withdrawn, since."""

from __future__ import annotations

import pytest
from django.db import transaction

from accounts import notices
from accounts.models import Membership, Notice, NoticeDigest, NoticeMessage
from pipeline.holds import source_changes
from pipeline.models import RawItem
from pipeline.review import decisions
from pipeline.workspace import daily_digest
from tests.factories import MembershipFactory
from tests.pipeline import steps
from tests.pipeline.steps import NOON, claimed, push_raw, reread

pytestmark = pytest.mark.django_db
SECOND = "The tram line was not approved after all: the council votes again in May, said the mayor on Friday evening."
THIRD = "The tram line was approved on Tuesday: the council voted a second time, the mayor said, and it was unanimous."


@pytest.fixture
def out(workspace, feed):
    """An entry with all that was made of it, published."""
    raw = push_raw(workspace, external_id="tram", url="").raw_item
    steps.run_generations(raw)
    items = steps.items_of(raw)
    for item in items:
        steps.send(steps.promise(item, feed))
    return raw, [reread(item) for item in items]


def told():
    return list(
        Notice.everywhere.filter(kind="item_flagged").order_by("id").values_list("key", "title", "path")
    )


def edit(workspace, body):
    return push_raw(workspace, external_id="tram", url="", body=body)


def test_an_edit_of_the_entry_is_told_once_for_all_that_was_made_of_it(workspace, out):
    raw, items = out
    assert {item.status for item in items} == {"published"}
    edit(workspace, SECOND)
    ((key, title, path),) = told()
    assert (key, path) == (f"{raw.pk.hex}:source_changed:2", "#flagged")
    assert title.startswith("The source of “")
    text = Notice.everywhere.get(kind="item_flagged").text
    assert text.startswith(f"{len(items)} published item")
    assert "then approve to clear this notice." in text
    # Pushed again as it is, and changed while the mark still stands: nothing new to do.
    edit(workspace, SECOND)
    edit(workspace, THIRD)
    assert len(told()) == 1


def test_a_further_edit_is_told_after_somebody_looked(workspace, out):
    raw, items = out
    edit(workspace, SECOND)
    for item in items:
        decisions.approve(reread(item), by="alice", now=NOON)
    edit(workspace, THIRD)
    assert [key for key, *_ in told()] == [f"{raw.pk.hex}:source_changed:{n}" for n in (2, 3)]


def test_a_withdrawal_is_told_each_time_that_it_comes_about(workspace, out):
    raw, items = out
    assert source_changes.withdraw(raw.pk, NOON)
    assert not source_changes.withdraw(raw.pk, NOON)
    assert [title.split("”")[1] for _, title, _ in told()] == [" was withdrawn since it was published"]
    source_changes.restore(raw.pk, NOON)
    assert {reread(item).flagged for item in items} == {""}
    source_changes.withdraw(raw.pk, NOON)
    assert len({key for key, *_ in told()}) == 2


def test_what_was_never_published_is_nobody_s_worry(workspace):
    raw = push_raw(workspace, external_id="tram", url="").raw_item
    steps.run_generations(raw)
    edit(workspace, SECOND)
    assert RawItem.everywhere.get(pk=raw.pk).content_version == 2
    assert told() == []


def test_owners_and_editors_read_of_it_in_one_digest_a_day(workspace, out):
    for role in (Membership.Role.OWNER, Membership.Role.EDITOR, Membership.Role.VIEWER):
        MembershipFactory(workspace=workspace, user__email=f"{role}@example.test", role=role)
    _raw, items = out
    edit(workspace, SECOND)
    # Another entry, on the same day.
    other = push_raw(workspace, external_id="other", url="").raw_item
    with transaction.atomic():
        source_changes.notify_flagged(other, "source_withdrawn", items, NOON)
    for notice in Notice.everywhere.filter(kind="item_flagged"):
        notices.write_messages(claimed(notice), now=NOON)
    gathered = NoticeMessage.everywhere.filter(notice__kind="item_flagged")
    assert set(gathered.values_list("status", flat=True)) == {"gathered"}
    people = set(gathered.values_list("user__email", flat=True))
    assert {"owner@example.test", "editor@example.test"} <= people
    assert "viewer@example.test" not in people
    row = NoticeDigest.everywhere.get(workspace=workspace)
    NoticeDigest.everywhere.filter(pk=row.pk).update(due_at=NOON.replace(hour=8))
    daily_digest.send_digest(claimed(row), now=NOON)
    digests = Notice.everywhere.filter(kind="digest")
    assert digests.count() == len(people)
    for one in digests:
        assert one.text.count("since it was published") == 2
