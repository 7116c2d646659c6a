from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('pipeline', '0014_run_what_was_registered'),
    ]

    operations = [
        migrations.AddIndex(
            model_name='sourceentry',
            index=models.Index(fields=['workspace', 'id'], name='source_entry_workspace'),
        ),
    ]
