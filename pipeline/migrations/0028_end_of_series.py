from django.db import migrations, models


class Migration(migrations.Migration):
    """When a series was ended; rows of before, and of the previous release, go on."""

    dependencies = [("pipeline", "0027_batch_model_calls")]

    operations = [
        migrations.AddField(
            model_name="series",
            name="deleted_at",
            field=models.DateTimeField(null=True),
        ),
    ]
