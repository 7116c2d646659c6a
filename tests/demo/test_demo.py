"""The sample data of a development instance: made once, whole, by users' own ways, and removed whole."""

from __future__ import annotations

import pytest
from django.core.management import call_command
from django.test import Client

from accounts import samples
from accounts.access import tokens
from accounts.models import Membership, User, Workspace
from analytics.models import Measurement
from config.core import task_runner
from config.demo import history
from config.management.commands import demo
from pipeline.media import media_root_id
from pipeline.models import (
    GeneratedItem,
    Outlet,
    Persona,
    Publication,
    RawItem,
    Recurrence,
    Series,
    Source,
    Topic,
)
from webhooks.models import Endpoint

RECEIVER = "http://127.0.0.1:8000/demo/webhook"
ROOTS = (Persona, Topic, Outlet, Source, Series, Endpoint, Membership)


def filled():
    workspace = demo._make_workspace()
    history.fill(workspace, webhook_url=RECEIVER)
    return Workspace.everywhere.get(pk=workspace.pk)


def counted():
    return {
        model.__name__: model.everywhere.count() for model in (*ROOTS, RawItem, GeneratedItem, Publication)
    }


def statuses(model):
    return set(model.everywhere.values_list("status", flat=True))


@pytest.fixture
def workspace(db):
    return filled()


def test_it_is_lived_in(workspace, record_property):
    items = GeneratedItem.everywhere.filter(workspace=workspace)
    assert workspace.samples == Workspace.Samples.FILLED
    assert set(items.values_list("bucket", flat=True)) == {"video", "image", "text", "blog", "newsletter"}
    assert {"published", "scheduled", "publish_failed"} <= statuses(GeneratedItem)
    assert {"published", "scheduled", "failed", "unknown"} <= statuses(Publication)
    assert Publication.everywhere.live().unsent().by_hand().count() == 1
    assert items.filter(held="source_changed").exists()
    assert items.filter(flagged="source_changed", status="published").exists()
    days = set(Publication.everywhere.filter(status="published").values_list("published_at__date", flat=True))
    assert len(days) >= 14
    assert Measurement.everywhere.count() > 50
    assert Publication.everywhere.filter(status="scheduled").values("due_at__date").distinct().count() >= 4
    assert Persona.everywhere.filter(is_sample=True).count() == 3
    assert Topic.everywhere.filter(is_sample=True).count() == 7
    assert Recurrence.everywhere.get().status == "active"
    assert set(Membership.everywhere.values_list("role", flat=True)) == {"owner", "editor", "viewer"}
    # Everything that was made of them says so too.
    assert set(items.values_list("is_sample", flat=True)) == {True}

    before = counted()
    filled()
    assert counted() == before

    client = Client(headers={"Authorization": f"Bearer {tokens.issue(workspace, name='A').secret}"})
    for dimension in ("outlet", "content_type", "date"):
        assert client.get(f"/v1/analytics?group_by={dimension}").json()["data"], dimension

    samples.request_samples_removal(workspace, actor="owner@demo.example")
    task_runner.work_all_due("housekeeping.remove_samples", rounds=500)
    workspace.refresh_from_db()
    assert workspace.samples == Workspace.Samples.REMOVED
    assert (
        GeneratedItem.everywhere.count() == RawItem.everywhere.count() == Publication.everywhere.count() == 0
    )
    assert Recurrence.everywhere.count() == 0
    assert not [model for model in ROOTS if model.everywhere.filter(is_sample=True).exists()]
    assert list(User.objects.values_list("email", flat=True)) == [demo.OWNER]
    # Who removed them gets no others.
    filled()
    assert RawItem.everywhere.count() == 0


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_the_media_folder_is_the_databases_before_it_holds_a_file(settings, tmp_path, monkeypatch):
    settings.IS_DEVELOPMENT, settings.MEDIA_ROOT = True, str(tmp_path)
    verdicts = []
    monkeypatch.setattr(
        history, "fill", lambda *_, **__: verdicts.append(media_root_id.compare_folder().verdict)
    )
    call_command("demo", "--prepare")
    assert verdicts == ["ours"]


def test_killed_in_the_middle_it_goes_on(db, monkeypatch):
    after = 7
    told = []

    def tell(workspace, story, *more):
        if len(told) == after:
            raise KeyboardInterrupt
        told.append(story)
        return whole(workspace, story, *more)

    whole = history._publish_story
    with monkeypatch.context() as patch:
        patch.setattr(history, "_publish_story", tell)
        with pytest.raises(KeyboardInterrupt):
            filled()
    assert Workspace.everywhere.get().samples == Workspace.Samples.FILLING

    workspace = filled()

    assert workspace.samples == Workspace.Samples.FILLED
    raws = RawItem.everywhere.values_list("external_id", flat=True)
    assert len(raws) == len(set(raws)) == len(history.STORIES) + len(history.TO_REVIEW) + len(history.MISHAPS)
    twice = Publication.everywhere.values_list("item", "outlet")
    assert len(twice) == len(set(twice))
