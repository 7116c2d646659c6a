"""Marks every day that has facts, so that the workers recompute its rollups.

Use it after an upgrade during which an older worker was still running.
"""

from __future__ import annotations

from datetime import UTC, datetime, time
from typing import Any, Final

from django.core.management.base import BaseCommand
from django.db import transaction
from django.db.models.functions import TruncDate

from analytics import rollup
from analytics.models import Measurement, Outcome
from pipeline.models import HitCount
from pipeline.text.prose.verbatim_edits import counted

_DAYS_PER_TRANSACTION: Final = 500
_FACT_DATE_FIELDS: Final = (
    (Outcome, "at"),
    (Measurement, "at"),
    (Measurement, "published_at"),
    (HitCount, "start"),
)


class Command(BaseCommand):
    help = (
        "Have the numbers of every day added up again, as after an upgrade during which an older worker ran."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        del args, options
        marks = set()
        for model, date_field in _FACT_DATE_FIELDS:
            # Without order_by() a default ordering would break distinct().
            rows = model.everywhere.annotate(day=TruncDate(date_field, tzinfo=UTC)).order_by()
            marks |= set(rows.values_list("workspace_id", "test", "day").distinct())
        days = sorted(marks)
        for start in range(0, len(days), _DAYS_PER_TRANSACTION):
            # Several short transactions: a worker that writes a fact must not wait long for its day.
            with transaction.atomic():
                rollup.mark(
                    (workspace, test, datetime.combine(day, time(), tzinfo=UTC))
                    for workspace, test, day in days[start : start + _DAYS_PER_TRANSACTION]
                )
        self.stdout.write(f"{counted(len(days), 'day is', 'days are')} added up again by the workers.")
