"""Days of clicks and fetches that were counted before there were rollups of them wait to be added up."""

from datetime import UTC, timedelta

from django.db import migrations
from django.db.models import F
from django.db.models.functions import TruncDate
from django.utils import timezone

_WAIT = timedelta(minutes=30)
"""Until the workers of the release before are gone, which would add a day up without them."""


def mark(apps, schema_editor):
    rows = apps.get_model("pipeline", "HitCount").everywhere.annotate(day=TruncDate("start", tzinfo=UTC))
    days = sorted(set(rows.order_by().values_list("workspace_id", "test", "day").distinct()))
    later = timezone.now() + _WAIT
    marks = apps.get_model("analytics", "RollupDay")
    for workspace, test, day in days:
        waiting = {"due_at": later, "wake_at": later}
        there = marks.everywhere.filter(workspace_id=workspace, test=test, day=day)
        if not there.update(is_current=False, attempts=0, lease_token=F("lease_token") + 1, **waiting):
            marks.everywhere.bulk_create(
                [marks(workspace_id=workspace, test=test, day=day, **waiting)],
                # A worker may have marked it just now.
                ignore_conflicts=True,
            )


class Migration(migrations.Migration):
    dependencies = [("analytics", "0004_roll_hits_up")]

    operations = [migrations.RunPython(mark, migrations.RunPython.noop)]
