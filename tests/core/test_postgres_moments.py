"""Moments of PostgreSQL are the same as Django's own loader gives them."""

from datetime import UTC, datetime

import pytest
from django.db import DataError, connection
from psycopg import adapters
from psycopg.pq import Format

pytestmark = [pytest.mark.postgres, pytest.mark.django_db]


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026-11-30 12:00:00+00", datetime(2026, 11, 30, 12, tzinfo=UTC)),
        ("2026-11-30 12:00:00.5+02", datetime(2026, 11, 30, 10, 0, 0, 500_000, tzinfo=UTC)),
        ("2026-11-30 12:00:00.123456Z", datetime(2026, 11, 30, 12, 0, 0, 123_456, tzinfo=UTC)),
        ("0001-01-01 00:00:00+00", datetime(1, 1, 1, tzinfo=UTC)),
        ("9999-12-31 23:59:59.999999+00", datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC)),
    ],
)
def test_moments_are_in_utc(text, moment):
    with connection.cursor() as cursor:
        cursor.execute("SELECT %s::timestamptz", [text])
        (loaded,) = cursor.fetchone()
        loader = cursor.connection.adapters.get_loader(adapters.types["timestamptz"].oid, Format.TEXT)
    assert (loaded, loaded.tzinfo) == (moment, UTC)
    assert loader.__name__ == "UtcLoader"


@pytest.mark.parametrize("text", ["infinity", "2026-01-01 00:00:00+00 BC"])
def test_moments_that_python_lacks_are_still_refused(text):
    with connection.cursor() as cursor:
        cursor.execute("SELECT %s::timestamptz", [text])
        with pytest.raises(DataError):
            cursor.fetchone()
