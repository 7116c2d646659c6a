"""A fresh workspace has everything with which a push and a publication work at once."""

from __future__ import annotations

import pytest

from accounts.ledger import reports
from config.core.ids import encode
from pipeline import publish
from pipeline.engines.base import BUCKETS
from pipeline.engines.template_short import SECONDS
from pipeline.generate import generation_plan
from pipeline.generate.persona_cards import persona_content
from pipeline.ingest import plan_and_estimate, store_raw_item
from pipeline.models import Asset, Outlet, Persona, PersonaVersion, Source, WorkspaceDefaults
from tests.pipeline import steps

FIVE = {
    "Short Post": 1,
    "Quote Graphic": 2,
    "Newsletter Issue": 3,
    "Blog Article": 4,
    "Template Short": 5,
}
STORY = (
    "The city library opens on Sundays from the first week of December, from ten to four. Forty new study places stand on "
    "the second floor, beside the music collection. The council voted 14 to 9 for the change, which costs 180,000 euros a "
    "year and pays for six part-time posts. Maria Keller, who leads the library, had asked for it for seven years. On "
    "Sundays loans and returns go through machines, while the help desk answers questions on the second floor only. The "
    "café in the hall stays closed until a tenant is found for it. A survey in spring had 2,300 answers, and four in five "
    "asked for longer hours. After a year the council will count the visitors, and decide whether the branch libraries "
    "follow."
)


@pytest.fixture
def quick_workspaces():
    """None: here a new workspace makes what it really makes."""


def test_furnish_gives_a_fresh_workspace_what_it_needs(workspace):
    defaults = WorkspaceDefaults.everywhere.get(workspace=workspace)
    persona = Persona.everywhere.get(workspace=workspace)
    outlets = {
        row.platform: row for row in Outlet.everywhere.filter(workspace=workspace, deleted_at__isnull=True)
    }
    assert sorted(outlets) == ["feed", "simulated"]
    assert [(row.is_default, row.is_simulated, row.status) for _, row in sorted(outlets.items())] == [
        (True, False, "ok"),
        (False, True, "ok"),
    ]
    sources = Source.everywhere.filter(workspace=workspace).order_by("test")
    assert list(sources.values_list("type", "is_push", "test", "status", "wake_at")) == [
        ("webhook", True, False, "active", None),
        ("webhook", True, True, "active", None),
    ]
    assert [row.pk for row in sources] == [defaults.push_source_id, defaults.test_push_source_id]
    assert defaults.persona_id == persona.pk
    assert defaults.outlets == [encode("out", outlets["feed"].pk)]
    assert defaults.test_outlets == [encode("out", outlets["simulated"].pk)]


def test_furnish_gives_one_engine_of_each_bucket(charlies):
    defaults = WorkspaceDefaults.everywhere.get(workspace=charlies)
    assert defaults.engines == list(FIVE)
    assert sorted(generation_plan.engine_named(name).bucket for name in FIVE) == sorted(BUCKETS)


def test_first_push_makes_all_five_without_a_model_for_the_price_that_was_told(charlies):
    defaults = WorkspaceDefaults.everywhere.select_related("push_source").get(workspace=charlies)
    story = steps.content(title="The library opens on Sundays", body=STORY)
    plan = plan_and_estimate.estimate(
        charlies, defaults.push_source, story, defaults=defaults, now=steps.NOON
    )
    pushed = store_raw_item.push(charlies, defaults.push_source, story, defaults=defaults)
    assert (plan.price, plan.why_not, pushed.raw_item.skipped) == (sum(FIVE.values()), (), [])
    assert reports.usage(charlies, steps.NOON).reserved == plan.price
    steps.run_generations(pushed.raw_item)
    items = {item.engine_output: item for item in steps.items_of(pushed.raw_item)}
    assert {name: item.status for name, item in items.items()} == dict.fromkeys(FIVE, "ready")
    assert {check["outcome"] for item in items.values() for check in item.checks} == {"passed"}
    film = Asset.everywhere.get(item=items["Template Short"], role="video")
    # Whatever its length, within what a film of this kind takes, its price is the one that was told.
    assert SECONDS[0] <= film.duration <= SECONDS[1]
    usage = reports.usage(charlies, steps.NOON)
    assert (usage.used, usage.reserved) == (plan.price, 0)


def test_short_push_makes_what_can_be_made_and_says_what_not(charlies):
    pushed = steps.push_raw(
        charlies, title="Pier four is closed", body="Pier four stays closed until Friday."
    )
    made = {item.engine_output for item in steps.items_of(pushed.raw_item)}
    assert made == {"Short Post", "Quote Graphic"}
    assert [one["engine_output"] for one in pushed.raw_item.skipped] == [
        name for name in FIVE if name not in made
    ]
    assert reports.usage(charlies, steps.NOON).reserved == sum(FIVE[name] for name in made)


def test_furnish_keeps_the_first_version_of_the_persona(workspace):
    persona = Persona.everywhere.get(workspace=workspace)
    kept = PersonaVersion.everywhere.get(persona=persona)
    assert (kept.number, kept.content) == (1, persona_content(persona))


def test_furnish_lets_an_empty_publish_call_work(workspace, feed):
    item = steps.make_items(workspace)[0]
    _, publications = publish.request(item, publish.PublishWish(), by="alice")
    assert [row.outlet_id for row in publications] == [feed.pk]
    assert steps.send(publications[0]).status == "published"


def test_furnish_belongs_to_one_workspace_alone(workspace, charlies):
    hers = set(Outlet.everywhere.filter(workspace=workspace).values_list("secret", flat=True))
    his = set(Outlet.everywhere.filter(workspace=charlies).values_list("secret", flat=True))
    assert len(hers | his) == 4
    assert reports.check() == []
