"""The folder of samples that people look at before a picture's looks are changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pipeline import plugins
from pipeline.engines.base import Engine
from tools import gallery

if TYPE_CHECKING:
    from pathlib import Path

FILMED = {one.kind for one in plugins.every("engines", Engine) if one.bucket == "video"}
DRAWN = {one.kind for one in plugins.every("engines", Engine) if one.bucket == "image"}


def test_every_engine_that_draws_pictures_has_samples() -> None:
    assert {sample.kind for sample in gallery.SAMPLES} == DRAWN
    assert len({(sample.kind, sample.name) for sample in gallery.SAMPLES}) == len(gallery.SAMPLES)


def test_every_engine_that_films_has_samples() -> None:
    assert {sample.kind for sample in gallery.FILMS} == FILMED
    assert len({(sample.kind, sample.name) for sample in gallery.FILMS}) == len(gallery.FILMS)


@pytest.mark.slow
def test_samples_are_drawn_and_listed(tmp_path: Path) -> None:
    count = gallery.write_gallery(tmp_path)
    index = (tmp_path / "index.html").read_text(encoding="utf-8")
    written = sorted(path.name for path in tmp_path.iterdir() if path.name != "index.html")

    assert len(written) == count
    assert [name for name in written if f'href="{name}"' not in index] == []
