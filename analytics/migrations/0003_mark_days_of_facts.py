"""Days of facts that were written before there were rollups wait to be added up."""

from datetime import UTC

from django.db import migrations
from django.db.models.functions import TruncDate
from django.utils import timezone


def mark(apps, schema_editor):
    days = set()
    for model, moment in (("Outcome", "at"), ("Measurement", "at"), ("Measurement", "published_at")):
        rows = apps.get_model("analytics", model).everywhere.annotate(day=TruncDate(moment, tzinfo=UTC))
        days |= set(rows.order_by().values_list("workspace_id", "test", "day").distinct())
    now = timezone.now()
    marks = apps.get_model("analytics", "RollupDay")
    marks.everywhere.bulk_create(
        [
            marks(workspace_id=workspace, test=test, day=day, due_at=now, wake_at=now)
            for workspace, test, day in sorted(days)
        ],
        batch_size=1000,
        # A worker of this release may have marked some of them already.
        ignore_conflicts=True,
    )


class Migration(migrations.Migration):
    dependencies = [("analytics", "0002_rollups")]

    operations = [migrations.RunPython(mark, migrations.RunPython.noop)]
