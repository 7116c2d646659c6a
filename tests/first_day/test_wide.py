"""Chinese, Japanese and Korean on a machine that has their letters: one takes the room of two, and is a syllable."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.cjk import cjk  # noqa: F401  a fixture
from tests.first_day.matrix import ENGINES, PERSONAS, URLS, outcome, with_url
from tests.first_day.texts import texts

TEXTS = [one for one in texts() if one.language in {"ja", "ko", "th", "zh"}]


def made(text, engine):
    return outcome(engine, *with_url(text, engine, URLS[1]), PERSONAS[0])


@pytest.mark.usefixtures("cjk")
@pytest.mark.parametrize("length", [0, 30, 44, 72])
@pytest.mark.parametrize("text", TEXTS, ids=lambda text: text.name)
def test_what_was_asked_for_is_ready_or_was_refused_at_the_door(text, length):
    title = (text.title * 9)[:length] if length else text.title
    found = {}
    for engine in ENGINES:
        if "series" in engine.made_from:
            continue
        found[engine.name] = made(replace(text, title=title), engine)
    assert {name: one.reason for name, one in found.items() if one.status == "failed"} == {}
    assert found["Short Post"].status == "ready"


@pytest.mark.usefixtures("cjk")
@pytest.mark.parametrize("name", ["zh_news", "ja_news", "ko_news", "th_news"])
def test_a_story_is_told_in_a_film(name):
    [text] = [one for one in TEXTS if one.name == name]
    [engine] = [one for one in ENGINES if one.name == "Persona Short"]
    told = made(text, engine)
    assert (told.status, told.reason) == ("ready", "")
