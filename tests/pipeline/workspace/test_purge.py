"""The erasing of a workspace: everything goes but what must stay, in small steps, and nobody else loses
anything."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
from django.apps import apps

from accounts import members, workspace_deletion, workspaces
from accounts.ledger import reports
from accounts.models import AuditEntry, Workspace
from config.core import task_runner
from pipeline.mailing import get_or_create_queue
from pipeline.mailing.lifecycle import new_delivery
from pipeline.models import Asset, Mailing, Publication
from tests.architecture.code import PACKAGES
from tests.factories import TokenFactory, UserFactory
from tests.pipeline.mailing.conftest import make_letter, subscribe
from tests.pipeline.steps import make_items, make_stage, promise
from webhooks import endpoints

pytestmark = pytest.mark.django_db

STAYS = {
    "accounts.AuditEntry": "who did what is kept for good",
    "accounts.CreditBalance": "its ledger stays, and the balance is the ledger's sum",
    "accounts.LedgerEntry": "credits are kept for good",
    "pipeline.ModelCall": "what the model cost is kept for good",
}
NOW = datetime(2027, 3, 1, tzinfo=UTC)


def models_of_workspaces():
    """Every model of ours with a foreign key to a workspace."""
    return [
        model
        for model in apps.get_models()
        if model._meta.app_label in PACKAGES
        and any(
            field.related_model is Workspace for field in model._meta.concrete_fields if field.is_relation
        )
    ]


def held(workspace):
    counts = {
        model._meta.label: model.everywhere.filter(workspace=workspace).count()
        for model in models_of_workspaces()
    }
    return {label: count for label, count in counts.items() if count}


def fill(name, owner):
    made = workspaces.create(name, owner=owner)
    workspaces.whitelist(made, "operator")
    TokenFactory(workspace=made)
    members.invite(made, "dora@example.test", "viewer", by=owner)
    endpoints.add(made, "https://hooks.example/in", actor="test")
    items = make_items(made)
    mail(promise(items[0], make_stage(made)), make_letter(made, 25))
    task_runner.work_all_due("publish.send_publication", "webhooks.fan_out", "analytics.count_events")
    return made


def mail(publication, letter):
    """A newsletter's list, its line, what was mailed and to whom."""
    get_or_create_queue(letter)
    (reader,) = subscribe(letter, "reader")
    made = Mailing.everywhere.create(
        workspace_id=letter.workspace_id, outlet=letter, publication=publication, subject="News"
    )
    for of in (made, None):
        row = new_delivery(letter, "readers.example", mailing=of, subscriber_id=reader.pk, now=NOW)
        row.save(force_insert=True)


@pytest.fixture
def people(db, tmp_path, settings):
    settings.MEDIA_ROOT = tmp_path
    return UserFactory(email="alice@example.test"), UserFactory(email="charlie@example.test")


@pytest.fixture
def newsroom(people):
    made = fill("Newsroom", people[0])
    workspace_deletion.request_deletion(made, "Newsroom", by=people[0])
    Workspace.everywhere.filter(pk=made.pk).update(deletes_at=NOW)
    return made


def erase_all():
    steps = 0
    while workspace_deletion.erase_some(now=NOW):
        steps += 1
        assert steps < 500
    return steps


def test_nothing_is_left_but_what_must_stay(newsroom, people, tmp_path):
    before = held(newsroom)
    assert set(STAYS) - {"pipeline.ModelCall"} < set(before)
    # The fixture holds enough to leak.
    assert {"pipeline.Publication", "pipeline.Asset", "webhooks.Delivery", "accounts.Invitation"} <= set(
        before
    )
    assert {"pipeline.Subscriber", "pipeline.MailQueue", "pipeline.Mailing", "pipeline.MailDelivery"} <= set(
        before
    )
    assert [path for path in tmp_path.rglob("*") if path.is_file()]
    erase_all()
    after = held(newsroom)
    assert set(after) == set(STAYS) & set(before)
    assert after["accounts.LedgerEntry"] == before["accounts.LedgerEntry"]
    assert after["accounts.AuditEntry"] == before["accounts.AuditEntry"] + 2
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
    row = Workspace.everywhere.get(pk=newsroom.pk)
    assert (row.name, row.model_key, row.erased_at, row.deleted_at) == ("(deleted)", None, NOW, NOW)
    assert reports.check() == []
    actions = AuditEntry.objects.of(newsroom).order_by("-id").values_list("action", flat=True)[:2]
    assert list(actions) == ["workspace.erased", "workspace.deleted"]


def test_another_workspace_loses_nothing(newsroom, people):
    theirs = fill("Elsewhere", people[1])
    before = held(theirs)
    erase_all()
    assert held(theirs) == before
    assert workspaces.memberships_of(people[1])[0].workspace == theirs
    assert workspaces.memberships_of(people[0]) == []


def test_it_goes_in_small_steps(newsroom, monkeypatch):
    monkeypatch.setattr(workspace_deletion, "ROWS_PER_BATCH", 1)
    sizes = Counter()
    while done := workspace_deletion.erase_some(now=NOW):
        sizes[done] += 1
    assert set(sizes) == {1}
    assert set(held(newsroom)) <= set(STAYS)


def test_the_first_step_shuts_the_doors(newsroom, people):
    workspace_deletion.erase_some(now=NOW)
    assert workspaces.memberships_of(people[0]) == []
    assert held(newsroom)["accounts.Membership"] == 1
    with pytest.raises(members.Conflict):
        members.leave_workspace(newsroom, people[0])


def test_files_go_before_their_rows(newsroom, monkeypatch, tmp_path):
    """A kill between the two leaves rows without files, which the next hand deletes."""
    asset = Asset.everywhere.filter(workspace=newsroom).first()
    (tmp_path / asset.path).unlink()
    erase_all()
    assert Asset.everywhere.filter(workspace=newsroom).count() == 0


def test_the_hand_goes_on_while_there_is_work(newsroom):
    Workspace.everywhere.filter(pk=newsroom.pk).update(deletes_at=datetime.now(UTC) - timedelta(minutes=1))
    assert task_runner.work_all_due("housekeeping.erase_workspaces") > 3
    assert Publication.everywhere.filter(workspace=newsroom).count() == 0
    assert task_runner.work_all_due("housekeeping.erase_workspaces") == 0
