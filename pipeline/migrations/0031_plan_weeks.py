import django.db.models.deletion
import django.db.models.manager
import django.utils.timezone
import uuid_utils.compat
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0007_notices'),
        ('pipeline', '0030_count_clicks'),
    ]

    operations = [
        migrations.AddField(
            model_name='publishqueue',
            name='blackouts',
            field=models.JSONField(db_default=models.Value([], models.JSONField()), default=list),
        ),
        migrations.CreateModel(
            name='WeekPlan',
            fields=[
                ('id', models.UUIDField(default=uuid_utils.compat.uuid7, editable=False, primary_key=True, serialize=False)),
                ('test', models.BooleanField(default=False)),
                ('entries', models.JSONField(default=list)),
                ('made_by', models.CharField(max_length=200)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('undone_at', models.DateTimeField(null=True)),
                ('workspace', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='accounts.workspace')),
            ],
            options={
                'db_table': 'week_plan',
                'abstract': False,
                'base_manager_name': 'everywhere',
                'indexes': [models.Index(fields=['workspace', '-id'], name='week_plan_list')],
            },
            managers=[
                ('everywhere', django.db.models.manager.Manager()),
            ],
        ),
    ]
