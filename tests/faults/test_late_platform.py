"""A service that is killed in the middle of a call, and a platform that makes the post only long after: one post."""

from __future__ import annotations

import json
import signal
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.faults.instance import Instance

pytestmark = [
    pytest.mark.slow,
    pytest.mark.postgres_if_there,
    pytest.mark.minutes(2),
]

SECONDS = 25
"""After which the post is there: several times the lease and the deadline of the call, within the platform's minute."""
OUTLET = """
from config.core.ids import encode
from pipeline.models import Outlet
from accounts.models import Workspace
made = Outlet.everywhere.create(
    workspace=Workspace.everywhere.get(name="Faults"), platform="signed_webhook", name="Late",
    config={{"address": "{address}", "lost_answer": "ask"}},
    credentials={{"secret": "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="}},
)
print(encode("out", made.pk))
"""


class Late(ThreadingHTTPServer):
    """Takes a post at once, answers nobody, and makes it public when its queue comes to it."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.calls, self.posts, self.asked = [], [], 0
        self.is_called = threading.Event()

    def take(self, key):
        self.calls.append(key)
        threading.Timer(SECONDS, self.posts.append, [key]).start()
        self.is_called.set()


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.take(body["publication"])
        time.sleep(SECONDS)

    def do_GET(self):
        (key,) = parse_qs(urlsplit(self.path).query)["publication"]
        self.server.asked += 1
        answer = json.dumps({"found": key in self.server.posts, "id": f"post-of-{key}"}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        """Nothing."""


@pytest.fixture
def late():
    with Late() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def wait_for(found, seconds=120):
    until = time.monotonic() + seconds
    while not (answer := found()):
        assert time.monotonic() < until
        # No more than the workspace may ask for.
        time.sleep(1)
    return answer


def test_a_post_that_appears_long_after_the_kill_is_found_and_not_sent_again(tmp_path, late):
    with Instance(tmp_path) as service:
        token = service.token()
        address = f"http://127.0.0.1:{late.server_port}/hook"
        outlet = service.manage("shell", "-c", OUTLET.format(address=address)).split()[-1]
        body = {
            "title": "Harbour report",
            "body": "The report of the harbour says that 40 boats came in on Monday. " * 8,
            "engines": ["Short Post"],
        }
        assert service.call_until_answered("POST", "/v1/raw", token, body).status_code == 202
        item = wait_for(lambda: service.every("/v1/generated?status=ready", token))[0]
        path = f"/v1/generated/{item['id']}/publish"
        assert service.call_until_answered("POST", path, token, {"outlets": [outlet]}).status_code == 202
        assert late.is_called.wait(60)
        service.stop(signal.SIGKILL)
        service.start()

        def is_at_rest():
            (row,) = service.every("/v1/publications", token)
            codes.append((row["error"] or {}).get("code"))
            return row if row["status"] not in {"publishing", "unknown"} else None

        codes = []
        row = wait_for(is_at_rest, 240)
        assert (row["status"], row["external_id"], row["error"]) == (
            "published",
            f"post-of-{row['id']}",
            None,
        )
        assert (late.calls, late.posts) == ([row["id"]], [row["id"]])
        # It was asked while the post wasn't there, and that proved nothing.
        assert "not_there_yet" in codes
        assert late.asked >= 2
