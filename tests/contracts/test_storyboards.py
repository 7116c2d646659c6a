"""/v1/generated/:id/storyboard: a film as data, and filmed again as somebody has changed it."""

from __future__ import annotations

import pytest

from config.core import task_runner
from pipeline.models import Event
from pipeline.render.video import film_process
from tests.contracts.conftest import NOT_FOUND, refusal
from tests.pipeline.generate.test_videos import GIVEN


@pytest.fixture(autouse=True)
def filmed(monkeypatch, settings, tmp_path):
    """Instead of the process: a file for each name, at once."""
    settings.MEDIA_ROOT, settings.DATA_DIR = tmp_path / "media", tmp_path

    def render(job, folder, **_):
        made = {}
        names = ["film.mp4", "thumb.jpg", *(f"frame-{n + 1:02}.jpg" for n in range(len(job.board.scenes)))]
        for name in names:
            (folder / name).write_bytes(f"{name} {job.board.duration}".encode())
            made[name] = film_process.MadeFile(folder / name, 270, 480)
        return film_process.Made(made, job.board.duration)

    monkeypatch.setattr(film_process, "render", render)


@pytest.fixture
def film(alice):
    return alice.ready(**GIVEN)


def path_of(item):
    return f"/generated/{item['id']}/storyboard"


def longer(board):
    """Every time after the first scene's end a second later."""
    end = board["scenes"][0]["end"]

    def moved(value):
        if isinstance(value, dict):
            late = {"start", "end"} <= value.keys()
            return {
                name: round(one + 1, 4) if late and name in {"start", "end"} and one >= end else moved(one)
                for name, one in value.items()
            }
        return [moved(one) for one in value] if isinstance(value, list) else value

    return {**board, **{name: moved(board[name]) for name in ("scenes", "overlays", "told")}}


def test_it_is_read_with_scenes_texts_and_frames(alice, film):
    answer = alice.api.get(path_of(film))
    shown = answer.json()
    assert (shown["generated_item"], shown["version"], shown["revision"]) == (film["id"], film["version"], 1)
    assert (len(shown["scenes"]), shown["fixed"]) == (5, None)
    first = shown["scenes"][0]
    assert (first["start"], first["end"]) == (0.0, shown["storyboard"]["scenes"][0]["end"])
    assert [one["words"] for one in first["texts"] if one["name"] == "title"] == [GIVEN["title"]]
    frames = [one["url"] for one in film["assets"] if one["role"] == "frame"]
    assert [one["frame"] for one in shown["scenes"]] == frames
    assert shown["duration"] == pytest.approx(shown["scenes"][-1]["end"])
    again = alice.api.get(path_of(film), HTTP_IF_NONE_MATCH=answer.headers["ETag"])
    assert again.status_code == 304


def test_it_is_filmed_again_as_it_was_changed(alice, film):
    shown = alice.api.read(path_of(film))
    used = alice.api.read("/usage")["used"]
    answer = alice.api.patch(path_of(film), {"storyboard": longer(shown["storyboard"])})
    item = answer.json()
    assert (answer.status_code, item["status"], item["revision"]) == (202, "generating", 2)
    assert item["progress"] == {"stage": "render", "percent": 0}
    task_runner.work_all_due("generate.run_item")
    again = alice.api.read(path_of(film))
    assert (again["revision"], again["duration"]) == (2, pytest.approx(shown["duration"] + 1))
    assert alice.api.read("/usage")["used"] == used
    assert Event.everywhere.filter(type="generated.ready").count() == 1


def test_a_change_names_the_version_that_it_saw(alice, film):
    answer = alice.api.get(path_of(film))
    alice.api.patch(f"/generated/{film['id']}", {"title": "Ferries"})
    changed = {"storyboard": longer(answer.json()["storyboard"])}
    late = alice.api.patch(path_of(film), changed, HTTP_IF_MATCH=answer.headers["ETag"])
    assert refusal(late)[:2] == (412, "version_conflict")
    newest = alice.api.get(path_of(film)).headers["ETag"]
    assert alice.api.patch(path_of(film), changed, HTTP_IF_MATCH=newest).status_code == 202


def test_what_cant_be_filmed_is_told_at_its_place(alice, film):
    board = alice.api.read(path_of(film))["storyboard"]
    board["scenes"][1]["end"] += 0.5
    answer = alice.api.patch(path_of(film), {"storyboard": board})
    assert refusal(answer) == (400, "invalid_request", [("storyboard.scenes[2]", "bad_storyboard")])
    for given in ({}, {"storyboard": []}, {"storyboard": {}}, {"storyboard": board, "more": 1}):
        assert refusal(alice.api.patch(path_of(film), given))[:2] == (400, "invalid_request")


def test_what_is_no_film_has_none(alice, charlie, film):
    words = alice.ready()
    assert alice.api.get(path_of(words)).json() == NOT_FOUND
    assert refusal(alice.api.patch(path_of(words), {"storyboard": {}}))[:2] == (400, "invalid_request")
    assert charlie.api.get(path_of(film)).json() == NOT_FOUND
    assert charlie.api.patch(path_of(film), {"storyboard": {}}).json() == NOT_FOUND


def test_what_is_scheduled_is_cancelled_first(alice, film):
    board = alice.api.read(path_of(film))["storyboard"]
    alice.api.post(f"/generated/{film['id']}/publish", {"publish_at": "2027-11-22T12:00:00Z"})
    answer = alice.api.patch(path_of(film), {"storyboard": longer(board)})
    assert refusal(answer) == (409, "conflict", [("storyboard", "drawn_words")])
