"""Filmed items: their files and rows, progress, what becomes of a film that breaks, and a kill at any place."""

from __future__ import annotations

import errno
import json
import os
import time
from contextlib import suppress
from datetime import timedelta

import pytest
from django.db import OperationalError
from django.utils import timezone

from config.core import dispatcher, task_runner, work_leases
from pipeline import limits
from pipeline.engines.template_short import TemplateShort
from pipeline.generate import recoverable_failures, rendering
from pipeline.generate import run as generation_run
from pipeline.media import files, make_film
from pipeline.models import Asset, Event, GeneratedItem, Generation
from pipeline.pages.new import outcome
from pipeline.plugins import Refused
from pipeline.publish.payload import payload_of
from pipeline.render.video import film_process, verify
from pipeline.render.video.film_process import NoRoom, RenderFailed
from pipeline.render.video.storyboard_json import from_json
from pipeline.review import decisions
from pipeline.writers.extractive import Extractive
from tests.pipeline.steps import (
    balance,
    claimed,
    items_of,
    pass_points_of_generate,
    push_raw,
    reread,
    run_generations,
)

SENTENCES = (
    "The ferries of Lindholm run on batteries.",
    "Forty-two boats carry nine million people a year.",
    "The city paid 214 million crowns for them.",
    "Each boat charges for six minutes at the quay.",
    "The old engines go to a museum in the old town.",
    "Fishermen say that the water is quieter than before.",
)
GIVEN = {
    "engines": ["Template Short"],
    "title": "Harbour ferries go electric",
    "body": " ".join(SENTENCES),
    "url": "https://news.example/ferries",
}


@pytest.fixture(autouse=True)
def folders(settings, tmp_path, monkeypatch):
    settings.MEDIA_ROOT = tmp_path / "media"
    settings.DATA_DIR = tmp_path
    monkeypatch.setattr(make_film, "SHRINK", 4)
    monkeypatch.setattr(make_film, "PRESET", "ultrafast")
    # Whatever happens, nothing is left of the work.
    yield tmp_path
    assert [one for one in (tmp_path / "renders").glob("*") if one.is_dir()] == []


@pytest.fixture
def filmed(monkeypatch):
    """Instead of the process: a file for each name, at once. Returns what was asked for."""
    asked = []

    def render(job, folder, *, limits=None, on_progress=None):
        asked.append(job)
        made = {}
        for name, size in (
            ("film.mp4", (1080, 1920)),
            ("thumb.jpg", (1080, 1920)),
            ("thumb-wide.jpg", (1280, 720)),
        ):
            (folder / name).write_bytes(f"{name} {job.board.meta.title}".encode())
            made[name] = film_process.MadeFile(folder / name, *size)
        if on_progress is not None and not on_progress(0.5):
            raise RenderFailed("Making the film was stopped.", code="render_stopped")
        return film_process.Made(made, job.board.duration)

    monkeypatch.setattr(film_process, "render", render)
    return asked


def item_with_film(workspace, **changes):
    raw = push_raw(workspace, **{**GIVEN, **changes}).raw_item
    run_generations(raw)
    return items_of(raw)[0]


def files_of(item, *, served=True):
    rows = Asset.everywhere.filter(item=item, revoked_at__isnull=served)
    return list(rows.order_by("created_at", "position"))


def test_a_film_is_made_measured_and_kept(workspace, folders):
    item = item_with_film(workspace)

    assert (item.status, item.bucket, item.error) == ("ready", "video", None)
    film, thumb, wide, *frames, srt, vtt, board = files_of(item)
    assert [
        (one.role, one.kind, one.name, one.mime_type) for one in (film, thumb, wide, srt, vtt, board)
    ] == [
        ("video", "video", "template-short-270x480.mp4", "video/mp4"),
        ("thumbnail", "image", "template-short-270x480.jpg", "image/jpeg"),
        ("thumbnail", "image", "template-short-1280x720.jpg", "image/jpeg"),
        ("captions", "document", "captions.en.srt", "application/x-subrip"),
        ("captions", "document", "captions.en.vtt", "text/vtt"),
        ("storyboard", "document", "storyboard.json", "application/json"),
    ]
    assert [(one.role, one.name, one.height) for one in frames] == [
        ("frame", f"template-short-frame-0{place}.jpg", 480) for place in (1, 2, 3, 4, 5)
    ]
    said = (folders / "media" / srt.path).read_text()
    assert said.startswith("1\n00:00:00,000 --> 00:00:02,400\nHarbour ferries go electric\n")
    assert said.count("-->") == 5
    root = folders / "media"
    kept = from_json(json.loads((root / board.path).read_text()))
    facts = verify.probe_film(root / film.path)
    assert verify.film_faults(facts, frames=kept.frames, fps=30, size=(270, 480), is_final=False) == []
    assert film.duration == kept.duration == pytest.approx(float(facts.video_seconds))
    assert film.alt_text.startswith("Harbour ferries go electric")
    assert [check["outcome"] for check in item.checks if check["code"] == "film"] == ["passed"]
    told = bytes(Event.everywhere.get(type="generated.ready").body)
    assert film.secret.encode() in told
    assert balance(workspace) == (5, 0)


def test_platforms_get_the_film_and_its_thumbnails(workspace, filmed):
    item = item_with_film(workspace)

    assert [one.role for one in payload_of(item, {}).assets] == ["video", "thumbnail", "thumbnail"]


def test_every_variant_has_its_own_film(workspace, filmed):
    raw = push_raw(workspace, **GIVEN, variants=2).raw_item
    run_generations(raw)

    items = items_of(raw)
    assert [item.status for item in items] == ["ready", "ready"]
    assert len({files_of(item)[0].path for item in items}) == 2
    assert len(filmed) == 2


def test_progress_is_kept_and_shown(workspace, filmed, monkeypatch):
    seen = []
    monkeypatch.setattr(rendering, "TELL_SECONDS", 0.0)
    made = film_process.render

    def render(job, folder, *, on_progress, **given):
        for share in (0.25, 0.6):
            assert on_progress(share)
            item = GeneratedItem.everywhere.get()
            [shown] = outcome.of(workspace, item.raw_item).items
            seen.append((item.generation.progress, shown.label))
        return made(job, folder, on_progress=on_progress, **given)

    monkeypatch.setattr(film_process, "render", render)
    item = item_with_film(workspace)

    assert seen == [(25, "Generating: 25 %"), (60, "Generating: 60 %")]
    [shown] = outcome.of(workspace, item.raw_item).items
    assert shown.label == "To review"


def test_progress_is_written_every_two_seconds_and_holds_the_lease(
    workspace, filmed, monkeypatch, django_assert_num_queries
):
    raw = push_raw(workspace, **GIVEN).raw_item
    generation = claimed(Generation.everywhere.get(raw_item=raw))
    seconds = [100.0]
    monkeypatch.setattr(rendering, "monotonic", lambda: seconds[0])
    tell = rendering.Teller(generation, items_of(raw)[0], 1, 4)
    before = reread(generation).wake_at

    assert tell(0.5)
    after = reread(generation)
    assert after.progress == 37
    assert after.wake_at >= before
    seconds[0] += 1.9
    with django_assert_num_queries(0):
        assert tell(0.6)
    seconds[0] += 0.1
    assert tell(0.7)
    assert reread(generation).progress == 42


def test_a_hand_that_lost_its_lease_stops_the_film_and_writes_nothing(workspace, filmed, folders):
    raw = push_raw(workspace, **GIVEN).raw_item
    late = claimed(Generation.everywhere.get(raw_item=raw))
    made = film_process.render

    def overtaken(job, folder, **given):
        claimed(Generation.everywhere.get(raw_item=raw))
        return made(job, folder, **given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(film_process, "render", overtaken)
        generation_run.run_generation(late)

    item = items_of(raw)[0]
    assert (item.status, files_of(item), balance(workspace)) == ("generating", [], (5, 5))
    run_generations(raw)
    assert (reread(item).status, balance(workspace)) == ("ready", (5, 0))


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (RenderFailed("It took too much.", code="render_memory"), "render_memory"),
        (Refused("The film was made wrongly: it has 3 frames.", code="bad_film"), "bad_film"),
    ],
)
def test_a_film_that_breaks_fails_the_item_with_stage_and_reason(workspace, monkeypatch, error, code):
    def render(*_, **__):
        raise error

    monkeypatch.setattr(film_process, "render", render)
    item = item_with_film(workspace)

    assert item.status == "failed"
    assert item.error == recoverable_failures.error_of(code, error.message, "render", has_model=False)
    assert (files_of(item), balance(workspace)) == ([], (10, 0))


@pytest.mark.parametrize("code", sorted(rendering.PASSING))
def test_a_film_that_may_go_well_next_time_keeps_its_words(workspace, monkeypatch, filmed, code):
    """A process that the system killed costs no answer of the model; one that always dies is given up at last."""
    written = []
    draft = Extractive.draft
    monkeypatch.setattr(Extractive, "draft", lambda self, *a, **k: written.append(1) or draft(self, *a, **k))
    made = film_process.render

    def render(*_, **__):
        raise RenderFailed("It ended.", code=code, log="killed")

    monkeypatch.setattr(film_process, "render", render)
    raw = push_raw(workspace, **GIVEN).raw_item
    other = push_raw(workspace, **{**GIVEN, "url": "https://news.example/other"}).raw_item
    for times in range(1, limits.GENERATION_TRIES):
        run_generations(raw)
        generation = Generation.everywhere.get(raw_item=raw)
        assert (generation.status, generation.error["code"]) == ("running", code)
        assert generation.wake_at - timezone.now() > times * rendering.RENDER_AGAIN - timedelta(seconds=20)
    run_generations(other)
    run_generations(raw)
    item = items_of(raw)[0]
    assert item.error == recoverable_failures.error_of(code, "It ended.", "render", has_model=False)

    monkeypatch.setattr(film_process, "render", made)
    run_generations(other)
    assert items_of(other)[0].status == "ready"
    assert len(written) == 2


def test_what_is_missing_here_fails_the_item_in_words(workspace, monkeypatch):
    monkeypatch.setattr(film_process, "REQUIRED_LIBRARIES", ("no_such_module",))

    item = item_with_film(workspace)

    assert item.error["message"] == "Films can't be made here: no_such_module is not installed."
    assert balance(workspace) == (10, 0)


class Messages:
    """A broker that keeps what was sent."""

    def __init__(self):
        self.sent = []

    def send(self, job, lease):
        self.sent.append((job.name, lease.subject, lease.token))

    def count_waiting(self, queues):
        return dict.fromkeys(queues, 0)


@pytest.fixture
def begun():
    """Begins as many films as there are slots, and returns what was sent for them."""
    work_leases.start_worker()
    work_leases.note_worker("films", {"render": 1})

    def begin(slots=1):
        messages = Messages()
        dispatcher.run_round(messages, {"render": slots})
        return messages.sent

    return begin


@pytest.fixture
def film_of(clock):
    """A run whose film waits for its turn: its words are written. Each is younger than the one before."""

    def make(workspace, **changes):
        clock.shift(1)
        raw = push_raw(workspace, **{**GIVEN, **changes}).raw_item
        run = Generation.everywhere.get(raw_item=raw)
        generation_run.run_generation(claimed(run), queue=run.queue)
        run = reread(run)
        assert (run.status, run.stage, run.queue, run.attempts) == ("running", "render", "render", 0)
        return run

    return make


def test_a_film_waits_in_its_queue_for_a_slot(workspace, charlies, filmed, begun, film_of):
    films = [film_of(one, url=f"https://news.example/{one.pk}") for one in (workspace, charlies)]
    # Neither is claimed while no worker makes films, and one alone with one slot.
    assert begun(0) == []
    (message,) = begun()
    assert begun() == []
    assert filmed == []
    task_runner.run(*message)
    assert [reread(run).status for run in films] == ["done", "running"]
    assert len(begun()) == 1


def test_workspaces_take_turns(workspace, charlies, filmed, begun, film_of):
    """One slot, two films of Alice's that are older than Charlie's: he comes after her first."""
    first = film_of(workspace)
    second = film_of(workspace, url="https://news.example/second")
    his = film_of(charlies)
    order = []
    while messages := begun():
        (message,) = messages
        order.append(message[1])
        task_runner.run(*message)
    assert order == [first.pk, his.pk, second.pk]
    assert len(filmed) == 3


def test_the_workspace_that_had_the_fewest_films_lately_comes_first(
    workspace, charlies, filmed, begun, film_of
):
    film_of(workspace)
    task_runner.run(*begun()[0])
    hers = film_of(workspace, url="https://news.example/second")
    his, _ = (film_of(charlies, url=f"https://news.example/{number}") for number in range(2))
    assert [pk for _, pk, _ in begun()] == [his.pk]
    # What runs counts as what was made: each has one now, and hers has waited for longer.
    assert [pk for _, pk, _ in begun(2)] == [hers.pk]
    Generation.everywhere.filter(status="done").update(finished_at=timezone.now() - 2 * rendering.LATELY)
    had = rendering.turns_of_films([workspace.pk, charlies.pk])
    assert {key: count for key, (count, _) in had.items()} == {workspace.pk: 0, charlies.pk: 0}


@pytest.mark.parametrize(
    ("point", "queues"),
    [
        ("generate.drafted", ["compute", "compute", "render"]),
        ("generate.handed_on", ["compute", "render"]),
        ("generate.filmed", ["compute", "render", "render"]),
    ],
)
def test_a_run_that_is_killed_between_two_queues_goes_on(workspace, filmed, monkeypatch, point, queues):
    class Killed(BaseException):
        pass

    def die(name):
        if name == point and not killed:
            killed.append(name)
            raise Killed

    killed, passed, written = [], [], []
    draft = Extractive.draft
    monkeypatch.setattr(Extractive, "draft", lambda self, *a, **k: written.append(1) or draft(self, *a, **k))
    pass_points_of_generate(monkeypatch, die)
    raw = push_raw(workspace, **GIVEN).raw_item
    while (run := Generation.everywhere.get(raw_item=raw)).wake_at is not None:
        passed.append(run.queue)
        with suppress(Killed):
            generation_run.run_generation(claimed(run), queue=run.queue)
    assert passed == queues
    assert (items_of(raw)[0].status, len(written)) == ("ready", 1)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_media_folder_that_fills_up_is_waited_for(workspace, monkeypatch, filmed, number):
    """It may lie on another disk than the film was made on."""
    write = files.write

    def full(kept, chunks):
        raise OSError(number, "full")

    raw = push_raw(workspace, **GIVEN).raw_item
    monkeypatch.setattr(files, "write", full)
    run_generations(raw)
    generation = Generation.everywhere.get(raw_item=raw)
    assert (generation.status, generation.error["code"]) == ("running", "no_space")
    monkeypatch.setattr(files, "write", write)
    run_generations(raw)
    assert items_of(raw)[0].status == "ready"


def test_nothing_is_begun_where_the_media_folder_has_no_room(workspace, settings, monkeypatch, filmed):
    usage = film_process.shutil.disk_usage
    monkeypatch.setattr(
        film_process.shutil,
        "disk_usage",
        lambda path: usage(path)._replace(free=1000) if path == settings.MEDIA_ROOT else usage(path),
    )
    raw = push_raw(workspace, **GIVEN).raw_item
    run_generations(raw)
    assert Generation.everywhere.get(raw_item=raw).error["code"] == "no_space"
    assert filmed == []


def test_what_is_deleted_while_it_is_filmed_is_filmed_no_longer(workspace, filmed, settings):
    raw = push_raw(workspace, **GIVEN).raw_item
    made = film_process.render

    def deleted(job, folder, **given):
        decisions.erase(items_of(raw)[0], now=timezone.now())
        return made(job, folder, **given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(film_process, "render", deleted)
        run_generations(raw)
    assert [one for one in settings.MEDIA_ROOT.rglob("*") if one.is_file()] == []
    run_generations(raw)
    assert Generation.everywhere.get(raw_item=raw).status in {"done", "failed"}
    assert [one for one in settings.MEDIA_ROOT.rglob("*") if one.is_file()] == []


def test_a_busy_database_stops_no_film_while_the_lease_holds(workspace, filmed, monkeypatch):
    raw = push_raw(workspace, **GIVEN).raw_item
    generation = claimed(Generation.everywhere.get(raw_item=raw))
    monkeypatch.setattr(rendering, "TELL_SECONDS", 0.0)
    clock = [100.0]
    monkeypatch.setattr(rendering, "monotonic", lambda: clock[0])
    tell = rendering.Teller(generation, items_of(raw)[0], 0, 1)

    def busy(*_, **__):
        raise OperationalError("database is locked")

    with monkeypatch.context() as patch:
        patch.setattr(Generation, "sleep_until", busy)
        assert tell(0.1)
        clock[0] += 50
        assert tell(0.2)
        clock[0] += 11
        assert not tell(0.3)
    assert tell(0.4)


def test_a_full_disk_waits(workspace, monkeypatch, filmed):
    made = film_process.render

    def render(*_, **__):
        raise NoRoom

    monkeypatch.setattr(film_process, "render", render)
    raw = push_raw(workspace, **GIVEN).raw_item
    run_generations(raw)
    generation = Generation.everywhere.get(raw_item=raw)
    assert (generation.status, generation.error["code"]) == ("running", "no_space")

    monkeypatch.setattr(film_process, "render", made)
    run_generations(raw)
    assert items_of(raw)[0].status == "ready"


@pytest.mark.parametrize(
    ("point", "filmed_again"),
    [("generate.drafted", 0), ("generate.filmed", 1), ("generate.rendered", 0), ("generate.written", 0)],
)
def test_a_killed_hand_costs_at_most_one_film_and_no_words(
    workspace, filmed, monkeypatch, point, filmed_again
):
    """The words are written once; each film that was kept is there still; the credits are settled once."""
    written = []
    draft = Extractive.draft
    monkeypatch.setattr(Extractive, "draft", lambda self, *a, **k: written.append(1) or draft(self, *a, **k))
    raw = push_raw(workspace, **GIVEN, variants=2).raw_item

    def die(name):
        if name == point:
            raise SystemExit

    with monkeypatch.context() as patch:
        pass_points_of_generate(patch, die)
        with pytest.raises(SystemExit):
            run_generations(raw)
    run_generations(raw)

    assert [item.status for item in items_of(raw)] == ["ready", "ready"]
    assert (len(written), len(filmed)) == (1, 2 + filmed_again)
    assert [len(files_of(item)) for item in items_of(raw)] == [6, 6]
    assert balance(workspace) == (0, 0)


def test_an_edit_is_filmed_again_and_costs_nothing(workspace, filmed):
    item = item_with_film(workspace)
    before = files_of(item)
    words = item.body.replace("Each boat charges", "Every boat charges")
    if words == item.body:
        words = item.body.replace("The ferries", "All ferries")

    decisions.edit(item, {"body": words}, by="alice", now=timezone.now())
    assert reread(item).status == "generating"
    generation_run.run_generation(claimed(Generation.everywhere.get(pk=reread(item).generation_id)))

    again = reread(item)
    assert (again.status, again.body) == ("ready", words)
    assert len(filmed) == 2
    assert [one.role for one in files_of(item)] == [
        *("video", "thumbnail", "thumbnail"),
        *("captions", "captions", "storyboard"),
    ]
    assert {one.pk for one in files_of(item)}.isdisjoint({one.pk for one in before})
    assert [check["code"] for check in again.checks].count("film") == 1
    assert balance(workspace) == (5, 0)


def test_an_edit_that_cannot_be_filmed_is_refused_at_once(workspace, filmed):
    item = item_with_film(workspace)

    with pytest.raises(Exception, match="one for each line of the text"):
        decisions.edit(item, {"body": "One line"}, by="alice", now=timezone.now())
    assert reread(item).status == "ready"


def test_a_portrait_that_cannot_be_shown_is_left_out_with_a_warning(workspace, filmed, monkeypatch):
    made = film_process.render
    faces = []

    def render(job, folder, **given):
        faces.append(job.portrait is not None)
        if job.portrait is not None:
            raise Refused("The portrait is damaged: it can't be read to its end.", code="unusable_picture")
        return made(job, folder, **given)

    monkeypatch.setattr(film_process, "render", render)
    monkeypatch.setattr(make_film.draw_pictures, "portrait_of", lambda *_: (b"broken", []))
    item = item_with_film(workspace)

    assert faces == [True, False]
    assert item.status == "ready"
    warnings = [check["message"] for check in item.checks if check["outcome"] == "warning"]
    assert warnings == [
        "The portrait is damaged: it can't be read to its end. Initials are drawn in its place."
    ]


def test_what_killed_processes_left_is_swept(folders):
    old = folders / "renders" / "old"
    old.mkdir(parents=True)
    (old / "film.mp4.part").write_bytes(b"half")
    now = timezone.now()
    past = time.time() - 7300
    os.utime(old, (past, past))

    assert make_film.remove_abandoned_folders(now - timedelta(hours=1)) == 0
    assert make_film.remove_abandoned_folders(now) == 1
    assert not old.exists()


def test_an_engine_without_a_film_has_no_files(workspace, filmed, monkeypatch):
    monkeypatch.setattr(TemplateShort, "film", lambda *_: None)

    item = item_with_film(workspace)

    assert (item.status, files_of(item), filmed) == ("ready", [], [])
