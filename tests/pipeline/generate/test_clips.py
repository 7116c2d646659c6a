"""A video that is pushed with its transcript is cut into films: the right seconds, in sync, with the words on it."""

from __future__ import annotations

import io
import json
from dataclasses import replace
from functools import partial
from itertools import pairwise

import av
import numpy as np
import pytest
from django.utils import timezone

from config.core import work_queue
from config.core.errors import Invalid
from config.core.ids import encode
from pipeline.generate import run as generation_run
from pipeline.ingest import plan_and_estimate, raw_content
from pipeline.media import files, make_film, source_media, uploads
from pipeline.models import Asset, GeneratedItem, Generation, RawBody, RawItem, Upload, WorkspaceDefaults
from pipeline.render.audio.loudness import measure_file
from pipeline.render.video import film_process, shot_process
from pipeline.render.video.material import Shot
from pipeline.render.video.storyboard import Crop
from pipeline.render.video.storyboard_json import from_json
from pipeline.review import decisions
from pipeline.writers.extractive import Extractive
from tests.pipeline.steps import claimed, items_of, pass_points_of_generate, push_raw, run_generations
from tests.render import footage_files
from tests.render.footage_files import number_in

SENTENCES = (
    "Welcome back to the channel and please subscribe.",
    "The harbour of Lindholm was the loudest in the country ten years ago.",
    "Today forty-two electric ferries carry nine million people a year.",
    "The city paid 214 million crowns for them.",
    "Each boat charges for six minutes at the quay while people get on.",
    "Fishermen say the water is quieter than it has been for 80 years.",
    "And the old engines went to a museum in the old town.",
    "That is where school classes now learn how a diesel works.",
    "What did the sceptics say when the first boat left at five in the morning?",
    "They said that a battery would never survive a winter on this coast.",
    "Three winters later every single battery is still at work.",
    "The tickets cost the same as before, and the boats are full.",
)
EACH = 0.36
REST = 0.4
CUTS = (9.0, 17.5, 26.0, 33.0)


def transcript():
    """Words with their times, as Whisper writes them."""
    words, at = [], 0.5
    for sentence in SENTENCES:
        for word in sentence.split():
            words.append({"word": word, "start": round(at, 3), "end": round(at + EACH - 0.04, 3)})
            at += EACH
        at += REST
    return words, at


WORDS, LENGTH = transcript()


@pytest.fixture(scope="module")
def film():
    clicks = [word["start"] for word in WORDS]
    return footage_files.video(seconds=LENGTH + 1, size=(320, 180), cuts=CUTS, group=240, clicks=clicks)


@pytest.fixture(autouse=True)
def folders(settings, tmp_path, monkeypatch):
    settings.MEDIA_ROOT = tmp_path / "media"
    settings.DATA_DIR = tmp_path
    monkeypatch.setattr(make_film, "SHRINK", 4)
    monkeypatch.setattr(make_film, "PRESET", "ultrafast")
    # Nobody else is to be spared here.
    monkeypatch.setattr(film_process, "FilmLimits", partial(film_process.FilmLimits, nice=0))
    yield tmp_path
    assert [one for one in (tmp_path / "renders").glob("*") if one.is_dir()] == []


def hand_over(workspace, data, name):
    row = uploads.store_upload(
        workspace, uploads.ReceivedFile(io.BytesIO(data), len(data), name), test=False, actor="test"
    )
    return {"upload": encode("upl", row.pk), "type": row.mime_type}


def pushed(workspace, *given, **changes):
    wish = {
        "engines": ["Clipped Short"],
        "title": "How a harbour went quiet",
        "body": "",
        "url": "https://www.lindholm-times.example/ferries",
        "author": "Lindholm Times",
        "language": "en",
        "media": list(given),
        **changes,
    }
    return push_raw(workspace, **wish).raw_item


def with_transcript(workspace, film, words=None, **changes):
    said = json.dumps({"words": WORDS if words is None else words}).encode()
    return pushed(
        workspace, hand_over(workspace, film, "talk.mp4"), hand_over(workspace, said, "talk.json"), **changes
    )


def made(raw):
    run_generations(raw)
    return items_of(raw)


def asset(item, name):
    return files.path_of(Asset.everywhere.get(item=item, name=name, revoked_at=None).path)


def film_of(item):
    return files.path_of(Asset.everywhere.get(item=item, role="video", revoked_at=None).path)


def board_of(item):
    return from_json(json.loads(asset(item, "storyboard.json").read_text()))


def beeps(path):
    """The seconds at which the beeps begin that are spoken words here."""
    with av.open(str(path)) as container:
        resampler = av.AudioResampler(format="flt", layout="mono", rate=48_000)
        parts = [
            one.to_ndarray().reshape(-1)
            for frame in (*container.decode(audio=0), None)
            for one in resampler.resample(frame)
        ]
    sound = np.abs(np.concatenate(parts))
    loud = np.flatnonzero(sound > 0.5 * sound.max())
    return [loud[0] / 48_000, *(b / 48_000 for a, b in pairwise(loud) if b - a > 4_800)]


def first_frames(path, board):
    """Which frame of the source the first of each scene is, by the number in it."""
    with av.open(str(path)) as container:
        frames = [frame.to_ndarray()[: frame.height] for frame in container.decode(video=0)]
    assert len(frames) == board.frames
    return [number_of(frames[round(scene.start * 30)], scene.visual) for scene in board.scenes]


def number_of(luma, visual):
    if visual.fit == "cover":
        return number_in(luma, share=1.0)
    height = round(270 * 180 / 320)
    top = (480 - height) // 2
    return number_in(luma[top : top + height])


def asked(visual):
    """The last frame of the source that has begun by then."""
    return int(visual.since * 30 + 0.06)


@pytest.mark.slow
def test_clip_is_cut_where_it_was_said(workspace, film, record_property):
    raw = with_transcript(workspace, film)
    assert raw.reason is None
    body = RawBody.everywhere.get(raw_item=raw)
    assert (body.body, body.body_format) == (" ".join(SENTENCES), "text")

    [item] = made(raw)

    assert (item.status, item.error) == ("ready", None)
    assert [check for check in item.checks if check["outcome"] != "passed"] == []
    [clip] = item.content["clips"]
    said = [word for word in WORDS if word["start"] >= clip["start"] and word["end"] <= clip["end"]]
    assert item.body == " ".join(word["word"] for word in said)
    assert "subscribe" not in item.body
    assert 15 <= clip["end"] - clip["start"] <= 60
    assert said[0]["start"] - clip["start"] == pytest.approx(0.15, abs=0.002)
    assert len(item.title) <= 64
    assert item.title.rstrip("…") in item.body
    assert [body.body[claim["start"] : claim["end"]] for claim in item.claims] == [
        claim["quote"] for claim in item.claims
    ]

    board = board_of(item)
    assert board.duration == pytest.approx(clip["end"] - clip["start"], abs=1 / 30)
    shown = [cut for cut in CUTS if clip["start"] + 0.4 < cut < clip["end"] - 0.4]
    assert [clip["start"] + scene.start for scene in board.scenes[1:]] == pytest.approx(shown, abs=1 / 30)

    # The words on the screen, and what is heard, at the moment at which it was said.
    captions = [word for card in board.captions for word in card.words]
    late = [abs(one.start + clip["start"] - word["start"]) for one, word in zip(captions, said, strict=True)]
    assert max(late) <= 0.05
    path = film_of(item)
    heard = beeps(path)
    off = [abs(at + clip["start"] - word["start"]) for at, word in zip(heard, said, strict=True)]
    assert max(off) <= 1 / 30
    assert measure_file(path).integrated == pytest.approx(-14, abs=0.5)
    assert first_frames(path, board) == [asked(scene.visual) for scene in board.scenes]
    record_property(
        "told", f"captions off by {max(late) * 1000:.0f} ms at most, sound by {max(off) * 1000:.1f} ms"
    )


def test_variants_share_nothing(workspace, film, unfilmed):
    later = [{**word, "start": word["start"] + 70, "end": word["end"] + 70} for word in WORDS]
    first, second, *_ = made(with_transcript(workspace, film, [*WORDS, *later], variants=2))
    one, other = first.content["clips"][0], second.content["clips"][0]
    assert {first.status, second.status} == {"ready"}
    assert one["end"] <= other["start"] or other["end"] <= one["start"]


def test_without_transcript_it_says_what_is_missing(workspace, film):
    given = hand_over(workspace, film, "talk.mp4")
    assert (
        pushed(workspace, given)
        .reason["message"]
        .startswith("Clipped Short: A Clipped Short is cut by what is said: upload the video's transcript")
    )
    assert pushed(workspace, title="Another", url="https://x.example/2").reason["message"] == (
        "Clipped Short: A Clipped Short is cut from a video: upload it and name it in the media."
    )
    notes = hand_over(workspace, b"Just some notes, with no times at all.", "notes.txt")
    raw = pushed(workspace, given, notes, title="A third", url="https://x.example/3")
    assert raw.reason["message"].startswith("Clipped Short: There are no words with times in the transcript")


def test_lines_with_times_do_with_a_warning(workspace, film, unfilmed):
    lines, at = [], 0
    for number, sentence in enumerate(SENTENCES, start=1):
        count = len(sentence.split())
        start, end = WORDS[at]["start"], WORDS[at + count - 1]["end"]
        at += count

        def clock(second):
            return f"00:{int(second // 60):02}:{int(second % 60):02},{round(second % 1 * 1000):03}"

        lines.append(f"{number}\n{clock(start)} --> {clock(end)}\n{sentence}\n")
    srt = "\n".join(lines).encode()
    raw = pushed(workspace, hand_over(workspace, film, "talk.mp4"), hand_over(workspace, srt, "talk.srt"))
    [item] = made(raw)
    assert item.status == "ready"
    assert [check["code"] for check in item.checks if check["outcome"] == "warning"] == ["word_times"]


def test_misheard_word_is_corrected_and_filmed_again(workspace, film, unfilmed):
    [item] = made(with_transcript(workspace, film))
    said = item.body.split()
    body = " ".join([said[0].upper(), *said[1:]])
    row = decisions.edit(item, {"body": body, "title": "A quiet harbour"}, by="x", now=item.updated_at)
    assert row.status == "generating"
    for generation in Generation.everywhere.filter(wake_at__isnull=False):
        generation_run.run_generation(claimed(generation))
    again = GeneratedItem.everywhere.get(pk=item.pk)
    assert (again.status, again.error) == ("ready", None)
    board = board_of(again)
    assert board.captions[0].words[0].t == said[0].upper()
    assert board.meta.title == "A quiet harbour"
    with pytest.raises(Invalid, match="leave none out"):
        decisions.edit(again, {"body": f"{body} more"}, by="x", now=again.updated_at)


def test_stored_storyboard_films_again_without_a_writer(workspace, film, unfilmed, monkeypatch, tmp_path):
    [item] = made(with_transcript(workspace, film))
    board = board_of(item)
    board = replace(
        board,
        scenes=(replace(board.scenes[0], end=1.0),),
        overlays=(),
        captions=(),
        audio=type(board.audio)(),
    )
    there = source_media.paths_of(workspace.pk, board.assets)
    assert set(there) == set(board.assets) != set()
    monkeypatch.undo()
    with film_process.working_folder(tmp_path / "renders") as folder:
        again = film_process.render(
            film_process.Job(board, files=there, shrink=4, preset="ultrafast", thumbnails=False), folder
        )
        with av.open(str(again.files["film.mp4"].path)) as opened:
            first = next(opened.decode(video=0)).to_ndarray()[:480]
    assert number_of(first, board.scenes[0].visual) == asked(board.scenes[0].visual)


@pytest.mark.parametrize("name", ["middle", "short", "gone"])
def test_broken_video_ends_in_a_clear_failure_and_leaves_nothing(workspace, film, name, folders):
    raw = with_transcript(workspace, film)
    row = Upload.everywhere.get(kind="video")
    path = files.path_of(row.path)
    if name == "middle":
        path.write_bytes(film[: len(film) // 20] + bytes(len(film) // 2) + film[11 * len(film) // 20 :])
    elif name == "short":
        path.write_bytes(footage_files.video(seconds=2.0, size=(320, 180)))
    else:
        path.unlink()

    [item] = made(raw)

    assert item.status == "failed"
    assert item.error["stage"] == "render"
    assert item.error["message"].startswith("The file upl_")
    assert item.error["message"].endswith(".")
    assert not Asset.everywhere.filter(item=item).exists()
    assert not (folders / "media" / item.pk.hex).exists()


def test_body_stays_before_what_is_said(workspace, film, unfilmed):
    raw = with_transcript(workspace, film, body="**Notes** on a harbour.")
    body = RawBody.everywhere.get(raw_item=raw)
    assert body.body == f"Notes on a harbour.\n\n{' '.join(SENTENCES)}"
    [item] = made(raw)
    assert item.status == "ready"
    assert body.body[item.claims[0]["start"] : item.claims[0]["end"]] == item.claims[0]["quote"]


def test_estimate_says_the_price(workspace, film):
    said = json.dumps(WORDS).encode()
    media = [hand_over(workspace, film, "talk.mp4"), hand_over(workspace, said, "talk.json")]
    defaults = WorkspaceDefaults.everywhere.get(workspace=workspace)
    content = raw_content.RawContent(title="T", media=media, engines=["Clipped Short"], variants=2)
    plan = plan_and_estimate.estimate(
        workspace, defaults.push_source, content, defaults=defaults, now=RawItem().created_at
    )
    assert (plan.price, plan.why_not) == (10, ())


@pytest.mark.parametrize(
    "point", ["generate.drafted", "generate.filmed", "generate.rendered", "generate.written"]
)
def test_kill_anywhere_asks_no_writer_again_and_films_that_once_more(
    workspace, film, unfilmed, monkeypatch, point
):
    raw = with_transcript(workspace, film)
    asked = []
    draft = Extractive.draft
    monkeypatch.setattr(
        Extractive, "draft", lambda self, *given, **told: asked.append(1) or draft(self, *given, **told)
    )

    def die(name):
        if name == point:
            raise SystemExit

    with monkeypatch.context() as patch:
        pass_points_of_generate(patch, die)
        with pytest.raises(SystemExit):
            run_generations(raw)
    [item] = made(raw)
    assert (item.status, item.error, len(asked)) == ("ready", None, 1)
    assert Asset.everywhere.filter(item=item, role="video", revoked_at=None).count() == 1


def test_killed_film_looks_at_nothing_again(workspace, film, unfilmed, monkeypatch):
    """Looking may take longer than a usual lease: it has one of its own, and what was seen is kept."""
    raw = with_transcript(workspace, film)
    seen = []

    def look(path, span):
        left = Generation.everywhere.get(raw_item=raw).wake_at - timezone.now()
        seen.append((span.end - span.start, left.total_seconds()))
        return (Shot(span.start, span.end - 5, Crop()), Shot(span.end - 5, span.end))

    def die(*_, **__):
        raise SystemExit

    monkeypatch.setattr(shot_process, "detect_shots", look)
    with monkeypatch.context() as patch:
        patch.setattr(film_process, "render", die)
        with pytest.raises(SystemExit):
            run_generations(raw)
    [item] = made(raw)

    assert (item.status, item.error) == ("ready", None)
    [(seconds, left)] = seen
    assert left > 60 + 6 * seconds
    first, second = (scene.visual for scene in board_of(item).scenes)
    assert (first.fit, second.fit) == ("cover", "pad")


def test_overtaken_hand_looks_at_nothing(workspace, film, unfilmed, monkeypatch):
    raw = with_transcript(workspace, film)
    material_of = source_media.material_of

    def overtaken(row):
        Generation.everywhere.filter(raw_item=raw).update(**work_queue.overtake())
        return material_of(row)

    monkeypatch.setattr(
        shot_process, "detect_shots", lambda path, span: pytest.fail("It isn't ours any more.")
    )
    monkeypatch.setattr(make_film.source_media, "material_of", overtaken)
    [item] = made(raw)
    assert item.status == "generating"


def test_second_clip_is_refused_in_words(workspace, film, unfilmed):
    [item] = made(with_transcript(workspace, film))
    [clip] = item.content["clips"]
    content = {**item.content, "clips": [clip, {**clip, "start": 0, "end": 10_800}]}
    with pytest.raises(
        Invalid, match="names 2 clips; a Clipped Short is one stretch of one video"
    ) as refused:
        decisions.edit(item, {"content": content}, by="x", now=item.updated_at)
    assert [detail.field for detail in refused.value.detail] == ["content.clips"]


def test_transcript_of_more_words_than_a_body_has_is_refused(workspace, film):
    words = [{"word": "harbours", "start": number / 2, "end": number / 2 + 0.3} for number in range(25_000)]
    with pytest.raises(Invalid, match="the body has 224999 characters; the maximum is 200000") as refused:
        with_transcript(workspace, film, words)
    [detail] = refused.value.detail
    assert (detail.field, detail.code) == ("media[1].upload", "too_long")
    assert not RawItem.everywhere.exists()
