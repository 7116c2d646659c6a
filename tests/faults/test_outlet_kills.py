"""A hand killed while it renews a log-in: renewed by the next one, or people are asked; never in silence."""

from __future__ import annotations

import pytest

from config.core.crash_points import POINTS
from tests.platforms.letterbox import Wall

pytestmark = [pytest.mark.slow, pytest.mark.postgres_if_there]

WORK = ("work", {"kinds": ["publish.check_outlet"]})
TIME = ("let_time_pass", {})
RENEWED = {"outlets.claimed": 0, "outlets.renewed": 1}
"""How often the platform had renewed it before the hand was killed."""


@pytest.fixture
def wall(httpserver):
    return Wall(httpserver)


@pytest.fixture
def world(prepared, tmp_path, wall):
    made = prepared.copy(tmp_path / "data")
    made.run(("connect_letterbox", {"server": wall.url}))
    yield made
    made.drop()


def test_every_point_is_killed_at():
    assert set(RENEWED) == {point for point in POINTS if point.startswith("outlets.")}


@pytest.mark.parametrize("point", RENEWED)
def test_a_killed_renewal_ends_in_a_renewal_or_is_told(world, wall, point):
    world.run("know_letterbox", WORK, crash_at=point)
    assert wall.renewals == RENEWED[point]
    *_, found = world.run("know_letterbox", TIME, WORK, "letterbox_outlet")
    if point == "outlets.claimed":
        assert found == {
            "status": "ok",
            "credentials": {"token": "token-2", "refresh": "refresh-2"},
            "told": 0,
        }
        assert wall.renewals == 1
    else:
        # The token that works once was used, and what came for it is lost.
        assert found == {
            "status": "needs_reconnect",
            "credentials": {"token": "token-1", "refresh": "refresh-1"},
            "told": 1,
        }
