from django.db import migrations


def drop_conditions(apps, _schema):
    """Webhook sources have no `only_if` any more, which would be refused as an unknown setting."""
    sources = apps.get_model('pipeline', 'Source').everywhere
    rows = sources.filter(type='webhook', config__has_key='only_if').only('pk', 'config')
    for source in rows.iterator(chunk_size=500):
        config = {name: value for name, value in source.config.items() if name != 'only_if'}
        sources.filter(pk=source.pk).update(config=config)


class Migration(migrations.Migration):

    dependencies = [
        ('pipeline', '0008_generation_queue'),
    ]

    operations = [
        migrations.RunPython(drop_conditions, migrations.RunPython.noop, elidable=True),
    ]
