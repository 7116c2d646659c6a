"""Each gate of autopilot, closed by what belongs to it."""

from __future__ import annotations

import pytest

from pipeline.engines.base import Claim, Draft, PersonaCard
from pipeline.generate.autopilot import are_gates_open, check_gates

PERSONA = PersonaCard("Ann")
DRAFT = Draft("", "It opened.", "text", {}, (Claim("It opened.", "It opened.", 0, 10),), "en")


def check(code, outcome="warning"):
    return {"code": code, "outcome": outcome, "message": f"About {code}."}


def closed(*checks, draft=DRAFT, persona=PERSONA, is_suspect=False):
    found = check_gates(draft, persona, checks, is_suspect=is_suspect)
    assert [one.code for one in found] == ["gate_persona", "gate_platform", "gate_facts", "gate_safety"]
    return {one.code: one.message for one in found if one.outcome != "passed"}


def test_what_passed_everything_goes():
    assert closed(check("numbers", "passed"), check("length", "passed")) == {}


@pytest.mark.parametrize(
    ("code", "gate"),
    [
        ("names", "gate_facts"),
        ("support", "gate_facts"),
        ("banned_words", "gate_safety"),
        ("repetition", "gate_safety"),
        ("instructions", "gate_safety"),
        ("length", "gate_platform"),
        ("portrait", "gate_platform"),
        ("of_an_engine_to_come", "gate_platform"),
    ],
)
def test_warning_closes_its_gate_alone(code, gate):
    assert closed(check(code)) == {gate: f"Needs a review: About {code}."}


def test_no_persona_no_anchor_and_a_suspect_source_close_one_each():
    assert list(closed(persona=PersonaCard(" "))) == ["gate_persona"]
    bare = Draft("", "It opened.", "text", {}, (), "en")
    assert list(closed(draft=bare)) == ["gate_facts"]
    assert list(closed(is_suspect=True)) == ["gate_safety"]


def test_gates_are_open_only_where_all_four_were_looked_at():
    passed = [
        {"code": one.code, "outcome": one.outcome}
        for one in check_gates(DRAFT, PERSONA, (), is_suspect=False)
    ]
    assert are_gates_open(passed)
    assert not are_gates_open(passed[:3])
    assert not are_gates_open([])
    assert not are_gates_open([*passed[:3], {**passed[3], "outcome": "warning"}])
