"""Sources that were registered before their kinds were fetched start; raw items that feeds brought are known by address."""

from django.db import migrations
from django.utils import timezone

from config.ground.ids import uuid7
from pipeline.stages.identity import second_key

ROWS = 500
AT_WORK = ("active", "failing")
NOW_FETCHED = ("scraper", "youtube", "tiktok")


def wake(apps, schema_editor):
    now = timezone.now()
    source = apps.get_model("pipeline", "Source")
    asleep = source.everywhere.filter(status__in=AT_WORK, wake_at=None, deleted_at=None)
    asleep.filter(type__in=NOW_FETCHED).update(wake_at=now, due_at=now)
    slot = apps.get_model("pipeline", "BrandSlot")
    for lane in asleep.filter(type="brand").iterator(ROWS):
        if slot.everywhere.filter(source=lane, status__in=("waiting", "waiting_quota")).exists():
            continue
        slot.everywhere.create(
            id=uuid7(),
            workspace_id=lane.workspace_id,
            test=lane.test,
            source=lane,
            due_at=now,
            wake_at=now,
            created_at=now,
        )
        source.everywhere.filter(pk=lane.pk).update(due_at=now)


def print_what_feeds_brought(apps, schema_editor):
    """An id that was an address made of the feed's is now as the feed writes it; only the second key meets the old."""
    raw = apps.get_model("pipeline", "RawItem")
    mark = apps.get_model("pipeline", "RawPrint")
    fetched = raw.everywhere.filter(source__type__in=("rss", *NOW_FETCHED), deleted_at=None).order_by("pk")
    fields = ("id", "workspace_id", "test", "source_id", "url", "content_hash", "created_at")
    last = None
    # By ids, not by one long read: what is written meanwhile is of another table, but may be much.
    while rows := list((fetched.filter(pk__gt=last) if last else fetched).only(*fields)[:ROWS]):
        last = rows[-1].pk
        keys = ((row, second_key(row.source_id, url=row.url, body_hash=row.content_hash)) for row in rows)
        mark.everywhere.bulk_create(
            [
                mark(
                    id=row.pk,
                    workspace_id=row.workspace_id,
                    test=row.test,
                    second_key=key,
                    created_at=row.created_at,
                )
                for row, key in keys
                if key is not None
            ],
            # One that has its print already, or whose address an older one has.
            ignore_conflicts=True,
        )


class Migration(migrations.Migration):
    dependencies = [
        ("pipeline", "0013_uploads"),
    ]

    operations = [
        migrations.RunPython(wake, migrations.RunPython.noop),
        migrations.RunPython(print_what_feeds_brought, migrations.RunPython.noop),
    ]
