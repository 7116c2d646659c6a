"""A voice of the operator's: a program that speaks, such as a wrapper of Piper or of a service in the cloud.

It is started in an empty folder, reads `{"text", "language", "rate", "pitch"}` as JSON, and writes two files there:
`speech.wav` (one channel of 16 bits, 8,000 to 48,000 Hz) and `words.json`, a list of `{"word", "start", "end"}` in
seconds, in the order in which they sound. Captions follow those times, so a voice that doesn't tell them is refused.
"""

from __future__ import annotations

import json
import tempfile
import wave
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from pipeline.plugins import Refused, TryLater, Unavailability
from pipeline.render import child_program
from pipeline.render.audio.word_timing import Pause, Speech, SpeechEvent, time_words, written_words
from pipeline.voices.base import TEXT_CHARACTERS, USUAL, Voice

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipeline.render.video.storyboard import Word

SECONDS: Final = 120
"""By the clock: a neural voice speaks a minute within it on one core."""
WAVE_BYTES: Final = 64 * 1024 * 1024
WORDS_BYTES: Final = 2 * 1024 * 1024
_LEAST_FOUND: Final = 0.5
"""A share of the words that must be met in the text: a voice says numbers in words of its own."""
_SLACK: Final = 0.05
_LOOK_AHEAD: Final = 120
"""Characters: a word that comes again much later isn't the one that was said here."""


class VoiceTool(Voice):
    kind = "tool"
    label = "The operator's voice"
    seconds = SECONDS
    environment: ClassVar[Mapping[str, str]] = {"VOICE_TOOL": ""}

    def unavailable(self, environment: Mapping[str, str]) -> Unavailability | None:
        tool = environment["VOICE_TOOL"]
        if not tool:
            reason, remedy = (
                "This service has no voice of its operator's.",
                "Ask the operator to set VOICE_TOOL.",
            )
        elif not Path(tool).is_file():
            reason = "The program that VOICE_TOOL names isn't there."
            remedy = "Ask the operator to put it there, or to set another one."
        else:
            return None
        return Unavailability(reason, remedy, code="no_voice")

    def speak(
        self,
        text: str,
        *,
        language: str,
        rate: int = USUAL,
        pitch: int = 50,
        environment: Mapping[str, str],
    ) -> Speech:
        missing = self.unavailable(environment)
        if missing is not None:
            raise Refused(missing.sentence, code=missing.code)
        if len(text) > TEXT_CHARACTERS:
            message = f"The text has {len(text)} characters; a voice speaks {TEXT_CHARACTERS} at most."
            raise Refused(message, code="text_too_long")
        question = {"text": text, "language": language, "rate": rate, "pitch": pitch}
        with tempfile.TemporaryDirectory(prefix="voice-tool-") as name:
            folder = Path(name)
            try:
                child_program.run(
                    [environment["VOICE_TOOL"]],
                    input_data=json.dumps(question).encode(),
                    folder=folder,
                    environment={
                        "PATH": "/usr/local/bin:/usr/bin:/bin",
                        "HOME": name,
                        "TMPDIR": name,
                        "LANG": "C.UTF-8",
                    },
                    caps=child_program.Caps(seconds=SECONDS, answer=WORDS_BYTES),
                )
            except child_program.ChildEnded as ended:
                raise _said(ended) from None
            rate_hz, samples = _read_wave(_read(folder / "speech.wav", WAVE_BYTES))
            spoken = _read_words(_read(folder / "words.json", WORDS_BYTES).read_bytes())
        return Speech(rate_hz, samples, _timed(text, spoken, len(samples) / 2 / rate_hz))


def _read(path: Path, most: int) -> Path:
    """The file, looked at before it is read: no link, and not too large."""
    if path.is_symlink() or not path.is_file():
        why = f"it wrote no {path.name}"
        raise _unusable(why)
    if path.stat().st_size > most:
        why = f"its {path.name} has more than {most // 2**20} MiB"
        raise _unusable(why)
    return path


def _read_wave(path: Path) -> tuple[int, bytes]:
    try:
        with wave.open(str(path), "rb") as file:
            shape = (file.getnchannels(), file.getsampwidth())
            rate = file.getframerate()
            samples = file.readframes(file.getnframes())
    except (wave.Error, EOFError):
        raise _unusable("its speech.wav can't be read") from None
    if shape != (1, 2) or not 8_000 <= rate <= 48_000:
        raise _unusable("its speech.wav isn't one channel of 16 bits at 8,000 to 48,000 Hz")
    if not samples:
        raise _unusable("its speech.wav is empty")
    return rate, samples


def _read_words(data: bytes) -> list[tuple[str, float, float]]:
    try:
        return [_spoken(one) for one in json.loads(data)]
    except (ValueError, TypeError, KeyError, RecursionError):
        raise _unusable('its words.json isn\'t a list of {"word", "start", "end"}') from None


def _spoken(one: Any) -> tuple[str, float, float]:
    word, start, end = one["word"], float(one["start"]), float(one["end"])
    if not isinstance(word, str) or not 0 <= start <= end:
        raise ValueError
    return word, start, end


def _timed(text: str, spoken: Sequence[tuple[str, float, float]], seconds: float) -> tuple[Word, ...]:
    written = written_words(text)
    if not spoken or not written:
        raise _unusable("most words of the text aren't in its words.json")
    if any(later[1] < earlier[1] for earlier, later in pairwise(spoken)):
        raise _unusable("the times in its words.json go back")
    if spoken[-1][2] > seconds + _SLACK:
        raise _unusable("the times in its words.json go beyond its speech.wav")
    events, strangers = _met(text, spoken)
    known = [event.start for event in events]
    met = 0
    for word in written:
        if any(word.start <= event.place < word.end for event in events):
            met += 1
            continue
        # What was said in words that aren't written, a number mostly, begins with the first of them.
        since = max((event.start for event in events if event.place < word.start), default=-1.0)
        until = min((start for start in known if start > since), default=seconds)
        begins = next((start for start in strangers if since < start < until), None)
        if begins is not None:
            events.append(SpeechEvent(word.start, begins))
    if met < _LEAST_FOUND * len(written):
        raise _unusable("most words of the text aren't in its words.json")
    pauses = [
        Pause(this[2], after[1])
        for this, after in zip(spoken, [*spoken[1:], ("", seconds, seconds)], strict=True)
        if after[1] > this[2]
    ]
    return time_words(text, sorted(events), pauses, seconds)


def _met(text: str, spoken: Sequence[tuple[str, float, float]]) -> tuple[list[SpeechEvent], list[float]]:
    """Which places of the text were spoken when, in order; and when words were that aren't there."""
    folded = text.casefold()
    # Folding makes some letters two; places would then be another text's.
    searched = folded if len(folded) == len(text) else text
    events: list[SpeechEvent] = []
    strangers: list[float] = []
    place = 0
    for word, start, _ in spoken:
        wanted = word.strip().casefold() if searched is folded else word.strip()
        found = searched.find(wanted, place, place + _LOOK_AHEAD) if wanted else -1
        if found < 0:
            strangers.append(start)
            continue
        events.append(SpeechEvent(found, start))
        place = found + len(wanted)
    return events, strangers


def _unusable(why: str) -> Refused:
    return Refused(f"The operator's voice can't be used: {why}.", code="voice_failed")


def _said(ended: child_program.ChildEnded) -> Refused | TryLater:
    if ended.how == "slow":
        return TryLater(f"The operator's voice took more than {SECONDS} seconds.", code="voice_slow")
    if ended.how == "missing":
        return Refused("The program that VOICE_TOOL names could not be started.", code="no_voice")
    last = ended.words.splitlines()[-1][:200] if ended.words else ""
    return _unusable(f"it failed{f' with {last!r}' if last else ''}")


PLUGIN = VoiceTool()
