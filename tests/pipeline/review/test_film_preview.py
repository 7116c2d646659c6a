"""A film of a changed storyboard, made while its viewer waits: what it is, what it leaves behind, and when there is none."""

from __future__ import annotations

import errno
import os
import signal
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest
from django.core.cache import caches
from redis.exceptions import RedisError

from config.core import limits
from config.core.errors import Conflict, Invalid
from pipeline import generate
from pipeline.media import videos
from pipeline.models import Asset, GeneratedItem, Generation, Revision
from pipeline.plugins import Refused
from pipeline.render.video import job as jobs
from pipeline.render.video import storyboard_edits, verify
from pipeline.review import film_preview, storyboards
from tests.engines.test_persona_short import SENTENCES, TITLE
from tests.pipeline.generate.test_videos import filmed, folders, make_film
from tests.pipeline.steps import NOON, claimed, make_items, reread

__all__ = ["filmed", "folders"]

SPOKEN = {"engines": ["Persona Short"], "title": TITLE, "body": " ".join(SENTENCES), "language": "en"}


@pytest.fixture(autouse=True)
def _nothing_counted():
    caches["counts"].clear()


@pytest.fixture
def item(workspace, filmed):
    found = make_film(workspace)
    filmed.clear()
    return found


@pytest.fixture
def really(monkeypatch):
    """Films of 270 × 480, the previews half of that, by the process that makes them."""
    made = jobs.render

    def begin():
        monkeypatch.setattr(jobs, "render", made)
        monkeypatch.setattr(videos, "SHRINK", 2)

    return begin


def changed(item):
    board = storyboards.kept(item).board
    title = next(one for one in storyboard_edits.texts(board) if one.name == "title")
    return storyboard_edits.arranged(
        storyboard_edits.retyped(board, title, "Boats go electric"), range(5), {1: 6.0}
    )


def everything():
    """All that is stored of items, as rows."""
    return [
        list(model.everywhere.order_by("pk").values())
        for model in (GeneratedItem, Generation, Revision, Asset)
    ]


@pytest.fixture
def in_process(really, item):
    really()
    return item


def test_it_is_the_changed_film_and_nothing_is_kept(folders, in_process):
    item, board = in_process, changed(in_process)
    before, files = everything(), sorted((folders / "media").rglob("*"))

    film = folders / "seen.mp4"
    film.write_bytes(film_preview.preview(item, board))

    facts = verify.look(film)
    assert verify.faults(facts, frames=board.frames, fps=30, size=(270, 480), is_final=False) == []
    assert float(facts.video_seconds) == pytest.approx(board.duration)
    assert everything() == before
    assert sorted((folders / "media").rglob("*")) == files


def test_it_is_asked_for_half_as_large_and_without_small_pictures(item, filmed):
    board = changed(item)

    film_preview.preview(item, board)

    [job] = filmed
    assert (job.shrink, job.preset, job.thumbnails) == (2 * videos.SHRINK, "ultrafast", False)
    assert next(one.words for one in storyboard_edits.texts(job.board)) == "Boats go electric"


def test_it_has_the_voice_that_the_film_has(workspace, filmed):
    item = make_items(workspace, **SPOKEN)[0]
    board = storyboards.kept(item).board
    assert board.audio.voice

    film_preview.preview(item, storyboard_edits.recaptioned(board, 0, "Other words"))

    assert filmed[-1].files[board.audio.voice] == filmed[0].files[board.audio.voice]


def test_a_portrait_that_cannot_be_shown_is_left_out(workspace, filmed, monkeypatch):
    monkeypatch.setattr(videos.pictures, "portrait_of", lambda *_: (b"broken", []))
    item = make_film(workspace)
    made, faces = jobs.render, []

    def render(job, folder, **given):
        faces.append(job.portrait is not None)
        if job.portrait is not None:
            raise Refused("The portrait is damaged.", code="unusable_picture")
        return made(job, folder, **given)

    monkeypatch.setattr(jobs, "render", render)

    assert film_preview.preview(item, changed(item)).startswith(b"film.mp4")
    assert faces == [True, False]


def test_what_cannot_be_filmed_is_told_at_its_place(item, filmed):
    board = storyboards.kept(item).board
    many = storyboard_edits.arranged(board, range(5), dict.fromkeys(range(5), 60.0))

    with pytest.raises(Invalid) as caught:
        film_preview.preview(item, many)

    assert "180 seconds are the most" in str(caught.value)
    assert filmed == []


def test_what_has_no_film_has_no_preview(workspace, item):
    words = make_items(workspace, engines=["Short Post"], title="Other", body="Another text. " * 20)[0]

    with pytest.raises(Conflict) as caught:
        film_preview.preview(words, changed(item))

    assert [one.code for one in caught.value.detail] == ["no_storyboard"]


def test_one_is_made_at_a_time_and_nobody_waits(folders, item):
    with (
        jobs.slot(folders / "previews", 1),
        pytest.raises(film_preview.NoPreview) as caught,
    ):
        film_preview.preview(item, changed(item))

    assert (caught.value.status, [one.code for one in caught.value.detail]) == (503, ["render_busy"])
    assert "try again in some seconds" in str(caught.value)
    assert film_preview.preview(item, changed(item))


@pytest.mark.parametrize("error", [jobs.NoRoom(), jobs.Busy()])
def test_what_passes_says_so(item, monkeypatch, error):
    def render(*_, **__):
        raise error

    monkeypatch.setattr(jobs, "render", render)

    with pytest.raises(film_preview.NoPreview) as caught:
        film_preview.preview(item, changed(item))

    assert [one.code for one in caught.value.detail] == [error.code]


def test_one_that_takes_too_long_is_stopped(in_process, monkeypatch):
    monkeypatch.setattr(film_preview, "_IN_TIME", jobs.Limits(seconds=0.2))

    with pytest.raises(
        film_preview.NoPreview, match=r"was stopped\. What was changed can be saved"
    ) as caught:
        film_preview.preview(in_process, changed(in_process))

    assert (caught.value.status, [one.code for one in caught.value.detail]) == (409, ["render_slow"])


def test_a_workspace_asks_for_so_many_in_a_minute(item, filmed, monkeypatch):
    monkeypatch.setattr(limits, "FILM_PREVIEWS_PER_MINUTE", 2)
    monkeypatch.setattr(film_preview.time, "time", lambda: 1_800_000_000.0)
    board = changed(item)
    for _ in range(2):
        film_preview.preview(item, board)

    with pytest.raises(film_preview.NoPreview) as caught:
        film_preview.preview(item, board)

    assert (caught.value.status, caught.value.headers) == (429, {"Retry-After": "60"})
    assert len(filmed) == 2
    monkeypatch.setattr(film_preview.time, "time", lambda: 1_800_000_060.0)
    assert film_preview.preview(item, board)


def test_without_a_cache_nobody_is_counted_and_the_film_is_shown(item, monkeypatch):
    class Gone:
        def add(self, *_):
            raise RedisError

    monkeypatch.setattr(film_preview, "caches", {"counts": Gone()})

    assert film_preview.preview(item, changed(item))


def test_a_full_disk_is_told_before_a_place_is_taken(item, monkeypatch):
    def slot(*_):
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(jobs, "slot", slot)

    with pytest.raises(film_preview.NoPreview) as caught:
        film_preview.preview(item, changed(item))

    assert (caught.value.status, [one.code for one in caught.value.detail]) == (503, ["no_space"])


def children_in(folder):
    """The processes that work in a folder."""
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if (process / "cwd").readlink() == folder.resolve():
                yield int(process.name)


def test_a_kill_in_the_middle_costs_the_preview_alone(folders, in_process):
    """The next one is made; the fixture looks whether a folder is left."""
    item, board, before = in_process, changed(in_process), everything()

    def kill():
        until = time.monotonic() + 20
        while time.monotonic() < until:
            for partial in (folders / "renders").glob("*/film.mp4.part"):
                for child in children_in(partial.parent):
                    os.kill(child, signal.SIGKILL)
                    return
            time.sleep(0.005)

    killer = threading.Thread(target=kill)
    killer.start()
    with pytest.raises(film_preview.NoPreview) as caught:
        film_preview.preview(item, board)
    killer.join()

    assert [one.code for one in caught.value.detail] == ["render_died"]
    assert everything() == before
    assert film_preview.preview(item, board)


def test_saving_afterwards_films_it_as_ever(item):
    board = changed(item)
    film_preview.preview(item, board)

    storyboards.edit(item, board, by="alice", now=NOON)
    generate.work(claimed(reread(item).generation))

    assert (reread(item).status, reread(item).revision) == ("ready", 2)
