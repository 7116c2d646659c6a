"""A subscription killed at each of its steps: the hub is asked again, and no push is lost."""

from __future__ import annotations

import pytest

from config.core.crash_points import POINTS

pytestmark = [pytest.mark.slow, pytest.mark.postgres_if_there]

WORK = ("work", {"kinds": ["ingest.subscribe_feed"]})
TIME = ("let_time_pass", {})
POINTS_HERE = {point for point in POINTS if point.startswith("websub.")}
ASKING = {"websub.claimed": 0, "websub.armed": 0, "websub.sent": 1}
"""How often the hub was asked before the hand was killed."""


@pytest.fixture
def world(prepared, tmp_path, httpserver):
    httpserver.expect_request("/hub", method="POST").respond_with_data("", status=202)
    made = prepared.copy(tmp_path / "data")
    made.environment["PUBLIC_URL"] = "https://pipeline.example"
    made.run(("follow", {"hub": httpserver.url_for("/hub")}))
    yield made
    made.drop()


def asked(httpserver):
    return [request for request, _ in httpserver.log if request.path == "/hub"]


def test_every_point_is_killed_at():
    assert {*ASKING, "websub.verified", "websub.woken"} == POINTS_HERE


@pytest.mark.parametrize("point", ASKING)
def test_a_hand_killed_while_it_asks_asks_again(world, httpserver, point):
    world.run(WORK, crash_at=point)
    assert len(asked(httpserver)) == ASKING[point]
    # The lease of the killed hand, and then the wait for the hub's verification, run out.
    *_, verified, found = world.run(TIME, WORK, TIME, WORK, "hub_verifies", "subscription")
    assert verified == 200
    assert found == {
        "status": "active",
        "tries": 0,
        "is_claimed": False,
        "is_leased": True,
        "is_source_due": False,
    }
    first, *others = [request.form.to_dict() for request in asked(httpserver)]
    assert all(form == first for form in others)


def test_a_lease_holds_once_it_is_verified_whoever_dies(world):
    world.run(WORK)
    world.run("hub_verifies", crash_at="websub.verified")
    (found,) = world.run("subscription")
    assert (found["status"], found["is_leased"]) == ("active", True)


def test_a_push_that_was_believed_is_never_lost(world):
    world.run(WORK, "hub_verifies")
    world.run("hub_pushes", crash_at="websub.woken")
    (found,) = world.run("subscription")
    assert found["is_source_due"] is True
