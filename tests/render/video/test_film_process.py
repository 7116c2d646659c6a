from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from PIL import Image

from pipeline.plugins import Refused
from pipeline.render import child_program
from pipeline.render.video import film_process, verify
from pipeline.render.video.film import BadFilm, make_film, to_jpeg
from pipeline.render.video.film_process import (
    FilmLimits,
    Job,
    NoRoom,
    RenderBusy,
    RenderFailed,
    claim_slot,
    remove_abandoned,
    render,
    unavailable_reason,
    working_folder,
)
from pipeline.render.video.storyboard import Caption, Scene, Visual
from tests.render.media_files import video
from tests.render.video.boards import board, zooming
from tests.render.video.filming import dot


def short(**changes):
    scenes = (Scene(0.0, 0.5, Visual("colour", colour="#1f3a5f", colour_to="#0b1626")),)
    return Job(replace(zooming(), scenes=scenes), **{"shrink": 4, "preset": "ultrafast", **changes})


def left_in(folder):
    return sorted(one.name for one in folder.iterdir() if one.suffix in {".mp4", ".jpg", ".part"})


def test_a_child_makes_the_film_and_its_thumbnails(tmp_path):
    shares = []

    made = render(
        Job(board(), shrink=4, preset="ultrafast"),
        tmp_path,
        on_progress=lambda share: shares.append(share) or True,
    )

    assert shares == [0.25, 0.5, 0.75, 1.0]
    assert made.duration == 2.0
    frames = ["frame-01.jpg", "frame-02.jpg"]
    assert left_in(tmp_path) == ["film.mp4", *frames, "thumb-wide.jpg", "thumb.jpg"]
    assert {name: (file.width, file.height) for name, file in made.files.items()} == {
        "film.mp4": (270, 480),
        "thumb.jpg": (270, 480),
        "thumb-wide.jpg": (1280, 720),
        **dict.fromkeys(frames, (270, 480)),
    }
    facts = verify.probe_film(made.files["film.mp4"].path)
    assert verify.film_faults(facts, frames=60, fps=30, size=(270, 480), is_final=False) == []
    with Image.open(made.files["thumb.jpg"].path) as thumb:
        assert (thumb.format, thumb.size) == ("JPEG", (270, 480))


def test_files_are_found_by_their_names(tmp_path):
    (tmp_path / "kept").write_bytes(dot())

    made = render(
        Job(zooming(seconds=0.2), files={"dot.png": tmp_path / "kept"}, shrink=4, thumbnails=False), tmp_path
    )

    assert list(made.files) == ["film.mp4"]
    with pytest.raises(Refused, match=r"The file dot.png can't be shown: it isn't there"):
        render(Job(zooming(seconds=0.2), shrink=4), tmp_path)


def test_a_storyboard_that_cannot_be_filmed_is_refused_with_its_sentence(tmp_path):
    broken = replace(board(), captions=(Caption((), 0.0, 1.0),))
    with pytest.raises(Refused) as caught:
        render(Job(broken, shrink=4), tmp_path)

    assert caught.value.message == "captions[0]: has no words."
    assert caught.value.code == "bad_storyboard"
    assert left_in(tmp_path) == []


def test_a_child_that_takes_too_much_memory_ends_without_a_file(tmp_path):
    with working_folder(tmp_path) as folder:
        with pytest.raises(RenderFailed) as caught:
            render(Job(board(), shrink=1), folder, limits=FilmLimits(memory=420 * 2**20))

        assert (caught.value.code, caught.value.message) == (
            "render_memory",
            "Making the film took more memory than it may have.",
        )
        assert "film.mp4" not in left_in(folder)
    assert list(tmp_path.iterdir()) == []


def test_a_child_that_takes_too_long_is_killed_with_its_group(tmp_path, monkeypatch):
    pids = []
    started = film_process._start

    def start(folder, log):
        child = started(folder, log)
        pids.append(child.pid)
        return child

    monkeypatch.setattr(film_process, "_start", start)
    with working_folder(tmp_path) as folder:
        with pytest.raises(RenderFailed) as caught:
            render(Job(board()), folder, limits=FilmLimits(seconds=0.1))
        assert left_in(folder) in ([], ["film.mp4.part"])

    assert caught.value.code == "render_slow"
    with pytest.raises(ProcessLookupError):
        os.killpg(pids[0], 0)
    assert list(tmp_path.iterdir()) == []


def test_a_film_that_nobody_wants_any_more_is_given_up(tmp_path):
    with pytest.raises(RenderFailed) as caught:
        # Long enough that it is not ready before the answer is heard.
        render(Job(board(), shrink=4, preset="ultrafast"), tmp_path, on_progress=lambda _: False)

    assert caught.value.code == "render_stopped"
    assert "film.mp4" not in left_in(tmp_path)


def test_a_child_that_dies_is_told_of(tmp_path, monkeypatch):
    program = tmp_path / "dies.py"
    program.write_text(
        "import os, sys\nsys.stderr.write('out of ideas')\nsys.stderr.flush()\nos.kill(os.getpid(), 9)\n"
    )
    monkeypatch.setattr(film_process, "_PROGRAM", program)

    with pytest.raises(RenderFailed) as caught:
        render(short(), tmp_path)

    assert (caught.value.code, caught.value.log) == ("render_died", "out of ideas")


def test_a_child_dies_with_its_parent(tmp_path):
    """Whoever kills a worker kills the film that it makes: nothing goes on for nobody."""
    script = (
        "import sys\nfrom pathlib import Path\nfrom pipeline.render.video.film_process import *\n"
        "from tests.render.video.boards import board\n"
        "def told(share):\n    print('told', flush=True)\n    return True\n"
        f"render(Job(board()), Path({str(tmp_path)!r}), on_progress=told)\n"
    )
    root = Path(__file__).resolve().parents[3]
    parent = subprocess.Popen(
        [sys.executable, "-c", script],
        cwd=root,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(root)},
    )
    assert parent.stdout.readline() == b"told\n"
    children = Path(f"/proc/{parent.pid}/task/{parent.pid}/children").read_text().split()
    assert children

    parent.send_signal(signal.SIGKILL)
    parent.wait()
    parent.stdout.close()

    until = time.monotonic() + 20
    while any(_is_alive(child) for child in children) and time.monotonic() < until:
        time.sleep(0.01)
    assert not any(_is_alive(child) for child in children)
    assert "film.mp4" not in left_in(tmp_path)


def _is_alive(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in {"Z", "X"}


def test_a_film_that_came_out_wrong_is_not_kept(tmp_path, monkeypatch):
    one = short()
    told = film_process._job_json(one, FilmLimits())
    monkeypatch.setattr(verify, "film_faults", lambda *_, **__: ["it has 14 frames instead of 15"])

    with pytest.raises(BadFilm) as caught:
        make_film(told, tmp_path, lambda _: None)

    assert caught.value.message == "The film was made wrongly: it has 14 frames instead of 15."
    assert (tmp_path / "film.mp4").exists() is False


def test_nothing_is_begun_where_there_is_no_room(tmp_path, monkeypatch):
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(film_process.shutil, "disk_usage", lambda _: usage._replace(free=100_000))
    monkeypatch.setattr(film_process, "_start", lambda *_: pytest.fail("begun"))

    with pytest.raises(NoRoom):
        render(short(), tmp_path)


def test_only_so_many_films_are_made_at_once(tmp_path):
    with claim_slot(tmp_path, 2), claim_slot(tmp_path, 2), pytest.raises(RenderBusy), claim_slot(tmp_path, 2):
        pass
    with claim_slot(tmp_path, 1):
        pass


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_disk_that_fills_up_meanwhile_passes(tmp_path, monkeypatch, number):
    """The child itself, with an encoder that finds no room."""
    program = tmp_path / "film_child.py"
    program.write_text(
        f"""import sys
sys.path[:0] = [{str(child_program.PROJECT)!r}]
from pathlib import Path
from pipeline.render.video import film_child, film as making
def make(*_):
    raise OSError({number}, "full")
making.make_film = make
film_child.main(Path(sys.argv[1]))
"""
    )
    monkeypatch.setattr(film_process, "_PROGRAM", program)

    with pytest.raises(NoRoom):
        render(short(), tmp_path)


@pytest.mark.parametrize(
    ("number", "kind"), [(errno.EAGAIN, RenderBusy), (errno.ENOMEM, RenderBusy), (errno.ENOENT, RenderFailed)]
)
def test_a_machine_that_starts_no_process_is_waited_for(tmp_path, monkeypatch, number, kind):
    def no_process(*_, **__):
        raise OSError(number, "no")

    monkeypatch.setattr(film_process.subprocess, "Popen", no_process)
    with pytest.raises(kind):
        render(short(), tmp_path)


def test_a_child_keeps_a_lower_limit_of_the_operator(tmp_path):
    program = (
        "import json, os, resource, sys\n"
        f"sys.path[:0] = [{str(child_program.PROJECT)!r}]\n"
        "from pipeline.render.video.film_child import limit_itself\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))\n"
        "limit_itself({'memory': 1 << 30, 'file': 1 << 25, 'nice': 0, 'parent': os.getppid()})\n"
        "print(resource.getrlimit(resource.RLIMIT_FSIZE)[1])\n"
    )
    # Root may raise its limits, so the number is what tells.
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert int(done.stdout) == 1 << 20


def test_what_cannot_be_removed_is_not_counted(tmp_path, monkeypatch):
    old, gone = tmp_path / "a-old", tmp_path / "b-gone"
    for one in (old, gone):
        one.mkdir()
        os.utime(one, (0, 0))

    def remove(path, **_):
        # Somebody else was quicker with the other.
        if gone.exists():
            gone.rmdir()

    monkeypatch.setattr(film_process.shutil, "rmtree", remove)
    assert remove_abandoned(tmp_path, older=timedelta(hours=2), now=time.time()) <= 1
    assert remove_abandoned(tmp_path, older=timedelta(hours=2), now=time.time()) == 0


def test_a_working_folder_goes_whatever_happens(tmp_path):
    def break_off():
        with working_folder(tmp_path / "renders") as folder:
            (folder / "film.mp4.part").write_bytes(b"half")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        break_off()

    assert list((tmp_path / "renders").iterdir()) == []


def test_folders_that_a_killed_process_left_are_swept(tmp_path):
    old, new = tmp_path / "old", tmp_path / "new"
    for one in (old, new):
        one.mkdir()
        (one / "film.mp4.part").write_bytes(b"half")
    (tmp_path / ".slot-0").write_bytes(b"")
    now = time.time()
    os.utime(old, (now - 7300, now - 7300))

    assert remove_abandoned(tmp_path, older=timedelta(hours=2), now=now) == 1
    assert sorted(one.name for one in tmp_path.iterdir()) == [".slot-0", "new"]
    assert remove_abandoned(tmp_path / "none", older=timedelta(hours=2), now=now) == 0


def test_a_film_is_looked_at_with_one_thread(tmp_path, monkeypatch):
    """Every thread's own stack and arena counts against the child's address space."""
    path = tmp_path / "film.mp4"
    path.write_bytes(video(seconds=0.3))
    contexts = []
    opened = verify.av.open

    def watched(path):
        container = opened(path)
        contexts.append(container.streams.video[0].codec_context)
        return container

    monkeypatch.setattr(verify.av, "open", watched)
    assert verify._is_first_seen(path)
    assert [one.thread_count for one in contexts] == [1]


def test_what_is_missing_is_said_in_words(monkeypatch):
    assert unavailable_reason() is None
    monkeypatch.setattr(film_process, "REQUIRED_LIBRARIES", ("av", "no_such_module"))
    assert unavailable_reason() == "Films can't be made here: no_such_module is not installed."


def test_a_thumbnail_is_made_as_small_as_it_has_to_be():
    noise = Image.effect_noise((400, 400), 120).convert("RGB")

    assert len(to_jpeg(noise)) > 90_000
    assert len(to_jpeg(noise, max_bytes=90_000)) <= 90_000
