from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('webhooks', '0002_names_for_people'),
    ]

    operations = [
        migrations.AddField(
            model_name='deliveryattempt',
            name='url',
            field=models.CharField(blank=True, db_default='', max_length=2048),
        ),
    ]
