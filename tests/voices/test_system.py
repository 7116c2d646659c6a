"""espeak-ng in its child: when words sound, what isn't spoken, and how it ends."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

import numpy as np
import pytest

from pipeline.plugins import Refused, TryLater
from pipeline.render import child_program
from pipeline.voices import system
from pipeline.voices.system import PLUGIN, voices_for


def speak(text, language="en", **how):
    return PLUGIN.speak(text, language=language, environment={}, **how)


def onsets(speech):
    """Where sound follows a tenth of a second of quiet, measured in the samples."""
    samples = np.frombuffer(speech.samples, "<i2").astype(float) / 32768
    window = int(speech.rate * 0.005)
    is_loud = np.sqrt(np.convolve(samples**2, np.ones(window) / window, "same")) > 0.003
    loud = np.flatnonzero(is_loud)
    gaps = np.flatnonzero(np.diff(loud) > 0.1 * speech.rate)
    return [loud[0] / speech.rate, *(loud[gap + 1] / speech.rate for gap in gaps)]


def test_sentences_start_when_they_are_heard():
    speech = speak(
        "Bakers sold bread. Nobody asked why. Prices rose by 3.5% in May. Dogs bark. Good evening."
    )
    firsts = [word.start for word in speech.words if word.t in {"Bakers", "Nobody", "Prices", "Dogs", "Good"}]
    heard = [min(onsets(speech), key=lambda moment: abs(moment - first)) for first in firsts]
    assert len(firsts) == 5
    # A plosive begins with its closure, of which nothing is heard: the P of "Prices" 51 ms.
    late = [moment - first for first, moment in zip(firsts, heard, strict=True)]
    assert min(late) > -0.012
    assert max(late) < 0.06
    assert sorted(late)[3] < 0.013


def test_a_word_ends_with_its_sound():
    speech = speak("Bread rose. Prices fell.")
    rose, prices = speech.words[1], speech.words[2]
    assert rose.t == "rose."
    assert prices.start - rose.end > 0.1


def test_numbers_and_signs_last_as_long_as_they_are_spoken():
    words = {word.t: word.end - word.start for word in speak("They paid $1,234,567 in May.").words}
    assert list(words) == ["They", "paid", "$1,234,567", "in", "May."]
    assert words["$1,234,567"] > 2.0
    assert words["in"] < 0.4


def test_pictures_are_shown_and_not_spoken():
    with_rocket = speak("Sales rose 🚀 again.")
    assert [word.t for word in with_rocket.words] == ["Sales", "rose 🚀", "again."]
    assert with_rocket.seconds == pytest.approx(speak("Sales rose again.").seconds, abs=0.05)


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("ar", "قال وزير المالية إن الاقتصاد نما."),
        ("he", "שלום לכולם."),
        ("de-CH", "Grüezi mitenand."),
        ("pt", "Olá a todos."),
    ],
)
def test_languages_are_spoken(language, text):
    speech = speak(text, language)
    assert [word.t for word in speech.words] == text.split()
    assert speech.seconds > 0.5


def test_chinese_characters_are_read_as_chinese_alone():
    assert speak("上海港的新渡轮航线将于六月开通。", "zh").seconds < 6
    with pytest.raises(Refused, match="can't read the Chinese characters of a text in 'ja'") as refused:
        speak("横浜港では新しいフェリー路線が六月に始まります。", "ja")
    assert refused.value.code == "unspoken_script"
    assert speak("よこはまでふぇりーがはじまります。", "ja").seconds > 1
    # A name in another text is no reason to be silent.
    assert speak("The ferry to Shanghai, 上海, starts in June.").seconds > 1


def test_rate_is_obeyed():
    text = "The bakery on the corner sold more bread in May than in any month before it."
    slow, fast = speak(text, rate=110), speak(text, rate=220)
    assert 1.6 < slow.seconds / fast.seconds < 2.4


def test_names_of_voices_are_names_only():
    assert voices_for("../../etc/passwd") == ["etcpasswd"]
    assert voices_for("pt_BR") == ["pt-br", "pt"]
    assert voices_for("") == ["en-us"]


@pytest.mark.parametrize(
    ("text", "language", "message"),
    [
        ("Hello.", "xx", "The system voice doesn't speak the language 'xx'; choose another voice or none."),
        ("🚀 — …", "en", "There are no words in the text that could be spoken."),
        ("", "en", "There are no words in the text that could be spoken."),
    ],
)
def test_what_it_cannot_speak_is_refused_in_words(text, language, message):
    with pytest.raises(Refused, match=re.escape(message)):
        speak(text, language)


def test_without_the_library_films_are_silent(monkeypatch):
    monkeypatch.setattr(system, "LIBRARY", "no_such_library")
    system._is_installed.cache_clear()
    message = "The system voice isn't installed on this service. Ask the operator to install it (the extra `voice`)."
    assert PLUGIN.unavailable({}).sentence == message
    with pytest.raises(Refused, match=re.escape(message)):
        speak("Hello.")
    system._is_installed.cache_clear()


def test_a_slow_child_is_ended(monkeypatch, tmp_path):
    program = tmp_path / "child.py"
    told = tmp_path / "pids"
    program.write_text(
        "import os, subprocess, time\n"
        "other = subprocess.Popen(['/bin/sleep', '600'])\n"
        f"open({str(told)!r}, 'w').write(f'{{os.getpid()}} {{other.pid}}')\n"
        "time.sleep(600)\n"
    )
    monkeypatch.setattr(system, "_PROGRAM", program)
    monkeypatch.setattr(system, "MAX_SECONDS", 0.4)
    with pytest.raises(TryLater, match="took more than"):
        speak("Hello.")
    # What was killed takes a moment to end on a busy machine.
    until = time.monotonic() + 30
    while any(is_running(int(one)) for one in told.read_text().split()):
        assert time.monotonic() < until, "The program that the child started still runs."
        time.sleep(0.05)


def is_running(pid):
    """Not one that has ended and waits for init to take notice."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("death", ["os.abort()", "os._exit(3)", "bytearray(4 << 30)"])
def test_a_child_that_dies_is_told_in_words(monkeypatch, tmp_path, death):
    program = tmp_path / "child.py"
    program.write_text(
        "import os, sys\nsys.path.append(sys.argv[1])\nfrom pipeline.render.rlimits import confine\n"
        f"confine(memory=1 << 29, seconds=5)\n{death}\n"
    )
    monkeypatch.setattr(system, "_PROGRAM", program)
    with pytest.raises(
        Refused, match=r"The system voice failed on this text; change it, or do without a voice\."
    ):
        speak("Hello.")


def test_the_child_knows_nothing_of_the_service(monkeypatch, tmp_path):
    program = tmp_path / "child.py"
    program.write_text(
        "import os, sys\nsys.stdout.write(repr((sorted(os.environ), os.getcwd(), os.getsid(0) == os.getpid())))\n"
    )
    monkeypatch.setenv("SECRET_KEY", "x")
    answer = child_program.run(
        child_program.python_command(program), caps=child_program.Caps(seconds=20, answer=1000)
    )
    names, folder, is_leader = eval(answer)
    assert (set(names) <= {"LC_CTYPE"}, folder, is_leader) == (True, "/", True)
    assert os.environ["SECRET_KEY"] == "x"


def test_a_child_that_talks_without_end_is_ended(tmp_path):
    program = tmp_path / "child.py"
    program.write_text("import sys\nwhile True:\n    sys.stdout.write('x' * 100_000)\n")
    with pytest.raises(child_program.ChildEnded) as ended:
        child_program.run(
            child_program.python_command(program), caps=child_program.Caps(seconds=20, answer=1_000_000)
        )
    assert ended.value.how == "flooded"
