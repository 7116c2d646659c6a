import config.core.clock
import config.core.ids
import django.db.models.deletion
import django.db.models.manager
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('accounts', '0001_initial'),
        ('pipeline', '0001_initial'),
    ]

    operations = [
        migrations.CreateModel(
            name='HitRollup',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('test', models.BooleanField(default=False)),
                ('day', models.DateField()),
                ('unit', models.PositiveIntegerField()),
                ('start', models.BigIntegerField()),
                ('content_type', models.CharField(choices=[('video', 'Video'), ('image', 'Image'), ('text', 'Text'), ('blog', 'Article'), ('newsletter', 'Newsletter')], max_length=10)),
                ('engine_output', models.CharField(max_length=60)),
                ('kind', models.CharField(choices=[('click', 'Click'), ('fetch', 'Fetch')], max_length=5)),
                ('count', models.BigIntegerField()),
                ('outlet', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='pipeline.outlet')),
                ('persona', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='pipeline.persona')),
                ('source', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='pipeline.source')),
                ('workspace', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='accounts.workspace')),
            ],
            options={
                'db_table': 'hit_rollup',
                'abstract': False,
                'base_manager_name': 'everywhere',
                'indexes': [models.Index(fields=['workspace', 'test', 'unit', 'start'], name='hit_rollup_read'), models.Index(fields=['workspace', 'test', 'day'], name='hit_rollup_day'), models.Index(fields=['day'], name='hit_rollup_forget')],
            },
            managers=[
                ('everywhere', django.db.models.manager.Manager()),
            ],
        ),
        migrations.CreateModel(
            name='Measurement',
            fields=[
                ('id', models.UUIDField(default=config.core.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ('test', models.BooleanField(default=False)),
                ('number', models.PositiveSmallIntegerField()),
                ('at', models.DateTimeField(default=config.core.clock.utc_now)),
                ('published_at', models.DateTimeField()),
                ('content_type', models.CharField(choices=[('video', 'Video'), ('image', 'Image'), ('text', 'Text'), ('blog', 'Article'), ('newsletter', 'Newsletter')], max_length=10)),
                ('engine_output', models.CharField(max_length=60)),
                ('impressions', models.BigIntegerField(null=True)),
                ('views', models.BigIntegerField(null=True)),
                ('likes', models.BigIntegerField(null=True)),
                ('comments', models.BigIntegerField(null=True)),
                ('shares', models.BigIntegerField(null=True)),
                ('clicks', models.BigIntegerField(null=True)),
                ('impressions_delta', models.BigIntegerField(null=True)),
                ('views_delta', models.BigIntegerField(null=True)),
                ('likes_delta', models.BigIntegerField(null=True)),
                ('comments_delta', models.BigIntegerField(null=True)),
                ('shares_delta', models.BigIntegerField(null=True)),
                ('clicks_delta', models.BigIntegerField(null=True)),
                ('availability', models.JSONField(default=dict)),
                ('outlet', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='pipeline.outlet')),
                ('persona', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='pipeline.persona')),
                ('publication', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='measurements', to='pipeline.publication')),
                ('source', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='pipeline.source')),
                ('workspace', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='accounts.workspace')),
            ],
            options={
                'db_table': 'measurement',
                'abstract': False,
                'base_manager_name': 'everywhere',
                'indexes': [models.Index(fields=['workspace', 'test', 'at'], name='measurement_received'), models.Index(fields=['workspace', 'test', 'published_at'], name='measurement_published')],
                'constraints': [models.UniqueConstraint(fields=('publication', 'number'), name='measurement_once')],
            },
            managers=[
                ('everywhere', django.db.models.manager.Manager()),
            ],
        ),
        migrations.CreateModel(
            name='MeasurementRollup',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('test', models.BooleanField(default=False)),
                ('day', models.DateField()),
                ('unit', models.PositiveIntegerField()),
                ('start', models.BigIntegerField()),
                ('content_type', models.CharField(choices=[('video', 'Video'), ('image', 'Image'), ('text', 'Text'), ('blog', 'Article'), ('newsletter', 'Newsletter')], max_length=10)),
                ('engine_output', models.CharField(max_length=60)),
                ('attribution', models.CharField(choices=[('received', 'Date counted'), ('published', 'Date published')], max_length=9)),
                ('availability', models.JSONField(default=dict)),
                ('impressions', models.BigIntegerField(null=True)),
                ('views', models.BigIntegerField(null=True)),
                ('likes', models.BigIntegerField(null=True)),
                ('comments', models.BigIntegerField(null=True)),
                ('shares', models.BigIntegerField(null=True)),
                ('clicks', models.BigIntegerField(null=True)),
                ('outlet', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='pipeline.outlet')),
                ('persona', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='pipeline.persona')),
                ('source', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='pipeline.source')),
                ('workspace', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='accounts.workspace')),
            ],
            options={
                'db_table': 'measurement_rollup',
                'abstract': False,
                'base_manager_name': 'everywhere',
                'indexes': [models.Index(fields=['workspace', 'test', 'attribution', 'unit', 'start'], name='measurement_rollup_read'), models.Index(fields=['workspace', 'test', 'day'], name='measurement_rollup_day')],
            },
            managers=[
                ('everywhere', django.db.models.manager.Manager()),
            ],
        ),
        migrations.CreateModel(
            name='Measuring',
            fields=[
                ('id', models.UUIDField(default=config.core.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ('due_at', models.DateTimeField(null=True)),
                ('wake_at', models.DateTimeField(null=True)),
                ('lease_token', models.BigIntegerField(default=0)),
                ('attempts', models.PositiveIntegerField(default=0)),
                ('test', models.BooleanField(default=False)),
                ('status', models.CharField(choices=[('waiting', 'Waiting'), ('done', 'Done')], default='waiting', max_length=10)),
                ('measured', models.PositiveSmallIntegerField(default=0)),
                ('last_error', models.CharField(blank=True, max_length=300)),
                ('publication', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='measuring', to='pipeline.publication')),
                ('workspace', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='accounts.workspace')),
            ],
            options={
                'db_table': 'measuring',
                'abstract': False,
                'base_manager_name': 'everywhere',
                'indexes': [models.Index(condition=models.Q(('wake_at__isnull', False)), fields=['wake_at'], name='measuring_wake'), models.Index(condition=models.Q(('wake_at__isnull', False)), fields=['workspace_id', 'wake_at'], name='measuring_wake_by_workspace')],
            },
            managers=[
                ('everywhere', django.db.models.manager.Manager()),
            ],
        ),
        migrations.CreateModel(
            name='MonthlySummary',
            fields=[
                ('id', models.UUIDField(default=config.core.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ('due_at', models.DateTimeField(null=True)),
                ('wake_at', models.DateTimeField(null=True)),
                ('lease_token', models.BigIntegerField(default=0)),
                ('attempts', models.PositiveIntegerField(default=0)),
                ('workspace', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='accounts.workspace')),
            ],
            options={
                'db_table': 'monthly',
                'abstract': False,
                'base_manager_name': 'everywhere',
                'indexes': [models.Index(condition=models.Q(('wake_at__isnull', False)), fields=['wake_at'], name='monthly_wake'), models.Index(condition=models.Q(('wake_at__isnull', False)), fields=['workspace_id', 'wake_at'], name='monthly_wake_by_workspace')],
                'constraints': [models.UniqueConstraint(fields=('workspace',), name='monthly_one')],
            },
            managers=[
                ('everywhere', django.db.models.manager.Manager()),
            ],
        ),
        migrations.CreateModel(
            name='Outcome',
            fields=[
                ('id', models.UUIDField(default=config.core.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ('test', models.BooleanField(default=False)),
                ('event_id', models.UUIDField(unique=True)),
                ('publication_id', models.UUIDField()),
                ('is_published', models.BooleanField()),
                ('at', models.DateTimeField()),
                ('content_type', models.CharField(choices=[('video', 'Video'), ('image', 'Image'), ('text', 'Text'), ('blog', 'Article'), ('newsletter', 'Newsletter')], max_length=10)),
                ('engine_output', models.CharField(max_length=60)),
                ('outlet', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='pipeline.outlet')),
                ('persona', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='pipeline.persona')),
                ('source', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='pipeline.source')),
                ('workspace', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='accounts.workspace')),
            ],
            options={
                'db_table': 'outcome',
                'abstract': False,
                'base_manager_name': 'everywhere',
                'indexes': [models.Index(fields=['workspace', 'test', 'at'], name='outcome_by_time')],
            },
            managers=[
                ('everywhere', django.db.models.manager.Manager()),
            ],
        ),
        migrations.CreateModel(
            name='OutcomeRollup',
            fields=[
                ('id', models.BigAutoField(primary_key=True, serialize=False)),
                ('test', models.BooleanField(default=False)),
                ('day', models.DateField()),
                ('unit', models.PositiveIntegerField()),
                ('start', models.BigIntegerField()),
                ('content_type', models.CharField(choices=[('video', 'Video'), ('image', 'Image'), ('text', 'Text'), ('blog', 'Article'), ('newsletter', 'Newsletter')], max_length=10)),
                ('engine_output', models.CharField(max_length=60)),
                ('known', models.PositiveSmallIntegerField(null=True)),
                ('published_count', models.PositiveIntegerField()),
                ('failed_count', models.PositiveIntegerField()),
                ('outlet', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='pipeline.outlet')),
                ('persona', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='pipeline.persona')),
                ('source', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='pipeline.source')),
                ('workspace', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='accounts.workspace')),
            ],
            options={
                'db_table': 'outcome_rollup',
                'abstract': False,
                'base_manager_name': 'everywhere',
                'indexes': [models.Index(fields=['workspace', 'test', 'unit', 'start'], name='outcome_rollup_read'), models.Index(fields=['workspace', 'test', 'day'], name='outcome_rollup_day')],
            },
            managers=[
                ('everywhere', django.db.models.manager.Manager()),
            ],
        ),
        migrations.CreateModel(
            name='RollupDay',
            fields=[
                ('id', models.UUIDField(default=config.core.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ('due_at', models.DateTimeField(null=True)),
                ('wake_at', models.DateTimeField(null=True)),
                ('lease_token', models.BigIntegerField(default=0)),
                ('attempts', models.PositiveIntegerField(default=0)),
                ('test', models.BooleanField(default=False)),
                ('day', models.DateField()),
                ('is_current', models.BooleanField(default=False)),
                ('last_error', models.CharField(blank=True, max_length=300)),
                ('workspace', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='accounts.workspace')),
            ],
            options={
                'db_table': 'rollup_day',
                'abstract': False,
                'base_manager_name': 'everywhere',
                'indexes': [models.Index(condition=models.Q(('wake_at__isnull', False)), fields=['wake_at'], name='rollup_day_wake'), models.Index(condition=models.Q(('wake_at__isnull', False)), fields=['workspace_id', 'wake_at'], name='rollup_day_wake_by_workspace')],
                'constraints': [models.UniqueConstraint(fields=('workspace', 'test', 'day'), name='rollup_day_once')],
            },
            managers=[
                ('everywhere', django.db.models.manager.Manager()),
            ],
        ),
    ]
