"""`update_each` changes each row as a queryset's `update` would, where it is as it was."""

from __future__ import annotations

import pytest

from config.core.database.bulk_update import update_each
from pipeline.models import Source
from tests.core.rows import NOON, make_sources

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]


def test_each_of_many_rows_is_changed_as_it_is_told(alices):
    rows = make_sources(alices, 4)
    changes = [
        (
            {"pk": row.pk, "name": row.name},
            {"last_polled_at": NOON, "fetch_state": {"a": number}, "failures": number},
        )
        for number, row in enumerate(rows)
    ]
    changes[0][0]["name"] = "another"
    assert update_each(Source, changes, incremented=("version",)) == 3
    after = [Source.everywhere.get(pk=row.pk) for row in rows]
    assert [row.failures for row in after] == [0, 1, 2, 3]
    assert [row.version - before.version for row, before in zip(after, rows, strict=True)] == [0, 1, 1, 1]
    assert [row.fetch_state for row in after[1:]] == [{"a": 1}, {"a": 2}, {"a": 3}]
    assert [row.last_polled_at for row in after] == [None, NOON, NOON, NOON]
