"""What has to hold at the end of a history, whatever people, machines and networks did meanwhile."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from datetime import datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from django.db import connection
from django.db.models.expressions import RawSQL

from accounts.models import CreditBalance, LedgerEntry, Notice, Workspace
from analytics.models import Outcome
from config.core import jobs, states
from config.core.ids import encode
from pipeline import limits as pipeline_limits
from pipeline import publish
from pipeline.events import TYPES
from pipeline.models import (
    Attempt,
    Event,
    GeneratedItem,
    Generation,
    Outlet,
    Publication,
    RawItem,
    SimulatedPost,
)
from pipeline.review import decisions
from pipeline.states import derive_status
from tests.simulation.people import BY
from tests.simulation.world import CALM, START
from webhooks import limits
from webhooks.models import Delivery, DeliveryAttempt, Endpoint

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.db.models import QuerySet

    from tests.simulation.instance import Instance
    from tests.simulation.people import People
    from tests.simulation.world import World

WATCHED: Final = (Publication, Attempt, GeneratedItem, Generation, RawItem, Delivery, Endpoint)
SKEW: Final = timedelta(seconds=11)
"""Two processes' clocks differ by ten seconds at most."""
ON_TIME: Final = timedelta(seconds=3)


def watch() -> None:
    """Each change of a status that is committed leaves a row."""
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE moved (model TEXT, id TEXT, was TEXT, became TEXT)")
        for model in WATCHED:
            table = model._meta.db_table
            cursor.execute(
                f"""CREATE TRIGGER {table}_moved AFTER UPDATE OF status ON {table} WHEN old.status <> new.status
                    BEGIN INSERT INTO moved VALUES ('{model._meta.label}', new.id, old.status, new.status); END"""
            )


def is_calm(world: World) -> bool:
    """No process died, no message was lost, no clock was wrong: what a receiver or a platform answers is no fault of ours."""
    return not world.seed % CALM


def in_order(rows: QuerySet[Any]) -> list[Any]:
    """As they were written: ids are made by clocks that differ."""
    return list(rows.order_by(RawSQL("rowid", ())))


def check(world: World, instance: Instance) -> None:
    for rule in (
        moves,
        publications,
        attempts,
        items,
        work,
        feed,
        told,
        deliveries,
        schedule,
        ledger,
        counts,
    ):
        for broken in rule(world, instance):
            world.broken(f"{rule.__name__}: {broken}")


def mix(world: World) -> None:
    """What was told and stored becomes part of the history's hash."""
    for event in Event.everywhere.order_by("id").values_list("id", "type", "position", "body"):
        world.mix(repr(event).encode())
    for model in (Publication, Attempt, Delivery, DeliveryAttempt, LedgerEntry):
        for row in model.everywhere.order_by("pk").values_list():
            world.mix(repr(row).encode())


# --- Publishing ------------------------------------------------------------------------------------------------------


def moves(_: World, __: Instance) -> Iterator[str]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT DISTINCT model, was, became FROM moved")
        for model, was, became in cursor.fetchall():
            derived = model == "pipeline.GeneratedItem" and became not in {
                "queued",
                "generating",
                "failed",
                "rejected",
            }
            if became not in states.tables()[model][was] and not derived:
                yield f"a {model} went from {was} to {became}"


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
        is_waiting = row.item.held or (row.late_policy == "hold" and row.max_lateness_minutes)
        if row.status == "scheduled" and row.due_at < world.now - timedelta(hours=5) and not is_waiting:
            yield f"{name} was due at {row.due_at}"
        if row.status == "published" and row.published_at < row.due_at - SKEW:
            yield f"{name} was published at {row.published_at} and due at {row.due_at}"


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
                if late < pipeline_limits.OVERDUE_TOLD_AFTER - SKEW:
                    yield f"{name} was told as overdue after {late}"
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
    planned = (
        pipeline_limits.PUBLISH_RETRIES[max(tries, 1) - 1]
        if tries <= len(pipeline_limits.PUBLISH_RETRIES)
        else None
    )
    second = timedelta(seconds=1.1)
    if planned is None:
        return False
    if code == "rate_limited":
        return wait <= (second if tries <= 1 else pipeline_limits.ASKED_AT_LEAST + second)
    if code == "not_accepted":
        # No earlier than its absence counts.
        return planned - second <= wait <= planned + timedelta(minutes=2)
    return abs(wait - planned) < second


# --- Work ------------------------------------------------------------------------------------------------------------


def work(world: World, instance: Instance) -> Iterator[str]:
    late = world.now - timedelta(seconds=30)
    for job in jobs.jobs().values():
        if isinstance(job, jobs.BatchJob):
            continue
        for row in job.model.everywhere.filter(wake_at__lt=late)[:3]:
            yield f"{job.model._meta.label} {row.pk} was due at {row.wake_at}"
        for row in job.model.everywhere.filter(attempts__gt=5)[:3]:
            yield f"{job.model._meta.label} {row.pk} was begun {row.attempts} times"
    with connection.cursor() as cursor:
        cursor.execute("SELECT job, state FROM lease WHERE state <> 'resting'")
        for job, state in cursor.fetchall():
            yield f"a lease of {job} is still {state}"
        cursor.execute("SELECT count(*) FROM worker")
        if (count := cursor.fetchone()[0]) > len(instance.living()):
            yield f"{count} workers are noted and {len(instance.living())} live"
    for model, over in (
        (Generation, {"done", "failed"}),
        (RawItem, {"processed", "failed", "waiting_quota"}),
    ):
        for row in model.everywhere.exclude(status__in=over)[:3]:
            yield f"{model._meta.label} {row.pk} is {row.status}"


def counts(_: World, __: Instance) -> Iterator[str]:
    published = set(Publication.everywhere.filter(published_at__isnull=False).values_list("pk", flat=True))
    counted = set(Outcome.everywhere.filter(is_published=True).values_list("publication_id", flat=True))
    if published != counted:
        yield f"{len(published)} were published and {len(counted)} are counted"


# --- Events and deliveries -------------------------------------------------------------------------------------------


def feed(_: World, __: Instance) -> Iterator[str]:
    for pk in Workspace.everywhere.values_list("pk", flat=True):
        events = Event.everywhere.filter(workspace_id=pk).exclude(type="webhook.test")
        places = list(events.order_by("position").values_list("position", flat=True))
        if places != list(range(1, len(places) + 1)):
            yield f"the feed's places are {places[:20]}"
        if events.filter(counted_at=None).exists():
            yield "an event isn't counted"


def wants(endpoint: Endpoint, event: Event) -> bool:
    if endpoint.events:
        return endpoint.events == ["*"] or event.type in endpoint.events
    return TYPES[event.type]


def deliveries(world: World, instance: Instance) -> Iterator[str]:
    rows = {(row.endpoint_id, row.event_id): row for row in Delivery.everywhere.select_related("endpoint")}
    events = list(Event.everywhere.exclude(type="webhook.test").order_by("id"))
    for endpoint in Endpoint.everywhere.order_by("id"):
        receiver = instance.receivers[endpoint.url]
        got = Counter(event_id for _, event_id, _ in receiver.got)
        answered = Counter(event_id for _, event_id, mode in receiver.got if mode == "ok")
        twice = [event_id for event_id, count in answered.items() if count > 1]
        if twice and is_calm(world) and endpoint.pk not in instance.sent_again:
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
            if (row.wake_at is not None) != (row.status == "pending"):
                yield f"{name} wakes at {row.wake_at}"
            if got[row.event_id] < row.attempt_count and is_calm(world):
                yield f"{name} has {row.attempt_count} attempts, and {got[row.event_id]} calls came"
        if endpoint.deleted_at is None and (endpoint.status != "active" or not endpoint.is_on):
            yield f"{endpoint.url} is {endpoint.status} in the end"
        times = [at for at, _, _ in receiver.got]
        for first, last in zip(times, times[endpoint.rate :], strict=False):
            if last - first < timedelta(seconds=0.8) and is_calm(world):
                yield f"{endpoint.url} got {endpoint.rate + 1} events within {last - first}"


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
            continue
        for one, following in pairwise(tries):
            if one.next_attempt_at is None:
                continue
            ended = one.started_at + timedelta(milliseconds=one.duration_ms or 0)
            wait = one.next_attempt_at - ended
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
        first = tries[0]
        is_late = first.started_at - row.created_at > timedelta(minutes=1)
        if is_late and is_calm(world) and _never_held(row) and not _waited_for_failures(row, first):
            yield f"{name} was first tried after {first.started_at - row.created_at}"


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


# --- Credits ---------------------------------------------------------------------------------------------------------


def ledger(_: World, __: Instance) -> Iterator[str]:
    kinds = LedgerEntry.Kind
    made = Counter(GeneratedItem.everywhere.exclude(status="failed").values_list("generation_id", flat=True))
    for workspace in Workspace.everywhere.select_related("plan"):
        balance = CreditBalance.everywhere.get(workspace=workspace)
        entries = in_order(LedgerEntry.everywhere.filter(workspace=workspace))
        sums = [
            sum(getattr(one, name) for one in entries)
            for name in ("amount", "reserved_change", "used_change")
        ]
        kept = [balance.available, balance.reserved, balance.used]
        if sums != kept:
            yield f"the ledger comes to {sums} and the balance says {kept}"
        if balance.reserved:
            yield f"{balance.reserved} credits are reserved, and nothing is at work"
        left = 0
        month = f"{START:%Y-%m}"
        lines: set[str] = set()
        granted = 0
        for one in entries:
            before, left = left, left + one.amount
            if one.kind == kinds.GRANT:
                granted = one.amount
                if (before, one.amount) != (0, workspace.plan.credits_per_month):
                    yield f"a month began with {before} and {one.amount} were granted"
                month = f"{one.created_at:%Y-%m}"
            elif one.kind == kinds.EXPIRE and left:
                yield f"{left} credits outlived their month"
            elif one.kind == kinds.ADJUST:
                granted += one.amount
            elif one.kind == kinds.RESERVE:
                if left < 0:
                    yield f"more was reserved than there was: {left}"
                if left <= 0 < before:
                    lines.add(f"{month}-01:{granted}:100")
                elif left * 5 <= granted < before * 5:
                    lines.add(f"{month}-01:{granted}:80")
        if balance.granted != granted:
            yield f"{granted} were granted and the balance says {balance.granted}"
        noticed = set(
            Notice.everywhere.filter(workspace=workspace, kind="quota").values_list("key", flat=True)
        )
        if not lines <= noticed:
            yield f"the lines {lines - noticed} were crossed and nobody was told"
        by_subject: defaultdict[Any, list[LedgerEntry]] = defaultdict(list)
        for one in entries:
            if one.subject is not None:
                by_subject[one.subject].append(one)
        for run in Generation.everywhere.filter(workspace=workspace):
            yield from _of_run(run, by_subject.pop(run.pk, []), made[run.pk])
        if by_subject:
            yield f"credits moved for {list(by_subject)}, which are no runs"


def _of_run(run: Generation, entries: list[LedgerEntry], made: int) -> Iterator[str]:
    kinds = [one.kind for one in entries]
    if not run.credits_reserved:
        return
    wanted = ["reserve", "settle" if run.status == "done" and made else "release"]
    if kinds != wanted:
        yield f"run {run.pk} ({run.status}, {made} made) has {kinds}"
        return
    reserved, closed = entries
    if (reserved.amount, reserved.reserved_change) != (-run.credits_reserved, run.credits_reserved):
        yield f"run {run.pk} reserved {reserved.amount}, {reserved.reserved_change}"
    used = closed.used_change
    if (closed.amount, closed.reserved_change) != (run.credits_reserved - used, -run.credits_reserved):
        yield f"run {run.pk} was settled by {closed.amount}, {closed.reserved_change}"
    if used != made:
        yield f"run {run.pk} made {made} and {used} were charged"


def _why(row: Publication) -> str:
    return f"held {row.item.held!r}, waits for {row.waits_for}, error {row.error}, wakes at {row.wake_at}, rests until {row.outlet.rests_until}"


# --- On time ---------------------------------------------------------------------------------------------------------


def probe(world: World, instance: Instance, people: People) -> None:
    """With nothing in the way a promise is kept to the second, and told as soon."""
    due_at = world.now + timedelta(minutes=10)
    promised: list[Publication] = []

    def promise(workspace: Workspace) -> str:
        item = (
            GeneratedItem.everywhere.filter(workspace=workspace, status="ready", deleted_at=None)
            .order_by("-id")
            .first()
        )
        if item is None:
            return "nothing"
        decisions.approve(item, by=BY, now=world.now)
        outlet = Outlet.everywhere.filter(workspace=workspace, is_simulated=True).first()
        wish = publish.PublishWish(
            outlets=[encode("out", outlet.pk)], publish_at=due_at, late_policy="publish"
        )
        promised.extend(publish.request(item, wish, by=BY)[1])
        return "promised"

    for pk in people.workspaces:
        people.do(promise, pk)
    world.run_until(due_at + timedelta(minutes=5))
    for row in promised:
        now = Publication.everywhere.get(pk=row.pk)
        if now.status != "published" or not due_at - SKEW < now.published_at < due_at + ON_TIME + SKEW:
            world.broken(
                f"{encode('pub', row.pk)} was due at {due_at} and is {now.status} at {now.published_at}: {_why(now)}"
            )
            continue
        event = Event.everywhere.get(publication_id=row.pk, type="published.success")
        for endpoint in Endpoint.everywhere.filter(workspace_id=row.workspace_id, deleted_at=None):
            if not wants(endpoint, event):
                continue
            came = [at for at, event_id, _ in instance.receivers[endpoint.url].got if event_id == event.pk]
            if not came or came[0] > due_at + timedelta(seconds=10):
                world.broken(f"{endpoint.url} heard of {encode('pub', row.pk)} at {came}, due at {due_at}")
