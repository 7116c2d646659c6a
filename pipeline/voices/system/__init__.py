"""Speaks with the system voice, espeak-ng, which needs no other service and reports the time of each word.

Its library is under the GPL and keeps its state in globals, so it is only loaded in a child process; this project
neither links nor ships it. `pip install content-pipeline[voice]` installs it.
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
from pipeline.voices.base import DEFAULT_RATE, MAX_RATE, MAX_TEXT_CHARACTERS, MIN_RATE, Voice

if TYPE_CHECKING:
    from collections.abc import Mapping

LIBRARY: Final = "espeakng_loader"
MAX_SECONDS: Final = 20
"""The time limit by the clock; four minutes of speech take a quarter of a second."""
MAX_ANSWER_BYTES: Final = 64 * 1024 * 1024
"""The size of twenty minutes of sound at 22,050 Hz, which is the longest text at the slowest rate."""
_PROGRAM: Final = Path(__file__).with_name("child.py")
_MISSING: Final = Unavailability(
    "The system voice isn't installed on this service.",
    "Ask the operator to install it (the extra `voice`).",
    code="no_voice",
)
_VOICE_NAMES: Final = {"en": "en-us", "zh": "cmn", "nb": "nb", "no": "nb", "iw": "he", "pt": "pt-br"}
"""The names of espeak-ng's voices, for languages whose voice has another name, or several."""
_CHINESE_CHARACTER: Final = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
_MAX_SPELLED_SHARE: Final = 0.1
"""The share of a text's characters up to which Chinese ones, a name or two, are spelled and not refused."""
_CHINESE_VOICES: Final = frozenset({"cmn", "yue", "hak"})


class SystemVoice(Voice):
    """The voice of espeak-ng."""

    kind = "system"
    label = "System voice"
    seconds = MAX_SECONDS
    environment: ClassVar[Mapping[str, str]] = {}

    def unavailable(self, environment: Mapping[str, str]) -> Unavailability | None:
        del environment
        return None if _is_installed() else _MISSING

    def speak(
        self,
        text: str,
        *,
        language: str,
        rate: int = DEFAULT_RATE,
        pitch: int = 50,
        environment: Mapping[str, str],
    ) -> Speech:
        del environment
        spoken_text = speakable_text(text)
        is_chinese = len(_CHINESE_CHARACTER.findall(spoken_text)) > _MAX_SPELLED_SHARE * len(spoken_text)
        if is_chinese and not _CHINESE_VOICES.intersection(voices_for(language)):
            message = (
                f"The system voice can't read the Chinese characters of a text in {language!r}, and would spell them: "
                "the operator may set another voice (VOICE_TOOL)."
            )
            raise Refused(message, code="unspoken_script")
        request = {
            "text": spoken_text,
            "voices": voices_for(language),
            "rate": min(max(rate, MIN_RATE), MAX_RATE),
            "pitch": min(max(pitch, 0), 100),
        }
        try:
            library = str(child_program.package_folder(LIBRARY))
            answer = child_program.run(
                [*child_program.python_command(_PROGRAM), library],
                input_data=json.dumps(request).encode(),
                caps=child_program.Caps(seconds=MAX_SECONDS, answer=MAX_ANSWER_BYTES),
            )
        except child_program.ChildEnded as ended:
            raise _error_of(ended) from None
        head, _, samples = answer.partition(b"\n")
        result = json.loads(head)
        if not result["voice"]:
            message = (
                f"The system voice doesn't speak the language {language!r}; choose another voice or none."
            )
            raise Refused(message, code="unspoken_language")
        seconds = len(samples) / 2 / result["rate"]
        events = [SpeechEvent(offset, start) for offset, start in result["events"]]
        pauses = [Pause(start, end) for start, end in result["pauses"]]
        return Speech(result["rate"], samples, time_words(text, events, pauses, seconds))


def speakable_text(text: str) -> str:
    """Return the text with symbols and controls as blanks, because their names would be read out.

    The length stays the same, so that offsets fit both. Raises `Refused` for a text that is too long, or has nothing
    to speak.
    """
    if len(text) > MAX_TEXT_CHARACTERS:
        message = f"The text has {len(text)} characters; a voice speaks {MAX_TEXT_CHARACTERS} at most."
        raise Refused(message, code="text_too_long")
    if not is_spoken(text):
        raise Refused("There are no words in the text that could be spoken.", code="nothing_to_speak")
    return "".join(
        " " if unicodedata.category(character) in _UNSPOKEN_CATEGORIES else character for character in text
    )


_UNSPOKEN_CATEGORIES: Final = frozenset({"So", "Sk", "Cc", "Cf", "Cs", "Co", "Cn"})


def voices_for(language: str) -> list[str]:
    """Return the possible names of the language's voices, best first, or of the English one without a language."""
    tag = re.sub(r"[^a-z0-9-]", "", language.lower().replace("_", "-"))
    base = tag.partition("-")[0]
    names = (_VOICE_NAMES.get(tag), tag, _VOICE_NAMES.get(base), base) if tag else (_VOICE_NAMES["en"],)
    return list(dict.fromkeys(name for name in names if name))


@cache
def _is_installed() -> bool:
    try:
        return (child_program.package_folder(LIBRARY) / "libespeak-ng.so").exists()
    except child_program.ChildEnded:
        return False


def _error_of(ended: child_program.ChildEnded) -> Refused | TryLater:
    """Return the error for a child that gave no answer: `TryLater` if it was too slow, else `Refused`."""
    if ended.how == "missing":
        return Refused(_MISSING.sentence, code=_MISSING.code)
    if ended.how == "slow":
        return TryLater(f"The system voice took more than {MAX_SECONDS} seconds.", code="voice_slow")
    return Refused(
        "The system voice failed on this text; change it, or do without a voice.", code="voice_failed"
    )


PLUGIN = SystemVoice()
