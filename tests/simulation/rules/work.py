"""Changes of rows, tasks and leases."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from django.db import connection

from analytics.models import Outcome
from config.core import jobs, states
from pipeline.models import Attempt, GeneratedItem, Generation, Outlet, Publication, RawItem
from webhooks import limits
from webhooks.models import Delivery, Endpoint, Recovery

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.db.models import Model

    from tests.simulation.instance import Instance
    from tests.simulation.world import World

WATCHED: Final = (Publication, Attempt, GeneratedItem, Generation, RawItem, Delivery, Endpoint)
COUNTED: Final = (
    (Publication, "version"),
    (Publication, "lease_token"),
    (GeneratedItem, "version"),
    (Outlet, "version"),
    (Delivery, "lease_token"),
    (Recovery, "lease_token"),
    (Generation, "lease_token"),
)
SHOWN: Final = (
    "status",
    "revision",
    "external_id",
    "url",
    "attempt_count",
    "error",
    "due_at",
    "waits_for",
    "next_attempt_at",
    "published_at",
)
"""What a change of a publication's version tells of."""
BEGUN: Final = (Publication, Delivery, Recovery, Generation, RawItem)


def watch() -> None:
    """Each change of a status that is committed leaves a row, and so does what no change may do."""
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE moved (model TEXT, id TEXT, was TEXT, became TEXT)")
        cursor.execute("CREATE TABLE odd (what TEXT, is_fine_with_faults INTEGER)")
        for model in WATCHED:
            table = model._meta.db_table
            cursor.execute(
                f"""CREATE TRIGGER {table}_moved AFTER UPDATE OF status ON {table} WHEN old.status <> new.status
                    BEGIN INSERT INTO moved VALUES ('{model._meta.label}', new.id, old.status, new.status); END"""
            )
        for model, column in COUNTED:
            _refuse(model, column, f"new.{column} NOT IN (old.{column}, old.{column} + 1)", "jumps")
        old, new = (", ".join(f"{row}.{column}" for column in SHOWN) for row in ("old", "new"))
        _refuse(
            Publication, "shown", f"new.version = old.version AND ({old}) IS NOT ({new})", "keeps its version"
        )
        for model in BEGUN:
            _refuse(model, "attempts", "new.attempts > 1", "is begun again", is_fine_with_faults=True)
        # Where the post wasn't there yet, the next one waits until its absence counts.
        cursor.execute("CREATE TABLE looked_up (id TEXT, number INTEGER, at TEXT, next TEXT)")
        cursor.execute(
            """CREATE TRIGGER publication_looked_up AFTER UPDATE OF lookups ON publication
               WHEN new.lookups > old.lookups AND new.error NOT LIKE '%not_there_yet%'
               BEGIN INSERT INTO looked_up VALUES (new.id, new.lookups, new.updated_at, new.next_attempt_at); END"""
        )
        degraded = f"new.status = 'active' AND new.failures >= {limits.WEBHOOK_DEGRADED_FAILURES}"
        _refuse(Endpoint, "active", degraded, "fails and is active")
        hasty = f"new.status = 'degraded' AND new.failures < {limits.WEBHOOK_DEGRADED_FAILURES} AND old.status = 'active'"
        _refuse(Endpoint, "degraded", hasty, "is degraded too early")


def _refuse(
    model: type[Model], name: str, when: str, what: str, *, is_fine_with_faults: bool = False
) -> None:
    table = model._meta.db_table
    with connection.cursor() as cursor:
        cursor.execute(
            f"""CREATE TRIGGER {table}_{name}_odd AFTER UPDATE ON {table} WHEN {when}
                BEGIN INSERT INTO odd VALUES ('{name} of {table} ' || new.id || ' {what}', {is_fine_with_faults:d}); END"""
        )


def odd(world: World, _: Instance) -> Iterator[str]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT what FROM odd WHERE is_fine_with_faults = 0 OR %s", [world.is_calm])
        yield from (what for (what,) in cursor.fetchall())


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


def work(world: World, instance: Instance) -> Iterator[str]:
    late = world.now - timedelta(seconds=30)
    for job in jobs.jobs().values():
        if isinstance(job, jobs.BatchJob):
            continue
        for row in job.model.everywhere.filter(wake_at__lt=late)[:3]:
            yield f"{job.model._meta.label} {row.pk} was due at {row.wake_at}"
        for row in job.model.everywhere.filter(attempts__gt=5)[:3]:
            yield f"{job.model._meta.label} {row.pk} was begun {row.attempts} times"
        for row in job.model.everywhere.filter(wake_at=None, attempts__gt=0)[:3]:
            yield f"{job.model._meta.label} {row.pk} has ended and counts {row.attempts} tries"
    if not instance.seconds:
        yield "nothing was done each second"
    with connection.cursor() as cursor:
        cursor.execute("SELECT job, state FROM lease")
        for job, state in cursor.fetchall():
            if state != "resting" or not jobs.jobs()[job].every_seconds:
                yield f"a lease of {job} is still {state}"
        cursor.execute("SELECT count(*) FROM recovery WHERE status = 'running' OR ended_at IS NULL")
        if count := cursor.fetchone()[0]:
            yield f"{count} recoveries go on"
        cursor.execute(
            """SELECT count(*) FROM recovery JOIN endpoint ON endpoint.id = endpoint_id
               WHERE recovery.status = 'stopped' AND deleted_at IS NULL"""
        )
        if count := cursor.fetchone()[0]:
            yield f"{count} recoveries stopped of themselves"
        cursor.execute("SELECT count(*) FROM worker")
        if (count := cursor.fetchone()[0]) > len(instance.living()):
            yield f"{count} workers are noted and {len(instance.living())} live"
    for model, over in (
        (Generation, {"done", "failed"}),
        (RawItem, {"processed", "failed", "waiting_quota"}),
    ):
        for row in model.everywhere.exclude(status__in=over)[:3]:
            yield f"{model._meta.label} {row.pk} is {row.status}"


def runs(world: World, _: Instance) -> Iterator[str]:
    """Where nothing is lost and nobody dies, what was pushed is generated at once."""
    for run in Generation.everywhere.exclude(finished_at=None) if world.is_calm else ():
        if run.finished_at - run.created_at > timedelta(seconds=10):
            yield f"run {run.pk} took {run.finished_at - run.created_at}"


def counts(_: World, __: Instance) -> Iterator[str]:
    published = set(Publication.everywhere.filter(published_at__isnull=False).values_list("pk", flat=True))
    counted = set(Outcome.everywhere.filter(is_published=True).values_list("publication_id", flat=True))
    if published != counted:
        yield f"{len(published)} were published and {len(counted)} are counted"
