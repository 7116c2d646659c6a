"""Speaks with the operator's voice: a program, such as a wrapper of Piper or of a service in the cloud.

It is started in an empty folder, reads `{"text", "language", "rate", "pitch"}` as JSON, and writes two files there:
`speech.wav` (one channel of 16 bits, 8,000 to 48,000 Hz) and `words.json`, a list of `{"word", "start", "end"}` in
seconds, in the order of speaking. Captions follow those times, so a voice that doesn't write them is refused.
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
from pipeline.voices.base import DEFAULT_RATE, MAX_TEXT_CHARACTERS, Voice

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipeline.render.video.storyboard import Word

MAX_SECONDS: Final = 120
"""The time limit by the clock, in which a neural voice speaks a minute of sound on one core."""
MAX_WAVE_BYTES: Final = 64 * 1024 * 1024
MAX_WORDS_BYTES: Final = 2 * 1024 * 1024
_MIN_SHARE_MATCHED: Final = 0.5
"""The share of the written words that must match spoken ones; a voice speaks numbers in other words."""
_TOLERANCE_SECONDS: Final = 0.05
"""The time by which the last word may end after the sound."""
_LOOK_AHEAD_CHARACTERS: Final = 120
"""The distance within which a spoken word is looked for; the same word much later isn't the one spoken here."""


class VoiceTool(Voice):
    """The voice that the program in VOICE_TOOL speaks with."""

    kind = "tool"
    label = "The operator's voice"
    seconds = MAX_SECONDS
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
        rate: int = DEFAULT_RATE,
        pitch: int = 50,
        environment: Mapping[str, str],
    ) -> Speech:
        missing = self.unavailable(environment)
        if missing is not None:
            raise Refused(missing.sentence, code=missing.code)
        if len(text) > MAX_TEXT_CHARACTERS:
            message = f"The text has {len(text)} characters; a voice speaks {MAX_TEXT_CHARACTERS} at most."
            raise Refused(message, code="text_too_long")
        request = {"text": text, "language": language, "rate": rate, "pitch": pitch}
        with tempfile.TemporaryDirectory(prefix="voice-tool-") as name:
            folder = Path(name)
            try:
                child_program.run(
                    [environment["VOICE_TOOL"]],
                    input_data=json.dumps(request).encode(),
                    folder=folder,
                    environment={
                        "PATH": "/usr/local/bin:/usr/bin:/bin",
                        "HOME": name,
                        "TMPDIR": name,
                        "LANG": "C.UTF-8",
                    },
                    caps=child_program.Caps(seconds=MAX_SECONDS, answer=MAX_WORDS_BYTES),
                )
            except child_program.ChildEnded as ended:
                raise _error_of(ended) from None
            rate_hz, samples = _read_wave(_check_file(folder / "speech.wav", MAX_WAVE_BYTES))
            spoken = _read_words(_check_file(folder / "words.json", MAX_WORDS_BYTES).read_bytes())
        return Speech(rate_hz, samples, _time_words(text, spoken, len(samples) / 2 / rate_hz))


def _check_file(path: Path, max_bytes: int) -> Path:
    """Return the path. Raises `Refused` if it isn't a file, is a link, or has more than `max_bytes`."""
    if path.is_symlink() or not path.is_file():
        reason = f"it wrote no {path.name}"
        raise _unusable(reason)
    if path.stat().st_size > max_bytes:
        reason = f"its {path.name} has more than {max_bytes // 2**20} MiB"
        raise _unusable(reason)
    return path


def _read_wave(path: Path) -> tuple[int, bytes]:
    """Return sample rate and samples of the file. Raises `Refused` if it isn't sound of the wanted form."""
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
    """Return each spoken word with its start and end in seconds. Raises `Refused` if the data have another form."""
    try:
        return [_parse_word(entry) for entry in json.loads(data)]
    except (ValueError, TypeError, KeyError, RecursionError):
        raise _unusable('its words.json isn\'t a list of {"word", "start", "end"}') from None


def _parse_word(entry: Any) -> tuple[str, float, float]:
    word, start, end = entry["word"], float(entry["start"]), float(entry["end"])
    if not isinstance(word, str) or not 0 <= start <= end:
        raise ValueError
    return word, start, end


def _time_words(text: str, spoken: Sequence[tuple[str, float, float]], seconds: float) -> tuple[Word, ...]:
    """Return the written words with their times, from the spoken ones.

    Raises `Refused` if the times are impossible, or too few of the written words match spoken ones.
    """
    written = written_words(text)
    if not spoken or not written:
        raise _unusable("most words of the text aren't in its words.json")
    if any(later[1] < earlier[1] for earlier, later in pairwise(spoken)):
        raise _unusable("the times in its words.json go back")
    if spoken[-1][2] > seconds + _TOLERANCE_SECONDS:
        raise _unusable("the times in its words.json go beyond its speech.wav")
    events, unmatched_starts = _match_words(text, spoken)
    matched_starts = [event.start for event in events]
    matched = 0
    for word in written:
        if any(word.start <= event.offset < word.end for event in events):
            matched += 1
            continue
        # A written word that is spoken in other words, mostly a number, begins with the first of these.
        previous_start = max((event.start for event in events if event.offset < word.start), default=-1.0)
        next_start = min((start for start in matched_starts if start > previous_start), default=seconds)
        start = next((start for start in unmatched_starts if previous_start < start < next_start), None)
        if start is not None:
            events.append(SpeechEvent(word.start, start))
    if matched < _MIN_SHARE_MATCHED * len(written):
        raise _unusable("most words of the text aren't in its words.json")
    pauses = [
        Pause(current[2], following[1])
        for current, following in zip(spoken, [*spoken[1:], ("", seconds, seconds)], strict=True)
        if following[1] > current[2]
    ]
    return time_words(text, sorted(events), pauses, seconds)


def _match_words(
    text: str, spoken: Sequence[tuple[str, float, float]]
) -> tuple[list[SpeechEvent], list[float]]:
    """Return events of spoken words matched to offsets of the text, and the start seconds of the others."""
    folded = text.casefold()
    # Folding turns some letters into two, and the offsets would then be those of another text.
    searched = folded if len(folded) == len(text) else text
    events: list[SpeechEvent] = []
    unmatched_starts: list[float] = []
    offset = 0
    for word, start, _ in spoken:
        needle = word.strip().casefold() if searched is folded else word.strip()
        match_offset = searched.find(needle, offset, offset + _LOOK_AHEAD_CHARACTERS) if needle else -1
        if match_offset < 0:
            unmatched_starts.append(start)
            continue
        events.append(SpeechEvent(match_offset, start))
        offset = match_offset + len(needle)
    return events, unmatched_starts


def _unusable(reason: str) -> Refused:
    return Refused(f"The operator's voice can't be used: {reason}.", code="voice_failed")


def _error_of(ended: child_program.ChildEnded) -> Refused | TryLater:
    """Return the error for a program that gave no answer: `TryLater` if it was too slow, else `Refused`."""
    if ended.how == "slow":
        return TryLater(f"The operator's voice took more than {MAX_SECONDS} seconds.", code="voice_slow")
    if ended.how == "missing":
        return Refused("The program that VOICE_TOOL names could not be started.", code="no_voice")
    last = ended.words.splitlines()[-1][:200] if ended.words else ""
    return _unusable(f"it failed{f' with {last!r}' if last else ''}")


PLUGIN = VoiceTool()
