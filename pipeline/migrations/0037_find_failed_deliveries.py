from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('pipeline', '0036_read_the_queue_by_checks'),
    ]

    operations = [
        migrations.AddIndex(
            model_name='inbounddelivery',
            index=models.Index(
                condition=models.Q(('status', 'failed')),
                fields=['workspace', '-id'],
                name='inbound_delivery_failed',
            ),
        ),
    ]
