"""The process in which espeak-ng speaks: a question of JSON on its input, one line of JSON and the samples as answer.

It is run by its path, isolated from the environment, for one text. Its arguments are the project's folder and that of
the library. Constants and shapes are those of espeak-ng 1.52, `speak_lib.h`.
"""

from __future__ import annotations

import ctypes
import json
import sys
from pathlib import Path
from typing import Any, Final

MEMORY: Final = 512 * 1024 * 1024
"""Bytes of address space; four minutes of speech take 60 MB."""
SECONDS: Final = 20
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


def speak(folder: Path, question: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
    library = ctypes.CDLL(str(folder / "libespeak-ng.so"))
    rate = library.espeak_Initialize(_SYNCHRONOUS, 0, str(folder).encode(), _PHONEME_EVENTS | _NO_EXIT)
    if rate <= 0:
        sys.exit("espeak-ng found no data")
    voice = next((name for name in question["voices"] if _takes(library, name)), "")
    told: dict[str, Any] = {"rate": rate, "voice": voice, "events": [], "pauses": []}
    if not voice:
        return told, b""
    library.espeak_SetParameter(_RATE, question["rate"], 0)
    library.espeak_SetParameter(_PITCH, question["pitch"], 0)
    samples = bytearray()
    heard: list[tuple[float, bool]] = []

    def take(wave: Any, count: int, events: Any) -> int:
        if wave and count:
            samples.extend(ctypes.string_at(wave, 2 * count))
        place = 0
        while events[place].type:
            event = events[place]
            if event.type == _WORD:
                # Both ends count from one; the sample is finer than the event's milliseconds.
                told["events"].append((event.text_position - 1, event.sample / rate))
            elif event.type == _PHONEME:
                heard.append((event.audio_position / 1000, event.id.string.startswith(b"_")))
            place += 1
        return 0

    callback = _Callback(take)
    library.espeak_SetSynthCallback(callback)
    text = question["text"].encode() + b"\0"
    library.espeak_Synth(text, len(text), 0, _BY_CHARACTER, 0, _UTF8, None, None)
    library.espeak_Synchronize()
    told["pauses"] = _pauses(heard, len(samples) / 2 / rate)
    return told, bytes(samples)


def _takes(library: Any, name: str) -> bool:
    return bool(library.espeak_SetVoiceByName(name.encode()) == 0)


def _pauses(heard: list[tuple[float, bool]], seconds: float) -> list[tuple[float, float]]:
    """From the first silent phoneme of a row to the next sound."""
    found: list[tuple[float, float]] = []
    begun: float | None = None
    for moment, is_silent in heard:
        if is_silent and begun is None:
            begun = moment
        elif not is_silent and begun is not None:
            found.append((begun, moment))
            begun = None
    if begun is not None:
        found.append((begun, seconds))
    return found


def main(project: str, folder: str) -> None:
    sys.path.append(project)
    from pipeline.render.rlimits import confine  # noqa: PLC0415  its place is known only now

    confine(memory=MEMORY, seconds=SECONDS)
    told, samples = speak(Path(folder), json.loads(sys.stdin.buffer.read()))
    sys.stdout.buffer.write(json.dumps(told).encode() + b"\n" + samples)
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
