"""The daily look and the renewal: told once, never two at once, no blame for an outage."""

from datetime import timedelta

import pytest
from django.db import connection as database

from accounts.models import Notice
from config.core import task_runner
from pipeline import outlets
from pipeline.models import Outlet, Publication
from pipeline.outlets import health, renewal
from pipeline.plugins import NeedsReconnect
from pipeline.publish import steps as publish_steps
from tests.pipeline.outlets.conftest import SECRETS
from tests.pipeline.steps import NOON, claimed, facts, promise, reread

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)


def look(outlet):
    outlets.maintain_outlet(claimed(outlet))
    return reread(outlet)


def events(workspace):
    return [one for one in facts(workspace) if one.startswith("outlet.")]


def ends(outlet, moment, began=NOON):
    profile = {**outlet.profile, "renewed_at": began.isoformat()}
    Outlet.everywhere.filter(pk=outlet.pk).update(expires_at=moment, profile=profile)
    return reread(outlet)


# --- When ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("life", "before"),
    [
        (timedelta(days=60), timedelta(days=12)),
        (timedelta(hours=2), timedelta(minutes=24)),
        (timedelta(minutes=30), timedelta(minutes=10)),
        (timedelta(minutes=8), timedelta(minutes=4)),
    ],
)
def test_renewed_at_four_fifths_and_ten_minutes_before_at_the_latest(life, before):
    assert health.renew_at(NOON + life, NOON) == NOON + life - before


def test_next_check_is_the_first_of_day_renewal_and_warning():
    assert NOON + 23 * HOUR <= health.next_check(NOON, None, None) <= NOON + DAY
    assert health.next_check(NOON, NOON + 2 * HOUR, NOON) == NOON + timedelta(minutes=96)
    assert health.next_check(NOON, NOON + 7 * DAY + HOUR, NOON - 90 * DAY) == NOON + HOUR
    # What is over already isn't waited for.
    assert health.next_check(NOON, NOON - HOUR, NOON - DAY) >= NOON + 23 * HOUR


def test_an_outage_is_waited_out_longer_and_longer():
    outlet = Outlet(due_at=NOON)
    waits = [health.wait_after(outlet, None, NOON + after) for after in (0 * HOUR, HOUR, 3 * HOUR, 2 * DAY)]
    assert waits == [15 * MINUTE, HOUR, 3 * HOUR, 6 * HOUR]
    assert health.wait_after(outlet, 2 * HOUR, NOON) == 2 * HOUR
    assert health.wait_after(outlet, 9 * DAY, NOON) == DAY
    outlet.expires_at = NOON + 20 * MINUTE
    assert health.wait_after(outlet, None, NOON) == 5 * MINUTE


# --- Looked at -------------------------------------------------------------------------------------------------------


def test_what_needs_no_log_in_is_never_looked_at(feed, stage):
    assert (feed.wake_at, stage.wake_at) == (None, None)


def test_works_is_noted(outlet, wall, clock):
    wall.me |= {"handle": "@renamed", "box": "back"}
    clock.move_to(NOON + DAY)
    row = look(outlet)
    assert (row.status, row.checked_at, row.attempts) == ("ok", NOON + DAY, 0)
    assert (row.profile["handle"], row.config["box"]) == ("@renamed", "back")
    assert NOON + DAY + 23 * HOUR <= row.wake_at == row.due_at <= NOON + 2 * DAY


def test_refused_is_told_once(workspace, outlet, wall, clock):
    wall.good = set()
    row = look(outlet)
    assert row.status == "needs_reconnect"
    assert (
        row.last_error
        == {
            "code": "needs_reconnect",
            "message": "Letterbox no longer accepts this account's credentials: [secret] is not good here.",
            "at": "2027-03-01T12:00:00.000Z",
        }
        or "token-1" not in row.last_error["message"]
    )
    assert events(workspace) == ["outlet.needs_reconnect"]
    assert Notice.everywhere.filter(kind="outlet_reconnect").count() == 1
    clock.move_to(NOON + DAY)
    look(outlet)
    assert events(workspace) == ["outlet.needs_reconnect"]
    assert Notice.everywhere.filter(kind="outlet_reconnect").count() == 1


def test_works_again_by_itself_and_wakes_what_waits(workspace, outlet, wall, ready):
    publication = promise(ready, outlet)
    wall.good = set()
    publish_steps.advance_publication(claimed(publication))
    assert (reread(outlet).status, reread(publication).status) == ("needs_reconnect", "scheduled")
    wall.good = {"token-1"}
    row = look(outlet)
    assert (row.status, row.last_error) == ("ok", None)
    assert reread(publication).wake_at == NOON


def test_an_outage_blames_nobody(workspace, outlet, wall):
    wall.failing = (503, "busy")
    row = look(outlet)
    assert (row.status, row.last_error, row.attempts) == ("ok", None, 0)
    assert row.wake_at == NOON + 15 * MINUTE
    assert events(workspace) == []


def test_another_account_behind_the_same_secrets_is_no_success(outlet, wall):
    wall.me = {"id": "box-2"}
    row = look(outlet)
    assert (row.status, row.last_error["code"]) == ("needs_reconnect", "another_account")
    assert row.profile["external_id"] == "box-1"


def test_disabled_is_not_asked(outlet, httpserver):
    outlets.switch_off(outlet, by="alice", now=NOON)
    asked = len(httpserver.log)
    row = look(outlet)
    assert (row.status, len(httpserver.log)) == ("disabled", asked)
    assert row.wake_at > NOON + 22 * HOUR


def test_settings_changed_during_the_look_stay(outlet, platform, monkeypatch):
    def meanwhile(self, account, *, http, now):
        outlets.change(
            outlet,
            name="Mine",
            config={"sign": "S"},
            per_day=2,
            gap_minutes=None,
            discloses_ai=True,
            by="a",
            now=now,
        )
        return original(self, account, http=http, now=now)

    original = type(platform).check_account
    monkeypatch.setattr(type(platform), "check_account", meanwhile)
    row = look(outlet)
    assert (row.name, row.config["sign"], row.per_day) == ("Mine", "S", 2)


def test_given_up_is_looked_at_tomorrow(outlet):
    row = claimed(outlet)
    outlets.give_up(row)
    assert (reread(outlet).status, reread(outlet).attempts) == ("ok", 0)
    assert reread(outlet).wake_at >= NOON + 23 * HOUR


def test_the_hands_find_it(outlet, clock):
    clock.move_to(NOON + DAY + MINUTE)
    assert task_runner.work_all_due("publish.check_outlet") == 1
    assert reread(outlet).checked_at == NOON + DAY + MINUTE


# --- Renewed ---------------------------------------------------------------------------------------------------------


def test_renewed_when_it_is_time(outlet, wall, clock):
    ends(outlet, NOON + HOUR)
    clock.move_to(NOON + 47 * MINUTE)
    assert look(outlet).credentials.open_object() == SECRETS
    clock.move_to(NOON + 48 * MINUTE)
    row = look(outlet)
    assert row.credentials.open_object() == {"token": "token-2", "refresh": "refresh-2"}
    assert row.expires_at == NOON + 48 * MINUTE + HOUR
    assert row.wake_at == NOON + 96 * MINUTE
    assert wall.renewals == 1


def test_disabled_is_renewed_all_the_same(outlet, wall, clock):
    ends(outlet, NOON + HOUR)
    outlets.switch_off(outlet, by="alice", now=NOON)
    clock.move_to(NOON + 50 * MINUTE)
    assert look(outlet).status == "disabled"
    assert wall.renewals == 1


def test_refused_renewal_asks_for_a_person(workspace, outlet, wall, clock):
    ends(outlet, NOON + HOUR)
    wall.refresh = "another"
    clock.move_to(NOON + 50 * MINUTE)
    row = look(outlet)
    assert (row.status, row.last_error["code"]) == ("needs_reconnect", "refresh_refused")
    assert events(workspace) == ["outlet.needs_reconnect"]


def test_people_are_told_once_of_an_end_that_nothing_can_renew(connect, clock):
    outlet = ends(connect(credentials={"token": "token-1"}), NOON + 60 * DAY)
    for days, told in ((52, 0), (53, 1), (54, 1)):
        clock.move_to(NOON + timedelta(days=days, minutes=1))
        look(outlet)
        assert Notice.everywhere.filter(kind="outlet_reconnect").count() == told
    assert reread(outlet).expiry_told_at == NOON + timedelta(days=53, minutes=1)
    assert "within 6 days" in Notice.everywhere.get(kind="outlet_reconnect").title
    again = outlets.reconnect(
        reread(outlet), config={}, credentials={"token": "token-1"}, by="a", now=NOON + 55 * DAY
    )
    assert again.expiry_told_at is None


# --- Before a publication --------------------------------------------------------------------------------------------


def test_fresh_renews_what_ends_within_two_minutes(outlet, wall):
    near = ends(outlet, NOON + 3 * MINUTE)
    assert outlets.fresh_credentials(near, now=NOON) is near
    near = ends(outlet, NOON + 2 * MINUTE)
    found = outlets.fresh_credentials(near, now=NOON)
    assert found.credentials.open_object() == {"token": "token-2", "refresh": "refresh-2"}
    assert (found.attempts, found.wake_at) == (0, NOON + 48 * MINUTE)
    # Who read the row before uses what is there now.
    assert outlets.fresh_credentials(near, now=NOON).credentials.open_object()["token"] == "token-2"
    assert wall.renewals == 1


def test_fresh_never_renews_beside_a_hand(outlet, wall):
    near = ends(outlet, NOON + MINUTE)
    claimed(near)
    with pytest.raises(outlets.BeingRenewed) as raised:
        outlets.fresh_credentials(near, now=NOON)
    assert raised.value.after == timedelta(seconds=5)
    assert wall.renewals == 0


def test_fresh_goes_on_after_a_hand_that_was_killed(outlet, wall, clock):
    near = ends(outlet, NOON + MINUTE)
    claimed(near)
    clock.move_to(NOON + 61 * timedelta(seconds=1))
    assert outlets.fresh_credentials(near).credentials.open_object()["token"] == "token-2"


def test_a_failed_renewal_gives_the_turn_back(outlet, wall):
    near = ends(outlet, NOON + MINUTE)
    wall.refresh = "another"
    with pytest.raises(NeedsReconnect):
        outlets.fresh_credentials(near, now=NOON)
    assert reread(outlet).attempts == 0


@pytest.mark.django_db(transaction=True)
def test_many_at_once_renew_once(outlet, wall, together):
    near = ends(outlet, NOON + MINUTE)

    def fresh():
        return outlets.fresh_credentials(near, now=NOON)

    found = together(*[fresh] * 6)
    kinds = {type(one).__name__ for one in found}
    assert kinds <= {"Outlet", "BeingRenewed"}
    assert "Outlet" in kinds
    assert wall.renewals == 1
    assert reread(outlet).credentials.open_object()["refresh"] == wall.refresh


def test_one_that_looked_before_another_ended_does_not_renew_again(outlet, wall, monkeypatch):
    near = ends(outlet, NOON + MINUTE)
    renew, read, seen = renewal.renew, renewal.reload_outlet, []

    def watched(row, now):
        # The other one reads the row while it is held, and gets its turn after the end.
        seen.append(read(row))
        return renew(row, now)

    monkeypatch.setattr(renewal, "renew", watched)
    outlets.fresh_credentials(near, now=NOON)
    monkeypatch.setattr(renewal, "reload_outlet", lambda row: seen.pop() if seen else read(row))
    found = outlets.fresh_credentials(near, now=NOON)
    assert found.credentials.open_object()["refresh"] == wall.refresh
    assert (wall.renewals, seen) == (1, [])
    assert reread(outlet).attempts == 0


def test_a_publication_renews_and_is_sent(outlet, wall, ready):
    ends(outlet, NOON + MINUTE)
    wall.good = set()
    publication = promise(ready, outlet)
    publish_steps.advance_publication(claimed(publication))
    assert reread(publication).status == "published"
    assert wall.renewals == 1


def test_a_publication_waits_for_somebody_elses_renewal(outlet, wall, ready):
    ends(outlet, NOON + MINUTE)
    claimed(outlet)
    publication = promise(ready, outlet)
    publish_steps.advance_publication(claimed(publication))
    row = reread(publication)
    # No try was used up, and nothing is told.
    assert (row.status, row.attempt_count, row.error) == ("scheduled", 0, None)
    assert row.wake_at == NOON + timedelta(seconds=5)


def test_a_refused_renewal_fails_the_publication_and_says_why(outlet, wall, ready):
    ends(outlet, NOON + MINUTE)
    wall.refresh = "another"
    publication = promise(ready, outlet)
    publish_steps.advance_publication(claimed(publication))
    row = reread(publication)
    assert (row.status, row.error["code"], row.error["class"]) == ("scheduled", "refresh_refused", "account")
    assert reread(outlet).status == "needs_reconnect"


def test_no_transaction_is_open_while_the_platform_is_asked(outlet, platform, monkeypatch, wall):
    open_ones = []

    def note(name):
        original = getattr(type(platform), name)

        def run(self, account, *, http, now):
            open_ones.append(len(database.savepoint_ids))
            return original(self, account, http=http, now=now)

        monkeypatch.setattr(type(platform), name, run)

    note("check_account")
    note("renew")
    depth = len(database.savepoint_ids)
    ends(outlet, NOON + MINUTE, NOON - HOUR)
    outlet = look(outlet)
    outlets.reconnect(
        outlet, config={}, credentials={"token": "token-2", "refresh": "refresh-2"}, by="a", now=NOON
    )
    assert open_ones == [depth] * 3


@pytest.mark.parametrize("point", ["outlets.claimed", "outlets.renewed"])
def test_a_hand_killed_there_never_ends_in_silence(workspace, outlet, wall, clock, monkeypatch, point):
    """Killed before the call: renewed later. Killed after it: the rotated token is lost, and people are
    asked."""

    class Killed(BaseException):
        pass

    def crash(name):
        if name == point:
            raise Killed

    ends(outlet, NOON + HOUR)
    clock.move_to(NOON + 50 * MINUTE)
    with monkeypatch.context() as patch:
        patch.setattr(renewal, "crash_point", crash)
        with pytest.raises(Killed):
            outlets.maintain_outlet(claimed(outlet))
    clock.move_to(NOON + 52 * MINUTE)
    assert task_runner.work_all_due("publish.check_outlet") == 1
    row = reread(outlet)
    if point == "outlets.claimed":
        assert (row.status, row.credentials.open_object()["refresh"]) == ("ok", wall.refresh)
    else:
        assert (row.status, row.last_error["code"]) == ("needs_reconnect", "refresh_refused")
        assert events(workspace) == ["outlet.needs_reconnect"]
    assert Publication.everywhere.count() == 0
