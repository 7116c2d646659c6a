"""A film of any length is as long as it was asked for, whatever its container rounds."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.render.video.encode import Quality, encode
from pipeline.render.video.verify import film_faults, probe_film
from tests.sizes import IS_PROOF

FIRST, LAST = 390, 1_800
SIZE = (64, 64)
LENGTHS = range(FIRST, LAST + 1) if IS_PROOF else range(FIRST, LAST + 1, 47)


_GRAIN = np.random.default_rng(1).integers(0, 255, (64, 4_000)).astype(np.uint8) // 3


def draw(planes, number):
    """Every frame differs, by which the encoder puts frames out of their order and the container rounds the length."""
    at = number * 3 % 3_000
    planes.y[:] = _GRAIN[:, at : at + 64] + (60 if number // 25 % 2 else 0) + number % 7 * 3
    planes.u[:], planes.v[:] = 128 + number % 5, 128


@pytest.mark.slow
@pytest.mark.parametrize("first", LENGTHS[:1] if not IS_PROOF else LENGTHS[::100])
def test_every_length_is_found(tmp_path, first, record_property):
    lengths = LENGTHS if not IS_PROOF else range(first, min(first + 100, LAST + 1))
    refused = {}
    for frames in lengths:
        path = tmp_path / "film.mp4"
        encode(path, draw, frames=frames, size=SIZE, fps=30, quality=Quality("veryfast", 20))
        found = film_faults(probe_film(path), frames=frames, fps=30, size=SIZE)
        if found:
            refused[frames] = found
    record_property("told", f"{len(lengths)} lengths from {lengths[0]} frames on, {len(refused)} refused")
    assert refused == {}
