"""What people read about queues and the hold: the week in a sentence, and what becomes of what is scheduled."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from pipeline import labels
from pipeline.pages.sources import lane_cadence

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.utils.functional import _StrOrPromise

    from pipeline.models import Publication, PublishQueue, Series
    from pipeline.publish.workspace_hold import ComingPublication

_DAYS: Final = tuple(lane_cadence.DAYS)


def week_of(queue: PublishQueue | Series) -> str:
    """Such as "Monday to Friday at 09:00, 17:00; Saturday at 10:00"; empty where it has no slots."""
    days: defaultdict[int, list[str]] = defaultdict(list)
    for slot in queue.slots:
        days[slot["weekday"]].append(slot["time"])
    alike: defaultdict[tuple[str, ...], list[int]] = defaultdict(list)
    for weekday, times in days.items():
        alike[tuple(times)].append(weekday)
    told = [
        lane_cadence.describe(
            {"cadence": {"slots": lane_cadence.Grid(tuple(_DAYS[day] for day in some), times).slots}}
        )
        for times, some in alike.items()
    ]
    return capfirst("; ".join(told))


def then_of(coming: ComingPublication) -> dict[str, Any]:
    """What letting go now does with it."""
    tone, _icon, label = labels.AT_RELEASE[coming.what]
    row = coming.publication
    return {
        **_item_of(row),
        "tone": tone,
        "label": label,
        "at": row.next_attempt_at or row.due_at if coming.what == "waits" else None,
        "why": _why(row) if coming.what == "held" else "",
    }


def later_of(coming: ComingPublication) -> dict[str, Any]:
    """What letting go some time later will do with it; that depends on how late it is by then."""
    row = coming.publication
    why = _why(row) if coming.what == "held" else ""
    return {**_item_of(row), "label": why or _if_late(row)}


def counts_of(coming: Sequence[ComingPublication]) -> list[tuple[str, _StrOrPromise, int]]:
    """Tone, words and number of each thing that letting go does."""
    found = [one.what for one in coming]
    return [
        (tone, label, found.count(what))
        for what, (tone, _icon, label) in labels.AT_RELEASE.items()
        if what in found
    ]


def _item_of(row: Publication) -> dict[str, Any]:
    return {
        "title": row.item.title or row.item.excerpt,
        "item": row.item_id,
        "outlet": row.outlet,
        "due_at": row.due_at,
    }


def _why(row: Publication) -> str:
    if row.item.held:
        return str(labels.HOLDS_AT_RELEASE.get(row.item.held, _("On hold. Approve to publish.")))
    if row.queue is not None and row.queue.is_paused:
        return _("Queue %(queue)s is paused.") % {"queue": row.queue.name}
    return _("Too late to publish. Reschedule or unschedule it.")


def _if_late(row: Publication) -> str:
    most = row.max_lateness_minutes
    if row.late_policy == "publish" or most is None:
        return _("On time, or now if overdue")
    if row.late_policy == "next_slot":
        return ngettext(
            "On time, or next slot after %(count)d min",
            "On time, or next slot after %(count)d min",
            most,
        ) % {"count": most}
    return ngettext(
        "On time, or not at all after %(count)d min",
        "On time, or not at all after %(count)d min",
        most,
    ) % {"count": most}
