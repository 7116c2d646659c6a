from django.db import migrations, models


def know_what_was_checked(apps, schema_editor):
    """The first revision was checked when it was written; who changed the words kept its checks, which aren't theirs."""
    items = apps.get_model("pipeline", "GeneratedItem")._base_manager
    items.filter(revision__lte=1).exclude(checks=[]).update(checks_revision=models.F("revision"))


class Migration(migrations.Migration):

    dependencies = [
        ("pipeline", "0002_sample_data"),
    ]

    operations = [
        migrations.AddField(
            model_name="rawitem",
            name="skipped",
            field=models.JSONField(db_default=models.Value([], models.JSONField()), default=list),
        ),
        migrations.AddField(
            model_name="rawitem",
            name="language_guessed",
            field=models.BooleanField(db_default=False, default=False),
        ),
        migrations.AlterField(
            model_name="generateditem",
            name="held",
            field=models.CharField(
                blank=True,
                choices=[
                    ("approval_stale", "Edited after approval"),
                    ("source_changed", "Source changed"),
                    ("source_withdrawn", "Source withdrawn"),
                    ("instructions_in_source", "Orders in the source"),
                ],
                max_length=30,
            ),
        ),
        migrations.AddField(
            model_name="generateditem",
            name="checks_revision",
            field=models.PositiveIntegerField(null=True),
        ),
        migrations.RunPython(know_what_was_checked, migrations.RunPython.noop, elidable=True),
    ]
