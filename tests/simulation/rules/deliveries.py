"""Events and their deliveries."""

from __future__ import annotations

from collections import Counter, defaultdict
from datetime import datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING

from django.db import connection

from accounts.models import AuditEntry, Notice, Workspace
from config.core.ids import encode
from pipeline.events import TYPES
from pipeline.models import Event
from tests.simulation.world import ON_TIME, SKEW
from webhooks import limits
from webhooks.models import Delivery, DeliveryAttempt, Endpoint

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tests.simulation.instance import Instance
    from tests.simulation.world import World


def wants(endpoint: Endpoint, event: Event) -> bool:
    """Return whether the endpoint is to get the event."""
    if endpoint.events:
        return endpoint.events == ["*"] or event.type in endpoint.events
    return TYPES[event.type]


def feed(_: World, __: Instance) -> Iterator[str]:
    for pk in Workspace.everywhere.values_list("pk", flat=True):
        events = Event.everywhere.filter(workspace_id=pk).exclude(type="webhook.test")
        places = list(events.order_by("position").values_list("position", flat=True))
        if places != list(range(1, len(places) + 1)):
            yield f"the feed's places are {places[:20]}"
        if events.filter(counted_at=None).exists():
            yield "an event isn't counted"


def deliveries(world: World, instance: Instance) -> Iterator[str]:
    rows = {(row.endpoint_id, row.event_id): row for row in Delivery.everywhere.select_related("endpoint")}
    events = list(Event.everywhere.exclude(type="webhook.test").order_by("id"))
    for endpoint in Endpoint.everywhere.order_by("id"):
        receiver = instance.receivers[endpoint.url]
        got = Counter(event_id for _, event_id, _ in receiver.got)
        answered = Counter(event_id for _, event_id, mode in receiver.got if mode == "ok")
        twice = [event_id for event_id, count in answered.items() if count > 1]
        if twice and world.is_calm and endpoint.pk not in instance.sent_again:
            yield f"{endpoint.url} took {twice[0]} and got it again"
        well = {event_id for _, event_id, mode in receiver.got if mode in {"ok", "slow"}}
        for event in events:
            if event.workspace_id != endpoint.workspace_id:
                continue
            row = rows.get((endpoint.pk, event.pk))
            is_clear = abs(endpoint.created_at - event.dispatched_at) > SKEW and (
                endpoint.deleted_at is None or abs(endpoint.deleted_at - event.dispatched_at) > SKEW
            )
            lived = endpoint.created_at < event.dispatched_at and (
                endpoint.deleted_at is None or event.dispatched_at < endpoint.deleted_at
            )
            if is_clear and (row is not None) != (lived and wants(endpoint, event)):
                yield f"{event.type} {event.pk} has {'a' if row else 'no'} delivery to {endpoint.url}"
        for row in (row for row in rows.values() if row.endpoint_id == endpoint.pk):
            name = f"delivery {row.pk} to {endpoint.url} ({row.status})"
            if row.status == "delivered" and row.event_id not in well:
                yield f"{name} never arrived"
            if row.status == "held":
                yield f"{name} is held, and its endpoint is on"
            if (
                endpoint.deleted_at is None
                and row.status == "failed"
                and row.attempt_count < len(limits.WEBHOOK_SCHEDULE)
            ):
                yield f"{name} was given up after {row.attempt_count} attempts: {row.last_error}"
            if row.status == "delivered" and row.delivered_at is None:
                yield f"{name} was delivered at {row.delivered_at}"
            if row.status == "delivered" and (row.last_status, row.last_error) != (200, ""):
                yield f"{name} says {row.last_status}, {row.last_error}"
            if row.status == "failed" and not row.last_error:
                yield f"{name} doesn't say why"
            if (row.wake_at is not None) != (row.status == "pending"):
                yield f"{name} wakes at {row.wake_at}"
            if got[row.event_id] < row.attempt_count and world.is_calm:
                yield f"{name} has {row.attempt_count} attempts, and {got[row.event_id]} calls came"
        if endpoint.deleted_at is None and (endpoint.status != "active" or not endpoint.is_on):
            yield f"{endpoint.url} is {endpoint.status} in the end"
        yield from health(world, endpoint)
        times = receiver.begun
        for first, last in zip(times, times[endpoint.rate :], strict=False):
            if last - first < timedelta(seconds=0.8):
                yield f"{endpoint.url} got {endpoint.rate + 1} events within {last - first}"


def health(world: World, endpoint: Endpoint) -> Iterator[str]:
    """What an endpoint's page says of it agrees with the log of its attempts."""
    tries = DeliveryAttempt.everywhere.filter(delivery__endpoint=endpoint)
    last = max(tries, key=_ended_at, default=None)
    best = max(map(_ended_at, tries.filter(status_code=200)), default=None)
    if endpoint.deleted_at is not None and (endpoint.is_on or endpoint.secret):
        yield f"{endpoint.url} was removed and is on"
    for one in tries:
        if (one.status_code == 200) != (not one.error) or one.url != endpoint.url:
            yield f"{one.url} answered {one.status_code}: {one.error}"
    if (endpoint.failures > 0) != (endpoint.failing_since is not None):
        yield f"{endpoint.url} failed {endpoint.failures} times since {endpoint.failing_since}"
    if last is not None and last.status_code == 200 and endpoint.failures:
        yield f"{endpoint.url} has just answered and counts {endpoint.failures} failures"
    if (endpoint.last_success_at is None) != (best is None) or (
        best is not None and abs(endpoint.last_success_at - best) > SKEW
    ):
        yield f"{endpoint.url} succeeded at {best} and says {endpoint.last_success_at}"
    with connection.cursor() as cursor:
        cursor.execute("SELECT became FROM moved WHERE id = %s AND became <> 'active'", [endpoint.pk.hex])
        changes = Counter(became for (became,) in cursor.fetchall())
    if (
        world.is_calm
        and not changes
        and _failures_in_a_row(endpoint, tries) > limits.WEBHOOK_DEGRADED_FAILURES
    ):
        yield f"{endpoint.url} failed again and again and was never degraded"
    for became, count in changes.items():
        ends = {"degraded": " fails", "disabled": " was switched off"}[became]
        notices = Notice.everywhere.filter(kind="webhook", title__endswith=ends)
        if notices.filter(key__startswith=f"{endpoint.pk.hex}:{became}:").count() != count:
            yield f"{endpoint.url} became {became} {count} times, and not each was told to its people"


def _failures_in_a_row(endpoint: Endpoint, tries: Iterable[DeliveryAttempt]) -> int:
    """The most failures between which nothing was delivered and nobody switched it on."""
    switched = AuditEntry.everywhere.filter(
        action="endpoint.switched_on", subject=encode("whe", endpoint.pk)
    ).values_list("created_at", flat=True)
    moments = [(_ended_at(one), one.status_code != 200) for one in tries] + [(at, False) for at in switched]
    most = count = 0
    for _, is_failure in sorted(moments):
        count = count + 1 if is_failure else 0
        most = max(most, count)
    return most


def _ended_at(attempt: DeliveryAttempt) -> datetime:
    return attempt.started_at + timedelta(milliseconds=attempt.duration_ms or 0)


def schedule(world: World, instance: Instance) -> Iterator[str]:
    """Each try of a delivery comes when the schedule says."""
    made: defaultdict[Delivery, list[DeliveryAttempt]] = defaultdict(list)
    for one in DeliveryAttempt.everywhere.select_related("delivery__endpoint").order_by("delivery", "number"):
        made[one.delivery].append(one)
    for row, tries in made.items():
        name = f"delivery {row.pk} ({row.status})"
        if [one.number for one in tries] != list(range(1, row.attempt_count + 1)):
            yield f"{name} has {row.attempt_count} attempts: {[one.number for one in tries]}"
        if row.status == "delivered" and not any(one.status_code == 200 for one in tries):
            yield f"{name} has no attempt that succeeded"
        if row.due_at != row.created_at:
            # Somebody has sent it again.
            again = next((one for one in tries if one.started_at >= row.due_at), None)
            if again is not None and world.is_calm and _is_late(row, again, row.due_at):
                yield f"{name} was asked for at {row.due_at} and sent again at {again.started_at}"
            continue
        for one, following in pairwise(tries):
            if one.next_attempt_at is None:
                continue
            wait = one.next_attempt_at - _ended_at(one)
            if one.number >= len(limits.WEBHOOK_SCHEDULE):
                yield f"{name} has a try {one.number + 1} to come"
                break
            planned = limits.WEBHOOK_SCHEDULE[one.number]
            if one.status_code in {429, None}:
                planned = max(planned, limits.WEBHOOK_THROTTLED_WAIT)
            if one.status_code == 429:
                planned = max(planned, timedelta(minutes=2))
            # Where no answer came, it may have been a time-out, which is waited for longer.
            least = planned if one.status_code is not None else limits.WEBHOOK_SCHEDULE[one.number]
            if not least - ON_TIME < wait < planned * (1 + limits.WEBHOOK_JITTER) + ON_TIME:
                yield f"{name} waits {wait} after try {one.number} ({one.status_code}) in place of {planned}"
            if following.started_at < one.next_attempt_at - SKEW:
                yield f"{name} was tried at {following.started_at}, and {one.next_attempt_at} was planned"
        if world.is_calm and _is_late(row, tries[0], row.created_at):
            yield f"{name} was first tried after {tries[0].started_at - row.created_at}"


def _is_late(row: Delivery, attempt: DeliveryAttempt, since: datetime) -> bool:
    """Whether an attempt came later than it should have, without anything in its way."""
    is_late = attempt.started_at - since > timedelta(minutes=1)
    return is_late and _never_held(row) and not _waited_for_failures(row, attempt)


def _waited_for_failures(row: Delivery, first: DeliveryAttempt) -> bool:
    """Whether its endpoint failed until then: one that fails gets one delivery at a time, the earliest first."""
    just_before = (
        first.started_at - timedelta(minutes=1) - timedelta(seconds=limits.WEBHOOK_TIMEOUT_SECONDS),
        first.started_at,
    )
    tries = DeliveryAttempt.everywhere.filter(delivery__endpoint=row.endpoint, started_at__range=just_before)
    return tries.exclude(pk=first.pk).exclude(status_code=200).exists()


def _never_held(row: Delivery) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT 1 FROM moved WHERE id = %s AND (was = 'held' OR became = 'held')", [row.pk.hex]
        )
        return cursor.fetchone() is None
