"""A newsletter's hand killed on its way: nobody gets two mails, and everybody but the unknown gets one."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.faults.world import make_world
from tests.pipeline.mailing.mail_server import MailServer
from tests.sizes import IS_PROOF

pytestmark = [
    pytest.mark.slow,
    pytest.mark.postgres_if_there,
    pytest.mark.minutes(2),
]

READERS = 200
PUSHED = (("push_one", {}), ("work", {"kinds": ["generate.run_item"]}))
SEND = ("work", {"kinds": ["mail.send_letters"]})
IN_PORTIONS = ("spread_by", {"rows": 60})
# Where it is killed, and of how many readers nobody knows whether they got the mail.
KILLS = (
    (("mailing.spread#3",), 0),
    (("mailing.spread",), 0),
    (("mailing.sending#20", "mailing.sent#20", "mailing.sending#50", "mailing.sent#50"), 4),
    (("mailing.sending",), 1),
    (("mailing.sent#77",), 1),
    (("mailing.sent",), 1),
    (("publish.recorded",), 0),
    (("mailing.sending#200",), 1),
)
EVERYBODY = {f"r{number}@readers.example" for number in range(READERS)}


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    made = make_world(tmp_path_factory.mktemp("prepared") / "data", "http://127.0.0.1:9")
    made.run(*PUSHED)
    yield made
    made.drop()


@pytest.fixture
def server():
    made = MailServer()
    made.start()
    yield made
    made.stop()


@pytest.mark.parametrize(
    ("points", "unknown"),
    KILLS if IS_PROOF else KILLS[::2],
    ids=lambda one: " ".join(one) if isinstance(one, tuple) else None,
)
def test_nobody_gets_two_mails(prepared, tmp_path, server, points, unknown):
    world = prepared.copy(tmp_path / "data")
    try:
        world.run(("add_letter", {"port": server.port, "count": READERS}), "publish_letter")
        for point in points:
            if point.startswith("mailing."):
                world.run(("work", {"kinds": ["publish.send_publication"]}))
                world.run(IN_PORTIONS, SEND, crash_at=point)
            else:
                world.run(("work", {"kinds": ["publish.send_publication"]}), crash_at=point)
            world.run("let_time_pass")
        *_, found = world.run("finish", "mailed")
    finally:
        world.drop()
    got = Counter(server.recipients())
    assert set(got.values()) == {1}
    assert (found["mailings"], found["publications"]) == ({"done": 1}, {"published": 1})
    assert len(found["unknown"]) == unknown
    assert EVERYBODY - set(got) <= set(found["unknown"])
    expected = {"sent": READERS - unknown, **({"unknown": unknown} if unknown else {})}
    assert (found["deliveries"], found["counts"], found["is_claimed"]) == (expected, [expected], False)
