"""The erasing of a workspace, killed at each of its crash points: the next hand goes on, and it is noted once."""

from __future__ import annotations

import pytest

from tests.faults.world import Neighbour, make_world, serve

pytestmark = [pytest.mark.slow, pytest.mark.postgres_if_there]

ERASE = ("work", {"kinds": ["housekeeping.erase_workspaces"]})
STAYS = {"accounts.AuditEntry", "accounts.CreditBalance", "accounts.LedgerEntry"}


@pytest.fixture(scope="module")
def ending(tmp_path_factory):
    """A workspace whose time is over, with a picture, a publication and deliveries in it."""
    neighbour = Neighbour()
    server = serve(neighbour)
    world = make_world(tmp_path_factory.mktemp("ending") / "data", neighbour.url)
    drawn = {"engines": ["Persona Tweet"], "external_id": "picture"}
    world.run(
        "push_one",
        ("push_one", drawn),
        "upload",
        ("work", {"kinds": ["generate.run_item"]}),
        "publish",
        "finish",
        "end_workspace",
    )
    yield world
    world.drop()
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(
    ("point", "is_deleted"),
    [
        # Inside of the transaction: the step is taken back whole.
        ("erase.begun", False),
        ("erase.erased", True),
        ("erase.erased#4", True),
        ("erase.ended", True),
        # After the commit of a batch: the first one shuts the doors.
        ("erase.batch", True),
        ("erase.batch#5", True),
    ],
)
def test_killed_at(ending, tmp_path, point, is_deleted):
    world = ending.copy(tmp_path / "data")
    try:
        (before,) = world.run("left")
        assert {"webhooks.Delivery", "pipeline.Publication", "pipeline.Asset", "pipeline.Upload"} <= set(
            before["held"]
        )
        assert before["files"] > 0
        world.run(ERASE, crash_at=point)
        (killed,) = world.run("left")
        assert (killed["is_deleted"], killed["is_erased"]) == (is_deleted, False)
        _, after = world.run(ERASE, "left")
        assert set(after["held"]) == STAYS
        assert after["held"]["accounts.LedgerEntry"] == before["held"]["accounts.LedgerEntry"]
        assert (after["is_deleted"], after["is_erased"], after["files"], after["wrong"]) == (
            True,
            True,
            0,
            [],
        )
        assert after["audit"].count("workspace.deleted") == after["audit"].count("workspace.erased") == 1
    finally:
        world.drop()
