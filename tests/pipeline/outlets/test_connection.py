"""Connecting: the platform is asked first; the same account once; its secrets are never told."""

from datetime import timedelta

import pytest

from accounts.models import AuditEntry
from config.core.errors import AppError, Conflict, Invalid
from config.core.ids import encode
from pipeline import outlets
from pipeline.models import Outlet, Publication
from pipeline.outlets.check_account import CannotAsk
from pipeline.publish import disconnect_outlet
from pipeline.publish import steps as publish_steps
from tests.pipeline.outlets.conftest import SECRETS
from tests.pipeline.steps import NOON, claimed, make_items, promise, reread

BY = {"by": "bob@example.test", "now": NOON}


def problems(raised):
    return [(one.field, one.code) for one in raised.value.detail]


def count(workspace):
    return Outlet.objects.of(workspace).filter(platform="letterbox").count()


def test_connect_keeps_what_the_platform_says(workspace, connect, wall):
    wall.me |= {"ends_in": 3600, "notes": ["The box is small."]}
    outlet = connect()
    assert (outlet.name, outlet.status, outlet.connected_by) == ("Corner box", "ok", "alice@example.test")
    assert outlet.config == {"server": wall.url, "box": "front", "too_long": "refuse", "link": "none"}
    assert outlet.credentials.open_object() == SECRETS
    assert outlet.profile == {
        "external_id": "box-1",
        "handle": "@corner",
        "name": "Corner box",
        "url": "",
        "scopes": [],
        "limits": {},
        "notes": ["The box is small."],
        "renewed_at": "2027-03-01T12:00:00.000Z",
    }
    assert (outlet.connected_at, outlet.checked_at) == (NOON, NOON)
    assert outlet.expires_at == NOON + timedelta(hours=1)
    # Four fifths of an hour are 48 minutes.
    assert outlet.wake_at == outlet.due_at == NOON + timedelta(minutes=48)
    entry = AuditEntry.everywhere.filter(action="outlet.connected").get()
    assert (entry.actor, entry.subject) == ("alice@example.test", encode("out", outlet.pk))
    assert entry.details == {"name": "Corner box", "platform": "letterbox", "account": "@corner"}


def test_connect_without_an_end_is_checked_within_a_day(connect):
    outlet = connect(name="  My   box ")
    assert outlet.name == "My box"
    assert outlet.expires_at is None
    assert NOON + timedelta(hours=23) <= outlet.wake_at <= NOON + timedelta(hours=24)


def test_connect_names_every_field_before_it_asks(workspace, wall, httpserver):
    with pytest.raises(Invalid) as raised:
        outlets.connect_outlet(
            workspace, "letterbox", name="", config={"serv": "x"}, credentials={"token": ""}, **BY
        )
    assert problems(raised) == [
        ("config.serv", "unknown_field"),
        ("config.server", "required"),
        ("credentials.token", "required"),
    ]
    assert httpserver.log == []


@pytest.mark.parametrize("kind", ["feed", "simulated", "typewriter"])
def test_connect_takes_connectable_kinds_only(workspace, kind):
    with pytest.raises(Invalid) as raised:
        outlets.connect_outlet(workspace, kind, name="", config={}, credentials={}, **BY)
    assert problems(raised)[0][0] == "kind"


@pytest.mark.parametrize(
    ("failing", "kind", "field", "code"),
    [
        ((401, "{token} is wrong"), Invalid, "credentials", "needs_reconnect"),
        ((404, "no box at {token}"), Invalid, "config", "refused"),
        ((503, "{token} has to wait"), CannotAsk, None, "temporary"),
    ],
)
def test_connect_tells_a_refusal_without_the_secret(workspace, connect, wall, failing, kind, field, code):
    wall.failing = failing
    with pytest.raises(kind) as raised:
        connect(credentials={"token": "canary-4711"})
    assert problems(raised) == [(field, code)]
    assert "[secret]" in str(raised.value)
    assert "canary-4711" not in str(raised.value)
    assert count(workspace) == 0


def test_connect_to_nobody_is_told(workspace, connect):
    with pytest.raises(CannotAsk) as raised:
        connect(config={"server": "http://127.0.0.1:9"})
    assert "couldn't be reached" in str(raised.value)
    assert raised.value.status == 503


def test_connect_refuses_the_same_account_twice(workspace, connect, charlies):
    connect(name="First")
    with pytest.raises(Invalid) as raised:
        connect(name="Second")
    assert problems(raised) == [("account", "already_connected")]
    assert "First" in str(raised.value)
    # Another workspace's is its own affair.
    assert connect(workspace=charlies).workspace_id == charlies.pk


@pytest.mark.django_db(transaction=True)
def test_connect_at_once_makes_one(workspace, connect, together):
    found = together(connect, connect)
    assert sorted(type(one).__name__ for one in found) == ["Invalid", "Outlet"]
    assert count(workspace) == 1


# --- Again -----------------------------------------------------------------------------------------------------------


def test_reconnect_takes_new_secrets_and_wakes_what_waits(workspace, outlet, wall, ready):
    publication = promise(ready, outlet)
    wall.good = {"token-9"}
    publish_steps.advance_publication(claimed(publication))
    assert (reread(outlet).status, reread(publication).status) == ("needs_reconnect", "scheduled")
    Publication.everywhere.filter(pk=publication.pk).update(wake_at=NOON + timedelta(hours=2))
    later = outlets.reconnect(outlet, config={}, credentials={"token": "token-9"}, **BY)
    assert (later.status, later.last_error, later.connected_by) == ("ok", None, "bob@example.test")
    assert later.credentials.open_object() == {"token": "token-9"}
    assert later.config["server"] == wall.url
    assert reread(publication).wake_at == NOON
    publish_steps.advance_publication(claimed(publication))
    assert reread(publication).status == "published"


def test_reconnect_refuses_another_account(outlet, wall):
    wall.me = {"id": "box-2", "handle": "@other"}
    with pytest.raises(Invalid) as raised:
        outlets.reconnect(outlet, config={}, credentials=SECRETS, **BY)
    assert problems(raised) == [("credentials", "another_account")]
    assert "@other" in str(raised.value)
    assert "@corner" in str(raised.value)
    assert reread(outlet).connected_by == "alice@example.test"


def test_reconnect_overtakes_a_hand_that_renews(outlet):
    hand = claimed(outlet)
    outlets.reconnect(outlet, config={}, credentials=SECRETS, **BY)
    assert hand.sleep_until(None) is False


# --- Changed ---------------------------------------------------------------------------------------------------------


def change(outlet, **changes):
    given = {
        "name": "Box",
        "config": {},
        "per_day": None,
        "gap_minutes": None,
        "discloses_ai": True,
        **BY,
        **changes,
    }
    return outlets.change(outlet, **given)


def test_change_writes_what_needs_no_secret(outlet, wall):
    changed = change(
        outlet,
        config={"sign": "The corner", "link": "end"},
        per_day=3,
        gap_minutes=60,
        discloses_ai=False,
    )
    row = reread(outlet)
    assert row.version == changed.version == outlet.version + 1
    assert (row.name, row.per_day, row.gap_minutes, row.discloses_ai) == ("Box", 3, 60, False)
    assert row.config == {
        "server": wall.url,
        "box": "front",
        "sign": "The corner",
        "too_long": "refuse",
        "link": "end",
    }


def test_change_never_leads_the_secrets_elsewhere(outlet, wall):
    with pytest.raises(Invalid) as raised:
        change(outlet, config={"server": "https://thief.example"})
    assert problems(raised) == [("config.server", "fixed")]
    assert reread(outlet).config["server"] == wall.url


def test_change_names_what_cannot_be_used(outlet):
    with pytest.raises(Invalid) as raised:
        change(outlet, per_day=0, gap_minutes=999_999)
    assert problems(raised) == [("per_day", "out_of_range"), ("gap_minutes", "out_of_range")]
    with pytest.raises(Invalid) as raised:
        change(outlet, name=" ")
    assert problems(raised) == [("name", "required")]


def test_off_and_on(outlet):
    assert outlets.switch_off(outlet, **BY).status == "disabled"
    on = outlets.switch_on(outlet, **BY)
    assert (on.status, reread(outlet).wake_at) == ("ok", NOON)
    with pytest.raises(Conflict):
        outlets.switch_on(outlet, **BY)


def test_switched_on_while_a_hand_has_it_leaves_it_that_hand(outlet):
    hand = claimed(outlet)
    outlets.switch_off(outlet, **BY)
    outlets.switch_on(outlet, **BY)
    assert reread(outlet).wake_at == hand.wake_at
    assert hand.sleep_until(None) is True


def test_default_is_kept_in_both_places(outlet, defaults):
    name = encode("out", outlet.pk)
    assert outlets.set_default(outlet, True, **BY) is True
    assert outlets.set_default(outlet, True, **BY) is False
    assert (reread(defaults).outlets[-1], reread(outlet).is_default) == (name, True)
    assert outlets.set_default(outlet, False, **BY) is True
    assert name not in reread(defaults).outlets
    assert reread(outlet).is_default is False


# --- Disconnected ----------------------------------------------------------------------------------------------------


def test_disconnect_erases_and_cancels(workspace, outlet, feed, defaults):
    outlets.set_default(outlet, True, **BY)
    first, second = (
        make_items(workspace, title=f"Tram {number}", url=f"https://news.example/{number}")[0]
        for number in (1, 2)
    )
    later = NOON + timedelta(days=1)
    ours = [promise(one, outlet, publish_at=later) for one in (first, second)]
    other = promise(first, feed, publish_at=later)
    assert disconnect_outlet.count_affected(outlet) == {"scheduled": 2, "unknown": 0}
    assert disconnect_outlet.disconnect_outlet(outlet, **BY) == 2
    row = reread(outlet)
    assert (row.credentials, row.deleted_at, row.wake_at, row.is_default) == (None, NOON, None, False)
    assert encode("out", outlet.pk) not in reread(defaults).outlets
    assert [reread(one).status for one in ours] == ["cancelled", "cancelled"]
    assert (reread(first).status, reread(second).status) == ("scheduled", "ready")
    assert reread(other).status == "scheduled"
    with pytest.raises(Conflict):
        disconnect_outlet.disconnect_outlet(outlet, **BY)


def test_disconnect_waits_for_what_is_under_way(workspace, outlet, ready):
    publication = promise(ready, outlet)
    publication.status = "publishing"
    publication.save()
    with pytest.raises(Conflict) as raised:
        disconnect_outlet.disconnect_outlet(outlet, **BY)
    assert problems(raised) == [("status", "in_flight")]
    assert reread(outlet).deleted_at is None


def test_disconnect_leaves_an_open_outcome_unasked(outlet, ready, wall, httpserver):
    publication = promise(ready, outlet)
    wall.failing = (500, "perhaps")
    publish_steps.advance_publication(claimed(publication))
    assert reread(publication).status == "unknown"
    disconnect_outlet.disconnect_outlet(outlet, **BY)
    asked = len(httpserver.log)
    publish_steps.advance_publication(claimed(publication))
    assert (reread(publication).status, reread(publication).lookups) == ("unknown", 1)
    assert len(httpserver.log) == asked


def test_disconnect_and_connect_again(outlet, connect):
    disconnect_outlet.disconnect_outlet(outlet, **BY)
    assert connect().pk != outlet.pk


def test_a_workspace_keeps_its_feed(feed):
    with pytest.raises(AppError) as raised:
        disconnect_outlet.disconnect_outlet(feed, **BY)
    assert problems(raised) == [("status", "not_connectable")]
