"""Interviews: the answers are taken, with the name where one stands before them; questions and what leans on them are not."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.engines.base import SourceText
from pipeline.text.plain_text import seen_text
from pipeline.writers.extractive import PLUGIN
from pipeline.writers.extractive.telling_sentences import find_facts
from tests.first_day.matrix import ENGINES, PERSONAS, outcome

SAMPLES = sorted((Path(__file__).parent / "samples" / "interviews").iterdir())
"""A title, an interview and, behind a line, what of it may be repeated. The name begins with the language."""
OF_WORDS = [engine for engine in ENGINES if not {"video", "series"} & set(engine.made_from)]
LEAST_READY = 4


def read(path):
    head, _, rest = path.read_text(encoding="utf-8").partition("\n\n")
    body, _, expected = rest.partition("\n\n---\n\n")
    source = SourceText(
        head.removeprefix("title: "), seen_text(body, "markdown"), language=path.stem.partition("_")[0]
    )
    return source, expected.splitlines()


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.stem)
def test_answers_are_taken_and_pass_every_check(path):
    source, expected = read(path)
    brief = PLUGIN.brief(source).brief
    assert [fact.text for fact in sorted(brief.facts, key=lambda fact: fact.start)] == expected
    assert [fact.quote for fact in brief.facts] == [
        source.text[fact.start : fact.end] for fact in brief.facts
    ]

    came = [outcome(engine, source, brief, persona) for engine in OF_WORDS for persona in PERSONAS]
    assert [(one.engine.name, one.reason) for one in came if one.status == "failed"] == []
    assert sum(one.status == "ready" for one in came) >= LEAST_READY * len(PERSONAS)


def facts(text):
    return [fact.text for fact in sorted(find_facts(text), key=lambda fact: fact.start)]


def test_a_scene_in_which_nobody_asks_says_nothing_of_the_world():
    scene = "Nora Lind: The bridge was sold to the king of spoons.\n\nOwen Strand: The king has paid with forty silver forks.\n\n"
    assert facts(scene * 2) == []


def test_a_shop_speaks_of_itself_in_its_answers_and_a_person_does_not():
    shop = "Do you deliver?\n\nWe deliver to all islands on Tuesdays.\n\nWhat does it cost?\n\nA delivery costs six pounds.\n\n"
    assert facts(shop) == ["We deliver to all islands on Tuesdays.", "A delivery costs six pounds."]
    person = shop.replace("A delivery", "For me a delivery")
    assert facts(person) == []


def test_questions_to_the_reader_make_no_interview():
    essay = (
        "What is a harbour for?\n\nThe harbour of Brackwater was built for coal. I have seen the last ship.\n\n"
        + "The cranes went in 1994 and the pubs went in 1996, one after the other, along the quay.\n\n" * 12
        + "And what is left?\n\nTwo sheds are left at the end of the quay. I like them."
    )
    assert "I have seen the last ship." in facts(essay)
