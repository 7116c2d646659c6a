"""The monthly summary: the numbers of GET /v1/analytics, missing said as missing, once a month, to who wants
it."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest
import time_machine
from django.core import mail

from accounts import notices
from accounts.models import Membership, Notice, NoticeChoice, Workspace
from analytics.models import MonthlySummary
from analytics.reports import monthly_summary, send_monthly_summary
from analytics.reports.number_format import format_number
from config.core import task_runner
from pipeline.models import GeneratedItem, Publication
from tests.analytics.factories import (
    make_failed,
    make_measurement,
    make_outlet,
    make_published,
    make_workspace,
)
from tests.analytics.test_api import Caller
from tests.factories import MembershipFactory
from tests.pipeline.steps import claimed

BERLIN = "Europe/Berlin"
NOVEMBER = date(2026, 11, 1)
TURN = datetime(2026, 12, 1, 7, 0, tzinfo=UTC)
"""08:00 in Berlin, in winter."""
MID_NOVEMBER = datetime(2026, 11, 12, 12, 0, tzinfo=UTC)
MID_OCTOBER = datetime(2026, 10, 12, 12, 0, tzinfo=UTC)


@pytest.fixture
def newsroom(db):
    made = make_workspace()
    Workspace.everywhere.filter(pk=made.pk).update(timezone=BERLIN)
    made.refresh_from_db()
    MonthlySummary.everywhere.create(workspace=made, due_at=TURN, wake_at=TURN)
    return made


@pytest.fixture
def outlet(newsroom):
    return make_outlet(newsroom, name="Harbour", platform="mastodon")


@pytest.fixture
def owner(newsroom):
    return MembershipFactory(
        workspace=newsroom, user__email="alice@example.test", role=Membership.Role.OWNER
    ).user


def measured(outlet, at, later=timedelta(days=1), **deltas):
    publication = make_published(outlet, at)
    make_measurement(publication, at + later, **deltas)
    Publication.everywhere.filter(pk=publication.pk).update(metrics=deltas)
    return publication


def work(workspace, now=TURN):
    send_monthly_summary.send_monthly_summary(
        claimed(MonthlySummary.everywhere.get(workspace=workspace)), now=now
    )


def send():
    # Of a month to come, by the clock of the database.
    Notice.everywhere.filter(wake_at__isnull=False).update(wake_at=datetime.now(UTC))
    return task_runner.work_all_due("mail.spread_notice", "mail.send_notice")


def told():
    return sorted((message.to[0], message.subject) for message in mail.outbox)


def text_of(workspace, month=NOVEMBER):
    found = monthly_summary.compose_summary(workspace, month)
    return found.text if found else ""


def section(text, title):
    [found] = [block for block in text.split("\n\n") if block.startswith(title)]
    return found.split("\n")[1:]


# --- Numbers ---------------------------------------------------------------------------------------------------------


def test_its_numbers_are_those_of_the_api_for_the_same_days(newsroom, outlet):
    feed = make_outlet(newsroom, name="Feed", platform="feed")
    measured(outlet, MID_NOVEMBER, likes=40, comments=2, shares=1)
    measured(outlet, MID_NOVEMBER, likes=1200, comments=0, shares=0)
    make_published(feed, MID_NOVEMBER, bucket="blog")
    make_failed(outlet, MID_NOVEMBER)
    # Of November in Berlin, and of October by UTC.
    measured(outlet, datetime(2026, 10, 31, 23, 30, tzinfo=UTC), likes=7, comments=0, shares=0)
    # The other way round, and measured within November: its reactions count there, its publication doesn't.
    measured(outlet, datetime(2026, 10, 31, 22, 30, tzinfo=UTC), likes=3, comments=0, shares=0)
    make_published(outlet, MID_NOVEMBER, test=True)
    make_published(make_outlet(make_workspace("Elsewhere"), name="HIDDEN"), MID_NOVEMBER)
    caller = Caller(newsroom)
    given = {"from": "2026-11-01", "to": "2026-12-01", "tz": BERLIN}
    totals = caller.body(**given)["totals"]["metrics"]
    text = text_of(newsroom)
    lines = section(text, "November 2026")
    assert (totals["published"], totals["failed"], totals["engagements"]) == (4, 1, 1253)
    assert lines[0] == f"- Published: {totals['published']} (1 before)"
    assert lines[1] == f"- Failed: {totals['failed']} (0 before)"
    assert lines[2].startswith(f"- Engagements: {format_number(totals['engagements'], 'engagements')}")
    rows = caller.body(**given, group_by="outlet")["data"]
    by_outlet = section(text, "By outlet")
    assert len(by_outlet) == len(rows) == 2
    for row in rows:
        [line] = [one for one in by_outlet if one.startswith(f"- {row['outlet']['name']}: ")]
        assert f"{row['metrics']['published']} published" in line
        engaged = row["metrics"]["engagements"]
        assert ("engagements" in line) is (engaged is not None)
        assert engaged is None or f"{format_number(engaged)} engagements" in line
    kinds = caller.body(**given, group_by="content_type")["data"]
    assert len(section(text, "By kind")) == len(kinds) == 2
    assert "HIDDEN" not in text


def test_what_is_missing_is_said_as_missing_and_never_as_zero(newsroom, outlet):
    for _ in range(2):
        measured(outlet, MID_NOVEMBER, likes=5)
    make_published(outlet, MID_NOVEMBER)
    text = text_of(newsroom)
    assert section(text, "Missing data, not in any total")[0] == "- No data from Harbour: 1 of 3 posts"
    assert "- Views not provided by: Harbour" in text
    assert "Views: 0" not in text
    assert "- Views:" not in text
    assert section(text, "By outlet") == ["- Harbour: 3 published, 10 engagements, no data from 1 of 3"]


def test_nothing_is_missing_and_nothing_is_said_of_it(newsroom, outlet):
    measured(outlet, MID_NOVEMBER, impressions=9, views=8, likes=5, comments=0, shares=0, clicks=0)
    assert "What isn't known" not in text_of(newsroom)


@pytest.mark.parametrize(
    ("october", "november", "said"),
    [
        (True, True, "- Engagements: 12 (4 before)"),
        (False, True, "- Engagements: 12 (not compared: missing data)"),
        (True, False, "- Engagements: 12 (not compared: missing data)"),
    ],
)
def test_a_number_is_compared_only_where_both_months_are_covered(newsroom, outlet, october, november, said):
    measured(outlet, MID_OCTOBER, likes=4)
    measured(outlet, MID_NOVEMBER, likes=12)
    for covered, at in ((october, MID_OCTOBER), (november, MID_NOVEMBER)):
        if not covered:
            make_published(outlet, at)
    assert said in section(text_of(newsroom), "November 2026")


def test_the_first_month_is_compared_with_nothing(newsroom, outlet):
    measured(outlet, MID_NOVEMBER, likes=12)
    text = text_of(newsroom)
    assert text.startswith("November 2026 (no posts in October 2026):")
    assert section(text, "November 2026") == ["- Published: 1", "- Failed: 0", "- Engagements: 12"]


def test_the_best_posts_and_the_pipeline_are_told(newsroom, outlet):
    for likes, title in ((5, "Ferry\n\nhttps://evil.example"), (9, "Tram: new line")):
        publication = measured(outlet, MID_NOVEMBER, likes=likes)
        GeneratedItem.everywhere.filter(pk=publication.item_id).update(title=title)
        Publication.everywhere.filter(pk=publication.pk).update(due_at=MID_NOVEMBER - timedelta(seconds=9))
    make_failed(outlet, MID_NOVEMBER)
    text = text_of(newsroom)
    assert section(text, "Best posts by engagements") == [
        "- Tram: new line (Harbour): 9",
        "- Ferry https://evil.example (Harbour): 5",
    ]
    assert section(text, "Delivery")[:4] == [
        "- Published on time: 100.0 %",
        "- Median delay: 9 seconds",
        "- Delay, 95th percentile: 9 seconds",
        "- Failed publications: 1 of 3",
    ]


def test_a_long_list_says_how_much_is_left_out(newsroom):
    for place in range(monthly_summary.MAX_LINES + 3):
        make_published(make_outlet(newsroom, name=f"Outlet {place:02}"), MID_NOVEMBER)
    lines = section(text_of(newsroom), "By outlet")
    assert (len(lines), lines[-1]) == (monthly_summary.MAX_LINES + 1, "- And 3 more")


def test_a_line_of_many_names_says_how_many_are_left_out(newsroom):
    for place in range(monthly_summary.MAX_NAMES_IN_LINE + 3):
        measured(make_outlet(newsroom, name=f"Outlet {place:02}"), MID_NOVEMBER, likes=1)
    lines = section(text_of(newsroom), "Missing data")
    [views] = [line for line in lines if line.startswith("- Views not provided by: Outlet 00, Outlet 01, ")]
    assert views.endswith(f"Outlet {monthly_summary.MAX_NAMES_IN_LINE - 1:02} and 3 more")


# --- When ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("after", "zone", "turn"),
    [
        (datetime(2026, 11, 12, tzinfo=UTC), BERLIN, TURN),
        (TURN - timedelta(seconds=1), BERLIN, TURN),
        (TURN, BERLIN, datetime(2027, 1, 1, 7, 0, tzinfo=UTC)),
        # The clocks are put forward before the next turn.
        (datetime(2026, 3, 2, tzinfo=UTC), BERLIN, datetime(2026, 4, 1, 6, 0, tzinfo=UTC)),
        # It is the first already there, and still the last day of the month by UTC.
        (
            datetime(2026, 11, 30, 22, 0, tzinfo=UTC),
            "Pacific/Kiritimati",
            datetime(2026, 12, 31, 18, 0, tzinfo=UTC),
        ),
        (datetime(2026, 12, 1, 2, 0, tzinfo=UTC), "Asia/Kathmandu", datetime(2026, 12, 1, 2, 15, tzinfo=UTC)),
    ],
)
def test_the_turn_is_the_first_morning_of_a_month_by_the_clocks_there(after, zone, turn):
    assert send_monthly_summary.next_turn(after, zone) == turn
    assert send_monthly_summary.last_turn(turn, zone) == turn
    assert send_monthly_summary.last_turn(turn - timedelta(seconds=1), zone) < turn - timedelta(days=27)


def test_a_month_is_told_once_however_often_it_is_worked(newsroom, outlet, owner):
    make_published(outlet, MID_NOVEMBER)
    work(newsroom)
    row = MonthlySummary.everywhere.get()
    assert row.due_at == row.wake_at == datetime(2027, 1, 1, 7, 0, tzinfo=UTC)
    MonthlySummary.everywhere.update(due_at=TURN, wake_at=TURN)
    work(newsroom, TURN + timedelta(hours=3))
    send()
    assert told() == [("alice@example.test", "1 post in November 2026 from Alice's newsroom")]


def test_who_lost_the_row_to_another_hand_writes_nothing(newsroom, outlet, owner):
    make_published(outlet, MID_NOVEMBER)
    mine = claimed(MonthlySummary.everywhere.get())
    claimed(MonthlySummary.everywhere.get())
    send_monthly_summary.send_monthly_summary(mine, now=TURN)
    assert Notice.everywhere.count() == 0


def test_a_month_without_publications_is_not_told(newsroom, outlet, owner):
    make_published(outlet, MID_OCTOBER)
    make_published(outlet, MID_NOVEMBER, test=True)
    work(newsroom)
    assert Notice.everywhere.count() == 0
    assert MonthlySummary.everywhere.get().due_at == datetime(2027, 1, 1, 7, 0, tzinfo=UTC)


def test_the_first_look_tells_nothing_and_finds_the_next_turn(newsroom, outlet, owner):
    make_published(outlet, MID_NOVEMBER)
    MonthlySummary.everywhere.update(due_at=None)
    work(newsroom, TURN + timedelta(days=3))
    assert Notice.everywhere.count() == 0
    assert MonthlySummary.everywhere.get().due_at == datetime(2027, 1, 1, 7, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("zone", "is_told", "following"),
    [
        # It is the first there since hours.
        ("Asia/Tokyo", True, datetime(2026, 12, 31, 23, 0, tzinfo=UTC)),
        # It isn't morning there yet: it is told when it is.
        ("America/New_York", False, datetime(2026, 12, 1, 13, 0, tzinfo=UTC)),
    ],
)
def test_a_workspace_that_moved_has_its_month_by_the_clocks_of_now(
    newsroom, outlet, owner, zone, is_told, following
):
    make_published(outlet, MID_NOVEMBER)
    make_published(outlet, MID_OCTOBER)
    Workspace.everywhere.update(timezone=zone)
    work(newsroom)
    assert [notice.key for notice in Notice.everywhere.all()] == (["2026-11"] if is_told else [])
    assert MonthlySummary.everywhere.get().due_at == following
    if not is_told:
        work(newsroom, following)
        assert [notice.key for notice in Notice.everywhere.all()] == ["2026-11"]


def test_hands_that_were_away_tell_of_the_last_month_alone(newsroom, outlet, owner):
    make_published(outlet, MID_NOVEMBER)
    make_published(outlet, MID_NOVEMBER + timedelta(days=31))
    work(newsroom, TURN + timedelta(days=40))
    assert [notice.key for notice in Notice.everywhere.all()] == ["2026-12"]


def test_a_deleted_workspace_has_no_months(newsroom, outlet):
    make_published(outlet, MID_NOVEMBER)
    Workspace.everywhere.update(deleted_at=TURN)
    work(newsroom)
    assert Notice.everywhere.count() == 0
    assert MonthlySummary.everywhere.get().wake_at is None


def test_giving_up_goes_on_with_the_next_month(newsroom):
    with time_machine.travel(TURN, tick=False):
        send_monthly_summary.give_up(MonthlySummary.everywhere.get())
    assert MonthlySummary.everywhere.get().due_at == datetime(2027, 1, 1, 7, 0, tzinfo=UTC)


def test_a_new_workspace_has_its_turn(db):
    made = make_workspace("Fresh")
    with time_machine.travel(MID_NOVEMBER, tick=False):
        send_monthly_summary.open_summary(made)
    assert MonthlySummary.everywhere.get(workspace=made).due_at == datetime(2026, 12, 1, 8, 0, tzinfo=UTC)


# --- To whom ---------------------------------------------------------------------------------------------------------


def test_owners_and_editors_are_told_unless_they_switched_it_off(newsroom, outlet, owner):
    for role in ("editor", "viewer"):
        MembershipFactory(workspace=newsroom, user__email=f"{role}@example.test", role=role)
    make_published(outlet, MID_NOVEMBER)
    work(newsroom)
    send()
    assert [address for address, _ in told()] == ["alice@example.test", "editor@example.test"]


def test_one_click_in_the_mail_switches_it_off_and_back(newsroom, outlet, owner, client):
    MembershipFactory(workspace=newsroom, user__email="bob@example.test", role="editor")
    make_published(outlet, MID_NOVEMBER)
    work(newsroom)
    send()
    [message] = [one for one in mail.outbox if one.to == ["alice@example.test"]]
    address = message.extra_headers["List-Unsubscribe"].strip("<>")
    assert message.extra_headers["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    assert address in message.body
    path = address.partition("://")[2].partition("/")[2]
    # What opens links in advance changes nothing.
    assert "Unsubscribe" in client.get(f"/{path}").content.decode()
    assert NoticeChoice.everywhere.count() == 0
    answer = client.post(f"/{path}", {"List-Unsubscribe": "One-Click"})
    assert (answer.status_code, answer["X-Robots-Tag"]) == (200, "noindex, nofollow")
    assert notices.find_preferences(newsroom.pk, owner.pk).kinds["monthly"] == "off"
    assert notices.find_preferences(newsroom.pk, owner.pk).kinds["post_failed"] == "now"
    mail.outbox.clear()
    make_published(outlet, MID_NOVEMBER + timedelta(days=31))
    work(newsroom, datetime(2027, 1, 1, 7, 0, tzinfo=UTC))
    send()
    assert [one.to for one in mail.outbox] == [["bob@example.test"]]
    client.post(f"/{path}", {"act": "come_back"})
    assert notices.find_preferences(newsroom.pk, owner.pk).kinds["monthly"] == "now"


def test_the_way_out_of_somebody_who_left_or_of_no_mail_leads_nowhere(newsroom, owner, client):
    address = notices.unsubscribe_url(newsroom.pk, owner.pk, "monthly")
    path = f"/{address.partition('://')[2].partition('/')[2]}"
    assert client.post(f"{path[:-2]}xx").status_code == 404
    Membership.everywhere.all().delete()
    answer = client.post(path)
    assert answer.status_code == 404
    assert "This link doesn't work" in answer.content.decode()


def test_the_mail_is_the_same_in_text_and_html(newsroom, outlet, owner):
    measured(outlet, MID_NOVEMBER, likes=1234)
    work(newsroom)
    send()
    [message] = mail.outbox
    ((html, kind),) = message.alternatives
    assert kind == "text/html"
    for said in ("By outlet:", "1,234", "1 published, 1,234 engagements", "Harbour"):
        assert said in message.body
        assert said in html
    assert "range=chosen&start=2026-11-01&end=2026-11-30" in message.body
    assert "- Harbour" not in html
