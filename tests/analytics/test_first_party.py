"""What the service counted itself stands beside the platforms' numbers, and is never 0 where nobody
counted."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from django.db import DatabaseError
from django.utils import timezone

from analytics import queries, rollup
from analytics.models import DAY, HitRollup, RollupDay
from pipeline import limits
from pipeline.models import HitCount, HitKind, Outlet
from pipeline.outlets import hit_counts
from tests import claims
from tests.analytics.factories import (
    NOON,
    after,
    make_measurement,
    make_outlet,
    make_publication,
    make_published,
)


def hit(outlet, at, count, publication=None):
    return HitCount.everywhere.create(
        workspace=outlet.workspace,
        kind=HitKind.CLICK if publication else HitKind.FETCH,
        key=publication.pk if publication else outlet.pk,
        start=at,
        outlet=outlet,
        publication=publication,
        count=count,
    )


def counting(outlet, since):
    Outlet.everywhere.filter(pk=outlet.pk).update(clicks_since=since)


def told(answer, *names):
    return [
        (*(getattr(row.dimensions, name) for name in names), row.figures.first_party["clicks"])
        for row in answer.rows
    ]


def test_clicks_stand_where_they_came(alice, ask):
    publication = make_published(alice, NOON, bucket="video", engine_output="Template Short")
    make_measurement(publication, after(hours=1), clicks=100)
    hit(alice, after(hours=1), 3, publication)
    hit(alice, after(days=2), 4, publication)
    for attribution in ("received", "published"):
        answer = ask(group_by=("content_type", "date"), attribution=attribution)
        assert told(answer, "content_type", "date") == [
            ("video", "2026-11-02", 3),
            ("video", "2026-11-04", 4),
        ]
        # The platform's own number is another one.
        assert answer.totals.metrics["clicks"] == 100
        assert answer.totals.first_party == {"clicks": 7, "feed_fetches": None}
    assert told(ask(group_by=("engine_output",)), "engine_output") == [("Template Short", 7)]


def test_zero_is_said_only_where_somebody_counted(alice, ask):
    for days in (0, 2, 4):
        make_published(alice, after(days=days))
    assert [row.figures.first_party["clicks"] for row in ask().rows] == [None] * 3
    counting(alice, after(days=2, hours=1))
    assert [row.figures.first_party["clicks"] for row in ask().rows] == [None, 0, 0]
    assert ask(group_by=()).totals.first_party["clicks"] == 0
    other = make_outlet(alice.workspace, name="Other")
    make_published(other, after(days=4))
    by_outlet = {
        row.dimensions.outlet.name: row.figures.first_party["clicks"]
        for row in ask(group_by=("outlet",)).rows
    }
    assert by_outlet == {"Stage": 0, "Other": None}
    before = ask(start=datetime(2026, 11, 1, tzinfo=UTC), end=datetime(2026, 11, 3, tzinfo=UTC))
    assert before.totals.first_party["clicks"] is None


def test_fetches_belong_to_no_item(alice, ask):
    feed = make_outlet(alice.workspace, platform="feed", name="Feed")
    hit(feed, NOON, 9)
    answer = ask(group_by=("outlet", "date"))
    assert [row.figures.first_party for row in answer.rows] == [{"clicks": None, "feed_fetches": 9}]
    assert answer.rows[0].figures.availability["views"] == "unsupported"
    assert ask(group_by=("outlet", "content_type")).rows == ()
    assert ask(group_by=("outlet",), content_types=("text",)).rows == ()


@pytest.mark.parametrize(
    ("tz", "hour"), [("Asia/Kolkata", "2026-11-02T17:00:00+05:30"), ("UTC", "2026-11-02T11:00:00+00:00")]
)
def test_a_quarter_falls_into_the_hour_of_every_zone(alice, ask, tz, hour):
    publication = make_published(alice, after(days=-9))
    hit(alice, datetime(2026, 11, 2, 11, 30, tzinfo=UTC), 1, publication)
    hit(alice, datetime(2026, 11, 2, 11, 45, tzinfo=UTC), 1, publication)
    day = {"start": datetime(2026, 11, 2, tzinfo=UTC), "end": datetime(2026, 11, 3, tzinfo=UTC)}
    assert told(ask(interval="hour", tz=tz, group_by=("date",), **day), "date") == [(hour, 2)]


def come(alice, bucket, at=NOON):
    """A click on a publication of its own, as the short link writes it."""
    link = SimpleNamespace(
        workspace_id=alice.workspace_id, publication=make_publication(alice, bucket=bucket)
    )
    hit_counts.count_click(link, at)
    hit_counts.flush()


def roll_up(now):
    for row in claims.begun(RollupDay, limit=99, per_workspace=99, lease=rollup.LEASE, now=now):
        rollup.roll_up(row)


def test_a_day_of_clicks_waits_a_while_and_is_added_up_by_dimensions(alice, ask, monkeypatch):
    for number in range(9):
        come(alice, ("video", "text", "text")[number % 3], after(minutes=15 * (number % 2)))
    (day,) = RollupDay.everywhere.all()
    assert not day.is_current
    assert rollup.WAIT < day.wake_at - timezone.now() <= rollup.WAIT_OF_HITS
    roll_up(timezone.now() + rollup.WAIT)
    assert not HitRollup.everywhere.exists()
    roll_up(timezone.now() + rollup.WAIT_OF_HITS)
    # As many rows as there are dimensions, however many publications.
    rows = HitRollup.everywhere.filter(unit=DAY).order_by("content_type")
    assert list(rows.values_list("content_type", "kind", "count")) == [
        ("text", "click", 6),
        ("video", "click", 3),
    ]
    with monkeypatch.context() as patched:
        patched.setattr(queries, "_unrolled_rows", lambda *_: pytest.fail("the counts were asked"))
        month = {"start": datetime(2026, 11, 2, tzinfo=UTC), "end": datetime(2026, 11, 3, tzinfo=UTC)}
        assert told(ask(group_by=("content_type",), **month), "content_type") == [("text", 6), ("video", 3)]
    come(alice, "text", after(minutes=30))
    assert ask().totals.first_party["clicks"] == 10
    assert not RollupDay.everywhere.get().is_current


def test_the_mark_is_written_with_the_counts_or_not_at_all(alice, monkeypatch):
    monkeypatch.setattr(
        hit_counts, "_listeners", [*hit_counts._listeners, lambda _: (_ for _ in ()).throw(DatabaseError)]
    )
    come(alice, "text")
    assert not HitCount.everywhere.exists()
    assert not RollupDay.everywhere.exists()
    monkeypatch.setattr(hit_counts, "_listeners", hit_counts._listeners[:-1])
    assert hit_counts.flush() == 1
    assert RollupDay.everywhere.count() == HitCount.everywhere.count() == 1


def test_sums_are_forgotten_when_their_counts_are(alice):
    come(alice, "text")
    roll_up(timezone.now() + rollup.WAIT_OF_HITS)
    kept_until = datetime(2026, 11, 3, tzinfo=UTC) + limits.HIT_COUNTS_KEPT
    assert rollup.forget_hits(kept_until - timedelta(microseconds=1)) == 0
    assert rollup.forget_hits(kept_until) == 2
    assert (rollup.forget_hits(kept_until), HitRollup.everywhere.count()) == (0, 0)


def test_others_stay_out(alice, charlie, ask):
    theirs = make_published(charlie, NOON)
    hit(charlie, NOON, 5, theirs)
    counting(charlie, NOON)
    trial = make_published(alice, NOON, test=True)
    row = hit(alice, NOON, 6, trial)
    HitCount.everywhere.filter(pk=row.pk).update(test=True)
    assert ask().totals.first_party == {"clicks": None, "feed_fetches": None}
    assert ask(test=True).totals.first_party["clicks"] == 6


def test_zero_is_said_only_of_what_can_be_counted(alice, ask):
    """An article links straight, and so does all that a blog takes; a mail counts whatever is in it."""
    counting(alice, NOON)
    make_published(alice, after(days=1))
    make_published(alice, after(days=1), bucket="blog")
    asked = ask(group_by=("content_type",))
    assert told(asked, "content_type") == [("blog", None), ("text", 0)]
    assert ask(content_types=("blog",)).totals.first_party["clicks"] is None
    assert ask(content_types=("blog", "text")).totals.first_party["clicks"] == 0
    blog = make_outlet(alice.workspace, platform="wordpress", name="Blog")
    mail = make_outlet(alice.workspace, platform="email_newsletter", name="Mail")
    for outlet in (blog, mail):
        counting(outlet, NOON)
        make_published(outlet, after(days=1), bucket="blog")
    rows = ask(group_by=("outlet", "content_type")).rows
    assert {
        (row.dimensions.outlet.name, row.dimensions.content_type): row.figures.first_party["clicks"]
        for row in rows
    } == {("Stage", "blog"): None, ("Stage", "text"): 0, ("Blog", "blog"): None, ("Mail", "blog"): 0}
    assert ask(outlets=(blog.pk,)).totals.first_party["clicks"] is None
