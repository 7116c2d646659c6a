"""collect: a real feed on loopback, polled as the hands poll it."""

from __future__ import annotations

from datetime import timedelta
from email.utils import format_datetime
from typing import TYPE_CHECKING, Any
from xml.sax.saxutils import escape

import pytest
from django.utils import timezone
from werkzeug import Response

from accounts import workspaces
from accounts.ledger import credits
from accounts.models import Notice
from config.core import states
from config.core.errors import Conflict, Invalid
from config.core.ids import encode
from pipeline import limits
from pipeline.ingest import collect, replan, store_raw_item
from pipeline.ingest.collect import store_entries
from pipeline.models import (
    Event,
    GeneratedItem,
    HostSlot,
    Outlet,
    Persona,
    RawBody,
    RawItem,
    Source,
    SourceEntry,
)
from pipeline.plugins import TryLater
from tests.pipeline import steps
from tests.pipeline.steps import NOON, claimed, codes, facts, reread, state, told

if TYPE_CHECKING:
    from pytest_httpserver import HTTPServer

HOUR = timedelta(hours=1)


def entry(number: int, *, text: str = "", age_days: float = 0.0) -> str:
    at = format_datetime(NOON - timedelta(days=age_days, minutes=number))
    body = escape(text or f"Report {number}. {steps.TEXT}")
    return (
        f"<item><guid isPermaLink='false'>g{number}</guid><title>Entry {number}</title>"
        f"<link>https://news.example/{number}</link><pubDate>{at}</pubDate>"
        f"<description>{body}</description></item>"
    )


def document(*entries: str) -> str:
    return (
        "<?xml version='1.0'?><rss version='2.0'><channel><title>News</title>"
        f"<link>https://news.example/</link><description>d</description>{''.join(entries)}</channel></rss>"
    )


class Feed:
    """A feed on loopback: what it answers with, and what it was asked."""

    def __init__(self, server: HTTPServer) -> None:
        self.url = server.url_for("/feed.xml")
        self.entries: list[str] = []
        self.status, self.headers = 200, {}
        self.asked: list[dict[str, str]] = []
        server.expect_request("/feed.xml").respond_with_handler(self.answer)

    def answer(self, request: Any) -> Response:
        self.asked.append(dict(request.headers))
        if self.status != 200:
            return Response("no", status=self.status, headers=self.headers)
        text = document(*self.entries)
        tag = f'"{hash(text)}"'
        if request.headers.get("If-None-Match") == tag:
            return Response(status=304, headers={"ETag": tag})
        headers = {"ETag": tag, **self.headers}
        return Response(text, content_type="application/rss+xml", headers=headers)


@pytest.fixture
def news(httpserver: HTTPServer) -> Feed:
    return Feed(httpserver)


@pytest.fixture
def register(workspace, news):
    def make(**given: Any) -> Source:
        values = {"type": "rss", "config": {"url": news.url}, **given}
        return collect.register(workspace, collect.SourceSettings(**values), now=timezone.now())

    return make


def poll(source: Source) -> Source:
    # The clock of most tests stands still, and with it the rest between two fetches from one host.
    HostSlot.everywhere.all().delete()
    collect.poll(claimed(source))
    return reread(source)


def outcomes() -> dict[str, tuple[str, str | None]]:
    rows = RawItem.everywhere.order_by("external_id").values_list("external_id", "status", "reason")
    return {name: (status, (reason or {}).get("code")) for name, status, reason in rows}


# --- Registering -----------------------------------------------------------------------------------------------------


def test_register_has_it_polled_at_once(register, news, woken):
    source = register(name="Mine", variants=2)
    assert state(source, "name", "status", "wake_at", "due_at", "variants", "config", "inbound_token") == {
        "name": "Mine",
        "status": "active",
        "wake_at": NOON,
        "due_at": NOON,
        "variants": 2,
        "config": {"url": news.url},
        "inbound_token": None,
    }


def test_register_gives_a_webhook_source_its_own_address(workspace):
    source = collect.register(workspace, collect.SourceSettings(type="webhook"))
    assert (len(source.inbound_token or ""), source.wake_at) == (32, None)


def test_register_names_a_source_that_has_no_name(register, news):
    assert register().name == f"RSS or Atom feed {news.url}"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"config": {}}, [("config.url", "required")]),
        ({"engines": ["Long Post"]}, [("engines", "unknown_engine")]),
        ({"poll_interval_minutes": 14}, [("poll_interval_minutes", "below_plan")]),
        ({"outlets": ["out_x"]}, [("outlets[0]", "unknown_outlet")]),
    ],
)
def test_register_refuses_what_cannot_be(register, given, expected):
    with pytest.raises(Invalid) as refused:
        register(**given)
    assert codes(refused) == expected
    assert Source.everywhere.filter(is_push=False).count() == 0


def test_register_refuses_another_workspaces_things(register, charlies):
    his = Persona.everywhere.get(workspace=charlies)
    with pytest.raises(Invalid) as refused:
        register(persona_id=his.pk)
    assert codes(refused) == [("persona", "unknown_persona")]
    with pytest.raises(Invalid) as refused:
        register(outlets=[encode("out", Outlet.everywhere.get(workspace=charlies, platform="feed").pk)])
    assert codes(refused) == [("outlets[0]", "unknown_outlet")]


def test_plan_bounds_the_active_sources(workspace, register):
    first, _ = register(), register()
    with pytest.raises(collect.SourcesExceeded) as refused:
        register()
    assert (refused.value.status, refused.value.detail[0].extra) == (
        402,
        {"limit": 2, "used": 2, "resets_at": None},
    )
    collect.change(first, {"status": "paused"}, workspace=workspace, now=NOON)
    third = register()
    with pytest.raises(collect.SourcesExceeded):
        collect.change(first, {"status": "active"}, workspace=workspace, now=NOON)
    assert reread(first).status == "paused"
    collect.delete(third, now=NOON)
    assert collect.change(first, {"status": "active"}, workspace=workspace, now=NOON).status == "active"


@pytest.mark.django_db(transaction=True)
def test_plan_bounds_sources_that_are_registered_at_once(workspace, register, together):
    results = together(*[register] * 5)
    assert sorted(type(one).__name__ for one in results) == ["Source"] * 2 + ["SourcesExceeded"] * 3


@pytest.mark.django_db(transaction=True)
def test_plan_bounds_sources_that_are_resumed_at_once(workspace, register, together):
    sources = []
    for _ in range(4):
        sources.append(register())
        collect.change(sources[-1], {"status": "paused"}, workspace=workspace, now=NOON)
    results = together(
        *[
            lambda source=source: collect.change(source, {"status": "active"}, workspace=workspace, now=NOON)
            for source in sources
        ],
        register,
    )
    assert sorted(type(one).__name__ for one in results) == ["Source"] * 2 + ["SourcesExceeded"] * 3
    assert sorted(reread(source).status for source in sources).count("active") <= 2


# --- Polling ---------------------------------------------------------------------------------------------------------


def test_poll_takes_every_entry_in_and_says_when_it_comes_again(workspace, register, news):
    news.entries = [entry(1), entry(2)]
    source = poll(register(first_poll="all"))
    assert outcomes() == {"g1": ("queued", None), "g2": ("queued", None)}
    # Oldest first, so that the newest is the newest in every list.
    assert list(RawItem.everywhere.order_by("id").values_list("external_id", flat=True)) == ["g2", "g1"]
    assert facts(workspace) == ["raw.ingested", "raw.ingested"]
    assert state(source, "status", "last_polled_at", "last_new_at", "failures", "last_error", "attempts") == {
        "status": "active",
        "last_polled_at": NOON,
        "last_new_at": NOON,
        "failures": 0,
        "last_error": None,
        "attempts": 0,
    }
    # Two entries a minute apart: as often as the plan allows.
    assert NOON + HOUR / 4 <= source.wake_at <= NOON + 1.1 * HOUR / 4
    assert (source.due_at, source.interval_seconds) == (source.wake_at, 900)


def test_poll_of_an_unchanged_feed_is_a_304_and_changes_nothing(register, news, clock):
    news.entries = [entry(1)]
    source = poll(register())
    clock.shift(HOUR)
    again = poll(source)
    assert ["If-None-Match" in headers for headers in news.asked] == [False, True]
    assert (RawItem.everywhere.count(), again.last_polled_at, again.last_new_at) == (1, NOON + HOUR, NOON)


def test_poll_meets_a_new_entry_and_an_edited_one(workspace, register, news, clock):
    news.entries = [entry(1)]
    source = poll(register())
    raw = RawItem.everywhere.get()
    steps.run_generations(raw)
    clock.shift(HOUR)
    news.entries = [entry(2), entry(1, text=steps.OTHER_TEXT)]
    poll(source)
    assert outcomes() == {"g1": ("processed", None), "g2": ("queued", None)}
    assert (reread(raw).content_version, RawBody.everywhere.filter(raw_item=raw).count()) == (2, 2)
    assert GeneratedItem.everywhere.get(raw_item=raw).held == "source_changed"
    assert facts(workspace).count("raw.ingested") == 2


@pytest.mark.parametrize(
    ("first_poll", "taken"),
    [(None, limits.FIRST_POLL_NEWEST), ({"newest": 2}, 2), ("none", 0), ("all", 7)],
)
def test_first_poll_takes_what_was_asked_for(workspace, register, news, clock, first_poll, taken):
    news.entries = [entry(number) for number in range(1, 8)]
    source = poll(register(first_poll=first_poll))
    expected = {
        f"g{number}": ("queued", None) if number <= taken else ("skipped", "before_first_poll")
        for number in range(1, 8)
    }
    assert outcomes() == expected
    assert facts(workspace) == ["raw.ingested"] * taken
    # What was there before stays skipped; what comes after is taken.
    clock.shift(HOUR)
    news.entries = [entry(0), *news.entries]
    poll(source)
    assert outcomes() == {"g0": ("queued", None), **expected}


def test_first_poll_that_was_killed_goes_on_as_a_first_poll(register, news, monkeypatch):
    news.entries = [entry(number) for number in range(1, 8)]
    source = register(first_poll={"newest": 3})
    real, count = store_raw_item.push_portion, []

    def dies(*args, **options):
        count.append(1)
        if len(count) == 6:
            raise SystemExit
        return real(*args, **options)

    with monkeypatch.context() as patch:
        patch.setattr(store_entries, "PORTION", 1)
        patch.setattr(store_raw_item, "push_portion", dies)
        with pytest.raises(SystemExit):
            collect.poll(claimed(source))
    assert (RawItem.everywhere.count(), SourceEntry.everywhere.count()) == (5, 5)
    HostSlot.everywhere.all().delete()
    poll(source)
    assert [name for name, (status, _) in outcomes().items() if status == "queued"] == ["g1", "g2", "g3"]


def test_entries_that_are_too_old_are_kept_and_said_so(workspace, register, news):
    news.entries = [entry(1, age_days=1), entry(2, age_days=8)]
    poll(register(max_age_days=7, first_poll="all"))
    assert outcomes() == {"g1": ("queued", None), "g2": ("skipped", "too_old")}
    assert facts(workspace) == ["raw.skipped", "raw.ingested"]


def test_entries_over_the_burst_are_skipped_and_stay_so(register, news, clock, workspace):
    source = poll(register(max_burst=2))
    clock.shift(HOUR)
    news.entries = [entry(number) for number in range(1, 5)]
    source = poll(source)
    expected = {
        "g1": ("queued", None),
        "g2": ("queued", None),
        "g3": ("skipped", "over_burst"),
        "g4": ("skipped", "over_burst"),
    }
    assert outcomes() == expected
    clock.shift(HOUR)
    news.entries = [entry(0), *news.entries]
    poll(source)
    assert outcomes() == {"g0": ("queued", None), **expected}
    replan.retry(RawItem.everywhere.get(external_id="g3"), workspace=workspace, now=NOON)
    assert outcomes()["g3"] == ("queued", None)


def test_entries_without_credits_wait(workspace, register, news):
    news.entries = [entry(1), entry(2)]
    credits.adjust(workspace, -9, "spent", "operator")
    poll(register())
    assert outcomes() == {"g1": ("waiting_quota", "quota_exceeded"), "g2": ("queued", None)}


def test_source_says_what_is_made_and_where_it_goes(workspace, register, news, stage):
    news.entries = [entry(1)]
    public = encode("out", stage.pk)
    source = register(variants=2, outlets=[public], autopilot=True)
    poll(source)
    items = GeneratedItem.everywhere.order_by("variant_index")
    assert list(items.values_list("source_id", "variant_index", "outlets")) == [
        (source.pk, 0, [public]),
        (source.pk, 1, [public]),
    ]


@pytest.mark.parametrize(("asked", "wait"), [("Cache-Control", 3 * HOUR), ("", HOUR)])
def test_poll_waits_as_long_as_the_feed_asks(register, news, asked, wait):
    news.headers = {asked: "max-age=10800"} if asked else {}
    source = poll(register())
    assert NOON + wait <= source.wake_at <= NOON + 1.1 * wait


def test_poll_keeps_its_interval_and_the_plans(workspace, register):
    assert collect.interval_of(register(poll_interval_minutes=15), workspace) == timedelta(minutes=15)
    source = Source.everywhere.get(is_push=False)
    workspace.poll_interval_minutes_least = 120
    assert collect.interval_of(source, workspace) == timedelta(minutes=120)
    workspace.is_unlimited = True
    assert collect.interval_of(source, workspace) == timedelta(minutes=15)


# --- Failing ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("was_read", [True, False])
def test_source_fails_after_the_third_error_and_recovers(workspace, register, news, clock, was_read):
    """One that was never read is tried again sooner: whoever has added it is looking."""
    source = register()
    if was_read:
        Source.everywhere.filter(pk=source.pk).update(last_polled_at=NOON)
    news.status = 500
    waits, statuses = [], []
    for _ in range(4):
        now = timezone.now()
        source = poll(source)
        waits.append(source.wake_at - now)
        statuses.append(source.status)
        clock.move_to(source.wake_at)
    assert statuses == ["active", "active", "failing", "failing"]
    first = 2 * HOUR if was_read else HOUR / 3
    longer = [first, 2 * first, 4 * first, 8 * first]
    assert [least <= wait <= 1.1 * least for least, wait in zip(longer, waits, strict=True)] == [True] * 4
    assert (source.failures, source.failing_since) == (4, NOON)
    assert source.last_error["code"] == "server_error"
    (event,) = told(workspace, "source.failing")
    assert (event["data"]["source"]["status"], event["data"]["source"]["id"]) == (
        "failing",
        encode("src", source.pk),
    )
    news.status = 200
    assert state(poll(source), "status", "failures", "failing_since", "last_error") == {
        "status": "active",
        "failures": 0,
        "failing_since": None,
        "last_error": None,
    }
    assert facts(workspace) == ["source.failing"]


def test_backoff_is_bounded_and_never_shorter_than_the_interval(register, news):
    source = register(poll_interval_minutes=60 * 48)
    Source.everywhere.filter(pk=source.pk).update(last_polled_at=NOON)
    news.status = 500
    assert NOON + 48 * HOUR <= poll(source).wake_at <= NOON + 1.1 * 48 * HOUR
    Source.everywhere.filter(pk=source.pk).update(poll_interval_minutes=60, failures=30)
    longest = limits.POLL_BACKOFF_MOST
    assert NOON + longest <= poll(source).wake_at <= NOON + 1.1 * longest


@pytest.mark.parametrize(("asked", "wait"), [("10800", 3 * HOUR), ("60", HOUR / 3)])
def test_retry_after_is_honoured(register, news, asked, wait):
    news.status, news.headers = 429, {"Retry-After": asked}
    source = poll(register())
    assert NOON + wait <= source.wake_at <= NOON + 1.1 * wait
    assert source.last_error["code"] == "rate_limited"


def test_gone_is_told_and_polled_no_more(workspace, register, news):
    news.status = 410
    source = poll(register())
    assert state(source, "status", "wake_at", "due_at", "attempts") == {
        "status": "gone",
        "wake_at": None,
        "due_at": None,
        "attempts": 0,
    }
    assert (source.last_error["code"], facts(workspace)) == ("gone", ["source.failing"])
    with pytest.raises(Conflict) as refused:
        collect.poll_now(source, now=NOON)
    assert codes(refused) == [("status", "not_active")]
    news.status, news.entries = 200, [entry(1)]
    back = collect.change(source, {"status": "active"}, workspace=workspace, now=NOON)
    assert (back.status, back.wake_at, back.last_error) == ("active", NOON, None)
    poll(back)
    assert outcomes() == {"g1": ("queued", None)}


def test_people_hear_when_a_source_fails_and_when_it_is_gone(workspace, register, news, clock):
    news.status = 404
    source = poll(register())
    heard = []
    while source.status != "gone":
        clock.move_to(source.wake_at)
        source = poll(source)
        heard.append([row.title for row in Notice.everywhere.order_by("id")])
    fails, gone = f"Source {source.name} fails", f"Source {source.name} is gone"
    assert heard[:2] == [[], [fails]]
    assert heard[-2:] == [[fails], [fails, gone]]
    assert Notice.everywhere.exclude(kind="source_failing", path="#sources").count() == 0


def test_single_404_is_no_end_but_two_weeks_of_failing_are(workspace, register, news, clock):
    news.status = 404
    source = poll(register())
    assert source.status == "active"
    while source.status != "gone":
        clock.move_to(source.wake_at)
        source = poll(source)
    assert timedelta(days=14) <= timezone.now() - NOON <= timedelta(days=16)
    assert (source.wake_at, source.last_error["code"]) == (None, "not_found")
    assert [event["data"]["source"]["status"] for event in told(workspace, "source.failing")] == [
        "failing",
        "gone",
    ]


def test_poll_that_breaks_again_and_again_is_tried_tomorrow(register):
    source = register()
    collect.give_up(claimed(source))
    assert state(source, "status", "wake_at", "attempts", "failures") == {
        "status": "active",
        "wake_at": NOON + timedelta(days=1),
        "attempts": 0,
        "failures": 1,
    }
    assert reread(source).last_error["code"] == "poll_broke"


def test_very_long_error_is_cut(register, monkeypatch):
    def fail(*_, **__):
        raise TryLater("x" * 5000)

    monkeypatch.setattr(type(collect.kind_of("rss")), "fetch", fail)
    assert len(poll(register()).last_error["message"]) == collect.MESSAGE_CHARACTERS


# --- Leases and people -----------------------------------------------------------------------------------------------


def test_delisted_workspace_is_not_polled(workspace, register, news):
    source = register()
    workspaces.delist(workspace, "operator")
    source = poll(source)
    assert (news.asked, source.status, source.wake_at, source.attempts) == (
        [],
        "active",
        NOON + collect.DELISTED_WAIT,
        0,
    )
    workspaces.whitelist(workspace, "operator")
    poll(source)
    assert len(news.asked) == 1


def test_paused_source_is_not_polled_until_it_is_resumed(workspace, register, news):
    source = register()
    hand = claimed(source)
    paused = collect.change(source, {"status": "paused"}, workspace=workspace, now=NOON)
    assert (paused.status, paused.wake_at, paused.version) == ("paused", None, 3)
    with pytest.raises(Conflict) as refused:
        collect.poll_now(source, now=NOON)
    assert codes(refused) == [("status", "not_active")]
    collect.poll(hand)
    assert state(source, "wake_at", "last_polled_at") == {"wake_at": None, "last_polled_at": None}
    resumed = collect.change(paused, {"status": "active"}, workspace=workspace, now=NOON)
    assert (resumed.status, resumed.wake_at) == ("active", NOON)


def test_source_that_is_not_to_be_polled_goes_back_to_sleep(register, news):
    source = register()
    Source.everywhere.filter(pk=source.pk).update(status="paused")
    assert (poll(source).wake_at, news.asked) == (None, [])
    Source.everywhere.filter(pk=source.pk).update(status="active", deleted_at=NOON)
    assert (poll(source).wake_at, news.asked) == (None, [])


@pytest.mark.parametrize("status", [200, 500, 410])
def test_hand_that_was_overtaken_writes_nothing_of_the_source(workspace, register, news, monkeypatch, status):
    news.status = status
    source = register()
    Source.everywhere.filter(pk=source.pk).update(status="failing", failures=5)
    kind = type(collect.kind_of("rss"))
    fetch = kind.fetch

    def slow(self, *args, **options):
        collect.change(source, {"status": "paused"}, workspace=workspace, now=NOON)
        return fetch(self, *args, **options)

    monkeypatch.setattr(kind, "fetch", slow)
    collect.poll(claimed(source))
    assert state(source, "status", "wake_at", "last_polled_at", "last_error", "failures") == {
        "status": "paused",
        "wake_at": None,
        "last_polled_at": None,
        "last_error": None,
        "failures": 0,
    }
    assert facts(workspace) == []


def test_poll_now_wakes_it_and_overtakes(register, clock):
    source = poll(register())
    hand = claimed(source)
    clock.shift(60)
    polled = collect.poll_now(source, now=timezone.now())
    assert (polled.wake_at, polled.lease_token) == (timezone.now(), hand.lease_token + 1)


def test_poll_now_refuses_what_is_not_fetched(defaults):
    with pytest.raises(Conflict) as refused:
        collect.poll_now(defaults.push_source, now=NOON)
    assert codes(refused) == [("type", "not_fetched")]


def test_deleted_source_keeps_its_items(workspace, register, news):
    news.entries = [entry(1)]
    source = poll(register())
    collect.delete(source, now=NOON)
    assert state(source, "deleted_at", "wake_at", "inbound_token") == {
        "deleted_at": NOON,
        "wake_at": None,
        "inbound_token": None,
    }
    assert (RawItem.everywhere.count(), GeneratedItem.everywhere.count()) == (1, 1)
    steps.run_generations(RawItem.everywhere.get())
    assert GeneratedItem.everywhere.get().status == "ready"
    with pytest.raises(Conflict) as refused:
        collect.change(source, {"name": "x"}, workspace=workspace, now=NOON)
    assert codes(refused) == [(None, "deleted")]


def test_push_source_cannot_be_deleted(defaults):
    with pytest.raises(Conflict) as refused:
        collect.delete(defaults.push_source, now=NOON)
    assert codes(refused) == [(None, "push_source")]
    assert reread(defaults.push_source).deleted_at is None


def test_other_address_is_polled_at_once_and_the_plug_in_keeps_its_memory(workspace, register, news, clock):
    news.entries = [entry(1)]
    source = poll(register())
    assert source.fetch_state["url"] == news.url
    clock.shift(60)
    changed = collect.change(
        source, {"config": {"url": f"{news.url}?b"}}, workspace=workspace, now=timezone.now()
    )
    assert (changed.wake_at, changed.version) == (timezone.now(), source.version + 1)
    # A scraper that may read more pages must know which it has read, and rss forgets another address by itself.
    assert (changed.fetch_state, changed.window) == (source.fetch_state, None)
    kept = collect.change(changed, {"name": "Other"}, workspace=workspace, now=NOON)
    assert (kept.name, kept.wake_at) == ("Other", changed.wake_at)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"poll_interval_minutes": 1}, [("poll_interval_minutes", "below_plan")]),
        ({"config": {}}, [("config.url", "required")]),
        ({"engines": ["Long Post"]}, [("engines", "unknown_engine")]),
    ],
)
def test_change_refuses_what_cannot_be(workspace, register, changes, expected):
    source = register()
    with pytest.raises(Invalid) as refused:
        collect.change(source, changes, workspace=workspace, now=NOON)
    assert codes(refused) == expected
    assert reread(source).version == source.version


def test_change_of_nothing_writes_nothing(workspace, register):
    source = register()
    hand = claimed(source)
    before = Source.everywhere.filter(pk=source.pk).values().get()
    row = collect.change(source, {}, workspace=workspace, now=NOON + HOUR)
    assert (row.version, Source.everywhere.filter(pk=source.pk).values().get()) == (source.version, before)
    # Nobody has overtaken the hand that is at it.
    assert hand.sleep_until(NOON)


def test_change_of_a_version_that_is_gone_is_refused(workspace, register):
    source = register()
    change = {"name": "Mine"}
    collect.change(source, change, workspace=workspace, now=NOON, expected_version=source.version)
    for late in ({"name": "Late"}, {}):
        with pytest.raises(states.Overtaken) as refused:
            collect.change(source, late, workspace=workspace, now=NOON, expected_version=source.version)
        assert (refused.value.code, codes(refused)) == (
            "version_conflict",
            [("version", "changed_meanwhile")],
        )
    assert state(source, "name", "version") == {"name": "Mine", "version": source.version + 1}


@pytest.mark.django_db(transaction=True)
def test_changes_of_one_version_at_once_make_one(workspace, register, together):
    source = register()
    results = together(
        *[
            lambda name=name: collect.change(
                source, {"name": name}, workspace=workspace, now=NOON, expected_version=source.version
            )
            for name in ("A", "B", "C", "D")
        ]
    )
    (won,) = [one for one in results if isinstance(one, Source)]
    assert sorted(type(one).__name__ for one in results) == ["Overtaken"] * 3 + ["Source"]
    assert state(source, "name", "version") == {"name": won.name, "version": source.version + 1}


def test_events_of_a_source_name_it(register, news):
    news.entries = [entry(1)]
    source = poll(register())
    assert list(Event.everywhere.values_list("source_id", flat=True)) == [source.pk]


def test_what_is_not_read_and_what_is_moved_is_told(workspace, register, news):
    news.entries = [entry(number) for number in range(230)]
    news.entries[0] = entry(0, age_days=-300)
    settings = collect.SourceSettings(type="rss", config={"url": news.url})
    seen = collect.preview(workspace, settings, test=False, now=NOON)
    notes = [
        ("entries_left_out", "The feed lists 230 entries; the newest 200 of them are read."),
        ("future_dates", "1 entry has a date in the future; the time of reading is used instead."),
    ]
    assert ([(one.code, one.message) for one in seen.notes], len(seen.entries)) == (notes, 200)
    source = register(first_poll="none")
    # It answers "not modified" the second time, and what was said still holds.
    for _ in range(2):
        source = poll(source)
        assert [(one["code"], one["message"]) for one in source.notes] == notes
    news.entries = [entry(number) for number in range(3)]
    assert poll(source).notes == []


def test_source_whose_entries_another_one_brought_says_so(workspace, register, news, httpserver):
    news.entries = [entry(1), entry(2)]
    poll(register())
    other = Feed.__new__(Feed)
    other.status, other.headers, other.asked, other.entries = 200, {}, [], news.entries
    httpserver.expect_request("/copy.xml").respond_with_handler(other.answer)
    url = httpserver.url_for("/copy.xml")
    seen = collect.preview(
        workspace, collect.SourceSettings(type="rss", config={"url": url}), test=False, now=NOON
    )
    told = (
        "All 2 of its entries are there already: other sources of the workspace brought them, so nothing is made of them "
        "here."
    )
    assert [(one.code, one.message) for one in seen.notes] == [("all_known", told)]
    copy = poll(register(config={"url": url}))
    assert copy.notes == [{"code": "all_known", "message": told}]
    other.entries = [*news.entries, entry(3)]
    assert poll(copy).notes == []
