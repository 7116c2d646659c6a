"""Each workspace has a queue, so that `{"queue": "next"}` works at once."""

from django.db import migrations

SLOTS = [{"weekday": day, "time": at} for day in range(5) for at in ("09:00", "12:00", "17:00")]


def make(apps, schema_editor):
    workspaces = apps.get_model("accounts", "Workspace")
    queues = apps.get_model("pipeline", "PublishQueue")
    has_one = set(queues._base_manager.filter(is_default=True).values_list("workspace_id", flat=True))
    rows = workspaces._base_manager.filter(deleted_at=None).values_list("pk", "timezone")
    queues._base_manager.bulk_create(
        [
            queues(workspace_id=key, name="Weekdays", timezone=zone, slots=SLOTS, is_default=True)
            for key, zone in rows
            if key not in has_one
        ],
        batch_size=500,
    )


class Migration(migrations.Migration):
    dependencies = [("pipeline", "0019_on_time")]

    operations = [migrations.RunPython(make, migrations.RunPython.noop)]
