"""Speaks the script of a film with the operator's voice, else the system's; else gives the reason for silence."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings

from pipeline import plugins
from pipeline.engines.base import Check
from pipeline.media import files
from pipeline.models import Asset
from pipeline.plugins import Refused
from pipeline.render.audio import narration
from pipeline.switches import availability
from pipeline.voices.base import DEFAULT_RATE, Voice

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipeline.models import GeneratedItem
    from pipeline.render.audio.narration import Narration, NarrationScript
    from pipeline.render.audio.word_timing import Speech

VOICE_FILE: Final = "voice.wav"
"""The name of the voice in a storyboard, and the name under which its file is served."""
VOICE_ROLE: Final = "voice"
_VOICES_IN_ORDER: Final = ("tool", "system")
_FILE_COLUMNS: Final = (
    *("path", "sha256", "bytes", "role", "name", "mime_type"),
    *("width", "height", "duration", "alt_text"),
)
"""The columns of a file's row that follow from the file."""


@dataclass(frozen=True)
class SpeechResult:
    """The result of speaking; `speech` is `None` for a silent film, and `note` says why a voice wasn't used."""

    voice: str
    speech: Speech | None
    note: str = ""


@dataclass(frozen=True)
class VoicedScript:
    """A script as it was spoken; `file` holds the columns of its row, or is `None` for a silent film."""

    narration: Narration | None = None
    file: Mapping[str, Any] | None = None
    checks: tuple[Check, ...] = field(default=())


NO_VOICE: Final = VoicedScript()
"""The voice of a film that was to be silent."""


def max_call_time() -> timedelta:
    """Return the longest time that `speak` may take, by the clock."""
    kinds = _VOICES_IN_ORDER if settings.VOICE_ENVIRONMENT.get("VOICE_TOOL") else _VOICES_IN_ORDER[1:]
    seconds: list[int] = [plugins.get("voices", kind, Voice).seconds for kind in kinds]
    return timedelta(seconds=sum(seconds))


def speak(text: str, *, language: str, rate: int = DEFAULT_RATE, pitch: int = 50) -> SpeechResult:
    """Speak the text with the first voice that can. Runs outside any transaction.

    The result has no speech if no voice can. Raises `TryLater` if the machine is too busy.
    """
    notes = []
    for kind in _VOICES_IN_ORDER:
        voice = plugins.get("voices", kind, Voice)
        environment = availability.environment_of_voice(voice)
        missing = availability.of_voice(voice)
        if missing is not None:
            if kind == "system" or environment.get("VOICE_TOOL"):
                notes.append(missing.sentence)
            continue
        try:
            speech = voice.speak(text, language=language, rate=rate, pitch=pitch, environment=environment)
        except Refused as refused:
            notes.append(refused.message)
            continue
        return SpeechResult(voice.kind, speech, " ".join(notes))
    return SpeechResult("", None, " ".join(notes))


def script_key(script: NarrationScript) -> str:
    """Return a hash of text, language, rate and pitch, so that the same words aren't spoken again."""
    content = "\0".join((*script.passages, script.language, str(script.rate), str(script.pitch)))
    return hashlib.sha256(content.encode()).hexdigest()


def speak_to_file(item: GeneratedItem, script: NarrationScript) -> dict[str, Any]:
    """Speak a script and store its sound as a file. Return values for JSON, which `read_script` reads.

    Runs outside any transaction, because child processes speak. Raises `TryLater` if the machine is too busy.
    """
    result = speak(script.text, language=script.language, rate=script.rate, pitch=script.pitch)
    if result.speech is None:
        return silent_script(script, result.note)
    data = result.speech.wav()
    sha256 = hashlib.sha256(data).hexdigest()
    path = f"{item.pk.hex}/{sha256}.wav"
    files.write(path, [data])
    return {
        "key": script_key(script),
        "voice": result.voice,
        "note": result.note,
        "narration": narration.as_json(narration.spoken(script, result.speech, voice=VOICE_FILE)),
        "file": {
            "path": path,
            "sha256": sha256,
            "bytes": len(data),
            "role": VOICE_ROLE,
            "name": VOICE_FILE,
            "mime_type": "audio/wav",
            "width": None,
            "height": None,
            "duration": round(result.speech.seconds, 3),
            "alt_text": "",
        },
    }


def silent_script(script: NarrationScript, note: str) -> dict[str, Any]:
    """Return the result of `speak_to_file` for a film without a voice; `note` is the reason."""
    return {"key": script_key(script), "voice": "", "note": note, "narration": None, "file": None}


def is_stored(stored: Mapping[str, Any] | None, script: NarrationScript) -> bool:
    """Return whether `stored` belongs to this script, and its sound, if it has any, is still there."""
    if stored is None or stored["key"] != script_key(script):
        return False
    return stored["file"] is None or files.path_of(stored["file"]["path"]).is_file()


def recall_script(item: GeneratedItem, name: str) -> VoicedScript:
    """Return the stored voice of that name, to film the item again, with the item's check of its voice."""
    rows = Asset.everywhere.filter(item=item, role=VOICE_ROLE, name=name, revoked_at=None)
    file = rows.order_by("-id").values(*_FILE_COLUMNS).first()
    checks = tuple(Check(**check) for check in item.checks if check["code"] == "voice")
    return VoicedScript(file=file, checks=checks)


def read_script(stored: Mapping[str, Any]) -> VoicedScript:
    """Return the script from the values of `speak_to_file`, with a check of its voice or its silence."""
    if stored["narration"] is None:
        check = Check("voice", "warning", f"The film is silent, with captions: {stored['note']}")
        return VoicedScript(checks=(check,))
    label = plugins.get("voices", stored["voice"], Voice).label
    message = f"{label}: the captions follow its words. {stored['note']}".strip()
    outcome = Check("voice", "warning" if stored["note"] else "passed", message)
    return VoicedScript(narration.from_json(stored["narration"]), stored["file"], (outcome,))
