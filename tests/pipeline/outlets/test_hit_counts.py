"""Clicks and fetches: gathered in the process, written together, of people and readers alone, and
forgotten."""

from __future__ import annotations

import threading
from datetime import UTC, timedelta

import pytest
from django.db import DatabaseError, IntegrityError, InterfaceError, OperationalError

from analytics import limits as analytics_limits
from pipeline import limits
from pipeline.models import HitCount, Outlet, ShortLink
from pipeline.outlets import hit_counts
from tests.pipeline.steps import NOON, make_items, make_stage, promise

CHROME = (
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36"
)
PHONE = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 Version/18.5 Mobile/15E148 Safari/604.1"


@pytest.fixture
def link(workspace):
    stage = make_stage(workspace)
    publication = promise(make_items(workspace)[0], stage)
    return ShortLink.everywhere.create(
        workspace=workspace, publication=publication, code="a" * 12, target="https://news.example/tram"
    )


def counted():
    rows = HitCount.everywhere.order_by("start", "kind")
    return list(rows.values_list("kind", "start", "count"))


def test_hits_cost_one_statement_together_and_add_up(link, django_assert_num_queries):
    for minutes in (0, 1, 14, 15):
        hit_counts.count_click(link, NOON + timedelta(minutes=minutes))
    assert counted() == []
    with django_assert_num_queries(4):
        # One statement, another that marks the days to be added up, and the transaction's own two.
        assert hit_counts.flush() == 2
    hit_counts.count_click(link, NOON)
    hit_counts.flush()
    assert counted() == [("click", NOON, 4), ("click", NOON + timedelta(minutes=15), 1)]
    row = HitCount.everywhere.first()
    assert (row.workspace_id, row.outlet_id, row.publication_id) == (
        link.workspace_id,
        link.publication.outlet_id,
        link.publication_id,
    )
    assert hit_counts.flush() == 0


def test_a_fetch_belongs_to_the_feed(workspace):
    feed = Outlet.everywhere.get(workspace=workspace, platform="feed")
    hit_counts.count_fetch(feed, NOON)
    hit_counts.count_fetch(feed, NOON.astimezone(UTC))
    hit_counts.flush()
    assert counted() == [("fetch", NOON, 2)]
    assert HitCount.everywhere.get().publication_id is None


def test_what_was_erased_meanwhile_does_not_hold_up_the_others(link, workspace):
    feed = Outlet.everywhere.get(workspace=workspace, platform="feed")
    gone = make_stage(workspace, name="Gone")
    hit_counts.count_fetch(gone, NOON)
    hit_counts.count_fetch(feed, NOON)
    Outlet.everywhere.filter(pk=gone.pk).delete()
    hit_counts._write_in_batches(dict(hit_counts._pending))
    # On SQLite within a test's own transaction foreign keys are looked at by its end.
    assert HitCount.everywhere.filter(outlet=feed).get().count == 1
    HitCount.everywhere.filter(outlet_id=gone.pk).delete()


def test_a_database_that_does_not_answer_loses_nothing_yet(link, monkeypatch):
    def broken(taken):
        raise DatabaseError

    hit_counts.count_click(link, NOON)
    with monkeypatch.context() as patched:
        patched.setattr(hit_counts, "_write", broken)
        assert hit_counts.flush() == 0
        hit_counts.count_click(link, NOON)
    hit_counts.flush()
    assert counted() == [("click", NOON, 2)]


def test_what_waits_is_bounded(link, monkeypatch):
    monkeypatch.setattr(hit_counts, "MAX_PENDING_KEYS", 2)
    for quarter in range(5):
        hit_counts.count_click(link, NOON + timedelta(minutes=15 * quarter))
    hit_counts.count_click(link, NOON)
    hit_counts.flush()
    assert counted() == [("click", NOON, 2), ("click", NOON + timedelta(minutes=15), 1)]


def test_threads_lose_none(link):
    def click():
        for _ in range(200):
            hit_counts.count_click(link, NOON)

    threads = [threading.Thread(target=click) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    hit_counts.flush()
    assert counted() == [("click", NOON, 800)]


@pytest.mark.parametrize(
    "agent", [CHROME, PHONE, "Opera/9.80 (Windows NT 6.1) Presto/2.12.388 Version/12.18"]
)
def test_people_are_counted(agent):
    assert hit_counts.is_counted_click({"User-Agent": agent})
    assert not hit_counts.is_counted_click({"User-Agent": agent, "Sec-Purpose": "prefetch;prerender"})
    assert not hit_counts.is_counted_click({"User-Agent": agent, "Purpose": "prefetch"})


@pytest.mark.parametrize(
    "agent",
    [
        "",
        "curl/8.5.0",
        "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)",
        "Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)",
        "facebookexternalhit/1.1 (+http://www.facebook.com/externalhit_uatext.php)",
        "Twitterbot/1.0",
        "LinkedInBot/1.0 (compatible; Mozilla/5.0)",
        "Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)",
        "Mozilla/5.0 (Macintosh) AppleWebKit/601.2.4 Safari/601.2.4 facebookexternalhit/1.1 Facebot Twitterbot/1.0",
        "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 HeadlessChrome/142.0.0.0 Safari/537.36",
        "WhatsApp/2.23.20.0",
        "TelegramBot (like TwitterBot)",
        "http.rb/5.1.1 (Mastodon/4.3.0; +https://mastodon.social/)",
        "python-requests/2.32.3",
        "Go-http-client/2.0",
    ],
)
def test_programs_are_not(agent):
    assert not hit_counts.is_counted_click({"User-Agent": agent})


@pytest.mark.parametrize(
    ("agent", "is_counted"),
    [
        ("NetNewsWire (RSS Reader; https://netnewswire.com/)", True),
        ("Feedly/1.0 (+http://www.feedly.com/fetcher.html; 12 subscribers)", True),
        ("FreshRSS/1.24.3 (Linux; https://freshrss.org)", True),
        (CHROME, True),
        ("Mozilla/5.0 (compatible; Googlebot/2.1)", False),
        ("UptimeMonitor/1.0", False),
        ("", False),
    ],
)
def test_readers_of_feeds_are_programs_too(agent, is_counted):
    assert hit_counts.is_counted_fetch({"User-Agent": agent}) is is_counted


def test_counts_are_forgotten_when_no_question_reaches_them(link):
    hit_counts.count_click(link, NOON)
    hit_counts.flush()
    assert hit_counts.forget(NOON + limits.HIT_COUNTS_KEPT) == 0
    assert hit_counts.forget(NOON + limits.HIT_COUNTS_KEPT + timedelta(seconds=1)) == 1
    assert counted() == []
    assert timedelta(days=analytics_limits.ANALYTICS_DAYS) < limits.HIT_COUNTS_KEPT


def test_what_is_written_is_never_written_again(link, workspace, monkeypatch):
    """Some of it was erased, and the database goes away in the middle of writing the others one by one."""
    for quarter in range(4):
        hit_counts.count_click(link, NOON + timedelta(minutes=15 * quarter))
    written, original = [], hit_counts._write

    def write(portion):
        if len(portion) > 1 and not written:
            raise IntegrityError
        if len(written) == 2:
            raise OperationalError
        original(portion)
        written.extend(portion)

    with monkeypatch.context() as patched:
        patched.setattr(hit_counts, "_write", write)
        assert hit_counts.flush() == 2
    assert hit_counts.flush() == 2
    assert [count for _, _, count in counted()] == [1, 1, 1, 1]


def test_many_are_written_in_portions(link, monkeypatch):
    monkeypatch.setattr(hit_counts, "_ROWS_PER_WRITE", 2)
    sizes, original = [], hit_counts._write
    monkeypatch.setattr(hit_counts, "_write", lambda portion: (sizes.append(len(portion)), original(portion)))
    for quarter in range(5):
        hit_counts.count_click(link, NOON + timedelta(minutes=15 * quarter))
    assert hit_counts.flush() == 5
    assert sizes == [2, 2, 1]
    assert len(counted()) == 5


def test_a_connection_that_was_closed_loses_nothing(link, monkeypatch):
    def closed(taken):
        raise InterfaceError

    hit_counts.count_click(link, NOON)
    with monkeypatch.context() as patched:
        patched.setattr(hit_counts, "_write", closed)
        assert hit_counts.flush() == 0
    hit_counts.flush()
    assert counted() == [("click", NOON, 1)]
