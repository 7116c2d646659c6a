"""POST /estimate."""

from __future__ import annotations

import pytest

from accounts import workspaces
from pipeline import plugins
from pipeline.engines.base import Engine
from pipeline.models import Generation, RawItem
from tests.contracts.conftest import never_existed, problem


def _estimate(credits, variants=1, available=1000, **changes):
    engine = {"name": "Short Post", "bucket": "text", "credits": 1, "variants": variants}
    return {"credits": credits, "engines": [engine], "not_possible": [], "available": available, **changes}


def test_estimate_of_content_spends_nothing_and_stores_nothing(alice):
    answer = alice.api.post("/estimate", alice.content(variants=3))
    assert (answer.status_code, answer.json()) == (200, _estimate(3, variants=3))
    assert (RawItem.everywhere.count(), Generation.everywhere.count()) == (0, 0)
    usage = alice.api.read("/usage")
    assert (usage["used"], usage["reserved"], usage["available"]) == (0, 0, 1000)


def test_estimate_of_a_source_alone(alice):
    source = alice.source(variants=2)
    assert alice.api.post("/estimate", {"source": source["id"]}).json() == _estimate(2, variants=2)


def test_estimate_of_a_source_alone_has_every_engine_of_words(alice):
    engines = [one.name for one in plugins.every("engines", Engine) if "text" in one.made_from]
    source = alice.source(engines=engines)
    told = alice.api.post("/estimate", {"source": source["id"]}).json()
    assert (told["not_possible"], {one["name"] for one in told["engines"]}) == ([], set(engines))


def test_estimate_of_a_source_heeds_what_is_asked_for_beside_it(alice):
    source = alice.source()
    answer = alice.api.post("/estimate", {"source": source["id"], "variants": 3, "engines": ["Short Post"]})
    assert answer.json() == _estimate(3, variants=3)


def test_estimate_says_what_it_can_not_make(alice):
    answer = alice.api.post("/estimate", {"title": "–", "engines": ["Short Post"]})
    assert answer.json() == {
        "credits": 0,
        "engines": [],
        "not_possible": ["Short Post: This item has no title and no words, so there is nothing to say."],
        "available": 1000,
    }


def test_estimate_equals_what_a_push_reserves(alice):
    content = alice.content(variants=2)
    told = alice.api.post("/estimate", content).json()["credits"]
    assert alice.api.post("/raw", content).status_code == 202
    assert alice.api.read("/usage")["reserved"] == told == 2


def test_estimate_with_a_test_token_costs_nothing(alice):
    answer = alice.client(is_test=True).post("/estimate", alice.content())
    assert answer.json() == _estimate(0)


def test_estimate_without_limits(alice):
    workspaces.lift_limits(alice.workspace, "operator")
    assert alice.api.post("/estimate", alice.content()).json() == _estimate(1, available=None)


def test_estimate_does_not_need_the_credits(alice):
    workspaces.create("Poor", plan=alice.plan)
    assert alice.api.post("/estimate", alice.content()).status_code == 200


@pytest.mark.parametrize("body", [{}, {"variants": 2}])
def test_estimate_needs_content_or_a_source(api, body):
    answer = api.post("/estimate", body)
    message = "Give at least one of title, body, media."
    assert (answer.status_code, answer.json()) == (400, problem("invalid_request", (None, "empty", message)))


def test_estimate_of_a_source_that_is_not_there(api):
    answer = api.post("/estimate", {"source": never_existed("src")})
    message = "This workspace has no such source; GET /v1/sources."
    assert (answer.status_code, answer.json()) == (
        400,
        problem("invalid_request", ("source", "unknown_source", message)),
    )
