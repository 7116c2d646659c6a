"""What every voice has to keep, run over the registry; a new kind fails until its sample is recorded."""

from __future__ import annotations

import io
import json
import wave
from pathlib import Path

import numpy as np
import pytest

from pipeline import plugins
from pipeline.plugins import Refused
from pipeline.voices.base import MAX_TEXT_CHARACTERS, Voice
from tests.voices.programs import program

SAMPLES = Path(__file__).parent / "samples"


@pytest.fixture(params=plugins.every("voices", Voice), ids=lambda voice: voice.kind)
def voice(request):
    return request.param


@pytest.fixture
def sample(voice):
    path = SAMPLES / f"{voice.kind}.json"
    assert path.is_file(), f"Record tests/voices/samples/{voice.kind}.json: a text and its words as shown."
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.fixture
def environment(voice, tmp_path):
    return program(tmp_path / "tool") if "VOICE_TOOL" in voice.environment else {}


@pytest.fixture
def speech(voice, sample, environment):
    return voice.speak(sample["text"], language=sample["language"], environment=environment)


def test_voice_is_named(voice):
    assert voice.label.strip() == voice.label != ""


def test_voice_says_that_it_can_speak(voice, environment):
    assert voice.unavailable(environment) is None


def test_words_are_shown_as_they_are_written(speech, sample):
    assert [word.t for word in speech.words] == sample["shown"]


def test_words_follow_one_another_within_the_sound(speech):
    moments = [moment for word in speech.words for moment in (word.start, word.end)]
    assert moments == sorted(moments)
    assert 0 <= moments[0] < 0.1
    assert speech.seconds - 0.5 < moments[-1] <= speech.seconds + 0.001
    assert all(word.end - word.start > 0.02 for word in speech.words)


def test_there_is_sound_where_there_are_words(speech):
    samples = np.frombuffer(speech.samples, "<i2").astype(float)
    for word in speech.words:
        heard = samples[int(word.start * speech.rate) : int(word.end * speech.rate)]
        assert np.sqrt(np.mean(heard**2)) > 300, word


def test_wave_file_holds_the_samples(speech):
    with wave.open(io.BytesIO(speech.wav())) as file:
        shape = (file.getnchannels(), file.getsampwidth(), file.getframerate(), file.getnframes())
        assert shape == (1, 2, speech.rate, len(speech.samples) // 2)
        assert file.readframes(file.getnframes()) == speech.samples


def test_the_same_text_sounds_the_same(voice, sample, environment, speech):
    again = voice.speak(sample["text"], language=sample["language"], environment=environment)
    assert again == speech


def test_too_long_a_text_is_refused_in_words(voice, environment):
    with pytest.raises(Refused, match=r"has 4001 characters; a voice speaks 4000 at most"):
        voice.speak("a" * (MAX_TEXT_CHARACTERS + 1), language="en", environment=environment)
