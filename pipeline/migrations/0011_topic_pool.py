"""Topics: of the workspace or of one persona, with angles, a season and a monthly limit; the old sections go."""

import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("pipeline", "0010_persona_sections"),
    ]

    operations = [
        migrations.RemoveField(
            model_name='persona',
            name='audience',
        ),
        migrations.RemoveField(
            model_name='persona',
            name='examples',
        ),
        migrations.RemoveField(
            model_name='persona',
            name='facts',
        ),
        migrations.RemoveField(
            model_name='persona',
            name='rules',
        ),
        migrations.AddField(
            model_name='topic',
            name='angles',
            field=models.JSONField(default=list),
        ),
        migrations.AddField(
            model_name='topic',
            name='deleted_at',
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name='topic',
            name='max_per_month',
            field=models.PositiveSmallIntegerField(null=True),
        ),
        migrations.AddField(
            model_name='topic',
            name='season_from',
            field=models.CharField(blank=True, max_length=5),
        ),
        migrations.AddField(
            model_name='topic',
            name='season_to',
            field=models.CharField(blank=True, max_length=5),
        ),
        migrations.AddField(
            model_name='topic',
            name='source',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='topics', to='pipeline.source'),
        ),
        migrations.AddField(
            model_name='topic',
            name='test',
            field=models.BooleanField(default=False),
        ),
        migrations.AddField(
            model_name='topic',
            name='updated_at',
            field=models.DateTimeField(default=django.utils.timezone.now),
        ),
        migrations.AddField(
            model_name='topic',
            name='version',
            field=models.PositiveIntegerField(default=1),
        ),
        migrations.AlterField(
            model_name='topic',
            name='persona',
            field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='topics', to='pipeline.persona'),
        ),
        migrations.AlterField(
            model_name='topic',
            name='title',
            field=models.CharField(max_length=300),
        ),
        migrations.AddIndex(
            model_name='topic',
            index=models.Index(fields=['workspace', 'test', '-id'], name='topic_list'),
        ),
        migrations.AddConstraint(
            model_name='topic',
            constraint=models.UniqueConstraint(condition=models.Q(('source__isnull', False)), fields=('source', 'title'), name='topic_of_source_once'),
        ),
    ]
