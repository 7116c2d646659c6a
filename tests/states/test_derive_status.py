"""derive_status(): the contract's rules over every small set of publications."""

from __future__ import annotations

from itertools import combinations_with_replacement, permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.states import GENERATED_ITEM, PUBLICATION, derive_status

STATUSES = sorted(PUBLICATION)


def by_the_contract(statuses: list[str]) -> str:
    """The contract's sentence, word for word."""
    left = [status for status in statuses if status != "cancelled"]
    if any(status in {"publishing", "unknown"} for status in left):
        return "publishing"
    if any(status == "scheduled" for status in left):
        return "scheduled"
    if left and all(status == "published" for status in left):
        return "published"
    if any(status == "published" for status in left):
        return "partially_published"
    if any(status == "failed" for status in left):
        return "publish_failed"
    if left and all(status == "removed" for status in left):
        return "removed"
    return "ready"


@pytest.mark.parametrize("size", range(5))
def test_derive_status_follows_the_contract_for_every_set(size):
    sets = list(combinations_with_replacement(STATUSES, size))
    assert [derive_status(one) for one in sets] == [by_the_contract(list(one)) for one in sets]


@given(st.lists(st.sampled_from(STATUSES), max_size=20))
def test_derive_status_asks_neither_order_nor_number(statuses):
    expected = by_the_contract(statuses)
    assert derive_status(statuses) == expected
    assert derive_status(reversed(statuses)) == expected
    assert derive_status(statuses * 2) == expected
    assert derive_status(iter(statuses)) == expected


def test_derive_status_is_the_same_in_every_order():
    assert {
        derive_status(order) for order in permutations(("published", "failed", "cancelled", "removed"))
    } == {"partially_published"}


def test_derive_status_names_only_statuses_of_items():
    sets = [one for size in range(4) for one in combinations_with_replacement(STATUSES, size)]
    assert {derive_status(one) for one in sets} == {
        "ready",
        "publishing",
        "scheduled",
        "published",
        "partially_published",
        "publish_failed",
        "removed",
    }
    assert {derive_status(one) for one in sets} <= set(GENERATED_ITEM)
