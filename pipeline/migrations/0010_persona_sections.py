"""The five sections that a person fills in, with what the old ones held; topics of a pool."""

from django.db import migrations, models

OLD = ("voice", "audience", "rules", "facts", "examples")
ROWS = 200


def as_new(old):
    """Nothing is lost: whom it speaks to is part of who it is, and its rules are a demand that no program checks."""
    return {
        "who_you_are": "\n\n".join(text for text in (old.get("facts", ""), old.get("audience", "")) if text),
        "voice": old.get("voice", ""),
        "banned_words": [],
        "required_structures": [{"kind": "other", "text": old["rules"]}] if old.get("rules") else [],
        "reference_posts": [old["examples"]] if old.get("examples") else [],
        "approved_lines": [],
    }


def as_old(new):
    """The way back: lists become lines of the text that they came from."""
    demands = [one.get("text") or f"{one['kind']} {one.get('most', '')}".strip() for one in new["required_structures"]]
    banned = [f"Never say: {', '.join(new['banned_words'])}."] if new["banned_words"] else []
    return {
        "voice": new["voice"],
        "audience": "",
        "rules": "\n".join([*demands, *banned]),
        "facts": "\n".join(text for text in (new["who_you_are"], *new["approved_lines"]) if text),
        "examples": "\n\n".join(new["reference_posts"]),
    }


def fill(apps, schema_editor):
    persona = apps.get_model("pipeline", "Persona")
    for row in persona.everywhere.all().iterator(ROWS):
        new = as_new({name: getattr(row, name) for name in OLD})
        persona.everywhere.filter(pk=row.pk).update(**{name: new[name] for name in new if name != "voice"})
    version = apps.get_model("pipeline", "PersonaVersion")
    for kept in version.everywhere.all().iterator(ROWS):
        content = dict(kept.content)
        content |= as_new(content.pop("sections", {}))
        version.everywhere.filter(pk=kept.pk).update(content=content)


def empty(apps, schema_editor):
    persona = apps.get_model("pipeline", "Persona")
    names = (*as_new({}),)
    for row in persona.everywhere.all().iterator(ROWS):
        old = as_old({name: getattr(row, name) for name in names})
        persona.everywhere.filter(pk=row.pk).update(**old)
    version = apps.get_model("pipeline", "PersonaVersion")
    for kept in version.everywhere.all().iterator(ROWS):
        content = dict(kept.content)
        new = {name: content.pop(name) for name in names}
        version.everywhere.filter(pk=kept.pk).update(content={**content, "sections": as_old(new)})


class Migration(migrations.Migration):
    dependencies = [
        ("pipeline", "0009_inbound_deliveries"),
    ]

    operations = [
        migrations.AddField("persona", "who_you_are", models.TextField(blank=True, default=""), preserve_default=False),
        migrations.AddField("persona", "banned_words", models.JSONField(default=list)),
        migrations.AddField("persona", "required_structures", models.JSONField(default=list)),
        migrations.AddField("persona", "reference_posts", models.JSONField(default=list)),
        migrations.AddField("persona", "approved_lines", models.JSONField(default=list)),
        migrations.AddField("persona", "deleted_at", models.DateTimeField(null=True)),
        migrations.AddField(
            "personaversion", "made_by", models.CharField(blank=True, default="", max_length=200), preserve_default=False
        ),
        migrations.RunPython(fill, empty),
    ]
