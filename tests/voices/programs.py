"""Programs that an operator could name in VOICE_TOOL: each hums one note a word, and some do it badly."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

HUMS = """
import json, math, os, struct, sys, time, wave
asked = json.loads(sys.stdin.read())
RATE = 16000
said = {"42": ["forty", "two"]}
words, samples, now = [], [], 0.0
for written in asked["text"].split():
    for word in said.get(written, [written.strip('.,—')]):
        if word:
            words.append({"word": word, "start": now, "end": now + 0.2})
            samples += [int(9000 * math.sin(i * 0.1)) for i in range(int(0.2 * RATE))] + [0] * int(0.05 * RATE)
            now += 0.25
CHANNELS = 1
BEFORE
with wave.open("speech.wav", "wb") as out:
    out.setnchannels(CHANNELS); out.setsampwidth(2); out.setframerate(RATE)
    out.writeframes(struct.pack(f"<{len(samples)}h", *samples))
with open("words.json", "w") as out:
    json.dump(words, out)
AFTER
"""


def program(folder: Path, *, before: str = "", after: str = "") -> dict[str, str]:
    """The environment of a voice whose program does this besides."""
    folder.mkdir(exist_ok=True)
    script = folder / "voice.py"
    script.write_text(HUMS.replace("BEFORE", before).replace("AFTER", after))
    started = folder / "voice"
    started.write_text(f'#!/bin/sh\nexec {sys.executable} -S {script} "$@"\n')
    started.chmod(0o755)
    return {"VOICE_TOOL": str(started)}
