"""Films that speak: a whole one measured by meters that aren't ours, and what becomes of it without a voice."""

from __future__ import annotations

import json
from dataclasses import replace

import av
import numpy as np
import pytest
from django.utils import timezone

from config.core.errors import Invalid
from pipeline import limits
from pipeline.engines.base import PersonaCard
from pipeline.engines.persona_short import PLUGIN, PersonaShort
from pipeline.generate import run as generation_run
from pipeline.generate.run_state import draft_of
from pipeline.media import make_film, text_to_speech
from pipeline.models import Asset, Generation
from pipeline.plugins import TryLater
from pipeline.publish.payload import payload_of
from pipeline.render.video import film_process, storyboard_edits, verify
from pipeline.render.video.storyboard import texts_outside
from pipeline.render.video.storyboard_json import from_json
from pipeline.review import decisions, storyboards
from pipeline.voices import system
from pipeline.writers.extractive import Extractive
from tests.engines.test_persona_short import SENTENCES, TITLE
from tests.pipeline.steps import (
    balance,
    claimed,
    items_of,
    pass_points_of_generate,
    push_raw,
    reread,
    run_generations,
)
from tests.render.meters import loudness_of, true_peak_of
from tests.sizes import IS_PROOF

GIVEN = {
    "engines": ["Persona Short"],
    "title": TITLE,
    "body": " ".join(SENTENCES),
    "url": "https://news.example/ferries",
    "language": "en",
}
RATE = 48_000


@pytest.fixture(autouse=True)
def folders(settings, tmp_path, monkeypatch):
    settings.MEDIA_ROOT = tmp_path / "media"
    settings.DATA_DIR = tmp_path
    monkeypatch.setattr(make_film, "SHRINK", 4)
    monkeypatch.setattr(make_film, "PRESET", "ultrafast")
    return tmp_path / "media"


@pytest.fixture
def filmed(monkeypatch):
    """Instead of the process: a file, at once. Returns what was asked for."""
    asked = []

    def render(job, folder, *, limits=None, on_progress=None):
        asked.append(job)
        (folder / "film.mp4").write_bytes(b"film")
        return film_process.Made(
            {"film.mp4": film_process.MadeFile(folder / "film.mp4", 1080, 1920)}, job.board.duration
        )

    monkeypatch.setattr(film_process, "render", render)
    return asked


@pytest.fixture
def heard(monkeypatch):
    """What was spoken, passage by passage."""
    said = []
    speak = text_to_speech.speak

    def listen(text, **how):
        said.append(text)
        return speak(text, **how)

    monkeypatch.setattr(text_to_speech, "speak", listen)
    return said


@pytest.fixture
def no_voice(monkeypatch):
    monkeypatch.setattr(system, "LIBRARY", "no_such_library")
    system._is_installed.cache_clear()
    yield
    system._is_installed.cache_clear()


def item_with_film(workspace, **changes):
    raw = push_raw(workspace, **{**GIVEN, **changes}).raw_item
    run_generations(raw)
    return items_of(raw)[0]


def files_of(item):
    rows = Asset.everywhere.filter(item=item, revoked_at=None).order_by("position")
    return {row.role if row.role != "captions" else row.name: row for row in rows}


def check_of(item, code):
    return next((one for one in item.checks if one["code"] == code), None)


def decoded(path):
    """All samples of a film's sound, in two channels, by FFmpeg's decoder alone."""
    with av.open(str(path)) as film:
        return np.concatenate([frame.to_ndarray() for frame in film.decode(audio=0)], axis=1).T


@pytest.mark.slow
@pytest.mark.skipif(not IS_PROOF, reason="It takes minutes: make prove-frames.")
def test_a_whole_film_is_spoken_captioned_mixed_and_mastered(workspace, folders, tmp_path):
    item = item_with_film(workspace, body=" ".join(SENTENCES[:4]))

    assert (item.status, item.error) == ("ready", None)
    found = files_of(item)
    board = from_json(json.loads((folders / found["storyboard"].path).read_text()))
    path = folders / found["video"].path

    # Picture: every frame, and as long as its sound.
    facts = verify.probe_film(path)
    assert verify.film_faults(facts, frames=board.frames, fps=30, size=(270, 480), is_final=False) == []
    assert abs(facts.video_seconds - facts.sound_seconds) <= 1 / 30
    assert texts_outside(board) == ()

    # Sound: by pyloudnorm, and by a filter of SciPy for the peaks between samples.
    sound = decoded(path)
    assert abs(len(sound) / RATE - board.duration) <= 1 / 30 + 1024 / RATE
    assert loudness_of(sound, RATE) == pytest.approx(-14.0, abs=0.5)
    assert true_peak_of(sound) <= -1.0

    # Captions: against the events of the synthesiser, asked once more.
    script = PLUGIN.script(draft_of(item), PersonaCard(""))
    again = text_to_speech.speak(script.text, language="en").speech
    starts = [word.start for word in again.words]
    told = [word for card in board.captions for word in card.words]
    assert [word.t.rstrip(".") for word in told] == [word.t.rstrip(".") for word in again.words]
    assert max(abs(word.start - start) for word, start in zip(told, starts, strict=True)) <= 0.05
    assert (folders / found["captions.en.srt"].path).read_text().count("-->") == len(board.captions)
    assert (folders / found["transcript"].path).read_text().split() == [word.t for word in told]

    # The words sound where the film says that they do: it is quiet before each passage, and loud in it.
    for scene in board.scenes[1:]:
        first = next(word for word in told if word.start >= scene.start)
        at = round(first.start * RATE)
        assert (
            np.abs(sound[at : at + RATE // 5]).max()
            > 5 * np.abs(sound[at - RATE // 5 : at - RATE // 20]).max()
        )

    # What it is made of stands beside it and films it again, without any writer.
    voice = found["voice"]
    assert (board.audio.voice, voice.name, voice.mime_type) == ("voice.wav", "voice.wav", "audio/wav")
    assert check_of(item, "voice")["message"] == "System voice: the captions follow its words."
    assert check_of(item, "sound")["outcome"] == "passed"
    assert [one.role for one in payload_of(item, {}).assets] == ["video", "thumbnail", "thumbnail"]
    assert balance(workspace) == (4, 0)
    folder = tmp_path / "again"
    folder.mkdir()
    made = film_process.render(
        film_process.Job(
            board,
            make_film.input_paths(item, board, text_to_speech.recall_script(item, board.audio.voice)),
            shrink=4,
            preset="ultrafast",
            thumbnails=False,
        ),
        folder,
    )
    assert np.array_equal(decoded(made.files["film.mp4"].path), sound)


def test_a_changed_storyboard_is_filmed_with_the_voice_that_was_kept(workspace, filmed, heard):
    item = item_with_film(workspace)
    before, board = files_of(item)["voice"], storyboards.stored_storyboard(item).board
    text = next(iter(storyboard_edits.editable_texts(board)))
    changed = storyboard_edits.replace_text(board, text, "Ferries go electric")

    storyboards.edit(item, changed, by="vera", now=timezone.now())
    generation_run.run_generation(claimed(reread(item).generation))

    again = reread(item)
    assert (again.status, again.error, len(heard), len(filmed)) == ("ready", None, 1, 2)
    assert filmed[-1].files[board.audio.voice] == filmed[0].files[board.audio.voice]
    assert files_of(again)["voice"].sha256 == before.sha256
    assert check_of(again, "voice") == check_of(item, "voice")


def test_what_is_heard_keeps_its_moments(workspace, filmed):
    item = item_with_film(workspace)
    board = storyboards.stored_storyboard(item).board
    first, *others = board.captions
    one, two, *rest = board.scenes
    later = (replace(one, end=one.end + 0.1), replace(two, start=two.start + 0.1), *rest)
    for changed, where in (
        (replace(board, scenes=later), "storyboard.scenes"),
        (replace(board, captions=(replace(first, end=first.end - 0.05), *others)), "storyboard.captions"),
        (replace(board, audio=replace(board.audio, voice="")), "storyboard.audio"),
    ):
        with pytest.raises(Invalid) as refused:
            storyboards.edit(item, changed, by="vera", now=timezone.now())
        assert (where, "fixed") in [(detail.field, detail.code) for detail in refused.value.detail]
    assert len(filmed) == 1


@pytest.mark.usefixtures("no_voice")
def test_without_a_voice_the_film_is_silent_with_captions_and_says_why(workspace, filmed):
    item = item_with_film(workspace)

    assert item.status == "ready"
    check = check_of(item, "voice")
    assert check["outcome"] == "warning"
    assert check["message"].startswith("The film is silent, with captions: The system voice isn't installed")
    assert "voice" not in files_of(item)
    assert "captions.en.srt" in files_of(item)
    [job] = filmed
    assert (job.board.audio.voice, dict(job.files)) == ("", {})


@pytest.mark.usefixtures("no_voice")
def test_a_changed_storyboard_of_a_silent_film_still_says_that_it_is_silent(workspace, filmed):
    item = item_with_film(workspace)
    board = storyboards.stored_storyboard(item).board
    changed = storyboard_edits.replace_text(
        board, next(iter(storyboard_edits.editable_texts(board))), "Ferries go electric"
    )

    storyboards.edit(item, changed, by="vera", now=timezone.now())
    generation_run.run_generation(claimed(reread(item).generation))

    again = reread(item)
    assert (again.status, len(filmed)) == ("ready", 2)
    assert check_of(again, "voice")["outcome"] == "warning"
    assert check_of(again, "voice") == check_of(item, "voice")


def test_a_language_that_nobody_speaks_is_told(workspace, filmed, monkeypatch):
    draft = Extractive.draft

    def elsewhere(self, *given, **how):
        drafted = draft(self, *given, **how)
        return replace(drafted, drafts=tuple(replace(one, language="xx") for one in drafted.drafts))

    monkeypatch.setattr(Extractive, "draft", elsewhere)
    item = item_with_film(workspace)

    assert "doesn't speak the language 'xx'" in check_of(item, "voice")["message"]


@pytest.mark.parametrize(
    ("point", "spoken_again", "filmed_again"),
    [
        ("generate.drafted", 0, 0),
        ("generate.spoken", 0, 0),
        ("generate.filmed", 0, 1),
        ("generate.rendered", 0, 0),
        ("generate.written", 0, 0),
    ],
)
def test_a_killed_hand_speaks_nothing_twice(
    workspace, filmed, heard, monkeypatch, point, spoken_again, filmed_again
):
    raw = push_raw(workspace, **GIVEN).raw_item

    def die(name):
        if name == point:
            raise SystemExit

    with monkeypatch.context() as patch:
        pass_points_of_generate(patch, die)
        with pytest.raises(SystemExit):
            run_generations(raw)
    run_generations(raw)

    assert items_of(raw)[0].status == "ready"
    assert (len(heard), len(filmed)) == (1 + spoken_again, 1 + filmed_again)
    assert "voice" in files_of(items_of(raw)[0])
    assert balance(workspace) == (4, 0)


def test_what_was_spoken_and_is_gone_is_spoken_again(workspace, filmed, heard, folders, monkeypatch):
    raw = push_raw(workspace, **GIVEN).raw_item

    def die(name):
        if name == "generate.spoken":
            raise SystemExit

    with monkeypatch.context() as patch:
        pass_points_of_generate(patch, die)
        with pytest.raises(SystemExit):
            run_generations(raw)
    [kept] = folders.rglob("*.wav")
    kept.unlink()
    run_generations(raw)

    assert (items_of(raw)[0].status, len(heard)) == ("ready", 2)
    assert kept.is_file()


def test_a_voice_that_is_too_slow_is_waited_for_and_then_done_without(workspace, filmed, monkeypatch):
    def slow(*_, **__):
        raise TryLater("The system voice took more than 20 seconds.", code="voice_slow")

    monkeypatch.setattr(text_to_speech, "speak", slow)
    raw = push_raw(workspace, **GIVEN).raw_item
    for _ in range(1, limits.GENERATION_TRIES):
        run_generations(raw)
        generation = Generation.everywhere.get(raw_item=raw)
        assert (generation.status, generation.error["code"]) == ("running", "voice_slow")
        assert generation.wake_at > timezone.now()
    run_generations(raw)

    item = items_of(raw)[0]
    assert item.status == "ready"
    assert "took more than 20 seconds" in check_of(item, "voice")["message"]


def test_an_edit_is_spoken_anew_and_served_in_place_of_the_former(workspace, filmed, heard):
    item = item_with_film(workspace)
    before = files_of(item)["voice"]
    words = item.body.replace("museum", "hall")
    assert words != item.body

    decisions.edit(item, {"body": words}, by="alice", now=timezone.now())
    generation_run.run_generation(claimed(Generation.everywhere.get(pk=reread(item).generation_id)))

    again = reread(item)
    assert (again.status, again.body, len(heard)) == ("ready", words, 2)
    assert files_of(again)["voice"].sha256 != before.sha256
    assert [one["code"] for one in again.checks].count("voice") == 1


def test_each_variant_has_its_own_voice(workspace, filmed, heard, monkeypatch):
    monkeypatch.setattr(PersonaShort, "credits", 3)
    raw = push_raw(workspace, **GIVEN, variants=2).raw_item
    run_generations(raw)

    voices = {files_of(item)["voice"].sha256 for item in items_of(raw)}
    assert (len(voices), len(heard), len(filmed)) == (2, 2, 2)
