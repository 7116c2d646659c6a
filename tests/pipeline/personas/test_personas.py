"""Personas: sound settings, versions that only grow, undo, and deletion while nothing speaks with it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from accounts.models import AuditEntry
from config.core.errors import Conflict, Invalid, NotFound
from config.core.ids import encode
from config.core.states import Overtaken
from pipeline import limits
from pipeline.models import Persona, PersonaVersion, Source, WorkspaceDefaults
from pipeline.models.persona import VERSIONED_FIELDS
from pipeline.personas import crud
from pipeline.workspace import defaults, provision
from tests.pipeline.steps import NOON, codes, reread

GIVEN = {
    "name": "  Ada  Bakes ",
    "handle": "@adabakes",
    "language": "en-GB",
    "links": ["https://ada.example/", "https://ada.example/"],
    "brand": {"primary": "#112233", "font": "Inter", "logo": ""},
    "who_you_are": "A bakery in Leeds.\r\nFounded in 1987.",
    "voice": "Dry.",
    "banned_words": ["game  changer", "delve", "delve", ""],
    "required_structures": [
        {"kind": "ends_with_question"},
        {"kind": "max_hashtags", "most": 1},
        {"kind": "other", "text": "Name the bread."},
    ],
    "reference_posts": ["Rye is patient.\nSo are we."],
    "approved_lines": ["We bake from four in the morning."],
}


def made(workspace, **changes):
    return crud.create(workspace, {**GIVEN, **changes}, by="alice", now=NOON)


def test_persona_is_stored_as_it_will_be_shown(workspace):
    persona = reread(made(workspace))
    assert {name: getattr(persona, name) for name in VERSIONED_FIELDS} == {
        **GIVEN,
        "name": "Ada Bakes",
        "links": ["https://ada.example/"],
        "brand": {"primary": "#112233", "font": "Inter"},
        "who_you_are": "A bakery in Leeds.\nFounded in 1987.",
        "banned_words": ["game changer", "delve"],
    }
    kept = PersonaVersion.everywhere.get(persona=persona)
    assert (kept.number, kept.made_by, kept.content) == (1, "alice", provision.persona_content(persona))


def test_every_fault_is_named_at_once(workspace):
    bad = {
        "name": " ",
        "language": "English!",
        "handle": "two words",
        "links": ["ftp://x.example", "https:///", "https://fine.example"],
        "brand": {"primary": "red", "shape": "round"},
        "voice": 7,
        "who_you_are": "x" * (limits.PERSONA_TEXT_CHARACTERS + 1),
        "banned_words": ["x"] * (limits.BANNED_WORDS + 1),
        "required_structures": [{"kind": "max_words"}, {"kind": "rhymes"}, {"kind": "ends_with", "text": ""}],
        "approved_lines": "no list",
        "tone": "nice",
    }
    with pytest.raises(Invalid) as error:
        crud.create(workspace, bad, by="alice", now=NOON)
    assert codes(error) == [
        ("tone", "unknown_field"),
        ("name", "required"),
        ("handle", "pattern"),
        ("language", "pattern"),
        ("links[0]", "invalid_address"),
        ("links[1]", "invalid_address"),
        ("brand.primary", "pattern"),
        ("brand.shape", "unknown_field"),
        ("who_you_are", "too_long"),
        ("voice", "invalid_type"),
        ("banned_words", "too_many"),
        ("required_structures[0].most", "invalid_type"),
        ("required_structures[1].kind", "invalid"),
        ("required_structures[2].text", "required"),
        ("approved_lines", "invalid_type"),
    ]
    assert Persona.everywhere.filter(workspace=workspace).count() == 1


def test_change_is_the_next_version_and_nothing_new_is_none(workspace):
    persona = made(workspace)
    later = NOON + timedelta(hours=1)
    changed = crud.change(persona, {"voice": "Warm.", "name": "Ada Bakes"}, by="bob", now=later)
    assert (changed.version, changed.voice, changed.updated_at) == (2, "Warm.", later)
    same = crud.change(changed, {"voice": "Warm. "}, by="bob", now=later)
    assert same.version == 2
    assert [(one.number, one.content["voice"], one.made_by) for one in crud.versions(persona)] == [
        (2, "Warm.", "bob"),
        (1, "Dry.", "alice"),
    ]
    entry = AuditEntry.everywhere.latest("id")
    assert (entry.action, entry.actor, entry.details) == (
        "persona.changed",
        "bob",
        {"version": 2, "changed": ["voice"]},
    )


def test_change_from_an_old_page_is_refused(workspace):
    persona = made(workspace)
    crud.change(persona, {"voice": "Warm."}, by="bob", now=NOON)
    with pytest.raises(Overtaken) as error:
        crud.change(persona, {"voice": "Cold."}, by="alice", now=NOON, expected_version=1)
    assert error.value.code == "version_conflict"
    assert reread(persona).voice == "Warm."


def test_going_back_makes_the_version_before_the_newest(workspace):
    persona = made(workspace)
    crud.change(persona, {"voice": "Warm.", "banned_words": []}, by="bob", now=NOON)
    undone = crud.restore_version(reread(persona), 1, by="alice", now=NOON)
    assert (undone.version, undone.voice, undone.banned_words) == (3, "Dry.", ["game changer", "delve"])
    redone = crud.restore_version(undone, 2, by="alice", now=NOON)
    assert (redone.version, redone.voice, redone.banned_words) == (4, "Warm.", [])
    assert [one.number for one in crud.versions(persona)] == [4, 3, 2, 1]


def test_first_version_has_none_before_it(workspace):
    persona = made(workspace)
    with pytest.raises(NotFound):
        crud.restore_version(persona, 0, by="alice", now=NOON)


def test_persona_in_use_is_not_deleted(workspace):
    default = WorkspaceDefaults.everywhere.get(workspace=workspace).persona
    with pytest.raises(Conflict) as error:
        crud.delete(default, by="alice", now=NOON)
    assert [one.code for one in error.value.detail] == ["in_use"]
    persona = made(workspace)
    source = Source.everywhere.create(workspace=workspace, name="Bread", type="brand", persona=persona)
    with pytest.raises(Conflict) as error:
        crud.delete(persona, by="alice", now=NOON)
    assert "Bread" in error.value.detail[0].message
    Source.everywhere.filter(pk=source.pk).update(deleted_at=NOON)
    crud.delete(persona, by="alice", now=NOON)
    assert reread(persona).deleted_at == NOON


def test_deleted_persona_is_gone_until_it_is_restored(workspace):
    persona = made(workspace)
    crud.delete(persona, by="alice", now=NOON)
    wanted = defaults.Defaults(encode("per", persona.pk), ("Short Post",), ())
    with pytest.raises(Invalid):
        defaults.change(workspace, wanted, actor="alice")
    with pytest.raises(Conflict):
        crud.change(persona, {"voice": "Warm."}, by="alice", now=NOON)
    restored = crud.restore(persona, by="alice", now=NOON)
    assert (restored.deleted_at, reread(persona).deleted_at) == (None, None)
    assert defaults.change(workspace, wanted, actor="alice") is True


def test_one_workspace_has_so_many_personas(workspace, monkeypatch):
    monkeypatch.setattr(limits, "PERSONAS", 2)
    made(workspace)
    with pytest.raises(Conflict) as error:
        made(workspace, name="Third")
    assert [one.code for one in error.value.detail] == ["too_many"]
