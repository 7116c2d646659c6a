"""The operator's own voice: words met in the text, and every way in which a program can be wrong."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

import pytest

from pipeline.plugins import Refused, TryLater
from pipeline.voices import tool
from pipeline.voices.tool import PLUGIN
from tests.voices.programs import program

TEXT = "Bakers sold 42 loaves — on Friday."


def speak(environment, text=TEXT):
    return PLUGIN.speak(text, language="en", environment=environment)


def test_words_have_the_times_of_the_program(tmp_path):
    words = speak(program(tmp_path)).words
    assert [(word.t, word.start, word.end) for word in words[:2]] == [
        ("Bakers", 0, 0.2),
        ("sold", 0.25, 0.45),
    ]
    assert [(word.t, word.start) for word in words[3:]] == [("loaves —", 1.0), ("on", 1.25), ("Friday.", 1.5)]
    # It said "forty two", which isn't in the text.
    assert (words[2].t, words[2].start) == ("42", 0.5)


def test_the_program_gets_the_question_and_an_empty_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("SECRET_KEY", "x")
    seen = tmp_path / "seen"
    note = f"open({str(seen)!r}, 'w').write(repr((asked, os.listdir(), sorted(os.environ), os.getcwd())))"
    PLUGIN.speak(
        "Hello there.", language="de", rate=120, pitch=40, environment=program(tmp_path, before=note)
    )
    asked, files, names, folder = eval(seen.read_text())
    assert asked == {"text": "Hello there.", "language": "de", "rate": 120, "pitch": 40}
    assert files == []
    assert set(names) <= {"HOME", "LANG", "PATH", "PWD", "TMPDIR", "LC_CTYPE"}
    assert not Path(folder).exists()


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        ("sys.exit('no model')", "", "it failed with 'no model'"),
        ("", "os.remove('speech.wav')", "it wrote no speech.wav"),
        ("", "os.remove('words.json')", "it wrote no words.json"),
        ("", "os.remove('words.json'); os.symlink('/etc/passwd', 'words.json')", "it wrote no words.json"),
        ("", "open('speech.wav', 'wb').write(b'RIFF')", "its speech.wav can't be read"),
        ("CHANNELS = 2", "", "its speech.wav isn't one channel of 16 bits at 8,000 to 48,000 Hz"),
        ("RATE = 96000", "", "its speech.wav isn't one channel of 16 bits at 8,000 to 48,000 Hz"),
        ("samples = []", "", "its speech.wav is empty"),
        ("", "open('speech.wav', 'wb').truncate(65 << 20)", "its speech.wav has more than 64 MiB"),
        ("words = {'a': 1}", "", 'its words.json isn\'t a list of {"word", "start", "end"}'),
        ("words[0]['start'] = 'x'", "", 'its words.json isn\'t a list of {"word", "start", "end"}'),
        ("words.reverse()", "", "the times in its words.json go back"),
        ("words[-1]['end'] = 99", "", "the times in its words.json go beyond its speech.wav"),
        ("words = words[:2]", "", "most words of the text aren't in its words.json"),
        ("words = []", "", "most words of the text aren't in its words.json"),
    ],
)
def test_a_wrong_program_is_told_in_words(tmp_path, monkeypatch, before, after, why):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(Refused, match=re.escape(f"The operator's voice can't be used: {why}.")):
        speak(program(tmp_path, before=before, after=after))
    assert list(tmp_path.glob("voice-tool-*")) == []


def test_a_slow_program_is_ended(tmp_path, monkeypatch):
    monkeypatch.setattr(tool, "MAX_SECONDS", 0.5)
    with pytest.raises(TryLater, match="took more than"):
        speak(program(tmp_path, before="time.sleep(600)"))


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("", "This service has no voice of its operator's. Ask the operator to set VOICE_TOOL."),
        (
            "/no/such/voice",
            "The program that VOICE_TOOL names isn't there. Ask the operator to put it there, or to set another one.",
        ),
    ],
)
def test_a_missing_program_is_told_in_words(path, why):
    assert PLUGIN.unavailable({"VOICE_TOOL": path}).sentence == why
    with pytest.raises(Refused, match=re.escape(why)):
        speak({"VOICE_TOOL": path})
