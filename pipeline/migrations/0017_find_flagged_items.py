from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('pipeline', '0016_persona_drafts'),
    ]

    operations = [
        migrations.AddIndex(
            model_name='generateditem',
            index=models.Index(
                condition=models.Q(
                    models.Q(('flagged', ''), _negated=True), ('deleted_at', None), ('test', False)
                ),
                fields=['workspace', '-id'],
                name='generated_item_flagged',
            ),
        ),
    ]
