"""Notices: told once per happening, to those who want it, by their channels, at once or in the morning."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta

import pytest
from django.core import mail
from django.db import transaction
from django.db.transaction import TransactionManagementError

from accounts import limits, notices, workspaces
from accounts.ledger import credits
from accounts.models import (
    AuditEntry,
    CreditBalance,
    Membership,
    Notice,
    NoticeChoice,
    NoticeDigest,
    NoticeMessage,
    Workspace,
)
from accounts.notices.digest import DigestLine
from config.core import task_runner, work_queue
from config.core.ids import uuid7
from tests.factories import MembershipFactory

KINDS = ("mail.spread_notice", "mail.send_notice")
MORNING = datetime(2026, 3, 2, 7, 0, tzinfo=UTC)
"""08:00 in Berlin, in winter."""


@pytest.fixture
def newsroom(alice, settings):
    settings.WORKSPACE_FURNISHERS = ["accounts.notices.open_digest"]
    return workspaces.create("Newsroom", owner=alice, timezone="Europe/Berlin")


def happen(workspace, key="one", kind="post_failed", **given):
    with transaction.atomic():
        return notices.record(
            kind,
            workspace_id=workspace.pk,
            key=key,
            **{"title": "“Ferries” was not published", "text": "Rejected.", **given},
        )


def choose(workspace, user, *, by_mail=True, slack_url="", telegram_token="", telegram_chat="", **kinds):
    notices.save_preferences(
        workspace,
        user,
        kinds,
        by_mail=by_mail,
        slack_url=slack_url,
        telegram_token=telegram_token,
        telegram_chat=telegram_chat,
    )


def work():
    return task_runner.work_all_due(*KINDS)


def told():
    return sorted((message.to[0], message.subject) for message in mail.outbox)


def outcomes():
    rows = NoticeMessage.everywhere.order_by("user__email", "channel", "id")
    return [(row.user.email, row.channel, row.status) for row in rows.select_related("user")]


# --- Record and spread -----------------------------------------------------------------------------------------------


def test_a_happening_is_told_once_to_owners_by_default(newsroom, alice, bob, charlie):
    assert [happen(newsroom), happen(newsroom)] == [True, False]
    work()
    assert told() == [("alice@example.test", "“Ferries” was not published")]
    assert outcomes() == [("alice@example.test", "mail", "sent")]
    [message] = mail.outbox
    assert f"/w/{newsroom.public_id}/" in message.body
    assert f"/w/{newsroom.public_id}/settings/notices" in message.body
    assert [kind for _, kind in message.alternatives] == ["text/html"]


def test_another_happening_is_another_notice(newsroom):
    happen(newsroom, "one")
    happen(newsroom, "two")
    work()
    assert len(mail.outbox) == 2


def test_the_same_key_in_another_workspace_is_another_notice(newsroom, charlie):
    elsewhere = Workspace.everywhere.get(name="Elsewhere")
    assert [happen(newsroom), happen(elsewhere)] == [True, True]
    work()
    assert [to for to, _ in told()] == ["alice@example.test", "charlie@example.test"]


def test_nothing_is_recorded_outside_the_change_s_transaction(newsroom, transactional_db):
    with pytest.raises(TransactionManagementError):
        notices.record("quota", workspace_id=newsroom.pk, key="x", title="x", text="x")
    assert Notice.everywhere.count() == 0


def test_a_change_that_is_undone_tells_nothing(newsroom):
    with transaction.atomic():
        happen(newsroom)
        transaction.set_rollback(True)
    assert (work(), Notice.everywhere.count()) == (0, 0)


def test_an_unknown_kind_is_our_own_fault(newsroom):
    with pytest.raises(LookupError):
        happen(newsroom, kind="gossip")


def test_choices_are_each_person_s_own(newsroom, alice, bob):
    choose(newsroom, alice, post_failed="off")
    choose(newsroom, bob, post_failed="now")
    happen(newsroom)
    work()
    assert told() == [("bob@example.test", "“Ferries” was not published")]
    assert AuditEntry.everywhere.filter(action="notices.chosen").count() == 2


def test_who_has_left_is_told_nothing(newsroom, alice, bob):
    choose(newsroom, bob, post_failed="now")
    happen(newsroom)
    task_runner.work_all_due("mail.spread_notice")
    Membership.everywhere.filter(user=bob).delete()
    work()
    assert [to for to, _ in told()] == ["alice@example.test"]
    assert outcomes() == [
        ("alice@example.test", "mail", "sent"),
        ("bob@example.test", "mail", "dropped"),
    ]


def test_nobody_of_a_deleted_workspace_is_told(newsroom):
    happen(newsroom)
    Workspace.everywhere.filter(pk=newsroom.pk).update(deleted_at=datetime.now(UTC))
    work()
    assert (outcomes(), mail.outbox) == ([], [])


def test_a_flood_waits_for_the_digest(newsroom):
    for number in range(limits.NOTICES_AT_ONCE_MOST + 3):
        happen(newsroom, str(number))
        work()
    assert len(mail.outbox) == limits.NOTICES_AT_ONCE_MOST
    assert NoticeMessage.everywhere.filter(status="gathered").count() == 3
    # Another kind isn't held back by it.
    happen(newsroom, kind="quota")
    work()
    assert len(mail.outbox) == limits.NOTICES_AT_ONCE_MOST + 1


# --- Channels --------------------------------------------------------------------------------------------------------


def test_slack_gets_the_words_and_the_way_there(newsroom, alice, httpserver):
    httpserver.expect_oneshot_request("/services/T0/B0/secret", method="POST").respond_with_data("ok")
    choose(
        newsroom,
        alice,
        by_mail=False,
        slack_url=httpserver.url_for("/services/T0/B0/secret"),
        post_failed="now",
    )
    happen(newsroom, path="#failed")
    work()
    assert outcomes() == [("alice@example.test", "slack", "sent")]
    [(request, _)] = httpserver.log
    text = json.loads(request.data)["text"]
    assert text.splitlines()[:2] == ["Newsroom: “Ferries” was not published", "Rejected."]
    assert text.endswith(f"/w/{newsroom.public_id}/#failed")


def test_a_title_calls_nobody_in_slack_and_hides_no_link(newsroom, alice, httpserver):
    """A feed's title, or what a platform said, in the signs that Slack takes for its own."""
    httpserver.expect_oneshot_request("/services/T0/B0/secret", method="POST").respond_with_data("ok")
    url = httpserver.url_for("/services/T0/B0/secret")
    choose(newsroom, alice, by_mail=False, slack_url=url, post_failed="now")
    hostile = "<!channel> <https://evil.example|Log in> & more"
    happen(newsroom, title=hostile, text=hostile)
    work()
    [(request, _)] = httpserver.log
    text = json.loads(request.data)["text"]
    assert text.count("&lt;!channel&gt; &lt;https://evil.example|Log in&gt; &amp; more") == 2
    assert not set("<>") & set(text)


def test_telegram_gets_it_in_the_chosen_chat(newsroom, alice, httpserver, settings):
    settings.TELEGRAM_API_URL = httpserver.url_for("").rstrip("/")
    httpserver.expect_oneshot_request("/bot12:abc/sendMessage", method="POST").respond_with_json({"ok": True})
    choose(newsroom, alice, telegram_token="12:abc", telegram_chat="-100", post_failed="now")
    happen(newsroom)
    work()
    assert outcomes() == [
        ("alice@example.test", "mail", "sent"),
        ("alice@example.test", "telegram", "sent"),
    ]
    [(request, _)] = httpserver.log
    assert json.loads(request.data)["chat_id"] == "-100"


def test_what_is_not_taken_is_tried_again_and_then_said(newsroom, alice, httpserver):
    httpserver.expect_request("/hook").respond_with_data("no_service", status=404)
    choose(newsroom, alice, by_mail=False, slack_url=httpserver.url_for("/hook"), post_failed="now")
    happen(newsroom)
    waits = []
    for _ in range(len(limits.NOTICE_RETRIES) + 1):
        work()
        row = NoticeMessage.everywhere.get()
        waits.append(row.wake_at and round((row.wake_at - work_queue.database_now()).total_seconds() / 60))
        NoticeMessage.everywhere.filter(wake_at__isnull=False).update(wake_at=work_queue.database_now())
    assert waits == [1, 10, 60, 360, None]
    assert (row.status, row.error) == ("failed", "Slack answered 404: check what you pasted here.")
    assert row.failures == len(limits.NOTICE_RETRIES) + 1


def test_an_error_names_no_secret(newsroom, alice, settings):
    settings.OUTBOUND_ALLOW_LOOPBACK = False
    choose(newsroom, alice, by_mail=False, slack_url="http://127.0.0.1:9/services/secret", post_failed="now")
    happen(newsroom)
    work()
    assert NoticeMessage.everywhere.get().error == "Slack could not be reached."


def test_a_relay_that_is_away_is_tried_again(newsroom, settings):
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", 9
    happen(newsroom)
    work()
    row = NoticeMessage.everywhere.get()
    assert (row.status, row.failures) == ("pending", 1)
    assert row.error.startswith("The mail relay did not take it: ")


def test_secrets_are_sealed(newsroom, alice):
    from django.db import connection

    choose(newsroom, alice, slack_url="https://hooks.slack.com/x", telegram_token="12:abc", telegram_chat="1")
    with connection.cursor() as cursor:
        cursor.execute("SELECT slack_url, telegram_token FROM notice_choice")
        kept = str(cursor.fetchone())
    assert "slack.com" not in kept
    assert "12:abc" not in kept
    assert NoticeChoice.everywhere.get().slack_url == "https://hooks.slack.com/x"
    assert "slack.com" not in str(AuditEntry.everywhere.get(action="notices.chosen").details)


def test_a_channel_that_was_closed_meanwhile_gets_nothing(newsroom, alice):
    happen(newsroom)
    task_runner.work_all_due("mail.spread_notice")
    choose(newsroom, alice, by_mail=False, post_failed="now")
    work()
    assert outcomes() == [("alice@example.test", "mail", "dropped")]


def test_a_test_goes_to_one_person_once(newsroom, alice, bob):
    notices.send_test(newsroom, bob, "click")
    notices.send_test(newsroom, bob, "click")
    work()
    assert told() == [("bob@example.test", "Test notification from Newsroom")]


def test_a_hand_that_lost_its_lease_writes_nothing(newsroom):
    happen(newsroom)
    task_runner.work_all_due("mail.spread_notice")
    stale = NoticeMessage.everywhere.get()
    NoticeMessage.everywhere.update(lease_token=5)
    notices.deliver_message(stale)
    assert outcomes() == [("alice@example.test", "mail", "pending")]
    row = Notice.everywhere.get()
    row.lease_token -= 1
    notices.write_messages(row)
    assert NoticeMessage.everywhere.count() == 1


def test_giving_up_is_seen(newsroom):
    happen(newsroom)
    task_runner.work_all_due("mail.spread_notice")
    notices.give_up(NoticeMessage.everywhere.get())
    assert outcomes() == [("alice@example.test", "mail", "failed")]
    happen(newsroom, "two")
    notices.give_up_notice(Notice.everywhere.get(key="two"))
    assert Notice.everywhere.filter(wake_at__isnull=False).count() == 0


# --- The digest ------------------------------------------------------------------------------------------------------


def put_together(workspace, *lines, now=MORNING):
    NoticeDigest.everywhere.filter(workspace=workspace).update(due_at=MORNING, wake_at=MORNING)
    row = NoticeDigest.everywhere.select_related("workspace").get(workspace=workspace)
    notices.send_digest(row, lines, now=now)
    work()


WAITING = DigestLine("reviews_waiting", "3 items to review")


def test_owners_and_editors_hear_daily_of_reviews_by_default(newsroom, bob, charlie):
    MembershipFactory(workspace=newsroom, user__email="vera@example.test", role=Membership.Role.VIEWER)
    put_together(newsroom, WAITING)
    assert told() == [
        ("alice@example.test", "1 event from Newsroom"),
        ("bob@example.test", "1 event from Newsroom"),
    ]
    assert "3 items to review" in mail.outbox[0].body


def test_a_digest_with_nothing_in_it_is_not_sent(newsroom, bob):
    put_together(newsroom)
    assert mail.outbox == []
    assert NoticeDigest.everywhere.get().due_at == MORNING + timedelta(days=1)


def test_a_digest_holds_what_was_gathered_once(newsroom, alice):
    choose(newsroom, alice, post_failed="daily", reviews_waiting="off")
    happen(newsroom, "one")
    happen(newsroom, "two")
    work()
    assert mail.outbox == []
    put_together(newsroom, WAITING)
    assert told() == [("alice@example.test", "2 events from Newsroom")]
    assert mail.outbox[0].body.count("Rejected.") == 2
    assert "To review" not in mail.outbox[0].body
    put_together(newsroom, now=MORNING + timedelta(days=1))
    assert len(mail.outbox) == 1


def test_one_morning_has_one_digest(newsroom):
    put_together(newsroom, WAITING)
    put_together(newsroom, WAITING)
    assert len(mail.outbox) == 1


def test_a_long_digest_says_how_much_is_left_out(newsroom, alice):
    lines = [DigestLine("reviews_waiting", f"Line {number}.") for number in range(limits.DIGEST_LINES + 7)]
    put_together(newsroom, *lines)
    assert "And 7 more." in mail.outbox[0].body
    assert f"Line {limits.DIGEST_LINES}." not in mail.outbox[0].body


def test_a_workspace_that_moved_waits_for_its_own_morning(newsroom):
    Workspace.everywhere.filter(pk=newsroom.pk).update(timezone="America/New_York")
    put_together(newsroom, WAITING)
    assert mail.outbox == []
    assert NoticeDigest.everywhere.get().due_at == datetime(2026, 3, 2, 13, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("after", "zone", "morning"),
    [
        (datetime(2026, 3, 2, 6, 59, tzinfo=UTC), "Europe/Berlin", datetime(2026, 3, 2, 7, 0, tzinfo=UTC)),
        (datetime(2026, 3, 2, 7, 0, tzinfo=UTC), "Europe/Berlin", datetime(2026, 3, 3, 7, 0, tzinfo=UTC)),
        # The clocks are put forward that night: 23 hours.
        (datetime(2026, 3, 28, 7, 0, tzinfo=UTC), "Europe/Berlin", datetime(2026, 3, 29, 6, 0, tzinfo=UTC)),
        # And back: 25 hours.
        (datetime(2026, 10, 24, 6, 0, tzinfo=UTC), "Europe/Berlin", datetime(2026, 10, 25, 7, 0, tzinfo=UTC)),
        (datetime(2026, 3, 2, 7, 0, tzinfo=UTC), "Asia/Kathmandu", datetime(2026, 3, 3, 2, 15, tzinfo=UTC)),
    ],
)
def test_the_morning_is_eight_by_the_clocks_there(after, zone, morning):
    assert notices.next_morning(after, zone) == morning


def test_a_new_workspace_has_its_digest(newsroom):
    row = NoticeDigest.everywhere.get(workspace=newsroom)
    assert row.due_at == row.wake_at > datetime.now(UTC)


# --- Credits ---------------------------------------------------------------------------------------------------------


def reserve(workspace, amount):
    with transaction.atomic():
        credits.reserve(workspace, {uuid7(): amount}, now=datetime.now(UTC))


def quota_notices():
    return [row.key.rpartition(":")[2] for row in Notice.everywhere.filter(kind="quota").order_by("id")]


@pytest.fixture
def ten(newsroom):
    CreditBalance.everywhere.update(granted=10, available=10)
    return newsroom


def test_crossing_a_line_is_told_once(ten):
    seen = []
    for amount in (7, 1, 1, 1):
        reserve(ten, amount)
        seen.append(quota_notices())
    assert seen == [[], ["80"], ["80"], ["80", "100"]]
    work()
    assert told() == [
        ("alice@example.test", "80 % of Newsroom's credits are used"),
        ("alice@example.test", "Credits of Newsroom are used up"),
    ]


def test_people_read_a_date_not_a_timestamp(ten):
    for amount in (9, 1):
        reserve(ten, amount)
    texts = [row.text for row in Notice.everywhere.filter(kind="quota")]
    assert len(texts) == 2
    for text in texts:
        assert re.search(r" 1 [A-Z][a-z]{2} 20\d\d, 00:00 UTC\.", text)
        assert "T00:00" not in text


def test_crossing_both_lines_at_once_tells_the_graver(ten):
    reserve(ten, 10)
    assert quota_notices() == ["100"]


def test_crossing_again_in_the_same_month_tells_nothing_new(ten):
    reserve(ten, 9)
    CreditBalance.everywhere.update(available=10)
    reserve(ten, 9)
    assert quota_notices() == ["80"]


def test_a_larger_allowance_is_told_anew(ten):
    reserve(ten, 9)
    CreditBalance.everywhere.update(granted=20, available=11)
    reserve(ten, 8)
    assert quota_notices() == ["80", "80"]


def test_without_limits_no_line_is_crossed(ten):
    workspaces.lift_limits(ten, "op")
    reserve(ten, 12)
    assert quota_notices() == []


@pytest.mark.parametrize("before", [0, 8])
def test_a_reservation_that_crosses_nothing_costs_no_statement_more(ten, before, django_assert_num_queries):
    reserve(ten, before)
    with transaction.atomic(), django_assert_num_queries(2):
        credits.reserve(ten, {uuid7(): 1}, now=datetime.now(UTC))


# --- Keeping ---------------------------------------------------------------------------------------------------------


def test_old_notices_are_forgotten(newsroom):
    happen(newsroom, "old")
    happen(newsroom, "new")
    work()
    now = datetime.now(UTC)
    Notice.everywhere.filter(key="old").update(created_at=now - limits.NOTICES_KEPT - timedelta(seconds=1))
    assert (notices.delete_old(now), notices.delete_old(now)) == (1, 0)
    assert list(Notice.everywhere.values_list("key", flat=True)) == ["new"]
    assert NoticeMessage.everywhere.count() == 1
