from django.db import migrations, models


def fill(apps, schema_editor):
    """A workspace that was approved once and isn't any more had its access revoked; the audit log says when."""
    Workspace, AuditEntry = (apps.get_model('accounts', name) for name in ('Workspace', 'AuditEntry'))
    entries = AuditEntry.everywhere.filter(action='workspace.delisted', workspace__whitelisted_at=None)
    for key, at in entries.order_by('created_at').values_list('workspace_id', 'created_at'):
        Workspace.everywhere.filter(pk=key, whitelisted_at=None).update(delisted_at=at)


class Migration(migrations.Migration):
    dependencies = [
        ('accounts', '0001_initial'),
    ]

    operations = [
        migrations.AddField(
            model_name='workspace',
            name='delisted_at',
            field=models.DateTimeField(blank=True, null=True),
        ),
        migrations.RunPython(fill, migrations.RunPython.noop, elidable=True),
    ]
