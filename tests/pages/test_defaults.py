"""What a workspace makes and where it goes where nobody says otherwise."""

from __future__ import annotations

import re

import pytest
from django.urls import reverse

from accounts import workspaces
from accounts.models import AuditEntry
from config.core.ids import encode
from pipeline import plugins
from pipeline.engines.base import Engine
from pipeline.models import Outlet, Persona, WorkspaceDefaults
from tests.pipeline.steps import push_raw


def at(workspace):
    return reverse("defaults", kwargs={"ws": workspace.pk})


def kept(workspace):
    row = WorkspaceDefaults.objects.of(workspace).get()
    return row.persona_id, row.engines, row.outlets


def changes(workspace):
    return AuditEntry.objects.of(workspace).filter(action="defaults.changed").count()


@pytest.fixture
def theirs(charlie):
    return workspaces.memberships_of(charlie)[0].workspace


def form_of(workspace, **changes):
    persona, engines, outlets = kept(workspace)
    late = {"late_policy": "publish", "max_lateness_minutes": ""}
    return {"persona": encode("per", persona), "engines": engines, "outlets": outlets, **late, **changes}


def test_it_shows_what_holds_with_prices(editor, newsroom, theirs):
    answer = editor.get(at(newsroom))
    form = answer.context["form"]
    assert form.initial == {**form_of(newsroom), "max_lateness_minutes": None}
    # What is made of several raw items is made by a series, never of one that comes in.
    engines = [one for one in plugins.every("engines", Engine) if "series" not in one.made_from]
    assert [name for name, _ in form.fields["engines"].choices] == [engine.name for engine in engines]
    labels = {name: re.sub("<[^>]+>", "|", str(label)) for name, label in form.fields["engines"].choices}
    assert (
        labels["Short Post"]
        == "|Short Post||One idea with a link, at most 280 characters · Text · 1 credit||"
    )
    assert (
        labels["Persona Tweet"] == "|Persona Tweet||A picture of a post by the persona · Image · 2 credits||"
    )
    text = answer.content.decode()
    assert "Elsewhere" not in text


def test_an_editor_changes_it_and_the_next_push_follows(editor, newsroom):
    persona = Persona.everywhere.create(workspace=newsroom, name="Ada")
    outlet = Outlet.everywhere.create(workspace=newsroom, platform="feed", name="Second feed")
    before = kept(newsroom)
    form = form_of(
        newsroom,
        persona=encode("per", persona.pk),
        engines=["Short Post"],
        outlets=[encode("out", outlet.pk), *before[2]],
    )
    answer = editor.post(at(newsroom), form)
    assert (answer.status_code, answer["Location"]) == (302, at(newsroom))
    # Those that were there keep their places.
    assert kept(newsroom) == (persona.pk, ["Short Post"], [*before[2], encode("out", outlet.pk)])
    raw = push_raw(newsroom).raw_item
    assert (raw.engines, raw.persona_id) == (["Short Post"], persona.pk)
    entry = AuditEntry.objects.of(newsroom).get(action="defaults.changed")
    assert (entry.actor, entry.details["engines"]) == ("bob@example.test", [before[1], ["Short Post"]])
    editor.post(at(newsroom), form_of(newsroom))
    assert changes(newsroom) == 1


def test_nothing_of_another_workspace_can_be_chosen(editor, newsroom, theirs):
    before = kept(newsroom)
    persona, _, outlets = kept(theirs)
    for change in ({"persona": encode("per", persona)}, {"outlets": outlets}):
        answer = editor.post(at(newsroom), form_of(newsroom, **change))
        assert list(answer.context["form"].errors) == list(change)
    assert kept(newsroom) == before


def test_a_deleted_outlet_can_t_be_chosen(editor, newsroom):
    gone = Outlet.everywhere.create(
        workspace=newsroom, platform="feed", name="Gone", deleted_at=newsroom.created_at
    )
    answer = editor.post(at(newsroom), form_of(newsroom, outlets=[encode("out", gone.pk)]))
    assert list(answer.context["form"].errors) == ["outlets"]


def test_at_least_one_engine_is_asked_for(editor, newsroom):
    answer = editor.post(at(newsroom), form_of(newsroom, engines=[]))
    assert answer.context["form"].errors == {"engines": ["Choose at least one."]}
    assert changes(newsroom) == 0


def test_no_outlet_is_a_choice(editor, newsroom):
    editor.post(at(newsroom), form_of(newsroom, outlets=[]))
    assert kept(newsroom)[2] == []


def test_what_was_typed_outlives_the_session(left_alone, newsroom, alice):
    alice.set_password("a long enough phrase 9")
    alice.save(update_fields=["password"])
    alice.mark_email_verified()
    client = left_alone(alice)
    answer = client.post(at(newsroom), form_of(newsroom, engines=["Short Post"], outlets=[]))
    client.post(answer["Location"], {"login": alice.email, "password": "a long enough phrase 9"})
    assert client.get(at(newsroom)).context["form"].initial["engines"] == ["Short Post"]


@pytest.mark.parametrize(
    ("given", "minutes"),
    [
        ({"late_policy": "hold", "max_lateness_minutes": "45"}, ("hold", 45)),
        ({"late_policy": "next_slot"}, ("next_slot", 60)),
        # However late is never too late.
        ({"late_policy": "publish", "max_lateness_minutes": "45"}, ("publish", None)),
        ({"late_policy": ""}, ("publish", None)),
    ],
)
def test_what_is_late_follows_it(editor, newsroom, given, minutes):
    answer = editor.post(at(newsroom), form_of(newsroom, **given))
    row = WorkspaceDefaults.objects.of(newsroom).get()
    assert (answer.status_code, (row.late_policy, row.max_lateness_minutes)) == (302, minutes)


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"late_policy": "hold", "max_lateness_minutes": "0"}, "max_lateness_minutes"),
        ({"late_policy": "hold", "max_lateness_minutes": "43201"}, "max_lateness_minutes"),
        ({"late_policy": "never"}, "late_policy"),
    ],
)
def test_what_is_late_has_bounds(editor, newsroom, given, field):
    answer = editor.post(at(newsroom), form_of(newsroom, **given))
    assert (answer.status_code, list(answer.context["form"].errors)) == (200, [field])
    assert (changes(newsroom), WorkspaceDefaults.objects.of(newsroom).get().late_policy) == (0, "publish")
