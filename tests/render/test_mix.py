"""Voice and music together: how far under, how it gives way and comes back, how it ends."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.render.audio.mix import even_out, mix
from pipeline.render.audio.sound import SAMPLE_RATE, silence
from pipeline.render.video.storyboard import Audio
from tests.render.meters import loudness_of


def tone(hertz, seconds, level):
    wave = level * np.sin(2 * np.pi * hertz * np.arange(int(seconds * SAMPLE_RATE)) / SAMPLE_RATE)
    return np.stack([wave, wave], axis=1).astype(np.float32)


def only(sound, hertz, start, end):
    """The amplitude of one tone in a stretch."""
    part = sound[int(start * SAMPLE_RATE) : int(end * SAMPLE_RATE), 0].astype(float)
    turn = np.exp(-2j * np.pi * hertz * np.arange(len(part)) / SAMPLE_RATE)
    return 2 * abs(np.mean(part * turn))


def decibels(one, other):
    return 20 * np.log10(one / other)


# Speaks from 2 to 4 s; the music is two octaves away, so that each can be told in the mix.
VOICE = np.concatenate([silence(2), tone(1000, 2, 0.2), silence(6)])
MUSIC = tone(250, 4, 0.4)


@pytest.mark.parametrize("below", [12.0, 15.0, 18.0])
@pytest.mark.parametrize("level", [0.02, 0.4])
def test_music_lies_under_the_voice_while_it_speaks(below, level):
    voice, music = VOICE, tone(250, 4, level)
    made = mix(voice=voice, music=music, seconds=10, audio=Audio(music_below=below))
    # Both tones alone, as loud as they stand in the mix.
    spoken = tone(1000, 2, only(made, 1000, 2.5, 3.5))
    played = tone(250, 2, only(made, 250, 2.5, 3.5))
    assert loudness_of(spoken) - loudness_of(played) == pytest.approx(below, abs=1.0)


@pytest.mark.parametrize(("asked", "held"), [(3.0, 12.0), (40.0, 18.0)])
def test_music_is_never_too_near_or_too_far(asked, held):
    made = mix(voice=VOICE, music=MUSIC, seconds=10, audio=Audio(music_below=asked))
    other = mix(voice=VOICE, music=MUSIC, seconds=10, audio=Audio(music_below=held))
    assert np.allclose(made, other)


def test_music_gives_way_at_once_and_comes_back_slowly():
    made = mix(voice=VOICE, music=MUSIC, seconds=10)
    before, during = only(made, 250, 1.5, 1.9), only(made, 250, 3, 3.8)
    assert 4 < decibels(before, during) < 9
    # 20 ms to give way, 350 ms to come back: a tenth of a second later it is down, yet not up again.
    assert decibels(only(made, 250, 2.1, 2.2), during) < 1.0
    assert decibels(before, only(made, 250, 4.04, 4.12)) > 2.0
    assert abs(decibels(only(made, 250, 5.5, 6.5), before)) < 1.0


def test_music_fades_out_at_the_end():
    made = mix(voice=None, music=MUSIC, seconds=10)
    # Past the seam, where the tone meets itself.
    steady = only(made, 250, 7.6, 8.4)
    assert decibels(only(made, 250, 8.7, 8.79), steady) > -0.5
    assert -9 < decibels(only(made, 250, 9.36, 9.44), steady) < -4
    assert np.abs(made[-1]).max() < 0.001
    assert (
        np.abs(
            made[: int(8.8 * SAMPLE_RATE)]
            - mix(voice=None, music=MUSIC, seconds=20)[: int(8.8 * SAMPLE_RATE)]
        ).max()
        < 1e-6
    )


def test_short_music_goes_on_without_a_gap():
    made = mix(voice=None, music=MUSIC, seconds=10, audio=Audio(fade_out=0))
    levels = [np.sqrt(np.mean(part**2)) for part in np.array_split(made, 100)]
    assert len(made) == 10 * SAMPLE_RATE
    assert max(levels) / min(levels) < 1.5
    # A click is a step between two samples that the tone itself doesn't make.
    assert np.abs(np.diff(made[:, 0])).max() < 1.5 * np.abs(np.diff(MUSIC[:, 0])).max()


def test_a_voice_loses_what_rumbles():
    made = even_out(tone(30, 3, 0.2) + tone(1000, 3, 0.2))
    assert decibels(only(made, 30, 1, 2), only(made, 1000, 1, 2)) < -14
    assert len(made) == 3 * SAMPLE_RATE


def test_a_voice_becomes_more_even():
    loud, quiet = tone(1000, 2, 0.5), tone(1000, 2, 0.05)
    made = even_out(np.concatenate([loud, quiet, loud]))
    given = decibels(0.5, 0.05)
    left = decibels(only(made, 1000, 1, 1.8), only(made, 1000, 3, 3.8))
    assert left < given - 1
    assert left > given / 3


@pytest.mark.parametrize(
    ("voice", "music"),
    [
        (None, None),
        (silence(0), silence(0)),
        (silence(1), None),
        (None, silence(1)),
        (silence(1), silence(1)),
    ],
)
def test_nothing_heard_is_silence_of_the_films_length(voice, music):
    made = mix(voice=voice, music=music, seconds=2.5)
    assert made.shape == (2.5 * SAMPLE_RATE, 2)
    assert not made.any()


def test_a_voice_that_is_longer_than_the_film_is_cut():
    assert len(mix(voice=VOICE, music=None, seconds=3)) == 3 * SAMPLE_RATE


def test_silent_voices_leave_music_as_it_is():
    made = mix(voice=silence(5), music=MUSIC, seconds=5, audio=Audio(fade_out=0))
    assert only(made, 250, 1, 2) == pytest.approx(0.4, rel=0.01)
