"""Formats queues and the hold for display: the slots of a week as text, and what a release does."""

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

_DAY_NAMES: Final = tuple(lane_cadence.DAYS)


def describe_week(queue: PublishQueue | Series) -> str:
    """Return the slots of a week, such as "Monday to Friday at 09:00, 17:00; Saturday at 10:00".

    Days with the same times are grouped. The text is empty if there are no slots.
    """
    times_by_weekday: defaultdict[int, list[str]] = defaultdict(list)
    for slot in queue.slots:
        times_by_weekday[slot["weekday"]].append(slot["time"])
    weekdays_by_times: defaultdict[tuple[str, ...], list[int]] = defaultdict(list)
    for weekday, times in times_by_weekday.items():
        weekdays_by_times[tuple(times)].append(weekday)
    sentences = [
        lane_cadence.describe(
            {"cadence": {"slots": lane_cadence.Grid(tuple(_DAY_NAMES[day] for day in weekdays), times).slots}}
        )
        for times, weekdays in weekdays_by_times.items()
    ]
    return capfirst("; ".join(sentences))


def release_row(coming: ComingPublication) -> dict[str, Any]:
    """Return the row of a publication with what releasing the hold now does with it."""
    tone, _icon, label = labels.AT_RELEASE[coming.what]
    publication = coming.publication
    return {
        **_item_context(publication),
        "tone": tone,
        "label": label,
        "at": (publication.next_attempt_at or publication.due_at) if coming.what == "waits" else None,
        "why": _blocked_reason(publication) if coming.what == "held" else "",
    }


def hold_row(coming: ComingPublication) -> dict[str, Any]:
    """Return the row of a publication with what releasing the hold later will do with it.

    That depends on how late the publication is by then.
    """
    publication = coming.publication
    reason = _blocked_reason(publication) if coming.what == "held" else ""
    return {**_item_context(publication), "label": reason or _late_label(publication)}


def count_outcomes(coming: Sequence[ComingPublication]) -> list[tuple[str, _StrOrPromise, int]]:
    """Return tone, label and number of publications for each outcome of a release that occurs."""
    outcomes = [publication.what for publication in coming]
    return [
        (tone, label, outcomes.count(outcome))
        for outcome, (tone, _icon, label) in labels.AT_RELEASE.items()
        if outcome in outcomes
    ]


def _item_context(publication: Publication) -> dict[str, Any]:
    """Return the title, item, outlet and due time of a publication for its row."""
    return {
        "title": publication.item.title or publication.item.excerpt,
        "item": publication.item_id,
        "outlet": publication.outlet,
        "due_at": publication.due_at,
    }


def _blocked_reason(publication: Publication) -> str:
    """Return why a release doesn't publish it: the item's hold, a paused queue, or that it is too late."""
    if publication.item.held:
        return str(labels.HOLDS_AT_RELEASE.get(publication.item.held, _("On hold. Approve to publish.")))
    if publication.queue is not None and publication.queue.is_paused:
        return _("Queue %(queue)s is paused.") % {"queue": publication.queue.name}
    return _("Too late to publish. Reschedule or unschedule it.")


def _late_label(publication: Publication) -> str:
    """Return what the late policy will do; the limit of the lateness is in minutes."""
    max_minutes = publication.max_lateness_minutes
    if publication.late_policy == "publish" or max_minutes is None:
        return _("On time, or now if overdue")
    if publication.late_policy == "next_slot":
        return ngettext(
            "On time, or next slot after %(count)d min",
            "On time, or next slot after %(count)d min",
            max_minutes,
        ) % {"count": max_minutes}
    return ngettext(
        "On time, or not at all after %(count)d min",
        "On time, or not at all after %(count)d min",
        max_minutes,
    ) % {"count": max_minutes}
