"""Counts that several processes share: two at once are two."""

from __future__ import annotations

import pytest

from accounts.access import counter_caches


@pytest.mark.django_db(transaction=True)
def test_many_at_once_are_each_counted(in_threads):
    def guess(_number):
        table = counter_caches.DatabaseCounterCache("", {})
        return table.add("guesses", 0, 60), table.incr("guesses")

    answers = in_threads(40, guess, threads=8)
    assert [first for first, _ in answers].count(True) == 1
    assert sorted(count for _, count in answers) == list(range(1, 41))
