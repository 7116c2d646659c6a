"""A story that is told over the videos and pictures that were pushed with it: what is shown, in which order, and once."""

from __future__ import annotations

import io
from itertools import pairwise

import av
import pytest
from PIL import Image

from config.core.errors import Invalid
from pipeline.generate import run as generation_run
from pipeline.media import source_media
from pipeline.models import Asset, GeneratedItem, Generation, Upload
from pipeline.render.audio.loudness import measure_file
from pipeline.render.video import shot_process
from pipeline.render.video.storyboard import storyboard_faults, texts_outside
from pipeline.review import decisions
from pipeline.writers.extractive import Extractive
from tests.engines.test_persona_short import SENTENCES, TITLE
from tests.pipeline.generate.test_clips import board_of, film_of, folders, hand_over, made, pushed
from tests.pipeline.steps import claimed, pass_points_of_generate, run_generations
from tests.render import footage_files
from tests.render.footage_files import number_in

LENGTH = 17.2
__all__ = ["folders"]


@pytest.fixture(scope="module")
def film():
    return footage_files.video(seconds=LENGTH, size=(320, 180), group=240)


def picture(size, colour, form="JPEG"):
    out = io.BytesIO()
    Image.new("RGB", size, colour).save(out, form)
    return out.getvalue()


def pushed_with(workspace, film, **changes):
    media = [
        {**hand_over(workspace, film, "ferry.mp4"), "author": "Harbour TV", "licence": "CC BY 4.0"},
        hand_over(workspace, picture((900, 600), "#204060"), "quay.jpg"),
        hand_over(workspace, picture((600, 900), "#602040"), "mast.jpg"),
        hand_over(workspace, picture((900, 900), "#406020"), "deck.jpg"),
        hand_over(workspace, picture((640, 960), "#404040", "PNG"), "bell.png"),
    ]
    wish = {"engines": ["Composite Short"], "title": TITLE, "body": " ".join(SENTENCES), **changes}
    return pushed(workspace, *media, **wish)


def numbers_shown(path, board):
    """Which frame of the source the first of each scene of a video is, by the number in it."""
    with av.open(str(path)) as container:
        frames = [frame.to_ndarray()[: frame.height] for frame in container.decode(video=0)]
    assert len(frames) == board.frames
    height = round(270 * 180 / 320)
    top = (480 - height) // 2
    shown = {}
    for scene in board.scenes:
        if scene.visual.kind == "clip":
            luma = frames[round(scene.start * 30)]
            is_padded = scene.visual.fit == "pad"
            found = number_in(luma[top : top + height]) if is_padded else number_in(luma, share=1.0)
            shown[scene.visual.since] = found
    return shown


@pytest.mark.slow
def test_story_is_told_over_what_came_with_it(workspace, film):
    raw = pushed_with(workspace, film)
    assert raw.reason is None
    assert Upload.everywhere.get(kind="video").seconds == pytest.approx(LENGTH, abs=0.1)

    [item] = made(raw)

    assert (item.status, item.error, item.bucket) == ("ready", None, "video")
    checks = {check["code"]: check["outcome"] for check in item.checks}
    assert checks["footage"] == checks["credits"] == checks["sound"] == checks["film"] == "passed"
    assert set(checks.values()) <= {"passed", "warning"}
    board = board_of(item)
    assert storyboard_faults(board) == texts_outside(board) == ()
    assert board.audio.voice == "voice.wav"
    assert board.audio.takes == ()
    pieces = board.scenes[:-1]
    named = [clip["upload"] for clip in item.content["clips"]]
    in_order = [scene.visual.asset for scene in pieces if scene.visual.asset]
    assert in_order == named[: len(in_order)]
    pictures = [scene.visual.asset for scene in pieces if scene.visual.kind == "picture"]
    assert len(pictures) == len(set(pictures)) == 4
    path = film_of(item)
    assert measure_file(path).integrated == pytest.approx(-14, abs=0.5)
    # What is seen is what was asked for, frame by frame, and no second of it twice.
    shown = numbers_shown(path, board)
    assert shown == {since: int(since * 30 + 0.06) for since in shown}
    spans = sorted(
        (scene.visual.since, scene.end - scene.start) for scene in pieces if scene.visual.kind == "clip"
    )
    assert len(spans) == 3
    assert all(start + length <= after + 1e-6 for (start, length), (after, _) in pairwise(spans))
    names = set(Asset.everywhere.filter(item=item, revoked_at=None).values_list("name", flat=True))
    assert {"voice.wav", "storyboard.json", "transcript.txt", "captions.en.srt"} <= names


def test_what_is_missing_is_said(workspace, film):
    raw = pushed(workspace, engines=["Composite Short"], title=TITLE, body=" ".join(SENTENCES))
    assert raw.reason["message"].startswith("Composite Short: A Composite Short shows 3 parts of videos")
    gif = hand_over(workspace, picture((600, 900), "#602040", "GIF"), "mast.gif")
    raw = pushed(
        workspace,
        gif,
        engines=["Composite Short"],
        title="Other",
        body=" ".join(SENTENCES),
        url="https://x.example/2",
    )
    assert "this item has 0" in raw.reason["message"]


def test_other_order_of_pictures_is_filmed_again(workspace, film, unfilmed):
    [item] = made(pushed_with(workspace, film))
    clips = item.content["clips"]
    content = {**item.content, "clips": [clips[1], clips[0], *clips[2:]]}
    row = decisions.edit(item, {"content": content}, by="x", now=item.updated_at)
    assert row.status == "generating"
    for generation in Generation.everywhere.filter(wake_at__isnull=False):
        generation_run.run_generation(claimed(generation))
    again = GeneratedItem.everywhere.get(pk=item.pk)
    assert (again.status, again.error) == ("ready", None)
    assert board_of(again).scenes[0].visual.asset == clips[1]["upload"]
    twice = {**item.content, "clips": [clips[0], clips[0], *clips[2:]]}
    with pytest.raises(Invalid, match="twice") as refused:
        decisions.edit(again, {"content": twice}, by="x", now=again.updated_at)
    assert [detail.field for detail in refused.value.detail] == ["content.clips"]


@pytest.mark.parametrize(
    "point",
    ["generate.drafted", "generate.spoken", "generate.filmed", "generate.rendered", "generate.written"],
)
def test_kill_anywhere_asks_no_writer_again_and_looks_once(workspace, film, unfilmed, monkeypatch, point):
    raw = pushed_with(workspace, film)
    asked, looked = [], []
    draft, look = Extractive.draft, shot_process.detect_shots
    monkeypatch.setattr(
        Extractive, "draft", lambda self, *given, **told: asked.append(1) or draft(self, *given, **told)
    )
    monkeypatch.setattr(
        shot_process, "detect_shots", lambda path, span: looked.append(span) or look(path, span)
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
    assert len(looked) == len(set(looked)) > 1
    assert Asset.everywhere.filter(item=item, role="video", revoked_at=None).count() == 1


def test_video_that_is_gone_ends_in_a_clear_failure(workspace, film):
    raw = pushed_with(workspace, film)
    for path in source_media.paths_of(workspace.pk, [one["upload"] for one in raw.media]).values():
        path.unlink()
    [item] = made(raw)
    assert (item.status, item.error["stage"]) == ("failed", "render")
    assert item.error["message"].endswith(".")
    assert not Asset.everywhere.filter(item=item).exists()
