"""What the tests of runs stand on."""

from __future__ import annotations

import pytest

from pipeline.render.video import job as jobs
from pipeline.render.video import shot_detection
from pipeline.render.video.material import Shot
from pipeline.render.video.storyboard import Crop


@pytest.fixture
def unfilmed(monkeypatch):
    """Instead of the processes: a file, and one shot, at once."""

    def render(job, folder, *, limits=None, on_progress=None):
        (folder / "film.mp4").write_bytes(job.board.meta.title.encode())
        return jobs.Made({"film.mp4": jobs.MadeFile(folder / "film.mp4", 1080, 1920)}, job.board.duration)

    monkeypatch.setattr(jobs, "render", render)
    monkeypatch.setattr(
        shot_detection, "detect_shots", lambda path, span: (Shot(span.start, span.end, Crop()),)
    )
