"""How the pipeline itself did: lateness, failures and the best posts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from analytics.reports import punctuality_and_top_posts as module
from analytics.reports.punctuality_and_top_posts import Lateness, compute_performance
from pipeline.models import GeneratedItem, Publication
from tests.analytics.factories import NOON, after, make_outlet, make_publication
from tests.analytics.test_report import question


def make_post(outlet, late=0, metrics=None, **given):
    at = given.pop("published_at", NOON)
    return make_publication(
        outlet, published_at=at, due_at=at - timedelta(seconds=late), metrics=metrics, **given
    )


def test_lateness_is_of_what_the_service_sent_itself(alice):
    for seconds in (*range(19), 300):
        make_post(alice, late=seconds)
    make_post(alice, late=90_000, step=Publication.BY_HAND)
    make_post(make_outlet(alice.workspace, platform="handoff", name="Desk"), late=90_000)
    # Earlier than promised isn't late.
    assert compute_performance(question(alice), "views").lateness == Lateness(20, 9, 18, 95.0)
    make_post(alice, late=-30)
    assert compute_performance(question(alice), "views").lateness == Lateness(21, 9, 18, 95.2)


def test_the_best_posts_by_what_they_have_by_now(alice, charlie):
    make_post(charlie, metrics={"views": 999})
    make_post(alice, metrics={"views": 500}, published_at=after(days=-40))
    make_post(alice, metrics=None)
    make_post(alice, metrics={"views": None, "likes": 900})
    ours = [
        make_post(alice, metrics={"views": number, "likes": 2, "impressions": 100}) for number in range(12)
    ]
    best = compute_performance(question(alice), "views").best
    assert [(one.item_id, one.value) for one in best] == [
        (one.item_id, one.metrics["views"]) for one in ours[:1:-1]
    ]
    assert compute_performance(question(alice), "engagements").best[0].value == 900
    assert compute_performance(question(alice), "engagement_rate").best[0].value == 0.02
    assert compute_performance(question(alice, content_types=("video",)), "views").best == ()
    assert compute_performance(question(alice, outlets=(charlie.pk,)), "views").best == ()


def test_a_rate_needs_impressions(alice):
    make_post(alice, metrics={"likes": 3, "impressions": 0})
    make_post(alice, metrics={"likes": 3})
    assert compute_performance(question(alice), "engagement_rate").best == ()


def test_items_that_could_not_be_made(alice):
    items = [make_post(alice).item for _ in range(4)]
    for item in items[:3]:
        GeneratedItem.everywhere.filter(pk=item.pk).update(ready_at=NOON)
    GeneratedItem.everywhere.filter(pk=items[3].pk).update(status="failed", ready_at=None)
    # One that was made and failed at its outlet was made all the same.
    GeneratedItem.everywhere.filter(pk=items[2].pk).update(status="failed")
    # Counted by their ids, which tell when their making began.
    today = datetime.now(UTC).date()
    did = compute_performance(question(alice, today - timedelta(days=1), today + timedelta(days=1)), "views")
    assert (did.made, did.not_made, did.not_made_percent) == (3, 1, 25.0)


def test_nothing_is_said_of_nothing(alice):
    did = compute_performance(question(alice), "views")
    assert (did.best, did.lateness, did.not_made_percent, did.is_complete) == ((), None, None, True)


@pytest.mark.parametrize("most", [2, 3])
def test_only_the_newest_are_read(alice, monkeypatch, most):
    for days in range(3):
        make_post(alice, metrics={"views": 10 - days}, published_at=after(days=days))
    monkeypatch.setattr(module, "MAX_ROWS_READ", most)
    did = compute_performance(question(alice), "views")
    assert len(did.best) == most
    assert sorted(one.value for one in did.best) == [8, 9, 10][:most]
    assert not did.is_complete
