"""Publications, their attempts and their items."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from datetime import datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from django.db import connection

from accounts.models import Notice
from config.core.ids import encode
from pipeline import limits
from pipeline.models import Attempt, Event, GeneratedItem, Outlet, Publication, SimulatedPost
from pipeline.outlets.outlet_client import platform_of
from pipeline.publish.send import LONGEST_CALL
from pipeline.states import derive_status
from tests.simulation.rules.ledger import in_order
from tests.simulation.world import SKEW

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.simulation.instance import Instance
    from tests.simulation.world import World


def publications(world: World, _: Instance) -> Iterator[str]:
    posts: defaultdict[str, list[SimulatedPost]] = defaultdict(list)
    for post in SimulatedPost.everywhere.order_by("id"):
        posts[post.ref].append(post)
    for row in Publication.everywhere.select_related("item").order_by("id"):
        name = f"{encode('pub', row.pk)} ({row.status})"
        accepted = [post for post in posts[encode("pub", row.pk)] if post.is_accepted]
        if len(accepted) > 1:
            yield f"{name} is on the platform {len(accepted)} times"
        if row.status == "published" and (len(accepted) != 1 or accepted[0].removed_at):
            yield f"{name} isn't on the platform"
        if row.status in {"scheduled", "cancelled", "failed"} and accepted:
            yield f"{name} is on the platform"
        if row.status == "removed" and (not accepted or accepted[0].removed_at is None):
            yield f"{name} is still on the platform"
        if row.external_id and accepted and row.external_id != encode("sim", accepted[0].pk):
            yield f"{name} says to be {row.external_id}"
        is_silent = any(post.answer == "silence" for post in accepted)
        if row.status == "publishing" or (row.status == "unknown" and not is_silent):
            yield f"{name} hasn't ended"
        is_open = row.status in {"scheduled", "unknown"} or row.step == "remove"
        if (row.wake_at is not None) != is_open:
            yield f"{name} wakes at {row.wake_at}"
        yield from (f"{name} {what}" for what in _left_over(row, is_open=is_open))
        is_waiting = row.item.held or (row.late_policy == "hold" and row.max_lateness_minutes)
        if row.status == "scheduled" and row.due_at < world.now - timedelta(hours=5) and not is_waiting:
            yield f"{name} was due at {row.due_at}"
        if row.status == "published" and row.published_at < row.due_at - SKEW:
            yield f"{name} was published at {row.published_at} and due at {row.due_at}"


def _left_over(row: Publication, *, is_open: bool) -> Iterator[str]:
    """What a publication says of itself fits its status."""
    if row.next_attempt_at is not None and not is_open:
        yield f"is to be tried at {row.next_attempt_at}"
    if (row.unknown_since is not None) != (row.status == "unknown"):
        yield f"is unknown since {row.unknown_since}"
    if row.waits_for is not None and row.status != "scheduled":
        yield f"waits for {row.waits_for}"
    if row.status in {"failed", "unknown"} and not row.error:
        yield "has no error"
    if row.status == "removed" and row.error:
        yield f"has the error {row.error}"
    if row.status in {"published", "removed"} and row.step not in {"done", "remove"}:
        yield f"is at the step {row.step}"
    if (row.published_at is not None) != (row.status in {"published", "removed"}):
        yield f"was published at {row.published_at}"


def lookups(_: World, __: Instance) -> Iterator[str]:
    """What became of a post is asked again as soon as the schedule says."""
    every = limits.RECONCILE_EVERY
    with connection.cursor() as cursor:
        cursor.execute("SELECT id, number, at, next FROM looked_up")
        for pk, number, at, following in cursor.fetchall():
            wait = datetime.fromisoformat(following) - datetime.fromisoformat(at)
            if wait > every[min(number, len(every) - 1)]:
                yield f"{pk} waits {wait} after look-up {number}"


def outlets(_: World, __: Instance) -> Iterator[str]:
    """An account that has just taken a post works; one that was lost was told once, and no other."""
    lost = Counter(
        Event.everywhere.filter(type="outlet.needs_reconnect").values_list("workspace_id", flat=True)
    )
    noticed = Counter(
        Notice.everywhere.filter(kind="outlet_reconnect").values_list("workspace_id", flat=True)
    )
    if lost != noticed:
        yield f"accounts were lost {lost} times and {noticed} notices tell of it"
    for outlet in Outlet.everywhere.filter(is_simulated=True).order_by("id"):
        answered = Attempt.everywhere.filter(publication__outlet=outlet).exclude(finished_at=None)
        last = answered.order_by("-finished_at").first()
        if last is not None and (last.status, outlet.status) == ("succeeded", "needs_reconnect"):
            yield f"{outlet.name} took a post at {last.finished_at} and is {outlet.status}"


def attempts(_: World, __: Instance) -> Iterator[str]:
    calls = Counter(SimulatedPost.everywhere.values_list("ref", flat=True))
    rows: defaultdict[Publication, list[Attempt]] = defaultdict(list)
    for attempt in Attempt.everywhere.select_related("publication").order_by("publication", "number"):
        rows[attempt.publication].append(attempt)
    for row, made in rows.items():
        name = f"{encode('pub', row.pk)} ({row.status})"
        if [one.number for one in made] != list(range(1, len(made) + 1)):
            yield f"{name} has the attempts {[one.number for one in made]}"
        if calls[encode("pub", row.pk)] > len(made):
            yield f"{name} was sent more often than it was tried"
        ended = Counter(one.status for one in made)
        if ended["started"] or (ended["unknown"] and row.status != "unknown"):
            yield f"{name} has open attempts"
        if row.status in {"published", "removed"} and not ended["succeeded"]:
            yield f"{name} has no attempt that succeeded"
        if any((one.finished_at is None) != (one.status in {"started", "unknown"}) for one in made):
            yield f"{name} has an attempt that ended at no time"
        for one in made:
            if one.finished_at is not None and one.finished_at < one.started_at - SKEW:
                yield f"{name} has an attempt that ended before it began"
        for one, following in pairwise(made):
            # Before that the first call might still get through.
            safe_at = one.started_at + LONGEST_CALL + platform_of(row.platform).settles - SKEW
            if (one.error or {}).get("code") == "not_accepted" and following.started_at < safe_at:
                yield f"{name} was sent again at {following.started_at}, which isn't safe before {safe_at}"
        tried = [one for one in made if one.status == "succeeded"]
        if row.status == "published" and tried and tried[-1].revision != row.revision:
            yield f"{name} says revision {row.revision}, and {tried[-1].revision} was sent"


def items(_: World, __: Instance) -> Iterator[str]:
    rows: defaultdict[Any, list[Publication]] = defaultdict(list)
    for row in Publication.everywhere.exclude(status="cancelled"):
        rows[row.item_id].append(row)
    for item in GeneratedItem.everywhere.order_by("id"):
        name = f"{encode('gen', item.pk)} ({item.status})"
        here = rows[item.pk]
        wanted = {derive_status(row.status for row in here)} if here else {"ready", "rejected", "failed"}
        if item.status not in wanted:
            yield f"{name} should be {wanted} by its publications"
        waits = [row.due_at for row in here if row.status in {"scheduled", "unknown"}]
        if item.publish_at != min(waits, default=None):
            yield f"{name} says {item.publish_at} for its next promise"
        out = [row.published_at for row in here if row.status == "published"]
        if out and item.published_at != min(out):
            yield f"{name} says to be published at {item.published_at}, and was at {min(out)}"
        if item.approved_revision is not None and item.approved_revision > item.revision:
            yield f"{name} has an approval of a revision to come"


def told(world: World, _: Instance) -> Iterator[str]:
    """The events of publications agree with what became of them, and with the schedule of tries."""
    by_publication: defaultdict[Any, list[Event]] = defaultdict(list)
    for event in in_order(Event.everywhere.exclude(publication_id=None)):
        by_publication[event.publication_id].append(event)
    for row in Publication.everywhere.order_by("id"):
        name = f"{encode('pub', row.pk)} ({row.status})"
        events = by_publication[row.pk]
        kinds = Counter(event.type for event in events)
        if kinds["published.success"] != (row.status in {"published", "removed"}):
            yield f"{name} was told as published {kinds['published.success']} times"
        if row.status == "failed" and not any(event.will_retry is False for event in events):
            yield f"{name} wasn't told as failed"
        final = [event for event in events if event.type == "published.failed" and event.will_retry is False]
        if Notice.everywhere.filter(kind="post_failed", key__startswith=row.pk.hex).count() < len(final):
            yield f"{name} failed {len(final)} times, and not each was told to its people"
        # Whoever would tell it may have been away for so long.
        told_late = limits.OVERDUE_TOLD_AFTER + timedelta(minutes=30)
        sent_late = Attempt.everywhere.filter(
            publication=row, status="succeeded", started_at__gt=row.due_at + told_late
        )
        if sent_late.exists() and not kinds["published.overdue"]:
            yield f"{name} was due at {row.due_at}, and nobody was told that it was late"
        overdue, before = [], 0
        for event in events:
            data = json.loads(bytes(event.body))["data"]
            # Where it was moved to a slot, the event tells of the time before and shows the new one, still to come.
            row_then = data["publication"]
            is_moved = (row_then["waits_for"] or {}).get("code") == "moved_to_slot"
            is_to_come = is_moved and datetime.fromisoformat(row_then["due_at"]) > event.created_at
            if event.type == "published.overdue" and not is_to_come:
                overdue.append(row_then["due_at"])
                late = event.created_at - datetime.fromisoformat(overdue[-1])
                if late < limits.OVERDUE_TOLD_AFTER - SKEW:
                    yield f"{name} was told as overdue after {late}"
            if event.type == "published.failed" and data["error"]["retryable"] != event.will_retry:
                yield f"{name} says that it is {'' if event.will_retry else 'not '}retried: {data['error']}"
            if event.type == "published.failed" and event.will_retry:
                tries = data["publication"]["attempts"]
                if tries not in {1, before + 1}:
                    yield f"{name} counts its tries as {before}, {tries}"
                before = tries
                wait = datetime.fromisoformat(data["next_attempt_at"]) - event.created_at
                if not _is_planned(wait, data["error"]["code"], tries):
                    yield f"{name} waits {wait} after try {tries}: {data['error']['code']}"
        if len(overdue) != len(set(overdue)):
            yield f"{name} was told as overdue twice: {overdue}"
        if (
            row.status == "unknown"
            and world.now - row.unknown_since > timedelta(hours=2)
            and not kinds["published.failed"]
        ):
            yield f"{name} is unknown since {row.unknown_since} and nobody was told"


def _is_planned(wait: timedelta, code: str, tries: int) -> bool:
    planned = limits.PUBLISH_RETRIES[max(tries, 1) - 1] if tries <= len(limits.PUBLISH_RETRIES) else None
    second = timedelta(seconds=1.1)
    if planned is None:
        return False
    if code == "rate_limited":
        return wait <= (second if tries <= 1 else limits.ASKED_AT_LEAST + second)
    if code == "not_accepted":
        # No earlier than its absence counts.
        return planned - second <= wait <= planned + timedelta(minutes=2)
    return abs(wait - planned) < second
