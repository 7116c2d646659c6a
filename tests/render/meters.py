"""Meters that others wrote, each loaded by the first test that measures: SciPy takes a second."""

from __future__ import annotations

import numpy as np

from pipeline.render.audio.sound import SAMPLE_RATE


def loudness_of(sound, rate=SAMPLE_RATE):
    import pyloudnorm

    return pyloudnorm.Meter(rate).integrated_loudness(np.asarray(sound, float))


def true_peak_of(sound):
    """Four times oversampled by another filter."""
    from scipy.signal import resample_poly

    return 20 * np.log10(np.abs(resample_poly(np.asarray(sound, float), 4, 1, axis=0)).max())
