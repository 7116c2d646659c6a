import config.core.clock
import config.core.encrypted_fields
import config.core.ids
import django.db.models.deletion
import django.db.models.manager
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    # What a checkout of before the first release has applied; `migrate` knows by it that nothing is left to do.
    replaces = [
        ('webhooks', '0002_sample_data'),
    ]

    dependencies = [
        ('accounts', '0001_initial'),
        ('pipeline', '0001_initial'),
    ]

    operations = [
        migrations.CreateModel(
            name='Endpoint',
            fields=[
                ('id', models.UUIDField(default=config.core.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ('test', models.BooleanField(default=False)),
                ('url', models.CharField(max_length=2048)),
                ('description', models.CharField(blank=True, max_length=200)),
                ('events', models.JSONField(default=list)),
                ('secret', config.core.encrypted_fields.SealedTextField()),
                ('previous_secret', config.core.encrypted_fields.SealedTextField(null=True)),
                ('previous_secret_until', models.DateTimeField(null=True)),
                ('rate', models.PositiveSmallIntegerField(db_default=20, default=20)),
                ('status', models.CharField(choices=[('active', 'Active'), ('degraded', 'Degraded'), ('disabled', 'Disabled')], default='active', max_length=10)),
                ('is_on', models.BooleanField(default=True)),
                ('failures', models.PositiveIntegerField(default=0)),
                ('failing_since', models.DateTimeField(null=True)),
                ('last_success_at', models.DateTimeField(null=True)),
                ('is_sample', models.BooleanField(db_default=False, default=False)),
                ('deleted_at', models.DateTimeField(null=True)),
                ('created_at', models.DateTimeField(default=config.core.clock.utc_now)),
                ('updated_at', models.DateTimeField(default=config.core.clock.utc_now)),
                ('workspace', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='accounts.workspace')),
            ],
            options={
                'db_table': 'endpoint',
                'abstract': False,
                'base_manager_name': 'everywhere',
                'indexes': [models.Index(condition=models.Q(('deleted_at__isnull', True)), fields=['workspace'], name='endpoint_live')],
            },
            managers=[
                ('everywhere', django.db.models.manager.Manager()),
            ],
        ),
        migrations.CreateModel(
            name='Delivery',
            fields=[
                ('id', models.UUIDField(default=config.core.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ('due_at', models.DateTimeField(null=True)),
                ('wake_at', models.DateTimeField(null=True)),
                ('lease_token', models.BigIntegerField(default=0)),
                ('attempts', models.PositiveIntegerField(default=0)),
                ('status', models.CharField(choices=[('delivered', 'Delivered'), ('pending', 'Sending or retrying'), ('failed', 'Failed'), ('held', 'Held')], default='pending', max_length=10)),
                ('attempt_count', models.PositiveIntegerField(default=0)),
                ('last_status', models.PositiveSmallIntegerField(null=True)),
                ('last_error', models.CharField(blank=True, max_length=300)),
                ('request_id', models.CharField(blank=True, max_length=64)),
                ('created_at', models.DateTimeField(default=config.core.clock.utc_now)),
                ('delivered_at', models.DateTimeField(null=True)),
                ('event', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='deliveries', to='pipeline.event')),
                ('workspace', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='accounts.workspace')),
                ('endpoint', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='deliveries', to='webhooks.endpoint')),
            ],
            options={
                'verbose_name': 'delivery',
                'verbose_name_plural': 'deliveries',
                'db_table': 'delivery',
                'abstract': False,
                'base_manager_name': 'everywhere',
                'indexes': [models.Index(condition=models.Q(('wake_at__isnull', False)), fields=['wake_at'], name='delivery_wake'), models.Index(condition=models.Q(('wake_at__isnull', False)), fields=['endpoint_id', 'wake_at'], name='delivery_wake_by_endpoint'), models.Index(fields=['endpoint', '-id'], name='delivery_log'), models.Index(fields=['endpoint', 'status', '-id'], name='delivery_log_by_status')],
                'constraints': [models.UniqueConstraint(fields=('endpoint', 'event'), name='delivery_once')],
            },
            managers=[
                ('everywhere', django.db.models.manager.Manager()),
            ],
        ),
        migrations.CreateModel(
            name='EndpointPace',
            fields=[
                ('id', models.UUIDField(default=config.core.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ('recent', models.JSONField(default=list)),
                ('endpoint', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='pace', to='webhooks.endpoint')),
                ('workspace', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='accounts.workspace')),
            ],
            options={
                'db_table': 'endpoint_pace',
                'abstract': False,
                'base_manager_name': 'everywhere',
            },
            managers=[
                ('everywhere', django.db.models.manager.Manager()),
            ],
        ),
        migrations.CreateModel(
            name='Recovery',
            fields=[
                ('id', models.UUIDField(default=config.core.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ('due_at', models.DateTimeField(null=True)),
                ('wake_at', models.DateTimeField(null=True)),
                ('lease_token', models.BigIntegerField(default=0)),
                ('attempts', models.PositiveIntegerField(default=0)),
                ('since', models.DateTimeField()),
                ('is_everything', models.BooleanField(default=False)),
                ('status', models.CharField(choices=[('running', 'Running'), ('done', 'Done'), ('stopped', 'Stopped')], default='running', max_length=10)),
                ('cursor', models.UUIDField()),
                ('until', models.UUIDField()),
                ('total', models.PositiveIntegerField(null=True)),
                ('sent', models.PositiveIntegerField(default=0)),
                ('asked_by', models.CharField(max_length=200)),
                ('created_at', models.DateTimeField(default=config.core.clock.utc_now)),
                ('ended_at', models.DateTimeField(null=True)),
                ('endpoint', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='recoveries', to='webhooks.endpoint')),
                ('workspace', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='accounts.workspace')),
            ],
            options={
                'verbose_name': 'recovery',
                'verbose_name_plural': 'recoveries',
                'db_table': 'recovery',
                'abstract': False,
                'base_manager_name': 'everywhere',
                'indexes': [models.Index(condition=models.Q(('wake_at__isnull', False)), fields=['wake_at'], name='recovery_wake'), models.Index(condition=models.Q(('wake_at__isnull', False)), fields=['workspace_id', 'wake_at'], name='recovery_wake_by_workspace'), models.Index(fields=['endpoint', '-id'], name='recovery_newest')],
                'constraints': [models.UniqueConstraint(condition=models.Q(('status', 'running')), fields=('endpoint',), name='recovery_one_at_a_time')],
            },
            managers=[
                ('everywhere', django.db.models.manager.Manager()),
            ],
        ),
        migrations.CreateModel(
            name='DeliveryAttempt',
            fields=[
                ('id', models.UUIDField(default=config.core.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ('number', models.PositiveIntegerField()),
                ('started_at', models.DateTimeField(default=config.core.clock.utc_now)),
                ('duration_ms', models.PositiveIntegerField(null=True)),
                ('url', models.CharField(blank=True, db_default='', max_length=2048)),
                ('request_headers', models.JSONField(default=dict)),
                ('status_code', models.PositiveSmallIntegerField(null=True)),
                ('response_headers', models.JSONField(default=dict)),
                ('response_body', models.TextField(blank=True)),
                ('error', models.CharField(blank=True, max_length=300)),
                ('next_attempt_at', models.DateTimeField(null=True)),
                ('delivery', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='attempts_made', to='webhooks.delivery')),
                ('workspace', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='accounts.workspace')),
            ],
            options={
                'db_table': 'delivery_attempt',
                'abstract': False,
                'base_manager_name': 'everywhere',
                'indexes': [models.Index(fields=['started_at'], name='delivery_attempt_age')],
                'constraints': [models.UniqueConstraint(fields=('delivery', 'number'), name='delivery_attempt_once')],
            },
            managers=[
                ('everywhere', django.db.models.manager.Manager()),
            ],
        ),
    ]
