"""What an operator stops waits, is told why, and goes on when it is resumed."""

from __future__ import annotations

from datetime import timedelta

import pytest

from accounts.models import AuditEntry
from config.core.errors import Invalid
from pipeline import publish
from pipeline.models import Generation, Publication, Switch
from pipeline.publish import steps as publish_steps
from pipeline.switches import kill_switch
from tests.pipeline.steps import MINUTE, NOON, claimed, push_raw, reread

pytestmark = pytest.mark.django_db


@pytest.fixture
def promised(ready, stage):
    from config.core.ids import encode

    wish = publish.PublishWish(outlets=[encode("out", stage.pk)])
    return publish.request(ready, wish, by="alice")[1][0]


def notes():
    return list(AuditEntry.everywhere.order_by("id").values_list("action", "actor", "subject", "details"))


def test_a_stopped_publication_waits_and_goes_on_when_resumed(promised, woken):
    switch = kill_switch.stop("publishing", reason=" The platform asked. ", actor="op")
    row = claimed(promised)
    row = Publication.everywhere.select_related("workspace", "item", "queue").get(pk=row.pk)
    assert [(one.code, one.message) for one in publish.find_blockers(row, NOON)] == [
        ("publishing_stopped", "The operator has paused publishing: The platform asked.")
    ]
    publish_steps.advance_publication(claimed(promised))
    held = reread(promised)
    assert (held.status, held.attempt_count, held.attempts) == ("scheduled", 0, 0)
    assert held.wake_at == NOON + publish.HELD_WAIT
    woken.clear()
    assert kill_switch.resume(switch, actor="op") is True
    assert reread(promised).wake_at == NOON
    publish_steps.advance_publication(claimed(promised))
    assert reread(promised).status == "published"
    assert kill_switch.resume(switch, actor="op") is False


@pytest.mark.parametrize(
    ("platform", "whose", "is_stopped"),
    [
        ("", "nobody's", True),
        ("simulated", "nobody's", True),
        ("feed", "nobody's", False),
        ("", "workspace", True),
        ("simulated", "workspace", True),
        ("", "charlies", False),
    ],
)
def test_only_what_was_named_is_stopped(promised, workspace, charlies, platform, whose, is_stopped):
    owner = {"nobody's": None, "workspace": workspace, "charlies": charlies}[whose]
    kill_switch.stop("publishing", platform=platform, workspace=owner, reason="Trial", actor="op")
    publish_steps.advance_publication(claimed(promised))
    assert reread(promised).status == ("scheduled" if is_stopped else "published")


def test_model_calls_do_not_stop_publishing(promised):
    kill_switch.stop("model_calls", reason="The money cap", actor="op")
    publish_steps.advance_publication(claimed(promised))
    assert reread(promised).status == "published"


def test_a_second_stop_still_holds(promised, workspace):
    first = kill_switch.stop("publishing", reason="All", actor="op")
    kill_switch.stop("publishing", workspace=workspace, reason="This one", actor="op")
    assert kill_switch.stopped("publishing", platform="feed", workspace_id=workspace.pk) == first
    kill_switch.resume(first, actor="op")
    publish_steps.advance_publication(claimed(promised))
    assert reread(promised).status == "scheduled"


def test_what_is_promised_for_later_is_not_woken(promised):
    later = NOON + timedelta(hours=2)
    Publication.everywhere.filter(pk=promised.pk).update(due_at=later, wake_at=later)
    kill_switch.resume(kill_switch.stop("publishing", reason="Trial", actor="op"), actor="op")
    assert reread(promised).wake_at == later


def test_generations_that_wait_for_model_calls_are_woken(workspace):
    raw = push_raw(workspace).raw_item
    waiting = Generation.everywhere.filter(raw_item=raw)
    waiting.update(wake_at=NOON + MINUTE, error={"code": kill_switch.MODEL_CALLS_STOPPED, "message": "x"})
    switch = kill_switch.stop("model_calls", workspace=workspace, reason="Trial", actor="op")
    assert kill_switch.stopped("model_calls", workspace_id=workspace.pk) == switch
    kill_switch.resume(switch, actor="op")
    assert set(waiting.values_list("wake_at", flat=True)) == {NOON}


def test_stop_and_resume_are_audited_and_a_repeat_renews_the_reason(workspace):
    AuditEntry.everywhere.all().delete()
    kill_switch.stop("publishing", platform="feed", reason="One", actor="op")
    again = kill_switch.stop("publishing", platform="feed", reason="Two", actor="other")
    assert [(row.reason, row.set_by) for row in Switch.everywhere.all()] == [("Two", "other")]
    kill_switch.resume(again, actor="op")
    assert notes() == [
        ("publishing.stopped", "op", "feed", {"reason": "One"}),
        ("publishing.stopped_again", "other", "feed", {"reason": "Two"}),
        ("publishing.resumed", "op", "feed", {"reason": "Two"}),
    ]


@pytest.mark.parametrize(
    ("what", "platform", "reason"), [("publishing", "", " "), ("model_calls", "feed", "x")]
)
def test_what_makes_no_sense_is_refused(db, what, platform, reason):
    with pytest.raises(Invalid):
        kill_switch.stop(what, platform=platform, reason=reason, actor="op")
    assert not Switch.everywhere.exists()


@pytest.mark.django_db(transaction=True)
def test_a_hand_asks_once_a_second(clock, django_assert_num_queries):
    kill_switch._cache.clear()
    with django_assert_num_queries(1):
        assert kill_switch.stopped("publishing") is None
        assert kill_switch.stopped("publishing") is None
    switch = kill_switch.stop("publishing", reason="Trial", actor="op")
    assert kill_switch.stopped("publishing") == switch
    kill_switch.resume(switch, actor="op")
    assert kill_switch.stopped("publishing") is None
    kill_switch._cache.clear()
