"""The system voice: espeak-ng, which speaks without any other service and tells when it says what.

Its library is under the GPL and keeps its state in globals, so it is loaded in a child process alone; this project
neither links nor ships it. `pip install content-pipeline[voice]` brings it.
"""

from __future__ import annotations

import json
import re
import unicodedata
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final

from pipeline.plugins import Refused, TryLater, Unavailability
from pipeline.render import child_program
from pipeline.render.audio.word_timing import Pause, Speech, SpeechEvent, is_spoken, time_words
from pipeline.voices.base import FASTEST, SLOWEST, TEXT_CHARACTERS, USUAL, Voice

if TYPE_CHECKING:
    from collections.abc import Mapping

LIBRARY: Final = "espeakng_loader"
SECONDS: Final = 20
"""By the clock. Four minutes of speech take a quarter of a second."""
ANSWER_BYTES: Final = 64 * 1024 * 1024
"""Twenty minutes of sound at 22,050 Hz: the longest text, spoken at the slowest rate."""
_PROGRAM: Final = Path(__file__).with_name("child.py")
_MISSING: Final = Unavailability(
    "The system voice isn't installed on this service.",
    "Ask the operator to install it (the extra `voice`).",
    code="no_voice",
)
_ELSEWHERE: Final = {"en": "en-us", "zh": "cmn", "nb": "nb", "no": "nb", "iw": "he", "pt": "pt-br"}
"""Languages whose voice has another name, or several."""
_CHINESE: Final = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
_A_FEW: Final = 0.1
"""Of the signs of a text: a name or two are spelled rather than that nobody speaks."""
_READS_CHINESE: Final = frozenset({"cmn", "yue", "hak"})


class SystemVoice(Voice):
    kind = "system"
    label = "System voice"
    seconds = SECONDS
    environment: ClassVar[Mapping[str, str]] = {}

    def unavailable(self, environment: Mapping[str, str]) -> Unavailability | None:
        del environment
        return None if _is_installed() else _MISSING

    def speak(
        self,
        text: str,
        *,
        language: str,
        rate: int = USUAL,
        pitch: int = 50,
        environment: Mapping[str, str],
    ) -> Speech:
        del environment
        said = speakable(text)
        is_chinese = len(_CHINESE.findall(said)) > _A_FEW * len(said)
        if is_chinese and not _READS_CHINESE.intersection(voices_for(language)):
            message = (
                f"The system voice can't read the Chinese characters of a text in {language!r}, and would spell them: "
                "the operator may set another voice (VOICE_TOOL)."
            )
            raise Refused(message, code="unspoken_script")
        question = {
            "text": said,
            "voices": voices_for(language),
            "rate": min(max(rate, SLOWEST), FASTEST),
            "pitch": min(max(pitch, 0), 100),
        }
        try:
            library = str(child_program.package_folder(LIBRARY))
            answer = child_program.run(
                [*child_program.python_command(_PROGRAM), library],
                input_data=json.dumps(question).encode(),
                caps=child_program.Caps(seconds=SECONDS, answer=ANSWER_BYTES),
            )
        except child_program.ChildEnded as ended:
            raise _said(ended) from None
        head, _, samples = answer.partition(b"\n")
        told = json.loads(head)
        if not told["voice"]:
            message = (
                f"The system voice doesn't speak the language {language!r}; choose another voice or none."
            )
            raise Refused(message, code="unspoken_language")
        seconds = len(samples) / 2 / told["rate"]
        events = [SpeechEvent(place, start) for place, start in told["events"]]
        pauses = [Pause(start, end) for start, end in told["pauses"]]
        return Speech(told["rate"], samples, time_words(text, events, pauses, seconds))


def speakable(text: str) -> str:
    """The text, sign for sign, with pictures and controls as blanks: they would be read out by their names."""
    if len(text) > TEXT_CHARACTERS:
        message = f"The text has {len(text)} characters; a voice speaks {TEXT_CHARACTERS} at most."
        raise Refused(message, code="text_too_long")
    if not is_spoken(text):
        raise Refused("There are no words in the text that could be spoken.", code="nothing_to_speak")
    return "".join(" " if unicodedata.category(sign) in _UNSPOKEN else sign for sign in text)


_UNSPOKEN: Final = frozenset({"So", "Sk", "Cc", "Cf", "Cs", "Co", "Cn"})


def voices_for(language: str) -> list[str]:
    """The names to ask for, best first."""
    tag = re.sub(r"[^a-z0-9-]", "", language.lower().replace("_", "-"))
    base = tag.partition("-")[0]
    names = (_ELSEWHERE.get(tag), tag, _ELSEWHERE.get(base), base) if tag else (_ELSEWHERE["en"],)
    return list(dict.fromkeys(name for name in names if name))


@cache
def _is_installed() -> bool:
    try:
        return (child_program.package_folder(LIBRARY) / "libespeak-ng.so").exists()
    except child_program.ChildEnded:
        return False


def _said(ended: child_program.ChildEnded) -> Refused | TryLater:
    if ended.how == "missing":
        return Refused(_MISSING.sentence, code=_MISSING.code)
    if ended.how == "slow":
        return TryLater(f"The system voice took more than {SECONDS} seconds.", code="voice_slow")
    return Refused(
        "The system voice failed on this text; change it, or do without a voice.", code="voice_failed"
    )


PLUGIN = SystemVoice()
