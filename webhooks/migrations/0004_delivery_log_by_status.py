from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('webhooks', '0003_attempt_url'),
    ]

    operations = [
        migrations.AddIndex(
            model_name='delivery',
            index=models.Index(fields=['endpoint', 'status', '-id'], name='delivery_log_by_status'),
        ),
    ]
