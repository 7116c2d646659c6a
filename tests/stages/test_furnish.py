"""A fresh workspace has everything with which a push and a publication work at once."""

from __future__ import annotations

from accounts import credits
from config.ground.ids import encode
from pipeline.models import Outlet, Persona, PersonaVersion, Source, WorkspaceDefaults
from pipeline.stages import furnish, publish
from tests.stages import steps


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


def test_furnish_gives_the_engines_of_text_and_image(charlies):
    defaults = WorkspaceDefaults.everywhere.get(workspace=charlies)
    assert defaults.engines == furnish.starting_engines() == ["Persona Tweet", "Short Post"]


def test_furnish_keeps_the_first_version_of_the_persona(workspace):
    persona = Persona.everywhere.get(workspace=workspace)
    kept = PersonaVersion.everywhere.get(persona=persona)
    assert (kept.number, kept.content) == (1, furnish.persona_content(persona))


def test_furnish_lets_an_empty_publish_call_work(workspace, feed):
    item = steps.make_items(workspace)[0]
    _, publications = publish.request(item, publish.Wish(), by="alice")
    assert [row.outlet_id for row in publications] == [feed.pk]
    assert steps.send(publications[0]).status == "published"


def test_furnish_belongs_to_one_workspace_alone(workspace, charlies):
    hers = set(Outlet.everywhere.filter(workspace=workspace).values_list("secret", flat=True))
    his = set(Outlet.everywhere.filter(workspace=charlies).values_list("secret", flat=True))
    assert len(hers | his) == 4
    assert credits.check() == []
