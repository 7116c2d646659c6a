"""The removal of sample data: all of it goes, in portions, and what people made themselves stays whole."""

from __future__ import annotations

from dataclasses import dataclass
from io import BytesIO, StringIO
from typing import Any
from uuid import UUID

import pytest
from django.core.management import CommandError, call_command
from PIL import Image

from accounts import samples
from accounts.models import Membership, User, Workspace
from analytics.models import Measurement, MeasurementRollup, OutcomeRollup
from config.core import task_runner
from config.core.ids import encode
from pipeline.ingest import collect
from pipeline.media import uploads
from pipeline.models import (
    Event,
    GeneratedItem,
    Outlet,
    Persona,
    PublishQueue,
    Series,
    SimulatedPost,
    Source,
    Topic,
    Upload,
    WeekPlan,
)
from pipeline.personas import crud, topics
from pipeline.schedule import queues, recurring, series
from tests.factories import MembershipFactory
from tests.pipeline.steps import (
    NOON,
    OTHER_TEXT,
    make_stage,
    promise,
    push_raw,
    reread,
    run_generations,
    send,
)
from tests.pipeline.workspace.test_purge import models_of_workspaces
from webhooks import endpoints
from webhooks.models import Endpoint

pytestmark = pytest.mark.django_db

OWN_TEXT = (
    "The swimming club of the quarry lake has bought a sauna on wheels for 9,000 euros. "
    "Members may heat it themselves after an introduction of an hour. "
    "The council has allowed two stoves and forbidden a third."
)
STAYS = {
    "accounts.AuditEntry": "who did what is kept for good",
    "accounts.LedgerEntry": "credits are kept for good, and name the run that used them",
}
KINDS = (
    "publish.send_publication",
    "webhooks.fan_out",
    "analytics.count_events",
    "analytics.measure_publication",
    "analytics.roll_up_day",
)


@dataclass
class Filled:
    """A workspace with samples and people's own work beside them; `samples` are all rows that are to go."""

    workspace: Workspace
    own: list[Any]
    roots: dict[str, Any]
    gone: list[Any]


def as_sample(row):
    type(row).everywhere.filter(pk=row.pk).update(is_sample=True)
    return reread(row)


def add_source(workspace, name, **given):
    return collect.register(workspace, collect.SourceSettings(type="webhook", name=name, **given), now=NOON)


def make(workspace, source, **changes):
    raw = push_raw(workspace, source=source, engines=["Short Post", "Quote Graphic"], **changes).raw_item
    run_generations(raw)
    return raw, list(GeneratedItem.everywhere.filter(raw_item=raw).order_by("id"))


@pytest.fixture
def filled(workspace, alice, settings, tmp_path) -> Filled:
    settings.MEDIA_ROOT = tmp_path
    Workspace.everywhere.filter(pk=workspace.pk).update(samples="filled", credits_per_month=500)
    persona = as_sample(crud.create(workspace, {"name": "Harbour"}, by="demo", now=NOON))
    topic = as_sample(topics.create(workspace, {"title": "Tides"}, now=NOON))
    source = as_sample(add_source(workspace, "Sample news", persona_id=persona.pk))
    outlet = as_sample(make_stage(workspace, name="Sample stage"))
    times = {"timezone": "UTC", "slots": [{"weekday": 1, "time": "09:00"}]}
    queue = as_sample(queues.create(workspace, {"name": "Sample queue", **times}, by="demo"))
    Outlet.everywhere.filter(pk=outlet.pk).update(queue=queue)
    weekly = as_sample(
        series.create(
            workspace, {"name": "Sample weekly", **times, "persona_id": persona.pk}, test=False, now=NOON
        )
    )
    endpoint = as_sample(endpoints.add(workspace, "https://hooks.example/in", actor="demo").endpoint)
    member = MembershipFactory(workspace=workspace, user__email="nora@demo.example", role="editor")
    Membership.everywhere.filter(pk=member.pk).update(is_sample=True)
    member.user.set_unusable_password()
    member.user.save(update_fields=["password"])

    picture = BytesIO()
    Image.new("RGB", (800, 600), "#336699").save(picture, "PNG")
    given = uploads.ReceivedFile(picture, len(picture.getvalue()))
    upload = uploads.store_upload(workspace, given, test=False, actor="demo", now=NOON)
    media = [{"upload": encode("upl", upload.pk), "type": "image/png"}]
    raw, (post, image) = make(workspace, source, media=media)
    twin = make(workspace, source, title="Again", url="https://news.example/again", body=OTHER_TEXT)[0]
    feed = Outlet.everywhere.get(workspace=workspace, platform="feed")
    simulated = Outlet.everywhere.get(workspace=workspace, name="Test channel")
    publications = [send(promise(post, to)) for to in (feed, simulated, outlet)]
    recurrence = recurring.begin(post, every_days=7, now=NOON)
    failed = promise(
        image, simulated, overrides={encode("out", simulated.pk): {"settings": {"script": "reject"}}}
    )
    send(failed)

    own_source = add_source(workspace, "Own news")
    own_raw, (own_post, own_image) = make(
        workspace, own_source, title="Own", url="https://own.example/1", body=OWN_TEXT
    )
    own_publications = [send(promise(own_post, to)) for to in (feed, simulated)]
    own_series = series.create(
        workspace,
        {"name": "Own weekly", **times, "sources": [encode("src", source.pk)]},
        test=False,
        now=NOON,
    )
    WeekPlan.everywhere.create(
        workspace=workspace,
        entries=[{"item": encode("gen", one.pk), "set_aside": []} for one in (post, own_post)],
        made_by="alice",
    )
    task_runner.work_all_due(*KINDS)
    roots = {
        "persona": persona,
        "topic": topic,
        "source": source,
        "outlet": outlet,
        "queue": queue,
        "series": weekly,
        "endpoint": endpoint,
        "member": member,
    }
    gone = [*roots.values(), raw, twin, post, image, *publications, failed, recurrence, upload, member.user]
    own = [own_source, own_raw, own_post, own_image, *own_publications, own_series, feed, simulated]
    return Filled(workspace, own, roots, gone)


def remove(filled):
    assert samples.request_samples_removal(filled.workspace, actor="alice@example.test")
    steps = 0
    while samples.remove_some():
        steps += 1
        assert steps < 500
    return steps


def says(value, of):
    """Whether a column's value names one of the ids, whatever its type."""
    if isinstance(value, UUID):
        return value in of["keys"]
    return isinstance(value, str | list | dict) and any(name in str(value) for name in of["names"])


def references(workspace, gone):
    """`table.column` of every row of the workspace that names a sample."""
    prefixes = ("per", "top", "src", "out", "que", "ser", "whe", "usr", "raw", "gen", "pub", "rec", "upl")
    keys = {row.pk for row in gone}
    of = {
        "keys": keys,
        "names": {key.hex for key in keys} | {encode(prefix, key) for key in keys for prefix in prefixes},
    }
    found = set()
    for model in models_of_workspaces():
        if model._meta.label in STAYS:
            continue
        columns = [field.attname for field in model._meta.concrete_fields]
        for row in model.everywhere.filter(workspace=workspace).values(*columns):
            found |= {f"{model._meta.label}.{name}" for name, value in row.items() if says(value, of)}
    return found


def test_the_check_sees_what_it_looks_for(filled):
    found = references(filled.workspace, filled.gone)
    assert {
        "pipeline.Publication.item_id",
        "pipeline.Event.publication_id",
        "pipeline.WeekPlan.entries",
        "pipeline.Series.sources",
        "pipeline.SimulatedPost.ref",
        "analytics.Measurement.publication_id",
        "webhooks.Delivery.endpoint_id",
        "accounts.Notice.key",
    } <= found


def test_no_row_refers_to_samples_and_no_file_is_left(filled, tmp_path):
    before = {path for path in tmp_path.rglob("*") if path.is_file()}
    own_files = {tmp_path / asset.path for asset in filled.own[3].assets.all()}
    assert own_files < before
    remove(filled)
    assert references(filled.workspace, filled.gone) == set()
    assert {path for path in tmp_path.rglob("*") if path.is_file()} == own_files
    assert Workspace.everywhere.get(pk=filled.workspace.pk).samples == "removed"
    for model in (Source, Persona, Topic, Outlet, PublishQueue, Series, GeneratedItem, Endpoint, Membership):
        assert not model.everywhere.filter(workspace=filled.workspace, is_sample=True).exists()
    assert not User.objects.filter(email="nora@demo.example").exists()
    assert list(Upload.everywhere.all()) == []


def test_what_people_made_is_as_it_was(filled):
    def state():
        return [
            {name: value for name, value in vars(reread(row)).items() if not name.startswith("_")}
            for row in filled.own
            if not isinstance(row, Series)
        ]

    before = state()
    events = Event.everywhere.filter(generated_item_id=filled.own[2].pk).count()
    assert events > 0
    remove(filled)
    assert state() == before
    assert Event.everywhere.filter(generated_item_id=filled.own[2].pk).count() == events
    assert SimulatedPost.everywhere.filter(workspace=filled.workspace).count() == 1
    (plan,) = WeekPlan.everywhere.filter(workspace=filled.workspace)
    assert [one["item"] for one in plan.entries] == [encode("gen", filled.own[2].pk)]


def test_an_own_raw_item_is_no_longer_like_a_sample(filled):
    own = filled.own[1]
    raw = next(row for row in filled.gone if row._meta.model_name == "rawitem")
    type(own).everywhere.filter(pk=own.pk).update(
        near_duplicate={"raw_item": encode("raw", raw.pk), "score": 0.9}
    )
    remove(filled)
    assert reread(own).near_duplicate is None


def test_a_digest_of_people_s_own_forgets_samples(filled):
    own_post, own_raw = filled.own[2], filled.own[1]
    raw = next(row for row in filled.gone if row._meta.model_name == "rawitem")
    GeneratedItem.everywhere.filter(pk=own_post.pk).update(raw_items=[raw.pk.hex, own_raw.pk.hex])
    remove(filled)
    assert reread(own_post).raw_items == [own_raw.pk.hex]


def test_a_series_that_told_samples_alone_is_paused(filled):
    remove(filled)
    row = Series.everywhere.get(name="Own weekly")
    assert (row.sources, row.is_paused, row.wake_at) == ([], True, None)


def test_analytics_shows_own_posts_alone(filled, clock):
    own = Measurement.everywhere.filter(publication__item=filled.own[2]).count()
    assert Measurement.everywhere.filter(workspace=filled.workspace).count() > own > 0
    remove(filled)
    assert Measurement.everywhere.filter(workspace=filled.workspace).count() == own
    clock.shift(60)
    task_runner.work_all_due("analytics.roll_up_day")
    for rollup in (OutcomeRollup, MeasurementRollup):
        rows = rollup.everywhere.filter(workspace=filled.workspace)
        assert set(rows.values_list("source_id", flat=True)) == {filled.own[0].pk}


def test_it_goes_in_small_portions(filled, monkeypatch):
    monkeypatch.setattr(samples, "ROWS", 1)
    assert remove(filled) > 20
    assert references(filled.workspace, filled.gone) == set()


def test_what_own_work_uses_becomes_own(filled):
    persona, topic = filled.roots["persona"], filled.roots["topic"]
    outlet, queue = filled.roots["outlet"], filled.roots["queue"]
    own_post = filled.own[2]
    GeneratedItem.everywhere.filter(pk=own_post.pk).update(persona=persona, topic=topic)
    publication = send(promise(own_post, outlet))
    assert publication.status == "published"
    remove(filled)
    assert [reread(row).is_sample for row in (persona, topic, outlet, queue)] == [False] * 4
    assert reread(outlet).deleted_at is None
    assert reread(own_post).persona_id == persona.pk
    assert reread(publication).outlet_id == outlet.pk
    assert not Source.everywhere.filter(pk=filled.roots["source"].pk).exists()


def test_an_outlet_that_a_source_names_becomes_own(filled):
    outlet = filled.roots["outlet"]
    Source.everywhere.filter(pk=filled.own[0].pk).update(outlets=[encode("out", outlet.pk)])
    remove(filled)
    assert reread(outlet).is_sample is False


def test_another_workspace_loses_nothing(filled, charlies):
    Workspace.everywhere.filter(pk=charlies.pk).update(samples="filled")
    theirs = as_sample(add_source(charlies, "Sample news"))
    item = make(charlies, theirs)[1][0]
    remove(filled)
    assert reread(theirs).deleted_at is None
    assert GeneratedItem.everywhere.filter(pk=item.pk).exists()


def test_it_is_asked_for_once_and_only_where_there_are_samples(filled, charlies, woken):
    assert samples.request_samples_removal(charlies, actor="charlie") is False
    assert samples.request_samples_removal(filled.workspace, actor="alice") is True
    assert samples.request_samples_removal(filled.workspace, actor="alice") is False


def test_nothing_is_filled_in_while_samples_go(filled):
    Workspace.everywhere.filter(pk=filled.workspace.pk).update(samples="filling")
    with samples.fill_samples(filled.workspace):
        pass
    samples.request_samples_removal(filled.workspace, actor="alice")
    with pytest.raises(samples.Stopped), samples.fill_samples(filled.workspace):
        pass
    samples.mark_samples_complete(filled.workspace)
    assert Workspace.everywhere.get(pk=filled.workspace.pk).samples == "removing"


def test_a_member_who_can_log_in_keeps_the_account(filled):
    user = filled.roots["member"].user
    user.set_password("a long password")
    user.save(update_fields=["password"])
    remove(filled)
    assert User.objects.filter(pk=user.pk).exists()
    assert not Membership.everywhere.filter(user=user).exists()


def test_a_command_removes_them(filled):
    said = StringIO()
    call_command("remove_samples", workspace=filled.workspace.name, stdout=said)
    assert (
        said.getvalue() == f"The sample data of {filled.workspace.name} is removed; what people made stays.\n"
    )
    assert references(filled.workspace, filled.gone) == set()
    call_command("remove_samples", workspace=filled.workspace.name, stdout=said)
    assert said.getvalue().endswith(f"{filled.workspace.name} holds no sample data.\n")
    with pytest.raises(CommandError, match=r"There is no workspace Nobody\."):
        call_command("remove_samples", workspace="Nobody")


def test_a_command_goes_on_with_what_was_begun(filled):
    samples.request_samples_removal(filled.workspace, actor="alice")
    samples.remove_some()
    call_command("remove_samples", workspace=filled.workspace.public_id, stdout=StringIO())
    assert references(filled.workspace, filled.gone) == set()


def test_new_items_of_a_sample_are_samples(filled):
    source, own = filled.roots["source"], filled.own[0]
    rows = GeneratedItem.everywhere.filter(workspace=filled.workspace)
    assert set(rows.filter(source=source).values_list("is_sample", flat=True)) == {True}
    assert set(rows.filter(source=own).values_list("is_sample", flat=True)) == {False}


def test_marks_of_tables_are_all_known():
    """Whoever marks another table has to remove it too."""
    marked = {
        model._meta.model_name
        for model in models_of_workspaces()
        if any(field.name == "is_sample" for field in model._meta.concrete_fields)
    }
    assert marked == {
        "endpoint",
        "generateditem",
        "membership",
        "outlet",
        "persona",
        "publishqueue",
        "series",
        "source",
        "topic",
    }
