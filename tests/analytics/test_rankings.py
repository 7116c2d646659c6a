"""What worked: formats, topics, sources, weekdays and times of day by the median of their posts."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from analytics.reports.punctuality_and_top_posts import compute_performance
from analytics.reports.rankings import DIMENSIONS, MAX_GROUPS, MIN_POSTS, RankedGroup, rank_by
from pipeline.models import Topic
from tests.analytics.factories import NOON, after, make_publication, make_source
from tests.analytics.test_report import question

UTC_ZONE = ZoneInfo("UTC")


def posts_of(**values):
    """Known values with publications of a format, all at noon."""
    return [
        (value, {"item__engine_output": name, "published_at": NOON})
        for name, known in values.items()
        for value in known
    ]


def test_groups_are_ranked_by_the_median_of_their_posts():
    posts = posts_of(Thread=[10, 30, 20], Carousel=[1, 2, 900, 4], Quote=[999, 999])
    # Of two posts nothing is said, though they count among all posts: of 1, 2, 4, 10, 20, 30, 900, 999, 999.
    assert rank_by("format", posts, UTC_ZONE) == (
        RankedGroup("Thread", 3, 20, 0),
        RankedGroup("Carousel", 4, 3, -85),
    )


def test_one_group_or_groups_that_do_not_differ_are_no_ranking():
    assert rank_by("format", posts_of(Thread=[10, 30, 20], Quote=[999, 999]), UTC_ZONE) == ()
    assert rank_by("format", posts_of(Thread=[5, 5, 5], Quote=[1, 5, 9]), UTC_ZONE) == ()
    assert rank_by("format", [], UTC_ZONE) == ()


def test_of_equal_medians_that_of_more_posts_is_first():
    posts = posts_of(Thread=[0] * 3, Quote=[0] * 4, Carousel=[7] * 3)
    ranked = rank_by("format", posts, UTC_ZONE)
    # All posts have a median of 0, with which nothing is compared.
    assert [(group.key, group.median, group.change) for group in ranked] == [
        ("Carousel", 7, None),
        ("Quote", 0, None),
        ("Thread", 0, None),
    ]


def test_medians_between_two_counts_are_compared_as_they_are():
    posts = posts_of(Thread=[1, 2, 3, 4], Quote=[1, 1, 2, 2])
    # 2.5 and 1.5 of 2 among all; shown as counts.
    assert rank_by("format", posts, UTC_ZONE) == (
        RankedGroup("Thread", 4, 3, 25),
        RankedGroup("Quote", 4, 2, -25),
    )


def test_only_the_best_groups_are_kept():
    posts = posts_of(**{f"Format {number}": [number] * MIN_POSTS for number in range(MAX_GROUPS + 2)})
    ranked = rank_by("format", posts, UTC_ZONE)
    assert [group.key for group in ranked] == [f"Format {number}" for number in (6, 5, 4, 3, 2)]


def test_rates_keep_their_places():
    posts = posts_of(Thread=[0.0101, 0.0202, 0.0303], Quote=[0.01, 0.01, 0.01])
    assert [group.median for group in rank_by("format", posts, UTC_ZONE)] == [0.0202, 0.01]


@pytest.mark.parametrize(
    ("tz", "weekdays", "times"),
    [("UTC", [6, 0], [21, 12]), ("Europe/Berlin", [0], [0, 12]), ("Asia/Kolkata", [0], [3, 15])],
)
def test_days_and_times_are_those_of_the_zone(tz, weekdays, times):
    # Late on a Sunday of winter, and a Monday's noon.
    late = datetime(2026, 11, 1, 23, 10, tzinfo=UTC)
    posts = [(9, {"published_at": late})] * 3 + [(2, {"published_at": NOON})] * 3
    ranked = rank_by("weekday", posts, ZoneInfo(tz))
    assert [group.key for group in ranked] == (weekdays if len(weekdays) > 1 else [])
    assert [group.key for group in rank_by("time", posts, ZoneInfo(tz))] == times


def test_posts_are_ranked_by_what_their_items_were_made_of(alice, charlie):
    blog, council = make_source(alice.workspace, "Blog"), make_source(alice.workspace, "Council")
    tram = Topic.everywhere.create(workspace=alice.workspace, title="The tram")
    port = Topic.everywhere.create(workspace=alice.workspace, title="The port")
    for number in range(3):
        for source, topic, engine, views in ((blog, tram, "Thread", 10), (council, port, "Carousel", 40)):
            post = make_publication(
                alice,
                source=source,
                engine_output=engine,
                metrics={"views": views + number},
                published_at=after(hours=number),
            )
            post.item.topic = topic
            post.item.save(update_fields=["topic"])
        # Neither theirs, nor of which nothing is known.
        make_publication(charlie, engine_output="Quote Graphic", metrics={"views": 999})
        make_publication(alice, engine_output="Short Post", metrics={"views": None})
    asked = question(alice)
    results = compute_performance(asked, "views", dimensions=DIMENSIONS)
    assert results.known == 6
    assert {name: [group.key for group in groups] for name, groups in results.rankings.items()} == {
        "format": ["Carousel", "Thread"],
        "topic": [port.pk, tram.pk],
        "source": [council.pk, blog.pk],
        "weekday": [],
        "time": [],
    }
    assert results.rankings["format"][0] == RankedGroup("Carousel", 3, 41, 58)
    later = replace(asked, outlets=(charlie.pk,))
    assert compute_performance(later, "views", dimensions=DIMENSIONS).known == 0
    assert compute_performance(asked, "views").rankings == {}
