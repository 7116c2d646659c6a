"""What becomes of a late post where its request doesn't say: the workspace's own word."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('pipeline', '0022_mail_newsletters'),
    ]

    operations = [
        migrations.AddField(
            model_name='workspacedefaults',
            name='late_policy',
            field=models.CharField(db_default='publish', default='publish', max_length=10),
        ),
        migrations.AddField(
            model_name='workspacedefaults',
            name='max_lateness_minutes',
            field=models.PositiveIntegerField(null=True),
        ),
    ]
