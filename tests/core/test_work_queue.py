"""A claim takes what is due in turns between workspaces, whichever has more of it waiting."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta

import pytest

from config.core import work_queue
from config.core.clock import utc_now
from pipeline.models import Generation, Source
from tests.factories import WorkspaceFactory

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]

LEASE, HOUR = timedelta(minutes=1), timedelta(hours=1)


def waiting(count, *, since):
    workspace = WorkspaceFactory()
    Source.everywhere.bulk_create(
        Source(workspace=workspace, name=f"{number}", type="rss", wake_at=utc_now() - since)
        for number in range(count)
    )
    return workspace.pk


def claimed(limit, **given):
    rows = work_queue.claim(
        Source, limit=limit, per_workspace=given.pop("per_workspace", 4), lease=LEASE, **given
    )
    return Counter(row.workspace_id for row in rows)


def test_a_workspace_with_a_thousand_older_rows_takes_turns_with_one_that_has_a_single_one():
    busy = waiting(1_000, since=timedelta(hours=1))
    quiet = waiting(1, since=timedelta(seconds=1))
    assert claimed(2) == {busy: 1, quiet: 1}
    assert claimed(2) == {busy: 2}


def test_turns_are_dealt_round_by_round():
    whose = {waiting(count, since=timedelta(hours=1)): count for count in (200, 3, 1)}
    assert claimed(9) == {workspace: min(count, 3) for workspace, count in whose.items()}


def test_the_workspace_with_the_fewest_in_hand_comes_first():
    first, second, third = (waiting(5, since=HOUR) for _ in range(3))
    assert claimed(3, busy={first: 2, second: 1}) == {third: 2, second: 1}


def test_a_job_may_say_who_comes_first():
    """By how much each had, then by how long it has waited."""
    first, second, third = (waiting(5, since=HOUR) for _ in range(3))
    now = utc_now()
    had = {first: (3, now - HOUR), second: (0, now), third: (0, now - HOUR)}
    assert claimed(1, read_shares=lambda _: had) == {third: 1}
    assert claimed(1, read_shares=lambda _: had, busy={third: 1}) == {second: 1}
    # One after another of the one that has the fewest at that point.
    assert claimed(4, read_shares=lambda _: had) == {third: 2, second: 2}


def test_a_workspace_has_no_more_than_its_share_however_many_are_free():
    busy = waiting(50, since=timedelta(hours=1))
    assert claimed(20, per_workspace=3) == {busy: 3}
    assert claimed(20, per_workspace=3, busy={busy: 2}) == {busy: 1}
    assert claimed(20, per_workspace=3, busy={busy: 3}) == {}


def test_what_is_not_due_yet_is_not_claimed_and_what_was_claimed_is_not_claimed_again():
    later = waiting(1, since=-timedelta(minutes=5))
    now = waiting(2, since=timedelta(seconds=1))
    assert claimed(10) == {now: 2}
    assert claimed(10) == {}
    in_ten = utc_now() + timedelta(minutes=10)
    assert claimed(10, now=in_ten) == {later: 1, now: 2}


def test_what_is_claimed_comes_in_the_order_of_its_promises():
    workspace = WorkspaceFactory()
    now = utc_now()
    promised = [
        Source.everywhere.create(
            workspace=workspace,
            name=f"{hours}",
            type="rss",
            wake_at=now,
            due_at=now - hours * HOUR if hours else None,
        ).pk
        for hours in (2, 5, 0, 1, 4)
    ]
    rows = work_queue.claim(Source, limit=9, per_workspace=9, lease=LEASE)
    assert [row.pk for row in rows] == [promised[place] for place in (2, 1, 4, 0, 3)]


def test_a_begun_row_is_read_with_the_relations_that_its_model_names_and_no_others(
    django_assert_num_queries,
):
    """Django's `select_related()` without a name would join every relation, and theirs: fifteen tables."""
    workspace = WorkspaceFactory()
    row = Source.everywhere.create(workspace=workspace, name="Feed", type="rss", wake_at=utc_now())
    assert Source.begins_with == ()
    for _ in range(2):
        begun = work_queue.begin(Source, row.pk, row.lease_token, lease=LEASE)
        assert begun is not None
        assert not begun._state.fields_cache
    run = Generation.everywhere.create(workspace=workspace, engine="short_post", wake_at=utc_now())
    for _ in range(2):
        begun = work_queue.begin(Generation, run.pk, run.lease_token, lease=LEASE)
        assert begun is not None
        with django_assert_num_queries(0):
            assert begun.workspace.pk == workspace.pk
