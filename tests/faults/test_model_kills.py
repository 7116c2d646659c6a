"""A generation that asks a model, killed at each of its crash points: done once, paid for once."""

from __future__ import annotations

from collections import Counter

import pytest

from config.core.crash_points import POINTS
from tests.faults.one_step import TEXT
from tests.faults.world import Neighbour, make_world, serve
from tests.writers.messages_server import MessagesServer, ok

pytestmark = [
    pytest.mark.slow,
    pytest.mark.postgres_if_there,
    pytest.mark.minutes(2),
]

PUSH = ("push_one", {"engines": ["Short Post", "Persona Tweet"]})
GENERATE = ("work", {"kinds": ["generate.run_item"]})
QUOTES = [f"{sentence.rstrip('.')}." for sentence in TEXT.split(". ")]
# Only a film passes these, and they ask no model: test_crash_points.py.
OF_FILMS = {"generate.filmed", "generate.looked", "generate.spoken"}
POINTS_OF_GENERATE = sorted(
    point for point in POINTS if point.startswith("generate.") and point not in OF_FILMS
)


def step_of(request):
    return "brief" if "You read one document" in request.raw else "draft"


def answer(request):
    if step_of(request) == "brief":
        facts = [{"quote": quote, "kind": "statement"} for quote in QUOTES]
        return ok({"language": "en", "is_instruction_like": False, "facts": facts})
    words = "Six hours of debate, then the city council approved the new tram line."
    variant = {"angle": "story", "text": words, "claims": [{"text": words, "fact": "f1"}]}
    return ok({"variants": [variant]})


@pytest.fixture(scope="module")
def model():
    with MessagesServer() as server:
        server.answer = answer
        yield server


@pytest.fixture(scope="module")
def pushed(tmp_path_factory, model):
    there = Neighbour()
    receiver = serve(there)
    world = make_world(tmp_path_factory.mktemp("model") / "data", there.url)
    world.run(PUSH)
    world.environment = {"ANTHROPIC_API_KEY": "key", "ANTHROPIC_BASE_URL": model.url}
    yield world
    world.drop()
    receiver.shutdown()
    receiver.server_close()


@pytest.fixture
def world(pushed, model, tmp_path):
    model.requests.clear()
    copied = pushed.copy(tmp_path / "data")
    yield copied
    copied.drop()


@pytest.mark.parametrize("point", POINTS_OF_GENERATE)
def test_killed_generation_is_paid_for_once(point, world, model):
    world.run(GENERATE, crash_at=point)
    _, books, found = world.run("finish", "books", "report")
    # Only an answer that came and was not stored yet is asked for again.
    lost = int(point == "generate.answered")
    assert Counter(map(step_of, model.requests)) == {"brief": 1 + lost, "draft": 2}
    assert books == {
        "calls": {"brief answered": 1 + lost, "draft answered": 2},
        "briefs": 1,
        "asked_by": 0,
    }
    assert found["broken"] == []
    assert (found["tally"]["made"], found["tally"]["runs"], found["tally"]["files"]) == (
        {"ready": 2},
        {"done": 2},
        2,
    )
    assert found["tally"]["ledger"] == {"grant": 1, "reserve": 2, "settle": 2}


@pytest.mark.parametrize("point", ["generate.asking#1", "generate.answered#1", "generate.briefed#1"])
def test_killed_twice_at_the_same_place_it_still_ends(point, world, model):
    world.run(GENERATE, crash_at=point)
    world.run("let_time_pass", GENERATE, crash_at=point)
    _, books, found = world.run("finish", "books", "report")
    assert found["broken"] == []
    assert (books["briefs"], found["tally"]["made"]) == (1, {"ready": 2})
    # What a killed hand had stored was never asked for again.
    asked = Counter(map(step_of, model.requests))
    assert asked == {"brief": {"asking": 1, "answered": 3, "briefed": 1}[point[9:-2]], "draft": 2}


# --- In batches ------------------------------------------------------------------------------------------------------

BATCHES = ("work", {"kinds": ["generate.poll_model_batch"]})
POINTS_OF_BATCHES = sorted(point for point in POINTS if point.startswith("batches."))


@pytest.mark.parametrize("point", [*POINTS_OF_BATCHES, "batches.sent#2", "batches.read#2"])
def test_killed_batch_is_sent_once_and_booked_once(point, world, model):
    model.batches.made.clear()
    model.batches.ends_at_once = True
    world.run("be_patient", GENERATE)
    steps = ["let_time_pass", BATCHES, "let_time_pass", BATCHES, "let_time_pass", GENERATE]
    world.run(*steps, *steps, crash_at=point)
    _, books, found = world.run("finish", "books", "report")
    assert model.requests == []
    asked = [one["custom_id"] for batch in model.batches.made for one in batch.requests]
    # One brief for both runs, then a draft for each.
    assert len(asked) == len(set(asked)) == 3
    assert books == {"calls": {"brief answered": 1, "draft answered": 2}, "briefs": 1, "asked_by": 0}
    assert found["broken"] == []
    assert (found["tally"]["made"], found["tally"]["runs"]) == ({"ready": 2}, {"done": 2})
    assert found["tally"]["ledger"] == {"grant": 1, "reserve": 2, "settle": 2}


# --- A brand lane ----------------------------------------------------------------------------------------------------

NOTES = "Rye needs twenty hours in the basket. The crust keeps for nine days."
SAID = "Twenty hours in the basket: that is what rye needs before we bake it."
ANEW = "A crust that keeps for nine days is worth every one of them."
PICK = ("work", {"kinds": ["ingest.fill_brand_slot"]})


@pytest.mark.parametrize("point", ["brand.discarded", "generate.drafted#2", "generate.briefed#2"])
def test_killed_between_two_topics_it_discards_once_and_pays_for_each_once(tmp_path, point):
    written = iter([SAID, SAID, ANEW])

    def write(_request):
        words = next(written)
        variant = {"angle": "story", "text": words, "claims": [{"text": words, "fact": "f1"}]}
        return ok({"variants": [variant]})

    there = Neighbour()
    receiver = serve(there)
    with MessagesServer() as model:
        model.answer = write
        world = make_world(tmp_path / "data", there.url)
        world.environment = {"ANTHROPIC_API_KEY": "key", "ANTHROPIC_BASE_URL": model.url}
        try:
            world.run(("add_lane", {"notes": NOTES}), PICK, GENERATE, "next_slot", PICK)
            world.run(GENERATE, crash_at=point)
            _, books, found = world.run("finish", "books", "report")
        finally:
            world.drop()
            receiver.shutdown()
            receiver.server_close()
        assert len(model.requests) == 3
    assert books["calls"] == {"draft answered": 3}
    assert found["broken"] == []
    assert found["tally"]["made"] == {"ready": 2}
    assert found["tally"]["picks"] == {"used": 2, "too_near": 1}
    assert found["tally"]["slots"] == {"picked": 2, "waiting": 1}
    assert found["tally"]["ledger"] == {"grant": 1, "reserve": 2, "settle": 2}
