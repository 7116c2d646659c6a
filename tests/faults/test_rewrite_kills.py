"""A rewrite killed before, during and after its call of a model: written once, charged once, or not at all."""

from __future__ import annotations

import pytest

from config.core.crash_points import POINTS
from tests.faults import test_model_kills as generations
from tests.faults.world import Neighbour, make_world, serve
from tests.writers.messages_server import MessagesServer, ok

pytestmark = [pytest.mark.slow, pytest.mark.postgres_if_there]

WORK = ("work", {"kinds": ["generate.rewrite_item"]})
POINTS_HERE = sorted(point for point in POINTS if point.startswith("rewrite."))
LONG = "Six hours of debate, then the city council approved the new tram line."
SHORT = "After six hours of debate the tram line was approved."
WRONG = "Exactly 999 people were hired."


@pytest.fixture(scope="module")
def model():
    with MessagesServer() as server:
        server.answer = generations.answer
        yield server


@pytest.fixture(scope="module")
def made(tmp_path_factory, model):
    there = Neighbour()
    receiver = serve(there)
    world = make_world(tmp_path_factory.mktemp("rewrite") / "data", there.url)
    world.environment = {"ANTHROPIC_API_KEY": "key", "ANTHROPIC_BASE_URL": model.url}
    world.run(("push_one", {"engines": ["Short Post"]}), "finish", "ask_for_rewrite")
    yield world
    world.drop()
    receiver.shutdown()
    receiver.server_close()


def writes(words):
    variant = {"angle": "story", "text": words, "claims": [{"text": words, "fact": "f1"}]}
    return lambda _request: ok({"variants": [variant]})


@pytest.mark.parametrize(
    ("words", "point"),
    # Words that fail have no last point: they end in the transaction that says so.
    [
        (words, at)
        for words in (SHORT, WRONG)
        for at in POINTS_HERE
        if (words, at) != (WRONG, "rewrite.committed")
    ],
)
def test_a_killed_rewrite_is_written_and_charged_once(made, model, tmp_path, words, point):
    world = made.copy(tmp_path / "data")
    model.requests.clear()
    model.answer = writes(words)
    try:
        world.run(WORK, crash_at=point)
        (killed,) = world.run("rewritten")
        _, found, told = world.run("finish", "rewritten", "report")
    finally:
        world.drop()
    is_good = words == SHORT
    after = {"words": SHORT, "revision": 2, "is_checked": True, "runs": ["done"]}
    before = {"words": LONG, "revision": 1, "is_checked": True, "runs": ["running"]}
    is_over = point == "rewrite.committed"
    assert killed == (after if is_over else {**before, "runs": killed["runs"]})
    assert found == (after if is_good else {**before, "runs": ["failed"]})
    assert told["broken"] == []
    assert told["tally"]["ledger"] == {
        "grant": 1, "reserve": 2, "settle": 1 + is_good, **({} if is_good else {"release": 1}),
    }  # fmt: skip
    # Only an answer that came and was not stored yet is asked for again; words that fail are repaired once.
    asked = 1 + (point == "rewrite.answered")
    assert len(model.requests) == (asked if is_good else 2 * asked)
