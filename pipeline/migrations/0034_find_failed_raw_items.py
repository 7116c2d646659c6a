from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('pipeline', '0033_upload_seconds'),
    ]

    operations = [
        migrations.AddIndex(
            model_name='rawitem',
            index=models.Index(
                condition=models.Q(
                    ('deleted_at', None), ('status__in', ['failed', 'waiting_quota']), ('test', False)
                ),
                fields=['workspace', '-updated_at'],
                name='raw_item_failed',
            ),
        ),
    ]
