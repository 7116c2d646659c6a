"""A stranger's first day through push and run: whatever is asked for is made, or was skipped with a reason at the push.

The judging alone, for every address and persona, is in tests/first_day; here rows, pictures and films are made too.
"""

from __future__ import annotations

import json
from functools import partial

import pytest

from accounts.ledger import credits
from pipeline.media import make_film
from pipeline.models import GeneratedItem
from pipeline.render.video import film_process
from pipeline.text.plain_text import seen_text
from tests.first_day.matrix import ENGINES, spoken
from tests.first_day.texts import texts
from tests.pipeline.generate.test_clips import hand_over
from tests.pipeline.steps import items_of, push_raw, run_generations
from tests.render import footage_files
from tests.sizes import IS_PROOF

URL = "https://news24.example/2026/story"
SECONDS = 58.0
WITH_FILES = ("Clipped Short", "Composite Short")
QUICK = tuple(engine.name for engine in ENGINES if engine.bucket != "video")
FILMS = tuple(engine.name for engine in ENGINES if engine.bucket == "video" and engine.name not in WITH_FILES)
NO_FONTS = frozenset({"ja", "ko", "zh"})
"""Languages for whose script tests have no font: tests/conftest.py."""


def asked_for():
    """All of all in the proof; in the suite some 40: the quick ones of a few texts, and a film of each kind."""
    every = texts()
    if IS_PROOF:
        return [(text, tuple(engine.name for engine in ENGINES)) for text in every]
    chosen = [text for text in every if text.language not in NO_FONTS][1::4]
    return [(text, QUICK if place else (*QUICK, *FILMS, *WITH_FILES)) for place, text in enumerate(chosen)]


@pytest.fixture(autouse=True)
def folders(settings, tmp_path, monkeypatch):
    settings.MEDIA_ROOT = tmp_path / "media"
    settings.DATA_DIR = tmp_path
    monkeypatch.setattr(make_film, "SHRINK", 4)
    monkeypatch.setattr(make_film, "PRESET", "ultrafast")
    monkeypatch.setattr(film_process, "FilmLimits", partial(film_process.FilmLimits, nice=0))


@pytest.fixture(scope="module")
def film():
    return footage_files.video(seconds=SECONDS + 1, size=(320, 180), cuts=(9.0, 17.5, 26.0, 40.0), group=240)


def push_asked(workspace, text, names, film):
    """What needs a video is pushed with one, in which the text's beginning is said."""
    said = {"title": text.title, "language": text.language, "url": URL}
    plain = [name for name in names if name not in WITH_FILES]
    pushes = [push_raw(workspace, **said, body=text.body, body_format=text.body_format, engines=plain)]
    if set(WITH_FILES) & set(names):
        words = [word for word in spoken(seen_text(text.body, text.body_format)) if word.end < SECONDS]
        heard = {"words": [{"word": one.t, "start": one.start, "end": one.end} for one in words]}
        media = [
            hand_over(workspace, film, "talk.mp4"),
            hand_over(workspace, json.dumps(heard).encode(), "talk.json"),
        ]
        named = {"body": "", "media": media, "engines": list(WITH_FILES), "external_id": f"{text.name}-film"}
        pushes.append(push_raw(workspace, **said, **named))
    return pushes


@pytest.mark.slow
@pytest.mark.parametrize(("text", "names"), asked_for(), ids=lambda one: getattr(one, "name", ""))
def test_what_was_asked_for_is_ready_or_was_skipped_with_a_reason(
    workspace, film, text, names, record_property
):
    credits.adjust(workspace, 1_000, reason="A long day", actor="test")
    outcomes = {}
    for pushed in push_asked(workspace, text, names, film):
        for one in pushed.raw_item.skipped:
            outcomes[one["engine_output"]] = ("skipped", one["message"])
        run_generations(pushed.raw_item)
        for item in items_of(pushed.raw_item):
            outcomes[item.engine_output] = (item.status, (item.error or {}).get("message", ""))
    told = "; ".join(f"{name}: {' '.join(outcomes.get(name, ('vanished',)))}".rstrip() for name in names)
    record_property("told", told)

    assert set(outcomes) == set(names)
    assert {name: one for name, one in outcomes.items() if one[0] not in {"ready", "skipped"}} == {}
    assert all(reason for status, reason in outcomes.values() if status == "skipped")
    assert GeneratedItem.everywhere.filter(status="ready").count() >= 2
