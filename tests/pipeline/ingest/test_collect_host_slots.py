"""collect.hosts: one fetch at a time from each host; what a poll of an unchanged feed costs."""

from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

import pytest
from django.conf import settings
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from werkzeug import Response

from pipeline import limits
from pipeline.ingest import collect
from pipeline.models import HostSlot, Source
from pipeline.plugins import TryLater
from pipeline.sources import brand, rss, youtube
from pipeline.switches import host_lock
from tests.pipeline.scripted_source import entry, poll, register, tell
from tests.pipeline.steps import NOON, claimed, reread, state

GAP = limits.HOST_GAP
LEASE = timedelta(seconds=settings.LEASE_SECONDS)
FEED = "https://news.example/feed"


@pytest.fixture
def told(monkeypatch):
    return tell(monkeypatch)


def test_host_is_given_to_one_and_rests_before_the_next(db):
    one, other = uuid4(), uuid4()
    assert host_lock.take_host("a.example", one, NOON) is None
    later = host_lock.take_host("a.example", other, NOON)
    assert NOON < later <= NOON + limits.HOST_BUSY_WAIT
    assert host_lock.take_host("b.example", other, NOON) is None
    host_lock.release_host("a.example", one, NOON)
    assert host_lock.take_host("a.example", other, NOON) is not None
    assert host_lock.take_host("a.example", other, NOON + GAP) is None


def test_host_of_a_killed_fetch_is_free_when_its_lease_ends(db):
    one, other = uuid4(), uuid4()
    host_lock.take_host("a.example", one, NOON)
    assert host_lock.take_host("a.example", other, NOON + LEASE - GAP) is not None
    assert host_lock.take_host("a.example", other, NOON + LEASE) is None
    # Whoever comes too late gives nothing back.
    host_lock.release_host("a.example", one, NOON + LEASE)
    assert HostSlot.everywhere.get().holder == other


def test_no_host_needs_no_turn(db):
    assert host_lock.take_host("", uuid4(), NOON) is None
    host_lock.release_host("", uuid4(), NOON)
    assert HostSlot.everywhere.count() == 0


@pytest.mark.django_db(transaction=True)
def test_host_asked_by_many_at_once_is_given_to_one(workspace, together):
    found = together(*[lambda: host_lock.take_host("a.example", uuid4(), NOON)] * 8)
    assert [one is None for one in found].count(True) == 1
    assert not [one for one in found if isinstance(one, Exception)]


def test_hosts_are_forgotten_after_a_day(db):
    host_lock.take_host("old.example", uuid4(), NOON - timedelta(days=2))
    host_lock.take_host("new.example", uuid4(), NOON)
    assert (host_lock.forget(NOON), host_lock.forget(NOON)) == (1, 0)
    assert HostSlot.everywhere.get().host == "new.example"


def test_kinds_name_the_host_they_ask():
    environment = {"A_KEY": "x", "A_BASE": "https://www.Video.example:8443/base"}
    assert rss.PLUGIN.host({"url": "https://News.example:443/feed"}, environment) == "news.example"
    assert youtube.PLUGIN.host({"handle": "@x"}, environment) == "www.video.example"
    assert brand.PLUGIN.host({}, {}) == ""


def test_source_whose_host_is_busy_sleeps_a_moment_and_fails_nothing(workspace, told):
    host_lock.take_host("news.example", uuid4(), NOON)
    source = register(workspace)
    collect.poll(claimed(source))
    after = reread(source)
    assert (told.calls, after.failures, after.attempts, after.due_at, after.last_polled_at) == (
        [],
        0,
        0,
        NOON,
        None,
    )
    assert NOON < after.wake_at <= NOON + limits.HOST_BUSY_WAIT


@pytest.mark.parametrize("error", [None, TryLater("Later."), RuntimeError("a bug")])
def test_host_is_given_back_however_the_fetch_ended(workspace, told, error):
    told.error = error
    source = register(workspace)
    if isinstance(error, RuntimeError):
        with pytest.raises(RuntimeError):
            collect.poll(claimed(source))
    else:
        collect.poll(claimed(source))
    slot = HostSlot.everywhere.get()
    assert (slot.host, slot.free_at, slot.holder) == ("news.example", NOON + GAP, None)


def test_unchanged_feed_costs_one_request_and_four_statements(workspace, httpserver, clock):
    asked = []

    def answer(request):
        asked.append(request)
        if "If-None-Match" in request.headers:
            return Response(status=304)
        item = "<item><guid>1</guid><title>One</title><link>https://n.example/1</link></item>"
        return Response(
            f"<rss version='2.0'><channel><title>N</title>{item}</channel></rss>",
            content_type="application/rss+xml",
            headers={"ETag": '"1"'},
        )

    httpserver.expect_request("/feed").respond_with_handler(answer)
    source = poll(register(workspace, httpserver.url_for("/feed")))
    clock.shift(timedelta(hours=1))
    hand = claimed(source)
    with CaptureQueriesContext(connection) as captured:
        collect.poll(hand)
    assert len(asked) == 2
    assert len(captured) <= 4, [query["sql"] for query in captured]
    assert reread(source).last_polled_at == timezone.now()


# --- Permanent moves -------------------------------------------------------------------------------------------------

NEW = "https://new.example/feed"
DAY = timedelta(days=1)


def _poll_after(clock, source, span):
    clock.shift(span)
    return poll(source)


def test_move_is_believed_after_three_polls_over_a_day(workspace, told, clock):
    told.more["moved_to"] = NEW
    told.entries = {FEED: [entry(1)], NEW: [entry(1)]}
    source = poll(register(workspace))
    source = _poll_after(clock, source, DAY / 3)
    source = _poll_after(clock, source, DAY / 3)
    assert (source.config["url"], source.moved["polls"]) == (FEED, 3)
    before = source.version
    source = _poll_after(clock, source, DAY / 3)
    assert (source.config["url"], source.moved, source.version) == (NEW, None, before + 1)
    assert [one["code"] for one in source.notes] == ["moved"]
    told.more["moved_to"] = ""
    source = _poll_after(clock, source, DAY)
    assert (told.calls[-1], source.notes) == (NEW, [])


def test_move_that_changes_its_mind_begins_anew(workspace, told, clock):
    source = register(workspace)
    for target in (NEW, NEW, "https://third.example/feed", NEW, NEW):
        told.more["moved_to"] = target
        source = _poll_after(clock, source, DAY)
    assert (source.config["url"], source.moved["polls"]) == (FEED, 2)
    told.more["moved_to"] = ""
    assert _poll_after(clock, source, DAY).moved is None


def test_move_from_https_to_http_is_never_believed(workspace, told, clock):
    told.more["moved_to"] = "http://news.example/feed"
    source = register(workspace)
    for _ in range(5):
        source = _poll_after(clock, source, DAY)
    assert (source.config["url"], source.moved) == (FEED, None)


def test_move_to_another_source_of_the_workspace_is_only_noted(workspace, told, clock):
    register(workspace, NEW)
    told.more["moved_to"] = NEW
    source = register(workspace)
    for _ in range(4):
        source = _poll_after(clock, source, DAY)
    assert (source.config["url"], [one["code"] for one in source.notes]) == (FEED, ["moved_to_known"])


def test_move_of_a_source_that_was_failing(workspace, told, clock):
    told.more["moved_to"] = NEW
    source = register(workspace)
    for _ in range(2):
        source = _poll_after(clock, source, DAY)
    Source.everywhere.filter(pk=source.pk).update(status="failing")
    source = _poll_after(clock, source, DAY)
    assert state(source, "status", "moved") == {"status": "active", "moved": None}
    assert (source.config["url"], source.version) == (NEW, 2)


# --- Intervals -------------------------------------------------------------------------------------------------------


def test_interval_grows_while_nothing_comes_and_a_persons_own_holds(workspace, told, clock):
    told.entries[FEED] = [entry(0), entry(120), entry(240)]
    source, own = register(workspace), register(workspace, "https://own.example/", poll_interval_minutes=30)
    minutes = []
    for _ in range(4):
        source, own = poll(source), poll(own)
        minutes.append(source.interval_seconds / 60)
        assert collect.interval_of(own, workspace) == timedelta(minutes=30)
        clock.shift(DAY)
    assert minutes == [60, 90, 135, 202.5]
    told.entries[FEED] = [entry(-60), *told.entries[FEED]]
    assert poll(source).interval_seconds == 3600


def test_another_address_has_another_rhythm(workspace, told):
    told.entries[FEED] = [entry(0), entry(480)]
    source = poll(register(workspace))
    assert source.interval_seconds == 4 * 3600
    changed = collect.change(source, {"config": {"url": NEW}}, workspace=workspace, now=NOON)
    assert (changed.interval_seconds, changed.window, changed.moved) == (None, None, None)
