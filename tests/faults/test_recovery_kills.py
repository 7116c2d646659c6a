"""A recovery killed at each of its steps: everything is sent again, each portion once."""

from __future__ import annotations

import pytest

from config.core.crash_points import POINTS
from tests.faults.world import Neighbour, make_world, serve

pytestmark = [pytest.mark.slow, pytest.mark.postgres_if_there]

WORK = ("work", {"kinds": ["webhooks.recover_deliveries"]})
SEND = ("work", {"kinds": ["webhooks.fan_out", "webhooks.deliver_to_endpoint"]})
TIME = ("let_time_pass", {})
POINTS_HERE = {point for point in POINTS if point.startswith("recover.")}
ITEMS = 3


@pytest.fixture(scope="module")
def neighbour():
    there = Neighbour()
    with serve(there):
        yield there


@pytest.fixture(scope="module")
def prepared(tmp_path_factory, neighbour):
    made = make_world(tmp_path_factory.mktemp("prepared") / "data", neighbour.url)
    for number in range(ITEMS):
        made.run(("push_one", {"external_id": f"item-{number}"}))
    made.run(SEND, "recover")
    yield made
    made.drop()


AT = ("", "recover.claimed", "recover.queued", "recover.queued#2", "recover.committed", "recover.committed#3")


def test_every_point_is_killed_at():
    assert {at.partition("#")[0] for at in AT if at} == POINTS_HERE


@pytest.mark.parametrize("at", AT)
def test_everything_is_sent_again_wherever_it_was_killed(prepared, tmp_path, at):
    world = prepared.copy(tmp_path / "data")
    try:
        by_one = ("recover_by", {"portion": 1})
        if at:
            world.run(by_one, WORK, crash_at=at)
            world.run(TIME)
        *_, found = world.run(by_one, WORK, SEND, "recovered")
        expected = {"status": "done", "total": ITEMS, "sent": ITEMS, "is_claimed": False}
        assert found == {**expected, "tries": [2] * ITEMS}
    finally:
        world.drop()
