"""Bluesky takes 300 sign-ins a day: one connects an account, and its session goes on from there."""

import dataclasses
from datetime import timedelta

import pytest

from pipeline import outlets, publish
from pipeline.models import Outlet
from tests.pipeline.steps import NOON, claimed, promise, reread, send
from tests.platforms.servers.bluesky import APP_PASSWORD, DID, HANDLE, Server

LIFE = timedelta(hours=2)


@pytest.fixture
def server():
    with Server() as there:
        there.now = NOON
        yield there


@pytest.fixture
def account(server):
    return {
        "config": {"handle": HANDLE, "server": server.url, "appview": server.url},
        "credentials": {"app_password": APP_PASSWORD},
        "by": "alice@example.test",
        "now": NOON,
    }


@pytest.fixture
def bluesky(workspace, account):
    return outlets.connect_outlet(workspace, "bluesky", name="", **account)


def asked(server, name):
    return sum(one.path.endswith(f".server.{name}") for one in server.requests)


def test_what_follows_connecting_goes_on_with_its_session(ready, bluesky, server):
    kept = bluesky.credentials.open_object()
    assert (kept.keys(), bluesky.expires_at) == (
        {"app_password", "access_token", "refresh_token"},
        NOON + LIFE,
    )
    row = send(promise(ready, bluesky))
    publish.request_removal(row, now=NOON)
    assert (row.status, send(row).status) == ("published", "removed")
    assert (asked(server, "createSession"), asked(server, "refreshSession")) == (1, 0)


def test_the_first_renewal_needs_no_password(bluesky, server, clock):
    was = bluesky.credentials.open_object()
    # Four fifths of its life.
    server.now = NOON + timedelta(minutes=96)
    clock.move_to(server.now)
    outlets.maintain_outlet(claimed(bluesky))
    row = reread(bluesky)
    now = row.credentials.open_object()
    assert (row.status, row.expires_at) == ("ok", server.now + LIFE)
    assert now["refresh_token"] != was["refresh_token"]
    assert (asked(server, "createSession"), asked(server, "refreshSession")) == (1, 1)


def test_taking_back_renews_a_session_that_ended_first(ready, bluesky, server, clock):
    row = send(promise(ready, bluesky))
    server.now = NOON + 2 * LIFE
    clock.move_to(server.now)
    publish.request_removal(row, now=server.now)
    assert send(row).status == "removed"
    assert (asked(server, "createSession"), asked(server, "refreshSession")) == (1, 1)


def test_a_session_that_the_server_ended_is_replaced_by_the_daily_look(bluesky, server, clock):
    with server.lock:
        server.live.clear()
        server.refreshing.clear()
    server.now = NOON + timedelta(minutes=30)
    clock.move_to(server.now)
    outlets.maintain_outlet(claimed(bluesky))
    row = reread(bluesky)
    assert row.credentials.open_object()["access_token"] in server.live
    assert (row.profile["renewed_at"], row.expires_at) == ("2027-03-01T12:30:00.000Z", server.now + LIFE)
    assert asked(server, "createSession") == 2


def test_connecting_again_keeps_the_new_session(bluesky, account, server):
    again = outlets.reconnect(bluesky, **{**account, "config": {}})
    kept = again.credentials.open_object()
    assert (kept["app_password"], kept["access_token"] in server.live) == (APP_PASSWORD, True)
    assert kept["access_token"] != bluesky.credentials.open_object()["access_token"]
    assert (Outlet.everywhere.get(pk=bluesky.pk).profile["external_id"], asked(server, "createSession")) == (
        DID,
        2,
    )


@pytest.mark.parametrize("status", [429, 503])
def test_a_server_that_is_busy_isnt_asked_by_password(bluesky, server, clock, status):
    """Only a refresh token that was refused costs a sign-in."""
    was = bluesky.credentials.open_object()
    with server.lock:
        handle = server.refresh_session
        server.refresh_session = lambda request: dataclasses.replace(handle(request), status=status, body={})
    clock.move_to(NOON + timedelta(minutes=96))
    outlets.maintain_outlet(claimed(bluesky))
    row = reread(bluesky)
    assert (row.status, row.credentials.open_object()) == ("ok", was)
    assert asked(server, "createSession") == 1
