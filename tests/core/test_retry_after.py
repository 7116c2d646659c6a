"""The wait that `Retry-After` names."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from config.core.http_client import read_retry_after

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("90", 90),
        (" 90 ", 90),
        ("0", 0),
        ("7200", 3600),
        ("9" * 5000, 3600),
        ("Fri, 20 Nov 2026 12:01:30 GMT", 90),
        ("Fri, 20 Nov 2026 12:01:30 -0000", 90),
        ("Fri, 20 Nov 2026 13:01:30 +0100", 90),
        ("Fri, 20 Nov 2026 11:00:00 GMT", 0),
        ("Fri, 20 Nov 2036 11:00:00 GMT", 3600),
        ("Fri, 20 Nov 2026 12:00:00 +99999999999999999", None),
        ("-5", None),
        ("1.5", 1.5),
        ("٣", None),
        ("soon", None),
        ("", None),
    ],
)
@pytest.mark.parametrize("name", ["Retry-After", "retry-after"])
def test_wait_that_the_header_names(name: str, value: str, seconds: float | None) -> None:
    waited = read_retry_after({name: value}, now=NOW, longest=timedelta(hours=1))

    assert waited == (None if seconds is None else timedelta(seconds=seconds))


def test_no_header_names_no_wait() -> None:
    assert read_retry_after({}, now=NOW, longest=timedelta(hours=1)) is None
