"""Usage: the month's credits, by what they were used, the ledger in pages, and what the model cost."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from accounts import model_keys, workspaces
from accounts.ledger import credits
from accounts.models import LedgerEntry, Workspace
from pipeline.dashboard.usage import credits_by_engine
from pipeline.models import Generation, ModelCall
from tests.factories import PlanFactory
from tests.pages.answers import at


def month_start():
    return datetime.now(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)


def use(workspace, engine, amount, *, used=None):
    """A run that reserved so much and used it, or all of it."""
    run = Generation.everywhere.create(workspace=workspace, engine=engine)
    now = datetime.now(UTC)
    from django.db import transaction

    with transaction.atomic():
        credits.reserve(workspace, {run.pk: amount}, now=now)
    credits.settle(workspace.pk, run.pk, used=amount if used is None else used, now=now)
    return run


def call(workspace, cost, *, own, at=None):
    ModelCall.everywhere.create(
        workspace=workspace,
        stage="draft",
        is_own_key=own,
        asked_model="m",
        prompt_version="1",
        mode="x",
        outcome="ok",
        cost_micro_usd=cost,
        created_at=at or datetime.now(UTC),
    )


@pytest.fixture
def newsroom_plan(db):
    return PlanFactory(credits_per_month=1000)


def test_credits_are_told_by_engine_and_in_all(owner, newsroom, charlie):
    theirs = workspaces.memberships_of(charlie)[0].workspace
    use(theirs, "short_post", 90)
    use(newsroom, "short_post", 10)
    use(newsroom, "short_post", 10, used=4)
    use(newsroom, "persona_tweet", 30)
    gone = use(newsroom, "persona_tweet", 5)
    gone.delete()
    context = owner.get(at(newsroom, "usage")).context
    assert [(one.name, one.bucket, one.runs, one.credits) for one in context["engines"]] == [
        ("Persona Tweet", "image", 1, 30),
        ("Short Post", "text", 2, 14),
        ("", "", 1, 5),
    ]
    report = context["report"]
    assert (report.limit, report.used, report.reserved, context["left"]) == (1000, 49, 0, 951)
    assert (context["percent"], context["meter"]) == (4, "")


def test_last_month_s_runs_are_not_this_month_s(newsroom):
    use(newsroom, "short_post", 10)
    assert credits_by_engine(newsroom, datetime.now(UTC) + timedelta(seconds=2)) == []


@pytest.mark.parametrize(
    ("used", "meter", "words"),
    [
        (799, "", None),
        (800, "warn", "80 % used or reserved"),
        (1000, "bad", "This month&#x27;s credits are used up."),
    ],
)
def test_it_warns_in_time(owner, newsroom, used, meter, words):
    use(newsroom, "short_post", used)
    answer = owner.get(at(newsroom, "usage"))
    assert answer.context["meter"] == meter
    text = answer.content.decode().replace("&#39;", "&#x27;").replace("month's", "month&#x27;s")
    told = [
        one
        for one in (
            "80 % used or reserved",
            "This month&#x27;s credits are used up.",
        )
        if one in text
    ]
    assert told == ([words] if words else [])


def test_an_unlimited_workspace_has_no_meter(owner, newsroom):
    workspaces.lift_limits(newsroom, "operator")
    use(newsroom, "short_post", 5000)
    answer = owner.get(at(newsroom, "usage"))
    assert ("<progress" in answer.content.decode(), answer.context["report"].used) == (False, 5000)


def test_the_ledger_is_paged_and_filtered(owner, newsroom):
    for _ in range(30):
        use(newsroom, "short_post", 1)
    address = at(newsroom, "usage")
    first = owner.get(address).context
    newest = list(LedgerEntry.objects.of(newsroom).order_by("-pk").values_list("pk", flat=True))
    assert [one["entry"].pk for one in first["entries"]] == newest[:25]
    second = owner.get(f"{address}?before={first['older']}").context
    assert [one["entry"].pk for one in second["entries"]] == newest[25:50]
    third = owner.get(f"{address}?before={second['older']}").context
    assert ([one["entry"].pk for one in third["entries"]], third["older"]) == (newest[50:], "")
    assert {one["why"] for one in first["entries"]} == {"Short Post"}
    assert [one["why"] for one in third["entries"]][-1].startswith("credits of ")
    settled = owner.get(f"{address}?kind=settle").context
    assert {one["entry"].kind for one in settled["entries"]} == {"settle"}
    assert settled["older"] != ""
    assert owner.get(f"{address}?kind=release").context["entries"] == []
    # What is no kind and no id is as if it weren't there.
    odd = owner.get(f"{address}?kind=x&before=led_x").context
    assert [one["entry"].pk for one in odd["entries"]] == newest[:25]


def test_another_workspace_s_entries_are_not_reached_by_their_id(owner, newsroom, charlie):
    theirs = workspaces.memberships_of(charlie)[0].workspace
    use(theirs, "short_post", 1)
    last = LedgerEntry.objects.of(theirs).order_by("-pk").first()
    shown = owner.get(f"{at(newsroom, 'usage')}?before={credits.public_id(last)}").context["entries"]
    assert {one["entry"].workspace_id for one in shown} == {newsroom.pk}


def test_what_the_model_cost_is_told_beside_its_cap(owner, newsroom, charlie):
    theirs = workspaces.memberships_of(charlie)[0].workspace
    call(theirs, 9_000_000, own=True)
    call(newsroom, 1_234_567, own=True)
    call(newsroom, 500_000, own=False)
    call(newsroom, 7_000_000, own=True, at=month_start() - timedelta(seconds=1))
    model_keys.set_model_key(newsroom, "sk-ant-api03-A1b2C3d4E5f6G7h8-wxyz", "test")
    Workspace.everywhere.filter(pk=newsroom.pk).update(model_cap_micro_usd=1_700_000)
    answer = owner.get(at(newsroom, "usage"))
    told = {name: str(answer.context[name]) for name in ("own_cost", "total_cost", "cap", "cap_reached")}
    assert told == {"own_cost": "1.23", "total_cost": "1.73", "cap": "1.70", "cap_reached": "True"}
    assert "Cap reached." in answer.content.decode()


def test_without_a_key_or_a_call_nothing_is_said_of_the_model(owner, newsroom):
    assert "Your key" not in owner.get(at(newsroom, "usage")).content.decode()


def test_it_asks_as_much_for_many_as_for_one(owner, newsroom):
    use(newsroom, "short_post", 1)
    owner.get(at(newsroom, "usage"))
    with CaptureQueriesContext(connection) as one:
        owner.get(at(newsroom, "usage"))
    for engine in ("short_post", "persona_tweet"):
        for _ in range(10):
            use(newsroom, engine, 1)
    with CaptureQueriesContext(connection) as many:
        owner.get(at(newsroom, "usage"))
    assert len(many) == len(one)


def test_an_empty_month_says_what_to_do(owner, newsroom):
    assert (
        "Add a source or push text through the API to see usage here."
        in owner.get(at(newsroom, "usage")).content.decode()
    )
    assert credits_by_engine(newsroom, month_start()) == []
