"""An upload whose process is killed between its file and its row: the next one is whole, and the sweep finds the rest."""

from __future__ import annotations

import pytest

from tests.faults.world import Neighbour, make_world, serve

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300), pytest.mark.postgres_if_there]


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    neighbour = Neighbour()
    server = serve(neighbour)
    made = make_world(tmp_path_factory.mktemp("uploads") / "data", neighbour.url)
    yield made
    made.drop()
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("key", [None, "one"])
def test_killed_between_the_file_and_its_row(world, tmp_path, key):
    here = world.copy(tmp_path / "data")
    sent = ("upload", {"key": key})
    try:
        here.run(sent, crash_at="uploads.written")
        (killed,) = here.run("uploads_left")
        assert (killed["rows"], killed["files"], killed["after_the_sweep"]) == (0, ["unnamed"], [])
        here.run(sent, crash_at="uploads.written")
        first, again, left = here.run(sent, sent, "uploads_left")
        assert (first["status"], first["replayed"]) == (201, False)
        assert (again["status"], again["replayed"]) == (201, key is not None)
        # With a key one upload, without one two; the file of the killed one goes, theirs stay.
        count = 1 if key else 2
        assert left["rows"] == count
        assert sorted(left["files"]) == [*["named"] * count, "unnamed"]
        assert left["after_the_sweep"] == ["named"] * count
    finally:
        here.drop()
