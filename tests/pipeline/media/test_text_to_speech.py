"""Which voice speaks, and what is said where none does."""

from __future__ import annotations

import pytest

from pipeline.media import text_to_speech
from pipeline.voices import system
from tests.voices.programs import program

TEXT = "Bakers sold bread."


@pytest.fixture
def no_library(monkeypatch):
    monkeypatch.setattr(system, "LIBRARY", "no_such_library")
    system._is_installed.cache_clear()
    yield
    system._is_installed.cache_clear()


def test_the_system_speaks_where_nobody_set_anything():
    spoken = text_to_speech.speak(TEXT, language="en")
    assert (spoken.voice, spoken.note) == ("system", "")
    assert [word.t for word in spoken.speech.words] == ["Bakers", "sold", "bread."]


def test_the_operators_voice_comes_first(settings, tmp_path):
    settings.VOICE_ENVIRONMENT = program(tmp_path)
    spoken = text_to_speech.speak(TEXT, language="en")
    assert (spoken.voice, spoken.note, spoken.speech.rate) == ("tool", "", 16000)


def test_the_system_steps_in_for_a_broken_program(settings, tmp_path):
    settings.VOICE_ENVIRONMENT = program(tmp_path, before="sys.exit('no model')")
    spoken = text_to_speech.speak(TEXT, language="en")
    assert spoken.voice == "system"
    assert spoken.note == "The operator's voice can't be used: it failed with 'no model'."


@pytest.mark.usefixtures("no_library")
def test_without_any_voice_the_film_is_silent_and_says_why():
    spoken = text_to_speech.speak(TEXT, language="en")
    assert (spoken.voice, spoken.speech) == ("", None)
    assert spoken.note == (
        "The system voice isn't installed on this service. Ask the operator to install it (the extra `voice`)."
    )


def test_a_language_that_nobody_speaks_makes_a_silent_film():
    spoken = text_to_speech.speak(TEXT, language="xx")
    assert (spoken.voice, spoken.speech) == ("", None)
    assert spoken.note.startswith("The system voice doesn't speak the language 'xx'")
