"""Banned words and required structures: what a program can tell of a draft."""

from __future__ import annotations

import pytest

from pipeline.engines.base import Brief, Draft, Fact, PersonaCard
from pipeline.engines.checks.persona_rules import (
    banned_in,
    check_persona,
    keeps_rules,
    missing_in,
)
from pipeline.engines.short_post import PLUGIN as SHORT_POST
from pipeline.plugins import Refused


def persona(*structures, banned=()):
    return PersonaCard("Ada", banned_words=banned, required_structures=structures)


@pytest.mark.parametrize(
    ("banned", "words", "is_found"),
    [
        ("delve", "We Delve into rye.", True),
        ("delve", "We delved into rye.", False),
        ("game changer", "A game\n changer, truly.", True),
        ("game changer", "A game-changer.", False),
        ("don't", "We don\u2019t rush.", True),
        ("#ad", "Fresh bread #ad today", True),
        ("ad", "A bread of ours", False),
        ("Stra\u00dfe", "IN DER STRASSE", True),
        ("de\u200blve", "we delve", True),
        ("delve", "we de\u200blve", True),
        ("\u6700\u9ad8", "\u3053\u308c\u306f\u6700\u9ad8\u3067\u3059", True),
        ("caf\u00e9", "the cafe\u0301 opens", True),
    ],
)
def test_banned_words_are_found_as_whole_words(banned, words, is_found):
    assert banned_in(words, persona(banned=(banned,))) == ((banned,) if is_found else ())


@pytest.mark.parametrize(
    ("structure", "good", "bad"),
    [
        ({"kind": "ends_with_question"}, "Who bakes at four?", "We bake at four."),
        ({"kind": "ends_with_question"}, "Who bakes?\nhttps://ada.example/x #bread", "Who? Us."),
        ({"kind": "ends_with_question"}, "\u8c01?\u201d", "Who? Not us #rye"),
        ({"kind": "starts_with", "text": "Rye:"}, "RYE: a day's work.", "The rye: late."),
        ({"kind": "ends_with", "text": "Ada"}, "Good night. \u2014 Ada", "Ada says good night."),
        ({"kind": "ends_with", "text": "#bread"}, "Good night. #bread", "#bread at night"),
        ({"kind": "max_words", "most": 3}, "Rye isn't wheat https://ada.example/a/b", "Rye is not wheat"),
        ({"kind": "max_hashtags", "most": 1}, "Rye #bread #1", "Rye #bread #rye"),
        (
            {"kind": "max_emoji", "most": 1},
            "Rye \U0001f468\u200d\U0001f373",
            "Rye \U0001f35e\U0001f1e9\U0001f1ea",
        ),
    ],
)
def test_structures_are_told_by_a_program(structure, good, bad):
    assert missing_in(good, persona(structure)) == ()
    assert len(missing_in(bad, persona(structure))) == 1
    assert keeps_rules(good, persona(structure))
    assert not keeps_rules(bad, persona(structure))


@pytest.mark.parametrize("structure", [{"kind": "other", "text": "Name the bread."}, {"kind": "of_tomorrow"}])
def test_what_no_program_can_tell_is_not_checked(structure):
    card = persona(structure)
    assert missing_in("Anything", card) == ()
    assert check_persona(draft("Anything"), card) == ()


def draft(body, title=""):
    return Draft(
        title=title, body=body, body_format="text", content={"parts": [body]}, claims=(), language="en"
    )


def test_draft_that_breaks_a_rule_fails_with_the_list():
    card = persona({"kind": "ends_with_question"}, {"kind": "max_words", "most": 2}, banned=("delve", "rye"))
    found = check_persona(draft("We delve deep.", title="Rye"), card)
    assert [(check.code, check.outcome, check.message) for check in found] == [
        ("banned_words", "failed", "The persona never says: \u201cdelve\u201d, \u201crye\u201d."),
        (
            "required_structures",
            "failed",
            "It has to end with a question. It has 3 words; the maximum is 2.",
        ),
    ]


def test_persona_without_demands_adds_no_check():
    assert check_persona(draft("We delve."), PersonaCard("Ada")) == ()


def brief(*quotes):
    facts = tuple(Fact(f"f{n}", one, one, 0, len(one)) for n, one in enumerate(quotes, start=1))
    return Brief(title="Bread", language="en", url="https://ada.example/bread", facts=facts)


def test_sentences_that_the_persona_may_not_say_are_passed_by_without_a_model():
    found = brief(
        "This bread is a game changer for the whole town.",
        "Ada bakes in Leeds from four in the morning.",
        "Who bakes in Leeds from four in the morning?",
    )
    (post,) = SHORT_POST.offline(found, persona(banned=("game changer",)), variants=1, seed="x")
    assert post.body.startswith("Ada bakes")
    (post,) = SHORT_POST.offline(found, persona({"kind": "ends_with_question"}), variants=1, seed="x")
    assert post.body == "Who bakes in Leeds from four in the morning?\nhttps://ada.example/bread"
    with pytest.raises(Refused) as error:
        SHORT_POST.offline(found, persona({"kind": "starts_with", "text": "Hear ye"}), variants=1, seed="x")
    assert error.value.code == "nothing_to_say"


def test_article_is_asked_for_its_words_and_not_for_the_shape_of_a_post() -> None:
    structures = (
        {"kind": "ends_with_question"},
        {"kind": "max_words", "most": 3},
        {"kind": "max_emoji", "most": 0},
    )
    persona = PersonaCard("Ann", banned_words=("synergy",), required_structures=structures)
    article = Draft("Title", "Many words of synergy 🎉, told at length.", "markdown", {}, (), "en")

    told = [(one.code, one.outcome, one.message) for one in check_persona(article, persona)]

    assert told == [
        ("banned_words", "failed", "The persona never says: “synergy”."),
        ("required_structures", "failed", "It has 1 emoji; the maximum is 0."),
    ]
