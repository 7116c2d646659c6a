"""Loudness and peaks against a meter that isn't ours, and sounds brought to the target through the encoder."""

from __future__ import annotations

import io
import re

import av
import numpy as np
import pytest

from pipeline.plugins import Refused
from pipeline.render.audio.audio_io import decode, encode_aac
from pipeline.render.audio.loudness import (
    LIMITER_CEILING_DBFS,
    MAX_PEAK_DBTP,
    TARGET_LUFS,
    TOLERANCE_LU,
    Loudness,
    _limit_peaks,
    master,
    measure,
    measure_file,
    sound_faults,
)
from pipeline.render.audio.mix import mix
from pipeline.render.audio.sound import SAMPLE_RATE, run_filters, silence
from pipeline.voices.system import PLUGIN as SYSTEM_VOICE
from tests.render.meters import loudness_of, true_peak_of

TEXT = "The bakery sold more bread in May than in any month before it. Nobody could say why at first."


def decoded(data):
    with av.open(io.BytesIO(data)) as opened:
        return decode(opened)


def tone(hertz, seconds, level=0.1, phase=0.0):
    wave = level * np.sin(2 * np.pi * hertz * np.arange(int(seconds * SAMPLE_RATE)) / SAMPLE_RATE + phase)
    return np.stack([wave, wave], axis=1).astype(np.float32)


def noise(seconds, level=0.1, seed=1):
    made = np.random.default_rng(seed).standard_normal((int(seconds * SAMPLE_RATE), 2)) * level
    return made.astype(np.float32)


def clicks(seconds):
    made = noise(seconds, 0.004)
    made[:: SAMPLE_RATE // 2] = 0.9
    return made


@pytest.fixture(scope="module")
def voice():
    with av.open(io.BytesIO(SYSTEM_VOICE.speak(TEXT, language="en", environment={}).wav())) as opened:
        return decode(opened)


SOUNDS = {
    "tone": lambda: tone(997, 3),
    "noise": lambda: noise(3),
    "clicks": lambda: clicks(3),
    "gated": lambda: np.concatenate([tone(440, 2, 0.3), silence(3), tone(440, 1, 0.001)]),
    "one side": lambda: tone(997, 3) * np.array([1, 0], np.float32),
}


@pytest.mark.parametrize("name", SOUNDS)
def test_meters_agree(name):
    sound = SOUNDS[name]()
    found = measure(sound)
    assert found.integrated == pytest.approx(loudness_of(sound), abs=0.1)
    assert found.peak == pytest.approx(true_peak_of(sound), abs=0.25)
    assert found.seconds == pytest.approx(len(sound) / SAMPLE_RATE)


def test_meters_agree_on_a_voice(voice):
    assert measure(voice).integrated == pytest.approx(loudness_of(voice), abs=0.1)


def test_meter_reads_the_reference_tone():
    # EBU Tech 3341, case 1: 1000 Hz at -23 dBFS in both channels is -23 LUFS.
    assert measure(tone(1000, 5, 10 ** (-23 / 20))).integrated == pytest.approx(-23.0, abs=0.1)


def test_peaks_between_samples_are_seen():
    # Samples of 12 kHz at 45 degrees are all 3 dB below the wave.
    between = tone(12_000, 1, 1.0, phase=np.pi / 4)
    assert np.abs(between).max() == pytest.approx(0.707, abs=0.001)
    # It comes and goes softly, because an edge has a peak of its own.
    soft = between * np.hanning(len(between)).astype(np.float32)[:, None]
    assert measure(soft).peak == pytest.approx(0.0, abs=0.3)


@pytest.mark.parametrize("name", ["tone", "noise", "gated", "one side"])
@pytest.mark.parametrize("level", [0.05, 1.0, 4.0])
def test_mastered_sounds_are_at_the_target_after_the_encoder(name, level):
    made = master(SOUNDS[name]() * np.float32(level))
    heard = decoded(made.aac)
    assert loudness_of(heard) == pytest.approx(TARGET_LUFS, abs=TOLERANCE_LU)
    assert true_peak_of(heard) <= MAX_PEAK_DBTP
    assert made.note == ""
    assert made.loudness.integrated == pytest.approx(loudness_of(heard), abs=0.1)


def test_a_voice_over_music_is_at_the_target_after_the_encoder(voice):
    music = noise(2, 0.05) + tone(220, 2, 0.2)
    made = master(mix(voice=voice, music=music, seconds=len(voice) / SAMPLE_RATE + 0.4))
    heard = decoded(made.aac)
    assert loudness_of(heard) == pytest.approx(TARGET_LUFS, abs=TOLERANCE_LU)
    assert true_peak_of(heard) <= MAX_PEAK_DBTP
    # The encoder works in blocks of 1024 samples; a frame of film lasts 1600.
    assert 0 <= len(heard) - len(made.sound) < 1600
    assert len(made.sound) == round((len(voice) / SAMPLE_RATE + 0.4) * SAMPLE_RATE)


def test_the_film_can_encode_the_sound_again_with_the_same_result(voice, tmp_path):
    made = master(voice)
    encode_aac(tmp_path / "film.mp4", made.sound)
    found = measure_file(tmp_path / "film.mp4")
    assert found.integrated == pytest.approx(made.loudness.integrated, abs=0.02)
    assert sound_faults(found) == ()
    assert (tmp_path / "film.mp4").read_bytes().index(b"moov") < 200


def test_limiter_keeps_the_length_and_the_moment():
    sound = tone(997, 1, 0.05)
    sound[20_000:20_040] = 0.99
    limited = _limit_peaks(sound, LIMITER_CEILING_DBFS)
    assert len(limited) == len(sound)
    assert measure(limited).peak <= LIMITER_CEILING_DBFS + 0.1
    assert abs(int(np.argmax(np.abs(limited[:, 0]))) - 20_020) < 60
    quiet = tone(997, 1, 0.05)
    assert _limit_peaks(quiet, LIMITER_CEILING_DBFS) is quiet


@pytest.mark.parametrize(
    ("sound", "note"),
    [
        (silence(2), "The sound is silent."),
        (noise(2, 0.00001), "The sound is silent."),
        (silence(0), "There is no sound."),
        (noise(0.2, 0.5), "The sound lasts 0.20 seconds; loudness is defined from 0.4 seconds on."),
    ],
)
def test_what_has_no_loudness_is_told_in_words(sound, note):
    made = master(sound)
    assert (made.note, made.gain, made.loudness.integrated) == (note, 0.0, None)
    assert len(made.sound) == len(sound)
    assert made.loudness.peak <= MAX_PEAK_DBTP


def test_what_cannot_reach_the_target_is_told_in_words():
    clap = silence(5)
    clap[:2000] = noise(2000 / SAMPLE_RATE, 1.0)
    made = master(clap)
    assert re.fullmatch(r"The loudness is -1[678]\.\d LUFS, not -14 ± 0\.5\.", made.note)
    assert made.loudness.peak <= MAX_PEAK_DBTP


def test_faults_say_what_is_wrong():
    assert sound_faults(Loudness(-14.5, -1.0, 3)) == sound_faults(Loudness(None, -120, 3)) == ()
    assert sound_faults(Loudness(-15.2, -0.4, 3)) == (
        "The loudness is -15.2 LUFS, not -14 ± 0.5.",
        "The true peak is -0.4 dBTP; the maximum is -1.",
    )


def test_filters_give_back_what_nothing_changes():
    sound = noise(0.5)
    assert np.array_equal(run_filters([sound], [("anull", "")]), sound)


def test_decoding_stops_at_the_longest(tmp_path):
    encode_aac(tmp_path / "long.m4a", tone(440, 5))
    assert len(decode(tmp_path / "long.m4a", max_seconds=1.5)) == 1.5 * SAMPLE_RATE


def test_a_film_without_sound_is_refused_in_words(tmp_path):
    with av.open(str(tmp_path / "mute.mp4"), "w") as out:
        stream = out.add_stream("libx264", rate=30)
        stream.width, stream.height = 64, 64
        out.mux(stream.encode(av.VideoFrame(64, 64, "yuv420p")))
        out.mux(stream.encode(None))
    with pytest.raises(Refused, match=r"The file has no sound\."):
        decode(tmp_path / "mute.mp4")


def test_speech_keeps_its_length(voice):
    speech = SYSTEM_VOICE.speak(TEXT, language="en", environment={})
    assert len(voice) / SAMPLE_RATE == pytest.approx(speech.seconds, abs=0.001)
    assert np.array_equal(voice[:, 0], voice[:, 1])
