from django.db import migrations, models


class Migration(migrations.Migration):
    """What is asked of a further variant; rows of before, and of the previous release, were asked nothing."""

    dependencies = [("pipeline", "0025_make_digests")]

    operations = [
        migrations.AddField(
            model_name="generateditem",
            name="hint",
            field=models.CharField(blank=True, db_default="", default="", max_length=500),
        ),
    ]
