"""The times of slots in words: the next free one of each outlet, and those that an item was scheduled for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from zoneinfo import ZoneInfo

from django.utils.translation import gettext as _

from config.core.ids import decode
from pipeline import publish
from pipeline.models import Publication
from pipeline.publish.timing.queue_slots import next_free_slot

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime
    from uuid import UUID

    from accounts.models import Workspace
    from pipeline.models import GeneratedItem, Outlet

NAMED_MOST: Final = 4
"""Outlets whose next slot a label names; each is a statement."""


def short_time(moment: datetime, zone: str) -> str:
    """`30 Nov, 09:00`."""
    local = moment.astimezone(ZoneInfo(zone))
    return f"{local.day} {local:%b, %H:%M}"


def next_slots(item: GeneratedItem, outlets: Sequence[Outlet], *, now: datetime) -> str:
    """Of one outlet the time alone, of several each with its name; empty where none has a free slot."""
    standing = {
        row.outlet_id: row for row in Publication.objects.of(item.workspace).standing().filter(item=item)
    }
    zone = item.workspace.timezone
    named = []
    for outlet in outlets[:NAMED_MOST]:
        queue = publish.publish_queue_of(outlet, item.workspace)
        slot = next_free_slot(outlet, queue, after=now, own=standing.get(outlet.pk))
        if slot is not None:
            named.append((outlet.name, short_time(slot.moment, zone)))
    if len(outlets) == 1:
        return "".join(time for _name, time in named)
    return "; ".join(f"{name}: {time}" for name, time in named)


def publications_in(workspace: Workspace, *formers: Mapping[str, Any]) -> list[Publication]:
    """Those that decisions scheduled, in their order, with
    outlet, item, queue and workspace; empty where there are none.
    """
    names = [name for former in formers for key in ("made", "stood") for name in former.get(key, ())]
    keys = [key for name in names if (key := decode("pub", name)) is not None]
    return with_obstacles(workspace, keys) if keys else []


def with_obstacles(workspace: Workspace, keys: Sequence[UUID]) -> list[Publication]:
    """The publications with all that tells what stands in their way: outlet, item, queue and workspace."""
    rows = Publication.objects.of(workspace).filter(pk__in=keys)
    rows = rows.select_related("outlet", "item", "queue", "workspace").defer("workspace__model_key")
    return list(rows.order_by("id"))


def scheduled_sentence(rows: Sequence[Publication], zone: str) -> str:
    """Each time once, with the outlets that publish then."""
    by_time: dict[str, list[str]] = {}
    for row in rows:
        if row.due_at is not None:
            by_time.setdefault(short_time(row.due_at, zone), []).append(row.outlet.name)
    parts = [
        _("%(outlets)s on %(time)s") % {"outlets": ", ".join(names), "time": time}
        for time, names in by_time.items()
    ]
    return _("Scheduled for %(slots)s.") % {"slots": "; ".join(parts)}
