"""Drafts without a model: a question is left to its answer where enough else is there."""

from __future__ import annotations

from pipeline.engines.base import PersonaCard
from pipeline.engines.short_post import PLUGIN as SHORT_POST
from pipeline.engines.thread import PLUGIN as THREAD
from pipeline.writers.extractive import draft_without_model
from tests.engines.test_persona_rules import brief, persona

QUESTION = "Who pays for the ferry that leaves at four in the morning?"
ANSWERS = (
    "Half of the money comes from the town of Leeds.",
    "Ada bakes on board with her two brothers.",
    "Winter storms close the harbour for nine days each year.",
    "Children under twelve travel free on Sundays.",
)


def test_a_question_is_left_to_its_answer_where_enough_else_is_there():
    (thread,) = draft_without_model(
        THREAD, brief(QUESTION, *ANSWERS), PersonaCard("Ada"), variants=1, seed="x"
    )
    assert QUESTION not in thread.body
    (post,) = draft_without_model(
        SHORT_POST, brief(QUESTION, *ANSWERS), PersonaCard("Ada"), variants=1, seed="x"
    )
    assert QUESTION not in post.body

    (thin,) = draft_without_model(
        THREAD, brief(QUESTION, *ANSWERS[:2]), PersonaCard("Ada"), variants=1, seed="x"
    )
    assert QUESTION in thin.body
    # Two posts can be made of one answer and the question only.
    both = draft_without_model(
        SHORT_POST, brief(QUESTION, ANSWERS[0]), PersonaCard("Ada"), variants=2, seed="x"
    )
    assert {QUESTION in post.body for post in both} == {True, False}
    wants = persona({"kind": "ends_with_question"})
    (asked,) = draft_without_model(SHORT_POST, brief(QUESTION, *ANSWERS), wants, variants=1, seed="x")
    assert QUESTION in asked.body
