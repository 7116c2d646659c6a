"""A stranger's first day without AI: each engine that is asked for ends as ready, or as skipped with acceptance's reason.

The texts are every ordinary shape in twelve languages, the addresses have a host with digits, an IP or aren't there,
the persona has a handle with digits or none. Nothing is stored and nothing is drawn.
"""

from __future__ import annotations

import pytest

from tests.first_day.matrix import ENGINES, PERSONAS, URLS, asked
from tests.first_day.texts import Text, count_signs, texts


def cases():
    return [
        pytest.param(text, engine, id=f"{text.name}-{engine.kind}") for text in texts() for engine in ENGINES
    ]


@pytest.mark.parametrize(("text", "engine"), cases())
def test_what_was_asked_for_is_ready_or_was_refused_at_the_door(text, engine):
    found = {(url, persona.handle): asked(text, engine, url, persona) for url in URLS for persona in PERSONAS}
    assert {where: one.reason for where, one in found.items() if one.status == "failed"} == {}
    # The persona's handle decides nothing.
    assert all(len({found[url, one.handle].status for one in PERSONAS}) == 1 for url in URLS)
    assert all(one.reason for one in found.values() if one.status == "skipped")


def test_the_texts_are_of_every_ordinary_shape():
    every = texts()
    words = sorted(count_signs(one.body) for one in every if one.language not in {"zh", "ja", "th"})
    assert len(every) == 25
    assert len({one.language for one in every}) >= 10
    assert words[0] <= 80
    assert words[-1] >= 5_400
    assert {one.body_format for one in every} == {"text", "markdown", "html"}


@pytest.mark.parametrize("text", texts(), ids=lambda one: one.name)
def test_something_comes_of_each_text(text: Text):
    made = [engine.name for engine in ENGINES if asked(text, engine, "", PERSONAS[0]).status == "ready"]
    assert "Short Post" in made
    assert len(made) >= 2
