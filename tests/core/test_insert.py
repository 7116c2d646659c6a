"""`insert` and `insert_or_ignore` store what `save` stores, the latter once."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from django.db import IntegrityError, connection, transaction
from django.test.utils import CaptureQueriesContext

from accounts.models import LedgerEntry
from config.core.database.insert import insert, insert_or_ignore
from config.core.ids import uuid7
from pipeline.models import RawItem, Source

pytestmark = [pytest.mark.django_db, pytest.mark.both_databases]

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)


def test_it_stores_what_save_stores(alices):
    def make(number):
        return RawItem(
            workspace=alices,
            source=Source.everywhere.filter(workspace=alices, is_push=True, test=False).get(),
            dedup_key=f"x:{number}",
            title="Ünïcode",
            metadata={"a": [1, None]},
            engines=["Short Post"],
            content_hash="0" * 64,
            published_at=NOON,
            created_at=NOON,
            updated_at=NOON,
        )

    saved, inserted = make(1), make(2)
    saved.save(force_insert=True)
    with CaptureQueriesContext(connection) as captured:
        assert insert_or_ignore(inserted)
    assert len(captured) == 1
    assert not inserted._state.adding
    rows = list(RawItem.everywhere.filter(workspace=alices).order_by("dedup_key").values())
    assert [row.pop("id") for row in rows] == [saved.pk, inserted.pk]
    assert [row.pop("dedup_key") for row in rows] == ["x:1", "x:2"]
    assert rows[1] == rows[0]
    inserted.title = "changed"
    inserted.save(update_fields=["title"])
    assert RawItem.everywhere.get(pk=inserted.pk).title == "changed"


def test_it_stores_once_and_spoils_nothing(alices):
    def entry():
        return LedgerEntry(workspace=alices, kind="reserve", amount=-1, reserved_change=1, subject=subject)

    subject = uuid7()
    first, second = entry(), entry()
    with transaction.atomic():
        stored = [insert_or_ignore(first), insert_or_ignore(second)]
        count = LedgerEntry.everywhere.filter(subject=subject).count()
    assert stored == [True, False]
    assert (count, first._state.adding, second._state.adding) == (1, False, True)


def test_what_breaks_another_constraint_is_refused(alices):
    entry = LedgerEntry(workspace=alices, kind=None, amount=-1, reserved_change=1, subject=uuid7())
    with pytest.raises(IntegrityError), transaction.atomic():
        insert_or_ignore(entry)


def test_rows_that_break_another_constraint_are_refused_and_not_left_out(alices):
    row = LedgerEntry(workspace=alices, kind=None, amount=-1, reserved_change=1, subject=uuid7())

    with pytest.raises(IntegrityError), transaction.atomic():
        LedgerEntry.everywhere.bulk_create([row], ignore_conflicts=True)


def test_many_rows_are_stored_as_bulk_create_stores_them(alices):
    def make(count):
        return [
            LedgerEntry(
                workspace=alices, kind="grant", amount=number, reason=f"Ünïcode {number}", created_at=NOON
            )
            for number in range(count)
        ]

    LedgerEntry.everywhere.all().delete()
    expected = make(101)
    LedgerEntry.everywhere.bulk_create(expected)
    by_django = list(LedgerEntry.everywhere.order_by("amount").values())
    LedgerEntry.everywhere.all().delete()
    rows = make(101)
    with CaptureQueriesContext(connection) as captured:
        insert(rows)
        insert([])
    assert len(captured) == 2
    assert not any(row._state.adding for row in rows)
    stored = list(LedgerEntry.everywhere.order_by("amount").values())
    assert [row.pop("id") for row in stored] == [row.pk for row in rows]
    assert [row.pop("id") for row in by_django] == [row.pk for row in expected]
    assert stored == by_django
