"""A hostile set, polled by one worker over real connections: exact decisions, bounded memory, and it lives."""

from __future__ import annotations

import gzip
import itertools
import json
import os
import random
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

pytestmark = [pytest.mark.slow]

ROOT = Path(__file__).parents[2]
MEGABYTE = 1024 * 1024
NOON = "2026-11-20T12:00:00+00:00"


def feed(*items, encoding="utf-8", declared="utf-8"):
    text = f"<?xml version='1.0' encoding='{declared}'?><rss version='2.0'><channel><title>x</title>{''.join(items)}</channel></rss>"
    return text.encode(encoding)


def item(guid, name, title="t", day=2):
    named = f"<guid isPermaLink='false'>{guid}</guid>" if guid else ""
    return (
        f"<item>{named}<link>https://x.example/{name}</link><title>{title}</title>"
        f"<pubDate>{day:02} Nov 2026 08:00:00 GMT</pubDate></item>"
    )


def no_guids(_):
    return feed(*(item("", number, f"Title {number}") for number in range(3)))


def changing_guids(poll):
    return feed(*(item(f"{poll}-{number}", number) for number in range(3)))


def future_dates(_):
    return feed("<item><guid>f</guid><title>t</title><pubDate>Fri, 31 Dec 2099 08:00:00 GMT</pubDate></item>")


def reordered(poll):
    items = [item(f"id-{number}", number, day=number + 1) for number in range(20)]
    random.Random(poll).shuffle(items)
    return feed(*items)


def shift_jis(_):
    return feed(item("s", "s", "日本の天気"), encoding="shift_jis", declared="Shift_JIS")


def mislabelled(_):
    return feed(item("m", "m", "Größe – Łódź"), declared="iso-8859-1")


def utf_16(_):
    return feed(item("u", "u", "Ελλάδα"), encoding="utf-16", declared="utf-16")


def fresh_etag(_):
    return feed(item("e", "e"))


def fifty_thousand(_):
    return feed(
        *(f"<item><guid>n{number}</guid><title>Entry {number}</title></item>" for number in range(50_000))
    )


def long_bodies(_):
    return feed(
        *(
            f"<item><guid>{n}</guid><description>{'ü😀 long ' * 2_500}</description></item>"
            for n in range(100)
        )
    )


def entity_bomb(_):
    lines = "".join(f"<!ENTITY l{n} '{f'&l{n - 1};' * 10}'>" for n in range(1, 10))
    return (
        f"<!DOCTYPE rss [<!ENTITY l0 'ha'>{lines}]><rss><channel><title>&l9;</title></channel></rss>".encode()
    )


def comment_bomb(_):
    return b"<rss version='2.0'><channel><title>x</title><item><description>" + b"<!--" * 100_000


def deep(_):
    return b"<rss version='2.0'><channel>" + b"<a>" * 1_000_000


def after_all(_):
    return feed(item("ok", "ok", "Still here"))


DOCUMENTS = {
    one.__name__: one
    for one in (
        no_guids,
        changing_guids,
        future_dates,
        reordered,
        shift_jis,
        mislabelled,
        utf_16,
        fresh_etag,
        fifty_thousand,
        long_bodies,
        entity_bomb,
        comment_bomb,
        deep,
        after_all,
    )
}


class Handler(BaseHTTPRequestHandler):
    polls: ClassVar = {}

    def do_GET(self):
        name = self.path.strip("/")
        number = next(self.polls.setdefault(name, itertools.count()))
        self.send_response(200)
        if name == "gzip_bomb":
            body = gzip.compress(b"\0" * 64 * MEGABYTE)
            body *= 4
            self.send_header("Content-Encoding", "gzip")
        elif name in {"drip", "huge"}:
            body = b""
        else:
            body = DOCUMENTS[name](number)
        if name == "fresh_etag":
            self.send_header("ETag", f'"{number}"')
        if name not in {"drip", "huge"}:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        try:
            if name == "drip":
                self.drip()
            elif name == "huge":
                for _ in range(2000):
                    self.wfile.write(b" " * MEGABYTE)
            else:
                self.wfile.write(body)
        except OSError:
            # The reader had enough, as it should.
            return

    def drip(self):
        self.wfile.write(b"<rss>")
        while not self.server.is_over.wait(0.2):
            self.wfile.write(b" ")
            self.wfile.flush()

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def report():
    Handler.polls = {}
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.is_over = threading.Event()
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    names = ["no_guids", *DOCUMENTS, "gzip_bomb", "huge", "drip", "after_all"]
    wanted = [[name, f"http://127.0.0.1:{server.server_port}/{name}", 2] for name in dict.fromkeys(names)]
    # The last thing that it does is to read a common feed.
    wanted.sort(key=lambda one: one[0] == "after_all")
    try:
        done = subprocess.run(
            [sys.executable, "-m", "tests.sources.hostile_worker", json.dumps(wanted)],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=280,
            check=False,
            env={**os.environ, "PYTHONMALLOC": "malloc"},
        )
    finally:
        server.is_over.set()
        server.shutdown()
        server.server_close()
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.fixture
def told(report):
    return report["told"]


def test_memory_of_the_worker_stays_within_bounds(report):
    assert report["grown_kilobytes"] <= 60 * 1024


def test_the_worker_reads_on_after_all_of_it(told):
    assert [one.get("entries", 0) for one in told["after_all"]] == [1, 0]
    assert told["after_all"][1]["not_modified"] is True


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("entity_bomb", "feed_unsafe"),
        ("gzip_bomb", "feed_too_large"),
        ("huge", "feed_too_large"),
        ("drip", "timed_out"),
    ],
)
def test_what_can_t_be_read_is_refused_each_time_in_words(told, name, code):
    assert [one.get("error") for one in told[name]] == [code, code]
    assert all(one["message"].endswith(".") for one in told[name])


@pytest.mark.parametrize("name", ["deep", "comment_bomb"])
def test_what_costs_too_much_is_refused(told, name):
    # On a fast machine it may come to its end within the limits, and then there is no feed in it.
    assert {one.get("error") for one in told[name]} <= {"feed_too_complex", "feed_unreadable"}


def test_entries_without_guids_are_named_by_address(told):
    first, second = told["no_guids"]
    assert [(one[0], one[1]) for one in first["first"]] == [
        (None, f"https://x.example/{number}") for number in range(3)
    ]
    assert second["not_modified"] is True


def test_guids_that_change_are_the_same_entries(told):
    first, second = told["changing_guids"]
    assert first["entries"] == second["entries"] == 3
    assert second["ids"] == first["ids"]


def test_future_dates_become_now(told):
    assert told["future_dates"][0]["first"] == [["f", "", "t", NOON]]


def test_an_order_that_changes_changes_nothing(told):
    first, second = told["reordered"]
    assert first["ids"] == second["ids"] == sorted(f"id-{number}" for number in range(20))
    assert first["first"] == second["first"]
    assert [one[0] for one in first["first"]] == ["id-19", "id-18", "id-17"]


@pytest.mark.parametrize(
    ("name", "title"), [("shift_jis", "日本の天気"), ("mislabelled", "Größe – Łódź"), ("utf_16", "Ελλάδα")]
)
def test_three_encodings_are_read(told, name, title):
    assert told[name][0]["first"][0][2] == title


def test_a_fresh_etag_each_time_is_not_a_change(told):
    assert [one["not_modified"] for one in told["fresh_etag"]] == [False, True]


def test_of_fifty_thousand_entries_the_first_200_are_kept(told):
    first, second = told["fifty_thousand"]
    assert (first["entries"], first["malformed"]) == (200, 0)
    assert [one[0] for one in first["first"]] == ["n0", "n1", "n2"]
    assert second["not_modified"] is True


def test_long_bodies_come_whole(told):
    assert told["long_bodies"][0]["entries"] == 100
