"""manage.py explain: what each kind of row waits for, and what to do."""

from __future__ import annotations

import io

import pytest
import time_machine
from django.apps import apps
from django.core.management import CommandError, call_command
from django.db import models

from accounts import workspaces
from config.core import work_leases
from config.core.ids import PREFIXES, encode, name_of_table, uuid7
from config.operations.explain import explain
from pipeline.models import (
    BrandSlot,
    GeneratedItem,
    Generation,
    InboundDelivery,
    Mailing,
    MailQueue,
    Outlet,
    Publication,
    PublishHold,
    Source,
    Worker,
    WorkspaceDefaults,
)
from pipeline.switches import kill_switch
from tests.pipeline.steps import MINUTE, NOON, make_items, promise, push_raw
from tests.webhooks.factories import make_delivery, make_endpoint, make_event

pytestmark = pytest.mark.django_db
AT_NOON = "last changed at 2027-03-01T12:00:00.000Z."
DISPATCHER = "The dispatcher: No service answers at port 9. Start beat and a worker; in the embedded mode, manage.py serve."


@pytest.fixture(autouse=True)
def clock(settings):
    settings.REDIS_URL = ""
    # Nobody listens there.
    settings.PORT = 9
    settings.ANTHROPIC_API_KEY = ""
    with time_machine.travel(NOON, tick=False) as traveller:
        yield traveller


@pytest.fixture
def workspace():
    made = workspaces.create("Alice's newsroom")
    workspaces.whitelist(made, "operator")
    WorkspaceDefaults.everywhere.filter(workspace=made).update(engines=["Short Post"])
    return made


@pytest.fixture
def ready(workspace):
    return make_items(workspace)[0]


@pytest.fixture
def stage(workspace):
    return Outlet.everywhere.get(workspace=workspace, platform="simulated")


def told(row):
    """Below the headline."""
    return explain(encode(PREFIXES[row._meta.db_table], row.pk), now=NOON)[1:]


def change(row, **fields):
    type(row).everywhere.filter(pk=row.pk).update(**fields)


@pytest.mark.parametrize("text", ["", "gen_", "gen_00000000000000000000000000", "nonsense", "xyz_0"])
def test_an_unknown_id_is_a_sentence(workspace, text):
    with pytest.raises(CommandError, match=f"^There is nothing with the id {text}\\.$"):
        call_command("explain", text)


def test_the_command_says_what_a_row_is_since_when_and_what_helps(ready):
    out = io.StringIO()
    public = encode("gen", ready.pk)
    call_command("explain", public, stdout=out)
    assert out.getvalue().splitlines() == [
        f"{public}, generated item of Alice's newsroom: To review, {AT_NOON}",
        "It isn't scheduled or published yet. (since 2027-03-01T12:00:00.000Z)",
        f"→ POST /v1/generated/{public}/publish",
    ]


def filled(model):
    """A row of a model, with the rows that it needs, and what its columns have to hold."""
    values = {}
    for field in model._meta.concrete_fields:
        if field.null or field.has_default() or field.primary_key:
            continue
        if field.is_relation:
            values[field.name] = field.related_model._meta.base_manager.first() or filled(field.related_model)
        elif field.choices:
            values[field.name] = field.choices[0][0]
        else:
            values[field.name] = _A_VALUE.get(type(field), "rss" if field.name == "type" else "x")
    if isinstance(model._meta.pk, models.UUIDField):
        values["pk"] = uuid7()
    return model._meta.base_manager.create(**values)


_A_VALUE = {
    models.BigIntegerField: 1,
    models.BinaryField: b"x",
    models.DateField: NOON.date(),
    models.DateTimeField: NOON,
    models.JSONField: {},
    models.PositiveBigIntegerField: 1,
    models.PositiveIntegerField: 1,
    models.PositiveSmallIntegerField: 1,
    models.UUIDField: uuid7(),
}


@pytest.mark.parametrize(("name", "prefix"), PREFIXES.items())
def test_a_row_of_every_kind_is_found_by_its_id(name, prefix):
    (model,) = [model for model in apps.get_models() if name_of_table(model._meta.db_table) == name]
    public = encode(prefix, filled(model).pk)
    headline = explain(public, now=NOON)[0]
    assert headline.startswith(
        (f"{public}, {name.replace('_', ' ')} of ", f"{public}, {name.replace('_', ' ')}: ")
    )


# --- When it is taken up, and by whom --------------------------------------------------------------------------------


def at_work(run, *, seen_at=NOON):
    """A lease of the run's task, and its worker."""
    work_leases.start_worker()
    work_leases.note_worker("worker-1", {"compute": 1})
    work_leases.add(
        "compute.run_item", "compute", [work_leases.QueuedTask(run.pk, 1, owner=run.workspace_id)], now=NOON
    )
    work_leases.begin(run.pk, 1, now=NOON)
    change(run, wake_at=NOON + MINUTE, attempts=2)
    Worker.everywhere.update(seen_at=seen_at)


@pytest.fixture
def run(workspace):
    return Generation.everywhere.get(raw_item=push_raw(workspace).raw_item)


def test_what_is_due_says_which_queue_nobody_takes(run):
    assert told(run) == [
        "Reading source. Its next step: Compute.",
        "Its time is 2027-03-01T12:00:00.000Z.",
        "It has been due since 2027-03-01T12:00:00.000Z and waits for a worker of compute.",
        "No worker takes the queue compute: start one that does.",
        DISPATCHER,
    ]


def test_what_is_due_says_that_every_slot_is_taken(workspace, run):
    at_work(run)
    other = Generation.everywhere.get(
        raw_item=push_raw(workspace, title="Harbour", url="https://news.example/harbour").raw_item
    )
    assert told(other)[2:] == [
        "It has been due since 2027-03-01T12:00:00.000Z and waits for a worker of compute.",
        "All 1 slots of the queue compute are taken; wait, or start another worker.",
        DISPATCHER,
    ]


def test_what_is_at_work_says_by_whom_and_until_when(run):
    at_work(run)
    assert told(run)[2:] == [
        "Worker worker-1 works it since 2027-03-01T12:00:00.000Z; its lease ends at 2027-03-01T12:01:00.000Z.",
        "It was tried 2 times without success, of 5 at most.",
    ]


def test_what_a_dead_worker_began_says_when_another_takes_it(run):
    at_work(run, seen_at=NOON - MINUTE)
    assert told(run)[2] == (
        "The worker that began it at 2027-03-01T12:00:00.000Z is gone; another takes it after 2027-03-01T12:01:00.000Z."
    )


def test_what_is_queued_or_waits_says_since_and_until_when(run):
    change(run, wake_at=NOON + MINUTE)
    assert told(run)[2] == "It runs next at 2027-03-01T12:01:00.000Z."
    work_leases.add("compute.run_item", "compute", [work_leases.QueuedTask(run.pk, 1)], now=NOON)
    assert told(run)[2] == "It has been queued for a worker of compute since 2027-03-01T12:00:00.000Z."


# --- By kind ---------------------------------------------------------------------------------------------------------


def test_an_item_that_is_made_says_what_its_run_waits_for(run):
    item = GeneratedItem.everywhere.get(generation=run)
    assert [line.strip() for line in told(item)[1:]] == told(run)


def test_a_run_says_that_model_calls_are_stopped_or_a_key_is_missing(workspace, run):
    change(run, queue="generate", batch_until=NOON + MINUTE, error={"message": "The model was busy."})
    kill_switch.stop("model_calls", reason="The bill.", actor="operator")
    lines = told(run)
    assert lines[:4] == [
        "Reading source. Its next step: AI.",
        "AI calls are paused: on the whole instance. The bill.",
        "There is no key for a model: set ANTHROPIC_API_KEY, or the workspace's own key.",
        "It may wait for a batch of model calls until 2027-03-01T12:01:00.000Z.",
    ]
    assert lines[-1] == "Last error: The model was busy."


def test_an_item_that_is_rewritten_says_what_the_rewrite_waits_for(ready):
    run = Generation.everywhere.create(
        workspace=ready.workspace, engine="short_post", rewrites=ready, queue="rewrite", stage="draft"
    )
    lines = [line.strip() for line in told(ready)]
    assert lines[: 1 + len(told(run))] == [explain(encode("gnr", run.pk), now=NOON)[0], *told(run)]
    assert "There is no key for a model: set ANTHROPIC_API_KEY, or the workspace's own key." in lines
    assert lines[-1] == f"→ POST /v1/generated/{encode('gen', ready.pk)}/publish"
    change(run, status="done")
    assert told(ready)[0].startswith("It isn't scheduled or published yet.")


def test_an_item_that_failed_says_why_and_what_helps(ready):
    error = {"code": "no_space", "message": "The disk is full.", "retryable": True, "action": "Free some."}
    change(ready, status="failed", error=error)
    assert told(ready)[-2:] == [
        "Last error: The disk is full. Free some.",
        "It isn't retried automatically. Generating it failed; its error says why.",
    ]


def test_an_item_that_waits_for_review_says_so(workspace, ready):
    change(workspace, requires_approval=True)
    assert told(ready)[1] == f"→ POST /v1/generated/{encode('gen', ready.pk)}/approve"


def test_an_item_that_is_promised_says_what_each_publication_waits_for(workspace, ready, stage):
    publication = promise(ready, stage)
    PublishHold.everywhere.create(workspace=workspace, reason="Mourning.")
    change(ready, held="source_changed")
    change(stage, status="disabled")
    kill_switch.stop("publishing", platform="simulated", reason="It is ill.", actor="operator")
    lines = [line.strip() for line in told(ready)]
    assert lines[1:] == told(publication)
    assert [line for line in lines[1:] if not line.startswith("→")] == [
        "All publishing of the workspace is on hold: Mourning. (since 2027-03-01T12:00:00.000Z)",
        "The operator has paused publishing: It is ill. (since 2027-03-01T12:00:00.000Z)",
        "Its source has changed. Approve it to publish. (since 2027-03-01T12:00:00.000Z)",
        f"{stage.name} is switched off; switch it on and retry. (since 2027-03-01T12:00:00.000Z)",
        "Its time is 2027-03-01T12:00:00.000Z.",
        "It has been due since 2027-03-01T12:00:00.000Z and waits for a worker of publish.",
        "No worker takes the queue publish: start one that does.",
        DISPATCHER,
    ]
    assert told(stage)[0] == f"{stage.name} is switched off; switch it on and retry."
    assert told(workspace)[0] == lines[1]


def test_a_publication_says_that_it_is_out_failed_or_waits_for_a_person(ready, stage):
    publication = promise(ready, stage)
    change(publication, status="published", wake_at=None)
    assert told(publication) == []
    change(publication, status="publishing", step=Publication.BY_HAND)
    assert told(publication) == ["It is posted by hand. Post it, then mark it as posted."]
    change(publication, status="failed", step="prepare", error={"message": "It was refused."})
    assert told(publication) == [
        "It was refused. (since 2027-03-01T12:00:00.000Z)",
        f"→ POST /v1/publications/{encode('pub', publication.pk)}/retry",
        "Last error: It was refused.",
        (
            "It isn't retried automatically. Retry what failed. An unknown outcome is looked up before "
            "anything is sent again."
        ),
    ]


def test_a_raw_item_says_that_it_waits_for_credits_or_what_was_made(workspace, ready):
    raw = ready.raw_item
    assert told(raw) == [
        f"  {encode('gen', ready.pk)}, generated item of {workspace.name}: To review, {AT_NOON}"
    ]
    change(raw, status="waiting_quota", wake_at=NOON + MINUTE, reason={"message": "It waits for credits."})
    lines = told(raw)
    assert lines[0].endswith("credits are left until 2027-04-01T00:00:00.000Z.")
    assert lines[-1] == "Why: It waits for credits."
    change(raw, status="failed", wake_at=None, reason={"message": "It is empty."})
    assert told(raw)[-2:] == [
        "Why: It is empty.",
        "It isn't retried automatically. Nothing could be made from it; its reason says why.",
    ]


def test_a_source_says_that_it_is_paused_or_fails(workspace):
    source = Source.everywhere.create(
        workspace=workspace,
        name="Harbour",
        type="rss",
        config={"url": "https://news.example/feed"},
        status="paused",
    )
    assert told(source) == ["Paused until you resume it."]
    change(
        source,
        status="failing",
        failures=7,
        failing_since=NOON,
        last_error={"message": "Its server is away."},
        wake_at=NOON + MINUTE,
    )
    assert told(source) == [
        "Failing. Its server is away.",
        "7 polls in a row failed, since 2027-03-01T12:00:00.000Z.",
        "It runs next at 2027-03-01T12:01:00.000Z.",
        "Last error: Its server is away.",
    ]


def test_a_lane_says_what_its_slot_waits_for(workspace):
    lane = Source.everywhere.create(workspace=workspace, name="Lane", type="brand", config={"topics": []})
    slot = BrandSlot.everywhere.create(
        workspace=workspace,
        source=lane,
        status="waiting_quota",
        due_at=NOON,
        wake_at=NOON + MINUTE,
        note={"message": "It waits for credits."},
    )
    assert (
        [line.strip() for line in told(lane)][-3:]
        == told(slot)
        == [
            "Its time is 2027-03-01T12:00:00.000Z.",
            "It runs next at 2027-03-01T12:01:00.000Z.",
            "Why: It waits for credits.",
        ]
    )


def test_an_outlet_says_until_when_it_rests(stage):
    change(stage, rests_until=NOON + MINUTE)
    assert told(stage)[0] == "Its platform asked to wait until 2027-03-01T12:01:00.000Z."


def test_a_workspace_says_what_of_it_waits_for_approval():
    made = workspaces.create("Charlie's newsroom")
    assert told(made)[0] == (
        "The workspace isn't approved yet, so it publishes to its workspace feed and its test channel only. "
        "An owner can request access under Settings, Access."
    )
    workspaces.whitelist(made, "operator")
    workspaces.delist(made, "operator")
    why = (
        "The people who run this service have revoked the workspace's access. "
        "An owner can request it again under Settings, Access."
    )
    assert told(made)[0].startswith(f"{why} (since ")


def test_a_delivery_and_its_endpoint_say_why_nothing_is_sent(workspace):
    endpoint = make_endpoint(workspace, failures=3, failing_since=NOON, is_on=False)
    delivery = make_delivery(
        endpoint, status="held", wake_at=None, attempt_count=3, last_status=500, last_error="It answered 500."
    )
    public = encode("whe", endpoint.pk)
    assert told(delivery) == [
        f"Its endpoint {public} is switched off. Switch it on to send this.",
        "It was sent 3 times; the last answer was 500.",
        "Last error: It answered 500.",
    ]
    assert told(endpoint) == [
        "It is switched off. Its deliveries are held until you switch it on.",
        "3 attempts in a row failed, since 2027-03-01T12:00:00.000Z.",
        "1 delivery waits.",
    ]
    change(delivery, status="failed")
    assert told(delivery)[-1] == "It isn't retried automatically. Send it again when the receiver works."


def test_an_event_says_whether_it_was_handed_to_the_endpoints(workspace):
    event = make_event(workspace)
    assert told(event) == [
        "It hasn't been queued for the endpoints yet.",
        "No worker takes the queue webhooks: start one that does.",
        DISPATCHER,
    ]
    change(event, dispatched_at=NOON)
    delivery = make_delivery(make_endpoint(workspace), event)
    assert [line.strip() for line in told(event)[1:]] == told(delivery)


def test_a_mailing_says_what_its_line_waits_for(ready, stage):
    mailing = Mailing.everywhere.create(
        workspace=ready.workspace, outlet=stage, publication=promise(ready, stage), subject="Harbour"
    )
    MailQueue.everywhere.create(
        workspace=ready.workspace,
        outlet=stage,
        wake_at=NOON + MINUTE,
        error={"message": "The server is away."},
    )
    assert told(mailing) == [
        "It runs next at 2027-03-01T12:01:00.000Z.",
        "Last error: The server is away.",
    ]


def test_what_came_in_says_what_became_of_it(ready):
    row = InboundDelivery.everywhere.create(
        workspace=ready.workspace,
        source=ready.source,
        raw_item=ready.raw_item,
        verification="none",
        status="taken",
    )
    assert [line.strip() for line in told(row)[1:]] == [line.strip() for line in told(ready.raw_item)]
