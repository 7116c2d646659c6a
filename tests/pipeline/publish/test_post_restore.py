"""After a restore: what was promised is looked up before it is sent, and a person settles what nobody can tell."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command

from accounts.models import AuditEntry
from config.core.errors import Conflict
from config.core.ids import encode
from pipeline import publish
from pipeline.models import Outlet, Publication
from pipeline.platforms.base import CannotTell
from pipeline.platforms.simulated import Simulated
from tests.pipeline.steps import NOON, accepted, facts, make_items, make_stage, promise, reread, send, state

pytestmark = pytest.mark.django_db
LATER = NOON + timedelta(days=1)


@pytest.fixture
def item(workspace):
    return make_items(workspace)[0]


@pytest.fixture
def blind(monkeypatch):
    """A platform that can't be asked."""
    monkeypatch.setattr(Simulated, "can_reconcile", False)
    monkeypatch.setattr(Simulated, "reconcile", lambda *_, **__: CannotTell("It has no way to be asked."))


def test_every_promise_is_in_doubt_but_those_to_our_own_feed(item, workspace):
    own = Outlet.everywhere.get(workspace=workspace, platform="feed")
    rows = [promise(item, outlet, publish_at=LATER) for outlet in (make_stage(workspace), own)]
    assert publish.mark_unsent_unknown(now=NOON) == 1
    assert [reread(row).status for row in rows] == ["unknown", "scheduled"]
    assert reread(item).status == "publishing"
    # The next restore, before anything was looked up, finds nothing more.
    assert publish.mark_unsent_unknown(now=NOON) == 0


def test_what_the_platform_has_is_published_once(item, workspace):
    row = promise(item, make_stage(workspace))
    assert send(row).status == "published"
    # The database of yesterday, the platform of today.
    Publication.everywhere.filter(pk=row.pk).update(
        status="scheduled", published_at=None, external_id="", wake_at=NOON, attempt_count=0
    )
    row.attempts_made.all().delete()
    publish.mark_unsent_unknown(now=NOON)
    again = send(row)
    assert (again.status, again.error, bool(again.external_id)) == ("published", None, True)
    assert len(accepted(workspace)) == 1


def test_what_it_does_not_have_is_promised_as_before(item, workspace):
    row = promise(item, make_stage(workspace), publish_at=LATER)
    before, told = state(row, "due_at", "attempt_count"), facts(workspace)
    publish.mark_unsent_unknown(now=NOON)
    again = send(row)
    assert (again.status, again.error, again.wake_at) == ("scheduled", None, LATER)
    assert (state(row, "due_at", "attempt_count"), facts(workspace)) == (before, told)
    assert accepted(workspace) == []


@pytest.mark.usefixtures("blind")
def test_what_nobody_can_tell_waits_for_a_person_and_says_why(item, workspace):
    row = promise(item, make_stage(workspace), publish_at=LATER)
    publish.mark_unsent_unknown(now=NOON)
    again = send(row)
    assert (again.status, again.error["code"]) == ("unknown", "restored")
    assert "this platform can't be asked" in again.error["message"]
    assert "manage.py settle_publication" in again.error["message"]
    assert accepted(workspace) == []


@pytest.mark.usefixtures("blind")
def test_a_person_says_that_it_was_sent(item, workspace):
    row = promise(item, make_stage(workspace))
    publish.mark_unsent_unknown(now=NOON)
    name = encode("pub", row.pk)
    call_command("settle_publication", name, "--sent", "--url", "https://stage.example/1")
    again = reread(row)
    assert (again.status, again.url, again.error) == ("published", "https://stage.example/1", None)
    assert reread(item).status == "published"
    assert accepted(workspace) == []
    entry = AuditEntry.everywhere.get(action="publication.settled")
    assert (entry.workspace, entry.subject, entry.details) == (
        workspace,
        name,
        {"was_sent": True, "url": "https://stage.example/1"},
    )
    with pytest.raises(CommandError, match="only an unknown outcome can be settled"):
        call_command("settle_publication", name, "--not-sent")


@pytest.mark.usefixtures("blind")
def test_a_person_says_that_it_was_not_sent(item, workspace):
    row = promise(item, make_stage(workspace))
    publish.mark_unsent_unknown(now=NOON)
    call_command("settle_publication", encode("pub", row.pk), "--not-sent")
    assert state(row, "status", "error") == {"status": "scheduled", "error": None}
    assert send(row).status == "published"
    assert len(accepted(workspace)) == 1


def test_a_call_whose_outcome_was_lost_is_settled_as_a_failed_try(item, workspace):
    row = send(promise(item, make_stage(workspace, "error")))
    assert row.status == "unknown"
    settled = publish.settle_publication(row, was_sent=False, by="op", now=NOON)
    assert (settled.status, settled.error["code"]) == ("scheduled", "not_accepted")


def test_what_is_known_is_not_settled(item, workspace):
    row = promise(item, make_stage(workspace), publish_at=LATER)
    with pytest.raises(Conflict) as refused:
        publish.settle_publication(row, was_sent=True, by="op", now=NOON)
    assert refused.value.detail[0].code == "not_unknown"


def test_an_unknown_name_is_said(db):
    with pytest.raises(CommandError, match=r"There is no publication pub_nonsense\."):
        call_command("settle_publication", "pub_nonsense", "--sent")
