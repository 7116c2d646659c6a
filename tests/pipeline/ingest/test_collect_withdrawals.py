"""collect.window: which entries a list left out though it still has older ones."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st

from pipeline.ingest.collect import store_entries
from tests.pipeline.steps import NOON

HOUR = timedelta(hours=1)


def names(*numbers):
    return frozenset(store_entries.name_of(str(number)) for number in numbers)


def dated(*numbers):
    """The higher the number, the newer."""
    return [(str(number), NOON + number * HOUR) for number in numbers]


def undated(*numbers):
    return [(str(number), None) for number in numbers]


def run(*polls):
    state, gone = None, []
    for listed in polls:
        seen = store_entries.confirm(state) if listed is None else store_entries.compare(state, listed)
        if seen is not None:
            state = seen.state
            gone.append(seen.gone)
        else:
            gone.append(frozenset())
    return gone


def test_entry_between_others_is_gone_at_the_second_poll_without_it():
    for listed in (dated, undated):
        assert run(listed(5, 4, 3, 2), listed(5, 3, 2), listed(5, 3, 2), listed(5, 3, 2)) == [
            names(),
            names(),
            names(4),
            names(),
        ]


def test_newest_entry_is_gone_too():
    assert run(dated(3, 2, 1), dated(2, 1), dated(2, 1)) == [names(), names(), names(3)]


def test_entry_that_was_crowded_out_is_not_gone():
    assert run(dated(3, 2, 1), dated(4, 3, 2), dated(5, 4, 3), dated(6, 5, 4)) == [names()] * 4


def test_list_that_is_wholly_new_says_nothing_of_the_old_one():
    assert run(dated(3, 2, 1), dated(9, 8, 7), dated(9, 8, 7)) == [names()] * 3


def test_entry_that_comes_back_at_once_was_never_gone():
    assert run(dated(3, 2, 1), dated(3, 1), dated(3, 2, 1), dated(3, 1)) == [names()] * 4


def test_unchanged_document_is_a_second_look():
    assert run(dated(3, 2, 1), dated(3, 1), None, None) == [names(), names(), names(2), names()]


def test_pinned_old_entry_on_top_proves_nothing():
    pinned = [("0", NOON - 1000 * HOUR)]
    polls = [
        pinned + dated(3, 2, 1),
        pinned + dated(4, 3, 2),
        pinned + dated(5, 4, 3),
        pinned + dated(6, 5, 4),
    ]
    assert run(*polls) == [names()] * 4


def test_order_that_changes_by_chance_proves_nothing_where_dates_say_otherwise():
    # 1 is the oldest and falls out of the list, though it stood above others.
    assert run(dated(2, 1, 4, 3), dated(3, 5, 2, 4), dated(4, 2, 3, 5)) == [names()] * 3


@given(st.lists(st.integers(0, 3), min_size=1, max_size=20), st.integers(1, 8))
def test_list_that_only_slides_loses_nothing(steps, size):
    newest, polls = size, []
    for step in steps:
        newest += step
        polls.append(dated(*range(newest, newest - size, -1)))
    assert run(*polls) == [names()] * len(polls)


@given(st.sets(st.integers(1, 19)), st.lists(st.integers(0, 1), min_size=2, max_size=6))
def test_what_was_removed_is_told_once(removed, slides):
    """However the list slides meanwhile, as long as an older entry stays in it."""
    newest, polls = 20, [dated(*range(20, -1, -1))]
    for slide in slides:
        newest += slide
        polls.append(dated(*(number for number in range(newest, -1, -1) if number not in removed)))
    told = [name for gone in run(*polls) for name in gone]
    assert sorted(told) == sorted(names(*removed))
