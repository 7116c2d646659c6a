from django.db import migrations, models


class Migration(migrations.Migration):
    """How far the films of a run are; rows of before, and of the previous release, are at 0."""

    dependencies = [("pipeline", "0023_default_late_policy")]

    operations = [
        migrations.AddField(
            model_name="generation",
            name="progress",
            field=models.PositiveSmallIntegerField(default=0, db_default=0),
        ),
    ]
