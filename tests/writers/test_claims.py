"""Claims by their first words: the statement is found in the draft, never guessed."""

from __future__ import annotations

import pytest

from pipeline.writers.claude.answers import AnswerUnreadable
from pipeline.writers.claude.quotes_in_source import expand_claims

TEXT = "The council voted 14 to 9 for the line, and the mayor “could not wait longer”. It costs £214 million."


def told(*words, text=TEXT, **more):
    claims = [{"text": one, "fact": "f1", "derived": ""} for one in words]
    variant = {"angle": "number", "text": text, "claims": claims, **more}
    return [claim["text"] for claim in expand_claims(variant, 1)["claims"]]


def test_statement_goes_to_the_end_of_its_sentence():
    assert told("The council voted 14…", "It costs £214 million…") == [
        "The council voted 14 to 9 for the line, and the mayor “could not wait longer”.",
        "It costs £214 million.",
    ]


def test_statement_ends_where_the_next_one_begins():
    assert told("The council voted 14…", "and the mayor “could…") == [
        "The council voted 14 to 9 for the line",
        "and the mayor “could not wait longer”.",
    ]


def test_whole_statement_is_kept_as_it_is():
    assert told("The council voted 14 to 9") == ["The council voted 14 to 9"]


def test_three_dots_are_the_sign_too():
    assert told("It costs...") == ["It costs £214 million."]


def test_words_are_found_in_any_field_and_a_line_ends_a_sentence():
    posts = ["First the vote\nThen the price", "A depot opens in April."]
    assert told("First the…", "A depot opens…", posts=posts) == ["First the vote", "A depot opens in April."]


def test_what_a_summary_says_too_is_claimed_where_it_says_most():
    assert told("It costs £214…", points=["It costs £214 million, of which £92 million are paid."]) == [
        "It costs £214 million, of which £92 million are paid."
    ]


@pytest.mark.parametrize(
    "words", ["Nobody said this…", "cil voted…", "…"], ids=["absent", "half a word", "empty"]
)
def test_words_that_the_draft_does_not_hold_are_told(words):
    with pytest.raises(AnswerUnreadable) as failure:
        told(words)
    assert failure.value.problems == [f"Variant 1: `{words}` of a claim has to stand in the draft."]
