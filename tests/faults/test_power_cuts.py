"""What a power cut may not take back is on the disk in time: the kernel's own record of the service says so."""

from __future__ import annotations

import re
import shutil
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

import pytest

from config.core.ids import encode
from tests.faults.instance import Instance
from tests.faults.world import Neighbour, serve

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [
    pytest.mark.slow,
    pytest.mark.sqlite,
    pytest.mark.skipif(shutil.which("strace") is None, reason="no strace here to watch the disk with"),
]

CALLS = "fdatasync,fsync,pwrite64,sendto,write,writev"
WRITES = frozenset({"pwrite64"})
SYNCS = frozenset({"fdatasync", "fsync"})
SECONDS = 120
TEXT = "The city council approved the new tram line on Monday evening after six hours of debate. "
CONNECT = """
from datetime import UTC, datetime
from accounts.models import Workspace
from pipeline import outlets
outlets.connect_outlet(
    Workspace.everywhere.get(name="Faults"), "signed_webhook", name="Ours",
    config={{"address": "{url}/posts"}}, credentials={{"secret": "whsec_" + "c2VjcmV0" * 4}},
    by="test", now=datetime.now(UTC),
)
"""


@dataclass
class Call:
    """A system call, with its places in the order of everything that the kernel was asked and answered."""

    thread: str
    name: str
    said: str
    began: int
    ended: int = -1

    @property
    def is_of_journal(self) -> bool:
        return "/db.sqlite3-wal>" in self.said


def read(text: str) -> list[Call]:
    calls: list[Call] = []
    open_calls: dict[str, Call] = {}
    for number, line in enumerate(text.splitlines()):
        thread, _, rest = line.partition(" ")
        rest = rest.strip()
        if resumed := re.match(r"<\.\.\. \w+ resumed>", rest):
            if call := open_calls.pop(thread, None):
                call.ended, call.said = number, call.said + rest[resumed.end() :]
            continue
        if not (begun := re.match(r"(\w+)\(", rest)):
            continue
        call = Call(thread, begun[1], rest, number)
        calls.append(call)
        if rest.endswith("<unfinished ...>"):
            open_calls[thread] = call
        else:
            call.ended = number
    return calls


def assert_synced_before(calls: list[Call], words: str) -> None:
    """Between what this thread wrote last and the call that sends these words, the journal came to the disk."""
    sent = next(one for one in calls if one.name not in WRITES | SYNCS and words in one.said)
    written = [
        one
        for one in calls
        if one.thread == sent.thread and one.name in WRITES and one.is_of_journal and one.ended < sent.began
    ]
    assert written, "it wrote nothing before"
    assert [
        one
        for one in calls
        if one.name in SYNCS
        and one.is_of_journal
        and one.began > written[-1].began
        and 0 < one.ended < sent.began
    ]


class Watched(Instance):
    """What it asks of the kernel stands in a record."""

    def __init__(self, data_dir: Path) -> None:
        self.record = data_dir / "record"
        watch = (
            "strace",
            "-f",
            "--seccomp-bpf",
            "-y",
            "-s",
            "64",
            "-e",
            f"trace={CALLS}",
            "-o",
            str(self.record),
        )
        self.command = (*watch, *Instance.command)
        super().__init__(data_dir)


def wait_for(what, seconds=SECONDS):
    until = time.monotonic() + seconds
    while not (found := what()):
        assert time.monotonic() < until
        time.sleep(0.1)
    return found


def test_an_answer_and_an_armed_attempt_are_on_the_disk_before_anybody_hears_of_them(tmp_path):
    neighbour = Neighbour()
    server = serve(neighbour)
    try:
        with Watched(tmp_path) as instance:
            token = instance.token()
            instance.manage("shell", "-c", CONNECT.format(url=neighbour.url))
            body = {"title": "Tram line approved", "body": TEXT * 3, "engines": ["Short Post"]}
            assert instance.call_until_answered("POST", "/v1/raw", token, body).status_code == 202
            (item,) = wait_for(
                lambda: [one for one in instance.every("/v1/generated", token) if one["status"] == "ready"]
            )
            ((outlet,),) = instance.query("SELECT id FROM outlet WHERE platform = 'signed_webhook'")
            path, wanted = f"/v1/generated/{item['id']}/publish", {"outlets": [encode("out", UUID(outlet))]}
            assert instance.call_until_answered("POST", path, token, wanted).status_code == 202
            wait_for(lambda: neighbour.received)
            wait_for(lambda: instance.query("SELECT 1 FROM publication WHERE status = 'published'"))
    finally:
        server.shutdown()
        server.server_close()
    calls = read(instance.record.read_text(errors="replace"))
    assert_synced_before(calls, "HTTP/1.1 202")
    assert_synced_before(calls, "POST /posts")
