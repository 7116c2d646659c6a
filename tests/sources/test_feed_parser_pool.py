"""The helpers that read feeds: late ones are killed, old ones replaced, dead ones started again."""

from __future__ import annotations

import json
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest

from pipeline.plugins import TryLater
from pipeline.sources.feeds import parser_pool, read_feed
from pipeline.sources.rss import PLUGIN

from .fake_http import FakeHttp, answer
from .hostile_documents import ARTICLE, item, rss

NOW = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
URL = "https://feed.example/feed.xml"
# Takes seconds: feedparser's loose parser reads it, an article after the other.
SLOW = rss(item("<p>a<br>b & c"), *(item(ARTICLE, number) for number in range(400))).encode()


@pytest.fixture(autouse=True)
def none_left():
    parser_pool.close()
    yield
    parser_pool.close()


def document(name):
    return f"<rss version='2.0'><channel><title>{name}</title><item><guid>{name}</guid></item></channel></rss>".encode()


def title(name, *, seconds=60):
    lines = parser_pool.ask_child(document(name), url=URL, content_type="", seconds=seconds)
    return json.loads(lines[0])["title"]


def idle():
    return [helper._process.pid for helper in parser_pool._idle]


def alive_in_group(group):
    """Processes that still run; a killed one may wait for whoever collects orphans."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, pgrp = path.read_text().rpartition(")")[2].split()[:3]
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(pgrp) == group and state not in "ZX":
            found.append(path.parent.name)
    return found


def test_one_helper_reads_feed_after_feed():
    assert title("a") == "a"
    first = idle()
    assert [title(name) for name in "bcd"] == ["b", "c", "d"]
    assert idle() == first
    assert len(first) == 1


def test_a_helper_that_died_meanwhile_is_replaced():
    title("a")
    (pid,) = idle()
    os.kill(pid, signal.SIGKILL)
    assert title("b") == "b"
    assert idle() != [pid]


def test_a_helper_is_replaced_after_so_many_feeds(monkeypatch):
    monkeypatch.setattr(parser_pool, "MAX_FEEDS_PER_HELPER", 2)
    title("a")
    first = idle()
    title("b")
    assert idle() == []
    title("c")
    assert idle() != first


def test_a_late_helper_is_killed_with_its_fork(monkeypatch):
    title("a")
    (pid,) = idle()
    monkeypatch.setattr(read_feed, "WALL_SECONDS", 0.2)
    with pytest.raises(TryLater) as caught:
        PLUGIN.fetch({"url": URL}, {}, http=FakeHttp(answer(SLOW)), now=NOW, environment={})
    assert caught.value.code == "feed_timed_out"
    # It would have run for seconds more; a kill takes a moment on a busy machine.
    until = time.monotonic() + 60
    while alive_in_group(pid):
        assert time.monotonic() < until
        time.sleep(0.05)
    monkeypatch.setattr(read_feed, "WALL_SECONDS", 60)
    assert title("b") == "b"


def test_a_helper_that_can_t_be_started_is_tried_later(monkeypatch):
    monkeypatch.setattr("sys.executable", "/nowhere/python")
    with pytest.raises(TryLater) as caught:
        PLUGIN.fetch({"url": URL}, {}, http=FakeHttp(answer(document("a"))), now=NOW, environment={})
    assert caught.value.code == "no_process"


def test_a_fork_that_dies_leaves_its_helper_alive():
    title("a")
    first = idle()
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(parser_pool.ask_child, SLOW, url=URL, content_type="", seconds=60)
        until = time.monotonic() + 60
        while not (forks := [pid for pid in alive_in_group(first[0]) if int(pid) != first[0]]):
            assert time.monotonic() < until
            assert not asked.done()
        # As the limit of the processor, or of memory, would.
        os.kill(int(forks[0]), signal.SIGKILL)
        (line, *_) = asked.result()
    assert json.loads(line)["problem"] == "too_complex"
    assert idle() == first
    assert title("b") == "b"


def test_many_at_once_each_get_their_own_answer():
    names = [f"feed-{number}" for number in range(40)]
    with ThreadPoolExecutor(6) as pool:
        assert list(pool.map(title, names)) == names
    assert len(idle()) <= parser_pool.MAX_IDLE_HELPERS


def test_a_fork_of_this_process_leaves_its_helpers_alone():
    title("a")
    (pid,) = idle()
    child = os.fork()
    if child == 0:
        # In the fork there is none, and closing ends nobody else's.
        parser_pool.close()
        os._exit(len(parser_pool._idle))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert title("b") == "b"
    assert idle() == [pid]


def test_nothing_of_the_environment_reaches_a_helper():
    title("a")
    (pid,) = idle()
    assert Path(f"/proc/{pid}/environ").read_bytes() == b""
