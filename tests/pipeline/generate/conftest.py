"""What the tests of runs stand on."""

from __future__ import annotations

import pytest

from pipeline.render.video import film_process, shot_process
from pipeline.render.video.material import Shot
from pipeline.render.video.storyboard import Crop


@pytest.fixture
def unfilmed(monkeypatch):
    """Instead of the processes: a file, and one shot, at once."""

    def render(job, folder, *, limits=None, on_progress=None):
        (folder / "film.mp4").write_bytes(job.board.meta.title.encode())
        return film_process.Made(
            {"film.mp4": film_process.MadeFile(folder / "film.mp4", 1080, 1920)}, job.board.duration
        )

    monkeypatch.setattr(film_process, "render", render)
    monkeypatch.setattr(
        shot_process, "detect_shots", lambda path, span: (Shot(span.start, span.end, Crop()),)
    )
