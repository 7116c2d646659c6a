"""Marks every day that has facts to be added up anew."""

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

_AT_ONCE: Final = 500
_FACTS: Final = (
    (Outcome, "at"),
    (Measurement, "at"),
    (Measurement, "published_at"),
    (HitCount, "start"),
)


class Command(BaseCommand):
    help = (
        "Have the numbers of every day added up anew, as after an upgrade beside which an older worker ran."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        del args, options
        found = set()
        for model, moment in _FACTS:
            rows = model.everywhere.annotate(day=TruncDate(moment, tzinfo=UTC)).order_by()
            found |= set(rows.values_list("workspace_id", "test", "day").distinct())
        days = sorted(found)
        for begin in range(0, len(days), _AT_ONCE):
            # A transaction for each: no worker that writes a fact waits long for its day.
            with transaction.atomic():
                rollup.mark(
                    (workspace, test, datetime.combine(day, time(), tzinfo=UTC))
                    for workspace, test, day in days[begin : begin + _AT_ONCE]
                )
        self.stdout.write(f"{counted(len(days), 'day is', 'days are')} added up anew by the workers.")
