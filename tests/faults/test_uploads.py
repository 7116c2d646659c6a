"""An upload whose process is killed between its file and its row: the next one is whole, and the sweep finds the rest."""

from __future__ import annotations

import os
import signal
import socket

import pytest

from tests.faults.instance import Instance
from tests.faults.world import Neighbour, make_world, serve

pytestmark = [pytest.mark.slow, pytest.mark.postgres_if_there]


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
        # A service's first look at its folder says whose it is.
        here.run("uploads_left")
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


def test_killed_while_the_file_still_comes(tmp_path):
    """Half a film, then kill -9 of the worker: nothing of it is left, neither in the media nor among temporary files."""
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    (tmp_path / "data").mkdir()
    with Instance(tmp_path / "data", TMPDIR=str(temporary)) as running:
        head = (
            f"POST /v1/uploads HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {running.token()}\r\n"
            f"Content-Type: multipart/form-data; boundary=x\r\nContent-Length: {60 * 2**20}\r\n\r\n"
            '--x\r\nContent-Disposition: form-data; name="file"; filename="film.mp4"\r\n\r\n'
        )
        with socket.create_connection(("127.0.0.1", running.port)) as sender:
            sender.sendall(head.encode())
            # Far more than the kernel's buffers hold, so most of it has been read and written when this returns.
            sender.sendall(b"\0" * 40 * 2**20)
            for pid in running.processes()[1:]:
                os.kill(pid, signal.SIGKILL)
            running.revive()
            running.wait_until_ready()
        left = [one for one in temporary.rglob("*") if one.is_file() and one.stat().st_size > 2**20]
        assert left == []
        media = [one.name for one in (tmp_path / "data" / "media").rglob("*") if one.is_file()]
        assert [name for name in media if not name.startswith(".")] == []
        assert running.query("SELECT count(*) FROM upload") == [(0,)]
