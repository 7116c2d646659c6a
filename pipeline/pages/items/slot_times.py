"""Formats the times of slots: the next free one of each outlet, and those that an item was scheduled for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from zoneinfo import ZoneInfo

from django.utils.translation import gettext as _

from config.core.ids import decode
from pipeline import publish
from pipeline.models import Publication
from pipeline.publish.timing.queue_slots import find_next_free_slot

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime
    from uuid import UUID

    from accounts.models import Workspace
    from pipeline.models import GeneratedItem, Outlet

MAX_OUTLETS_NAMED: Final = 4
"""The most outlets whose next slot a label names; each costs a query."""


def short_time(moment: datetime, zone: str) -> str:
    """Return the moment as a local time in the zone, such as `30 Nov, 09:00`."""
    local = moment.astimezone(ZoneInfo(zone))
    return f"{local.day} {local:%b, %H:%M}"


def next_slots(item: GeneratedItem, outlets: Sequence[Outlet], *, now: datetime) -> str:
    """Return the next free slots as a label: the time of a single outlet, or name and time of several.

    The label names the first `MAX_OUTLETS_NAMED` outlets; it is empty if none of them has a free slot.
    """
    standing = {
        row.outlet_id: row for row in Publication.objects.of(item.workspace).standing().filter(item=item)
    }
    zone = item.workspace.timezone
    named_times = []
    for outlet in outlets[:MAX_OUTLETS_NAMED]:
        queue = publish.find_publish_queue(outlet, item.workspace)
        slot = find_next_free_slot(outlet, queue, after=now, own=standing.get(outlet.pk))
        if slot is not None:
            named_times.append((outlet.name, short_time(slot.moment, zone)))
    if len(outlets) == 1:
        return "".join(time for _name, time in named_times)
    return "; ".join(f"{name}: {time}" for name, time in named_times)


def publications_in(workspace: Workspace, *formers: Mapping[str, Any]) -> list[Publication]:
    """Return the publications that decisions scheduled, by id, with outlet, item, queue and workspace.

    `formers` are the states before the decisions; each holds the ids of the publications that it made or moved.
    """
    public_ids = [
        public_id for former in formers for key in ("made", "stood") for public_id in former.get(key, ())
    ]
    keys = [key for public_id in public_ids if (key := decode("pub", public_id)) is not None]
    return load_publications(workspace, keys) if keys else []


def load_publications(workspace: Workspace, keys: Sequence[UUID]) -> list[Publication]:
    """Return the publications by id, with what their blockers follow from: outlet, item, queue and workspace."""
    rows = Publication.objects.of(workspace).filter(pk__in=keys)
    rows = rows.select_related("outlet", "item", "queue", "workspace").defer("workspace__model_key")
    return list(rows.order_by("id"))


def scheduled_sentence(rows: Sequence[Publication], zone: str) -> str:
    """Return the sentence "Scheduled for …", which names each time once with the outlets that publish then."""
    by_time: dict[str, list[str]] = {}
    for row in rows:
        if row.due_at is not None:
            by_time.setdefault(short_time(row.due_at, zone), []).append(row.outlet.name)
    parts = [
        _("%(outlets)s on %(time)s") % {"outlets": ", ".join(names), "time": time}
        for time, names in by_time.items()
    ]
    return _("Scheduled for %(slots)s.") % {"slots": "; ".join(parts)}
