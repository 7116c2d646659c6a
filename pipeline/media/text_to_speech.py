"""The voice of a film: the operator's where there is one, else the system's, else none and a sentence that says why."""

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
from pipeline.voices.base import USUAL, Voice

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipeline.models import GeneratedItem
    from pipeline.render.audio.narration import Narration, NarrationScript
    from pipeline.render.audio.word_timing import Speech

ASSET: Final = "voice.wav"
"""The name by which a storyboard calls its voice, and by which the file is served."""
ROLE: Final = "voice"
_PREFERRED: Final = ("tool", "system")
_COLUMNS: Final = (
    *("path", "sha256", "bytes", "role", "name", "mime_type"),
    *("width", "height", "duration", "alt_text"),
)
"""Of the row of a file, as whoever makes one says it."""


@dataclass(frozen=True)
class Spoken:
    """`speech` is None where the film stays silent; `note` then says why, for people."""

    voice: str
    speech: Speech | None
    note: str = ""


@dataclass(frozen=True)
class VoicedScript:
    """A script as it was spoken and kept. `file` holds the columns of its row, None where the film is silent."""

    narration: Narration | None = None
    file: Mapping[str, Any] | None = None
    checks: tuple[Check, ...] = field(default=())


UNVOICED: Final = VoicedScript()
"""Of a film in which nobody was to speak."""


def longest_call() -> timedelta:
    """How long `speak` may take, by the clock."""
    kinds = _PREFERRED if settings.VOICE_ENVIRONMENT.get("VOICE_TOOL") else _PREFERRED[1:]
    each: list[int] = [plugins.get("voices", kind, Voice).seconds for kind in kinds]
    return timedelta(seconds=sum(each))


def speak(text: str, *, language: str, rate: int = USUAL, pitch: int = 50) -> Spoken:
    """The text by the first voice that can; runs outside any transaction. Raises `TryLater`."""
    notes = []
    for kind in _PREFERRED:
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
        return Spoken(voice.kind, speech, " ".join(notes))
    return Spoken("", None, " ".join(notes))


def key_of(script: NarrationScript) -> str:
    """What was spoken is used again for the same words, said in the same way."""
    said = "\0".join((*script.passages, script.language, str(script.rate), str(script.pitch)))
    return hashlib.sha256(said.encode()).hexdigest()


def speak_to_file(item: GeneratedItem, script: NarrationScript) -> dict[str, Any]:
    """Speak a script and keep its sound as a file; returns what `read_script` reads, of JSON only.

    Runs outside any transaction, in child processes of the voices. Raises `TryLater`.
    """
    said = speak(script.text, language=script.language, rate=script.rate, pitch=script.pitch)
    if said.speech is None:
        return silent_script(script, said.note)
    data = said.speech.wav()
    sha256 = hashlib.sha256(data).hexdigest()
    path = f"{item.pk.hex}/{sha256}.wav"
    files.write(path, [data])
    return {
        "key": key_of(script),
        "voice": said.voice,
        "note": said.note,
        "narration": narration.as_json(narration.spoken(script, said.speech, voice=ASSET)),
        "file": {
            "path": path,
            "sha256": sha256,
            "bytes": len(data),
            "role": ROLE,
            "name": ASSET,
            "mime_type": "audio/wav",
            "width": None,
            "height": None,
            "duration": round(said.speech.seconds, 3),
            "alt_text": "",
        },
    }


def silent_script(script: NarrationScript, note: str) -> dict[str, Any]:
    """As `speak_to_file` returns it where nobody speaks, for that reason."""
    return {"key": key_of(script), "voice": "", "note": note, "narration": None, "file": None}


def is_stored(kept: Mapping[str, Any] | None, script: NarrationScript) -> bool:
    """Whether that is this script, with its sound still there."""
    if kept is None or kept["key"] != key_of(script):
        return False
    return kept["file"] is None or files.path_of(kept["file"]["path"]).is_file()


def recall_script(item: GeneratedItem, name: str) -> VoicedScript:
    """The voice of that name as it was kept with the item's film, to film it again; of a silent one, why it is that."""
    rows = Asset.everywhere.filter(item=item, role=ROLE, name=name, revoked_at=None)
    file = rows.order_by("-id").values(*_COLUMNS).first()
    told = tuple(Check(**check) for check in item.checks if check["code"] == "voice")
    return VoicedScript(file=file, checks=told)


def read_script(kept: Mapping[str, Any]) -> VoicedScript:
    """What `speak_to_file` returned, with a check that says whose voice it is, or why there is none."""
    if kept["narration"] is None:
        told = Check("voice", "warning", f"The film is silent, with captions: {kept['note']}")
        return VoicedScript(checks=(told,))
    label = plugins.get("voices", kept["voice"], Voice).label
    message = f"{label}: the captions follow its words. {kept['note']}".strip()
    outcome = Check("voice", "warning" if kept["note"] else "passed", message)
    return VoicedScript(narration.from_json(kept["narration"]), kept["file"], (outcome,))
