"""Runs the process in which espeak-ng speaks: reads a request as JSON, and writes a line of JSON and the samples.

It is run by its path, isolated from the environment, for one text. Its arguments are the project's folder and the
library's folder. Constants and structures are those of espeak-ng 1.52, `speak_lib.h`.
"""

from __future__ import annotations

import ctypes
import json
import sys
from pathlib import Path
from typing import Any, Final

MEMORY_BYTES: Final = 512 * 1024 * 1024
"""The limit of the address space; four minutes of speech take 60 MB."""
MAX_SECONDS: Final = 20
"""The limit of CPU time."""
_SYNCHRONOUS: Final = 2
_PHONEME_EVENTS: Final = 1
_NO_EXIT: Final = 0x8000
_BY_CHARACTER: Final = 1
_UTF8: Final = 1
_RATE: Final = 1
_PITCH: Final = 3
_WORD: Final = 1
_PHONEME: Final = 7


class _Id(ctypes.Union):
    _fields_ = (("number", ctypes.c_int), ("name", ctypes.c_char_p), ("string", ctypes.c_char * 8))


class _Event(ctypes.Structure):
    _fields_ = (
        ("type", ctypes.c_int),
        ("unique_identifier", ctypes.c_uint),
        ("text_position", ctypes.c_int),
        ("length", ctypes.c_int),
        ("audio_position", ctypes.c_int),
        ("sample", ctypes.c_int),
        ("user_data", ctypes.c_void_p),
        ("id", _Id),
    )


_Callback = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.POINTER(_Event)
)


def speak(folder: Path, request: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
    """Speak the request's text. Return the times of words and pauses in seconds, and the samples.

    `voice` is empty, and there are no samples, if espeak-ng has none of the requested voices.
    """
    library = ctypes.CDLL(str(folder / "libespeak-ng.so"))
    rate = library.espeak_Initialize(_SYNCHRONOUS, 0, str(folder).encode(), _PHONEME_EVENTS | _NO_EXIT)
    if rate <= 0:
        sys.exit("espeak-ng found no data")
    voice = next((name for name in request["voices"] if _has_voice(library, name)), "")
    result: dict[str, Any] = {"rate": rate, "voice": voice, "events": [], "pauses": []}
    if not voice:
        return result, b""
    library.espeak_SetParameter(_RATE, request["rate"], 0)
    library.espeak_SetParameter(_PITCH, request["pitch"], 0)
    samples = bytearray()
    phonemes: list[tuple[float, bool]] = []

    def on_samples(wave: Any, count: int, events: Any) -> int:
        if wave and count:
            samples.extend(ctypes.string_at(wave, 2 * count))
        index = 0
        while events[index].type:
            event = events[index]
            if event.type == _WORD:
                # Positions count from 1; the sample is finer than the event's milliseconds.
                result["events"].append((event.text_position - 1, event.sample / rate))
            elif event.type == _PHONEME:
                phonemes.append((event.audio_position / 1000, event.id.string.startswith(b"_")))
            index += 1
        return 0

    callback = _Callback(on_samples)
    library.espeak_SetSynthCallback(callback)
    text = request["text"].encode() + b"\0"
    library.espeak_Synth(text, len(text), 0, _BY_CHARACTER, 0, _UTF8, None, None)
    library.espeak_Synchronize()
    result["pauses"] = _pauses(phonemes, len(samples) / 2 / rate)
    return result, bytes(samples)


def _has_voice(library: Any, name: str) -> bool:
    """Choose a voice by its name. Return `False` if espeak-ng doesn't have it."""
    return bool(library.espeak_SetVoiceByName(name.encode()) == 0)


def _pauses(phonemes: list[tuple[float, bool]], seconds: float) -> list[tuple[float, float]]:
    """Return the pauses in seconds, each from the first of its silent phonemes to the next sound."""
    pauses: list[tuple[float, float]] = []
    silent_since: float | None = None
    for time, is_silent in phonemes:
        if is_silent and silent_since is None:
            silent_since = time
        elif not is_silent and silent_since is not None:
            pauses.append((silent_since, time))
            silent_since = None
    if silent_since is not None:
        pauses.append((silent_since, seconds))
    return pauses


def main(project: str, folder: str) -> None:
    sys.path.append(project)
    from pipeline.render.rlimits import confine  # noqa: PLC0415  its place is known only now

    confine(memory=MEMORY_BYTES, seconds=MAX_SECONDS)
    result, samples = speak(Path(folder), json.loads(sys.stdin.buffer.read()))
    sys.stdout.buffer.write(json.dumps(result).encode() + b"\n" + samples)
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
