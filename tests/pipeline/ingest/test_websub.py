"""Subscriptions at hubs: asked for, verified, renewed, denied, ended; pushes that wake the source."""

from __future__ import annotations

import hashlib
import hmac
from datetime import timedelta
from urllib.parse import urlencode

import pytest
from django.test import Client
from django.utils import timezone

from config.core import task_runner
from config.core.http_client import ConnectFailed, Response
from config.core.http_client.messages import Headers
from pipeline.ingest import collect, websub
from pipeline.models import Source, WebSubSubscription
from pipeline.sources.base import Fetch, Hub, Quiet
from tests.pipeline.steps import NOON

pytestmark = pytest.mark.django_db

TOPIC = "https://feed.example/self.xml"
HUB = Hub(("https://hub.example/sub", "https://second.example/"), TOPIC)
BODY = b"<feed>changed</feed>"


class FakeHub:
    """Answers with what it was given; with `verify` it asks back before it answers."""

    def __init__(self):
        self.asked = []
        self.answers = []
        self.verify = None

    def post(self, url, *, form, **_):
        self.asked.append((url, form))
        if self.verify is not None:
            self.verify(form)
        answer = self.answers.pop(0) if self.answers else 202
        if isinstance(answer, Exception):
            raise answer
        return Response(answer, Headers([]), b"no such topic", url, truncated=False, redirects=())


@pytest.fixture
def hub(monkeypatch):
    fake = FakeHub()
    monkeypatch.setattr("config.core.http_client.shared.client", lambda: fake)
    return fake


@pytest.fixture(autouse=True)
def public(settings):
    settings.PUBLIC_URL = "https://pipeline.example"


@pytest.fixture
def source(workspace):
    made = collect.register(
        workspace, collect.SourceSettings(type="rss", config={"url": "https://feed.example/feed"})
    )
    tomorrow = NOON + timedelta(days=1)
    Source.everywhere.filter(pk=made.pk).update(wake_at=tomorrow, due_at=tomorrow, last_polled_at=NOON)
    made.refresh_from_db()
    return made


@pytest.fixture
def row(source):
    websub.follow(source, HUB, now=NOON)
    return kept()


def kept():
    return WebSubSubscription.everywhere.get()


def work():
    return task_runner.work_all_due("ingest.subscribe_feed")


def ask(row, **changes):
    asked = {
        "hub.mode": "subscribe",
        "hub.topic": TOPIC,
        "hub.challenge": "a+b c&ü",
        "hub.lease_seconds": "100000",
        **changes,
    }
    given = {name: value for name, value in asked.items() if value is not None}
    return Client().get(f"/hooks/websub/{row.token}?{urlencode(given)}")


def push(row, body=BODY, *, algorithm="sha256", secret=None, header=None):
    key = (secret or row.secret.open()).encode()
    signed = f"{algorithm}={hmac.new(key, body, getattr(hashlib, algorithm, 'sha256')).hexdigest()}"
    headers = {"X-Hub-Signature": signed if header is None else header}
    return Client().post(
        f"/hooks/websub/{row.token}", body, content_type="application/atom+xml", headers=headers
    )


def subscribed(row):
    work()
    assert ask(row).status_code == 200
    return kept()


# --- Subscribing ---


def test_a_source_that_names_a_hub_is_subscribed(hub, row):
    assert (row.status, row.wake_at) == ("wanted", NOON)
    assert work() == 1
    ((url, form),) = hub.asked
    assert url == "https://hub.example/sub"
    assert form == {
        "hub.callback": f"https://pipeline.example/hooks/websub/{row.token}",
        "hub.mode": "subscribe",
        "hub.topic": TOPIC,
        "hub.lease_seconds": "864000",
        "hub.secret": row.secret.open(),
    }
    assert len(form["hub.secret"]) < 200
    after = kept()
    assert (after.status, after.tries, after.wake_at) == ("asked", 1, NOON + timedelta(minutes=10))
    answer = ask(row)
    assert (answer.status_code, answer.content.decode()) == (200, "a+b c&ü")
    after = kept()
    assert (after.status, after.tries) == ("active", 0)
    assert after.lease_ends_at == NOON + timedelta(seconds=100_000)
    assert after.wake_at == NOON + timedelta(seconds=80_000)


def test_a_hub_that_verifies_before_it_answers_is_heard(hub, row):
    hub.verify = lambda form: ask(row)
    work()
    assert (kept().status, len(hub.asked)) == ("active", 1)


def test_a_hub_that_verifies_and_then_answers_with_an_error_has_verified(hub, row):
    hub.verify = lambda form: ask(row)
    hub.answers = [500]
    work()
    assert (kept().status, kept().error) == ("active", None)


def test_the_secret_is_sealed_and_never_sent_in_the_open(hub, source):
    from django.db import connection

    websub.follow(source, Hub(("http://hub.example/",), TOPIC), now=NOON)
    row = kept()
    with connection.cursor() as cursor:
        cursor.execute("SELECT secret FROM websub")
        assert row.secret.open() not in cursor.fetchone()[0]
    work()
    assert "hub.secret" not in hub.asked[0][1]


@pytest.mark.parametrize("public_url", ["http://127.0.0.1:8000", "http://pipeline.example"])
def test_an_instance_without_a_public_https_address_subscribes_to_nothing(source, settings, public_url):
    settings.PUBLIC_URL = public_url
    assert websub.follow(source, HUB, now=NOON) is None
    assert WebSubSubscription.everywhere.count() == 0


def test_a_source_without_a_hub_costs_no_statement(source, django_assert_num_queries):
    with django_assert_num_queries(0):
        assert websub.follow(source, None, now=NOON) is None


def test_following_twice_is_one_subscription(source):
    websub.follow(source, HUB, now=NOON)
    token = kept().token
    websub.follow(source, HUB, now=NOON)
    assert kept().token == token


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (404, "The hub refused (status 404): no such topic"),
        (500, "The hub refused (status 500): no such topic"),
        (ConnectFailed("No connection."), "The hub could not be asked: No connection."),
    ],
)
def test_a_hub_that_refuses_is_asked_again_later_and_later(hub, row, clock, answer, message):
    for hours in (1, 2, 4, 8, 16, 24, 24):
        hub.answers = [answer]
        assert work() == 1
        after = kept()
        assert (after.status, after.error["code"], after.error["message"]) == (
            "wanted",
            "hub_refused",
            message,
        )
        wait = after.wake_at - after.asked_at
        assert wait == timedelta(hours=hours)
        clock.move_to(after.wake_at)
    work()
    ask(row)
    assert (kept().status, kept().tries, kept().error) == ("active", 0, None)


def test_a_hub_that_never_verifies_is_asked_again(hub, row, clock):
    work()
    clock.shift(timedelta(minutes=10))
    work()
    after = kept()
    assert (after.status, after.error["code"]) == ("wanted", "not_verified")
    assert after.wake_at == NOON + timedelta(minutes=70)
    clock.move_to(after.wake_at)
    work()
    assert len(hub.asked) == 2


def test_a_hub_that_verifies_late_is_heard(hub, row, clock):
    work()
    clock.shift(timedelta(minutes=10))
    work()
    assert ask(row).status_code == 200
    assert kept().status == "active"


# --- The hub's questions ---


@pytest.mark.parametrize(
    "changes",
    [
        {"hub.topic": "https://feed.example/other.xml"},
        {"hub.mode": "unsubscribe"},
        {"hub.mode": "publish"},
        {"hub.mode": None},
        {"hub.challenge": None},
        {"hub.challenge": "x" * 5000},
    ],
)
def test_what_we_did_not_ask_for_is_not_confirmed(hub, row, changes):
    work()
    assert ask(row, **changes).status_code == 404
    assert kept().status == "asked"


def test_an_unknown_address_knows_nothing(row):
    row.token = "x" * 32
    assert ask(row).status_code == 404
    assert push(row, secret="x").status_code == 410
    assert Client().put(f"/hooks/websub/{row.token}").status_code == 405


@pytest.mark.parametrize(
    ("written", "lease"),
    [
        ("1", timedelta(minutes=5)),
        ("999999999", timedelta(days=90)),
        (None, timedelta(days=10)),
        ("soon", timedelta(days=10)),
        ("²", timedelta(days=10)),
    ],
)
def test_a_lease_is_kept_within_reason(hub, row, written, lease):
    work()
    assert ask(row, **{"hub.lease_seconds": written}).status_code == 200
    assert kept().lease_ends_at == NOON + lease


def test_a_hub_may_deny_at_any_time(hub, row, clock):
    subscribed(row)
    denied = {"hub.mode": "denied", "hub.reason": "Too many", "hub.challenge": None}
    assert ask(row, **denied).status_code == 200
    after = kept()
    assert (after.status, after.error["message"]) == ("denied", "The hub denied the subscription: Too many")
    assert websub.follow(after.source, HUB, now=NOON) is None
    assert push(row).status_code == 410
    assert ask(row, **denied).status_code == 404
    clock.shift(timedelta(days=7))
    work()
    assert (kept().status, len(hub.asked)) == ("asked", 2)


# --- Renewing and ending ---


def test_a_lease_is_renewed_at_four_fifths_and_holds_meanwhile(hub, row, clock):
    subscribed(row)
    clock.shift(timedelta(seconds=80_000))
    assert work() == 1
    assert (kept().status, len(hub.asked)) == ("renewing", 2)
    assert push(row).status_code == 202
    assert websub.follow(kept().source, HUB, now=clock_now()) == timedelta(days=1)
    ask(row)
    assert (kept().status, kept().lease_ends_at) == ("active", NOON + timedelta(seconds=180_000))


def test_a_renewal_that_fails_is_repeated_until_the_lease_ends(hub, row, clock):
    subscribed(row)
    clock.shift(timedelta(seconds=80_000))
    hub.answers = [500] * 9
    for asked in (2, 3, 4):
        work()
        assert (kept().status, kept().error["code"], len(hub.asked)) == ("renewing", "hub_refused", asked)
        assert push(row).status_code == 202
        clock.move_to(kept().wake_at)
    assert clock_now() == NOON + timedelta(seconds=100_000)
    # It is asked anew, as for the first time.
    work()
    assert (kept().status, kept().lease_ends_at, len(hub.asked)) == ("wanted", None, 5)
    assert websub.follow(kept().source, HUB, now=clock_now()) is None


def clock_now():
    return timezone.now()


def test_another_topic_begins_anew_at_another_address(hub, row):
    subscribed(row)
    websub.follow(kept().source, Hub(("https://hub.example/sub",), "https://feed.example/v2"), now=NOON)
    after = kept()
    assert (after.status, after.topic, after.lease_ends_at) == ("wanted", "https://feed.example/v2", None)
    assert after.token != row.token
    assert push(row).status_code == 410


@pytest.mark.parametrize("change", [{"status": "paused"}, {"deleted_at": NOON}])
def test_a_source_that_is_not_polled_listens_to_nobody(hub, row, clock, change):
    subscribed(row)
    Source.everywhere.filter(type="rss").update(**change)
    assert push(row).status_code == 410
    assert (kept().status, kept().wake_at) == ("ended", None)
    assert ask(row).status_code == 404
    Source.everywhere.filter(type="rss").update(status="active", deleted_at=None)
    websub.follow(kept().source, HUB, now=NOON)
    assert (kept().status, kept().wake_at) == ("wanted", NOON)


def test_a_paused_source_is_not_renewed(hub, row, clock):
    subscribed(row)
    Source.everywhere.filter(type="rss").update(status="paused")
    clock.shift(timedelta(seconds=80_000))
    work()
    assert (kept().status, len(hub.asked)) == ("ended", 1)


# --- Pushes ---


@pytest.mark.parametrize("algorithm", ["sha1", "sha256", "sha384", "sha512"])
def test_a_signed_push_wakes_the_source(hub, row, source, woken, algorithm):
    subscribed(row)
    assert push(row, algorithm=algorithm).status_code == 202
    after = Source.everywhere.get(pk=source.pk)
    assert (after.wake_at, after.lease_token) == (NOON, source.lease_token + 1)
    assert kept().pushed_at == NOON


@pytest.mark.parametrize(
    "given",
    [
        {"secret": "another"},
        {"header": ""},
        {"header": "sha256="},
        {"header": "sha256=ü"},
        {"header": "md5=0"},
        {"algorithm": "sha224"},
        {"header": "blake2b=0"},
    ],
)
def test_a_push_that_is_not_signed_as_agreed_is_taken_and_ignored(hub, row, source, given):
    subscribed(row)
    assert push(row, **given).status_code == 202
    assert Source.everywhere.get(pk=source.pk).wake_at == source.wake_at
    assert kept().pushed_at is None


def test_a_changed_body_is_ignored(hub, row, source):
    subscribed(row)
    secret = row.secret.open().encode()
    header = "sha256=" + hmac.new(secret, BODY, hashlib.sha256).hexdigest()
    assert push(row, BODY + b" ", header=header).status_code == 202
    assert Source.everywhere.get(pk=source.pk).wake_at == source.wake_at


def test_a_push_of_many_megabytes_is_checked_without_being_kept(hub, row, source, monkeypatch):
    subscribed(row)
    assert push(row, b"x" * 6 * 1024 * 1024).status_code == 202
    assert Source.everywhere.get(pk=source.pk).wake_at == NOON
    monkeypatch.setattr(websub, "MAX_PUSH_BYTES", 1000)
    Source.everywhere.filter(type="rss").update(wake_at=source.wake_at)
    WebSubSubscription.everywhere.update(woken_until=None)
    assert push(row, b"x" * 2000).status_code == 202
    assert Source.everywhere.get(pk=source.pk).wake_at == source.wake_at


def test_a_hub_that_calls_all_the_time_wakes_once_a_minute(hub, row, source, clock):
    subscribed(row)
    push(row)
    tomorrow = NOON + timedelta(days=1)
    Source.everywhere.filter(type="rss").update(wake_at=tomorrow)
    clock.shift(timedelta(seconds=10))
    # The poll has been; what came after it is read a minute after the first.
    push(row)
    assert Source.everywhere.get(type="rss").wake_at == NOON + timedelta(minutes=1)
    token = Source.everywhere.get(type="rss").lease_token
    clock.shift(timedelta(seconds=10))
    push(row)
    after = Source.everywhere.get(type="rss")
    assert (after.wake_at, after.lease_token) == (NOON + timedelta(minutes=1), token)


def test_a_push_overtakes_a_poll_that_may_have_missed_the_change(hub, row, source):
    subscribed(row)
    # In hand, with a lease that ends soon.
    Source.everywhere.filter(type="rss").update(attempts=1, wake_at=NOON)
    held = Source.everywhere.get(type="rss")
    push(row)
    assert held.sleep_until(NOON + timedelta(days=1)) is False
    assert Source.everywhere.get(type="rss").wake_at == NOON


def test_a_source_that_is_told_is_polled_once_a_day(hub, row, workspace, monkeypatch):
    subscribed(row)
    polled = Fetch(entries=(), state={}, not_modified=True, hub=HUB)
    monkeypatch.setattr("pipeline.sources.rss.PLUGIN.fetch", lambda *_, **__: polled)
    Source.everywhere.filter(type="rss").update(wake_at=NOON)
    task_runner.work_all_due("ingest.poll_source")
    wait = Source.everywhere.get(type="rss").wake_at - NOON
    assert timedelta(days=1) <= wait <= timedelta(days=1, hours=3)


def test_a_poll_at_an_hour_that_is_to_be_skipped_is_put_off(source, monkeypatch):
    quiet = Quiet(frozenset({13, 14}))
    polled = Fetch(entries=(), state={}, not_modified=True, quiet=quiet)
    monkeypatch.setattr("pipeline.sources.rss.PLUGIN.fetch", lambda *_, **__: polled)
    Source.everywhere.filter(type="rss").update(wake_at=NOON, poll_interval_minutes=90)
    task_runner.work_all_due("ingest.poll_source")
    assert quiet.end_after(NOON) == NOON
    assert Source.everywhere.get(type="rss").wake_at.hour == 15


def test_what_a_hub_says_is_kept_without_what_no_database_holds(hub, row, monkeypatch):
    monkeypatch.setattr(
        hub,
        "post",
        lambda url, **_: Response(400, Headers([]), b"no\x00 \x1bwhy", url, truncated=False, redirects=()),
    )
    work()
    assert kept().error["message"] == "The hub refused (status 400): no why"


def test_a_reason_is_kept_without_what_no_database_holds(hub, row):
    assert websub.deny(row.token, topic=TOPIC, reason="Too\x00 many\ud800", now=NOON)
    assert kept().error["message"] == "The hub denied the subscription: Too many"


@pytest.mark.parametrize("part", ["hub", "topic"])
def test_a_hub_or_topic_that_is_too_long_is_left_alone(source, part):
    long = "https://hub.example/" + "a" * 2048
    named = Hub((long,), TOPIC) if part == "hub" else Hub(HUB.urls, long)
    assert websub.follow(source, named, now=NOON) is None
    assert not WebSubSubscription.everywhere.exists()
