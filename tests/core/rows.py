"""Rows whose columns have values of each kind."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from pipeline.models import Source

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)


def make_sources(workspace, count):
    return [
        Source.everywhere.create(
            workspace=workspace,
            name=f"Source {number}",
            type="rss",
            config={"url": f"https://news.example/{number}"},
            created_at=NOON + timedelta(microseconds=number),
        )
        for number in range(count)
    ]
