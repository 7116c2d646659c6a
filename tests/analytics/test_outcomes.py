"""Counting how publications ended."""

from __future__ import annotations

import itertools
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import connection, transaction

from analytics import limits, publication_outcomes
from analytics.models import Measuring, Outcome
from pipeline.models import Event, Publication
from tests.analytics.factories import (
    NOON,
    after,
    make_event,
    make_failure,
    make_outlet,
    make_persona,
    make_publication,
    make_source,
    make_workspace,
    outcome,
    waiting,
)

DAY = timedelta(days=1)


def facts(publication):
    found = outcome(publication)
    return found.is_published, found.at


def test_success_counts_at_the_moment_of_publication(alice):
    source, persona = make_source(alice.workspace), make_persona(alice.workspace)
    publication = make_publication(
        alice, bucket="video", engine_output="Persona Short", source=source, persona=persona
    )
    event = make_event(publication, created_at=after(minutes=3))

    publication_outcomes.write_outcomes([event])

    assert Outcome.everywhere.values().get() == {
        "id": publication.pk,
        "workspace_id": alice.workspace_id,
        "test": False,
        "event_id": event.pk,
        "publication_id": publication.pk,
        "is_published": True,
        "at": NOON,
        "outlet_id": alice.pk,
        "content_type": "video",
        "source_id": source.pk,
        "engine_output": "Persona Short",
        "persona_id": persona.pk,
    }


def test_final_failure_counts_at_the_moment_of_its_event(alice):
    publication = make_publication(alice, published_at=None)
    publication_outcomes.write_outcomes([make_failure(publication, created_at=after(minutes=3))])
    assert facts(publication) == (False, after(minutes=3))
    assert not Measuring.everywhere.exists()


@pytest.mark.parametrize(
    ("event_type", "will_retry"),
    [("published.failed", True), ("published.failed", None), ("published.overdue", None)],
)
def test_what_is_not_the_end_is_not_counted(alice, event_type, will_retry):
    publication = make_publication(alice, published_at=None)
    publication_outcomes.write_outcomes([make_event(publication, event_type, will_retry=will_retry)])
    assert not Outcome.everywhere.exists()


def test_counting_the_same_events_again_changes_nothing(alice):
    publications = [make_publication(alice) for _ in range(3)]
    events = [make_event(publication) for publication in publications]
    publication_outcomes.write_outcomes(events)
    before = (
        list(Outcome.everywhere.order_by("pk").values()),
        list(Measuring.everywhere.order_by("pk").values()),
    )

    publication_outcomes.write_outcomes(events)
    publication_outcomes.write_outcomes(events[::-1] + events)

    assert before == (
        list(Outcome.everywhere.order_by("pk").values()),
        list(Measuring.everywhere.order_by("pk").values()),
    )
    assert len(before[0]) == len(before[1]) == 3


def test_batch_marks_what_it_counted(alice):
    publication = make_publication(alice)
    make_event(publication)
    make_event(publication, "generated.ready")

    assert publication_outcomes.count_events() == 2
    assert publication_outcomes.count_events() == 0

    assert facts(publication) == (True, NOON)
    assert not Event.everywhere.filter(counted_at=None).exists()


def test_late_event_counts_on_its_own_day(alice):
    early, late = make_publication(alice), make_publication(alice, published_at=NOON - 3 * DAY)
    publication_outcomes.write_outcomes([make_event(early)])
    publication_outcomes.write_outcomes([make_event(late, created_at=after(days=1))])
    assert facts(late) == (True, NOON - 3 * DAY)


def test_unknown_outcome_that_is_found_counts_as_published_only(alice):
    publication = make_publication(alice, published_at=None)
    told = make_failure(publication, created_at=after(hours=1))
    publication_outcomes.write_outcomes([told])
    assert facts(publication) == (False, after(hours=1))

    Publication.everywhere.filter(pk=publication.pk).update(status="published", published_at=NOON)
    found = make_event(publication, created_at=after(hours=2))
    publication_outcomes.write_outcomes([found])

    assert Outcome.everywhere.count() == 1
    assert facts(publication) == (True, NOON)
    assert waiting(publication).due_at == NOON
    publication_outcomes.write_outcomes([told])
    assert facts(publication) == (True, NOON)


def test_result_is_the_same_in_every_order_of_events(alice):
    results = set()
    for order in itertools.permutations(range(3)):
        publication = make_publication(alice)
        events = [
            make_failure(publication, created_at=after(hours=1)),
            make_failure(publication, created_at=after(hours=5)),
            make_event(publication, created_at=after(hours=3)),
        ]
        for place in order:
            publication_outcomes.write_outcomes([events[place]])
        results.add((*facts(publication), Measuring.everywhere.filter(publication=publication).count()))
    assert results == {(True, NOON, 1)}


def test_second_failure_after_a_retry_counts_once_at_the_newest(alice):
    publication = make_publication(alice, published_at=None)
    first, second = (make_failure(publication, created_at=after(hours=hours)) for hours in (1, 30))
    publication_outcomes.write_outcomes([second])
    publication_outcomes.write_outcomes([first])
    assert Outcome.everywhere.count() == 1
    assert facts(publication) == (False, after(hours=30))


def test_event_of_an_erased_publication_is_passed_over(alice):
    kept, erased = make_publication(alice), make_publication(alice)
    events = [make_event(erased), make_event(kept)]
    erased.delete()
    publication_outcomes.write_outcomes(events)
    assert list(Outcome.everywhere.values_list("publication_id", flat=True)) == [kept.pk]


def test_measuring_begins_an_hour_after_publication(alice):
    outlet = make_outlet(alice.workspace, platform="mastodon", is_simulated=False)
    publication = make_publication(outlet)
    publication_outcomes.write_outcomes([make_event(publication, created_at=after(minutes=1))])
    row = waiting(publication)
    assert (row.wake_at, row.due_at, row.status, row.measured, row.test) == (
        NOON + limits.MEASURED_AT[0],
        NOON + limits.MEASURED_AT[0],
        "waiting",
        0,
        False,
    )


def test_simulated_outlet_is_measured_at_once(alice):
    publication = make_publication(alice, test=True)
    publication_outcomes.write_outcomes([make_event(publication)])
    row = waiting(publication)
    assert (row.wake_at, row.test) == (NOON, True)


def test_number_of_statements_does_not_rise_with_events(alice, django_assert_num_queries):
    for size in (1, 30):
        events = [make_event(make_publication(alice)) for _ in range(size)]
        # Publications, standing outcomes, the days to be added up, the outcomes and the measurings that are new.
        with django_assert_num_queries(5):
            publication_outcomes.write_outcomes(events)


@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite has one writer at a time")
@pytest.mark.django_db(transaction=True)
def test_two_counters_with_one_publication_wait_for_each_other():
    publication = make_publication(make_outlet(make_workspace()))
    failure = make_failure(publication, created_at=after(hours=1))
    success = make_event(publication, created_at=after(hours=2))
    is_written, may_commit = threading.Event(), threading.Event()

    def count_slowly(event, *, is_first):
        try:
            with transaction.atomic():
                publication_outcomes.write_outcomes([event])
                if is_first:
                    is_written.set()
                    assert may_commit.wait(10)
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(count_slowly, success, is_first=True)
        assert is_written.wait(10)
        second = pool.submit(count_slowly, failure, is_first=False)
        with pytest.raises(TimeoutError):
            second.result(timeout=0.5)
        may_commit.set()
        first.result(timeout=10)
        second.result(timeout=10)

    assert facts(publication) == (True, NOON)
