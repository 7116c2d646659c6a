"""An account on a platform whose server stands here, and its outlet."""

import pytest

from pipeline import outlets
from tests.pipeline.steps import NOON
from tests.platforms import letterbox

SECRETS = {"token": "token-1", "refresh": "refresh-1"}


@pytest.fixture
def platform():
    with letterbox.registered() as found:
        yield found


@pytest.fixture
def wall(httpserver, platform):
    return letterbox.Wall(httpserver)


@pytest.fixture
def connect(workspace, wall):
    def run(**changes):
        given = {
            "name": "",
            "config": {"server": wall.url},
            "credentials": SECRETS,
            "by": "alice@example.test",
            "now": NOON,
            **changes,
        }
        return outlets.connect_outlet(given.pop("workspace", workspace), "letterbox", **given)

    return run


@pytest.fixture
def outlet(connect):
    return connect()
