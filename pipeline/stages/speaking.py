"""The voice of a film: the operator's where there is one, else the system's, else none and a sentence that says why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from django.conf import settings

from pipeline import plugins
from pipeline.plugins import Refused
from pipeline.voices.base import USUAL, Voice

if TYPE_CHECKING:
    from pipeline.render.speech import Speech

_PREFERRED: Final = ("tool", "system")


@dataclass(frozen=True)
class Spoken:
    """`speech` is None where the film stays silent; `note` then says why, for people."""

    voice: str
    speech: Speech | None
    note: str = ""


def speak(text: str, *, language: str, rate: int = USUAL, pitch: int = 50) -> Spoken:
    """The text by the first voice that can; runs outside any transaction. Raises `TryLater`."""
    notes = []
    for kind in _PREFERRED:
        voice = plugins.get("voices", kind, Voice)
        given = settings.VOICE_ENVIRONMENT
        environment = {name: given.get(name, default) for name, default in voice.environment.items()}
        missing = voice.why_not(environment)
        if missing is not None:
            if kind == "system" or environment.get("VOICE_TOOL"):
                notes.append(missing)
            continue
        try:
            speech = voice.speak(text, language=language, rate=rate, pitch=pitch, environment=environment)
        except Refused as refused:
            notes.append(refused.message)
            continue
        return Spoken(voice.kind, speech, " ".join(notes))
    return Spoken("", None, " ".join(notes))
