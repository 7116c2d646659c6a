import django.db.models.deletion
import django.db.models.manager
import django.utils.timezone
import uuid_utils.compat
from django.db import migrations, models


def open_summaries(apps, schema_editor):
    """For workspaces that are there already; the first look finds their next month."""
    Summary = apps.get_model('analytics', 'MonthlySummary')
    for workspace in apps.get_model('accounts', 'Workspace').everywhere.filter(deleted_at=None).only('pk'):
        Summary.everywhere.create(workspace=workspace, due_at=None, wake_at=django.utils.timezone.now())


class Migration(migrations.Migration):
    dependencies = [
        ('accounts', '0007_notices'),
        ('analytics', '0005_mark_days_of_hits'),
    ]

    operations = [
        migrations.CreateModel(
            name='MonthlySummary',
            fields=[
                (
                    'id',
                    models.UUIDField(
                        default=uuid_utils.compat.uuid7, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ('due_at', models.DateTimeField(null=True)),
                ('wake_at', models.DateTimeField(null=True)),
                ('lease_token', models.BigIntegerField(default=0)),
                ('attempts', models.PositiveIntegerField(default=0)),
                (
                    'workspace',
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name='+',
                        to='accounts.workspace',
                    ),
                ),
            ],
            options={
                'db_table': 'monthly',
                'abstract': False,
                'base_manager_name': 'everywhere',
                'indexes': [
                    models.Index(
                        condition=models.Q(('wake_at__isnull', False)),
                        fields=['wake_at'],
                        name='monthly_wake',
                    ),
                    models.Index(
                        condition=models.Q(('wake_at__isnull', False)),
                        fields=['workspace_id', 'wake_at'],
                        name='monthly_wake_by_workspace',
                    ),
                ],
                'constraints': [
                    models.UniqueConstraint(fields=('workspace',), name='monthly_one')
                ],
            },
            managers=[
                ('everywhere', django.db.models.manager.Manager()),
            ],
        ),
        migrations.RunPython(open_summaries, migrations.RunPython.noop, elidable=True),
    ]
