"""One history: a seed's people, faults and days, then a quiet time, and what has to hold after it."""

from __future__ import annotations

import gc
import sqlite3
import traceback
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from django.db import connection

from accounts import workspaces
from accounts.models import Plan, Workspace
from config.core.clock import utc_now
from pipeline.models import Outlet, PublishHold, PublishQueue, Switch, WorkspaceDefaults
from pipeline.publish import workspace_hold
from pipeline.schedule import queues
from pipeline.switches import kill_switch
from tests import migrated
from tests.simulation import rules
from tests.simulation.instance import Instance
from tests.simulation.people import BY, People, change_outlet
from tests.simulation.receivers import Receiver
from tests.simulation.world import START, World
from webhooks import endpoints
from webhooks.models import Endpoint

if TYPE_CHECKING:
    from collections.abc import Iterator
    from uuid import UUID

QUIET: Final = timedelta(hours=12)
"""After the last act, with nothing broken any more."""
A_DAY: Final = 3.0
"""Acts of people, as a mean; in a short history more, so that it holds something."""
ACTS_LEAST: Final = 30


@dataclass(frozen=True)
class Told:
    seed: int
    hash: str
    steps: int
    faults: list[str]
    tail: list[str]
    error: str = ""


def run(seed: int, days: float) -> Told:
    """Live through the history of a seed; the database is this process's connection, emptied for it."""
    template = _template()
    if seed:
        _warm_up()
    template.database.backup(connection.connection)
    world = World(seed)
    world.has_faults = not world.is_calm
    instance = Instance(world)
    instance.receivers = {url: Receiver([(secret, START)]) for url, secret in template.secrets.items()}
    error = ""
    with instance.entered():
        people = People(instance, template.workspaces)
        _live(world, instance, people, days)
        if not world.faults:
            _calm_down(world, instance, people)
        if not world.faults:
            rules.check(world, instance)
        rules.mix(world)
        world.end()
        if world.error is not None:
            error = "".join(traceback.format_exception(world.error)[-8:])
    return Told(seed, world.hash(), world.count, world.faults, list(world.steps), error)


def _live(world: World, instance: Instance, people: People, days: float) -> None:
    chance, until = world.chance, START + timedelta(days=days)
    for number, pk in enumerate(people.workspaces * 2):
        world.after(60 + 20 * number, lambda pk=pk: people.do(people.push, pk))
    bursts = max(A_DAY, ACTS_LEAST / days) / 3
    moment = START
    while moment < until:
        # People come in bursts, as when somebody works through a list.
        moment += timedelta(days=chance.expovariate(bursts))
        for _ in range(chance.choice((1, 2, 3, 6))):
            moment += timedelta(seconds=chance.choice((0.0, 0.02, 0.3, 2.0, 20.0, 200.0)))
            if moment < until:
                world.at(moment, people.act)
    if world.has_faults:
        for _ in range(int(days) + 1):
            _plan_a_fault(world, instance, START + timedelta(days=days * chance.random()))
    world.run_until(until)


def _plan_a_fault(world: World, instance: Instance, moment: Any) -> None:
    chance = world.chance
    what = chance.choice(("flush", "away", "worker", "workers"))
    seconds = chance.choice((1, 20, 90, 1200))

    def begin() -> None:
        world.note(f"fault: {what} for {seconds} s")
        if what == "flush":
            instance.flush()
        elif what == "away":
            instance.is_away = True
            world.after(seconds, end)
        elif what == "worker" and instance.living():
            world.kill(chance.choice(instance.living()))
        else:
            for one in instance.living():
                world.kill(one)

    def end() -> None:
        instance.is_away = False
        instance.beat_in(1.0)

    world.at(moment, begin)


def _calm_down(world: World, instance: Instance, people: People) -> None:
    """Everything works again and nobody holds anything back; what waits has time to end."""
    world.note("quiet")
    world.has_faults = instance.is_away = False
    world.run_until(world.now + timedelta(minutes=10))
    for receiver in instance.receivers.values():
        receiver.mode = "ok"
    for pk in people.workspaces:
        people.do(_let_go, pk)
    world.run_until(world.now + QUIET)
    for pk in people.workspaces:
        people.do(people.push, pk)
    world.run_until(world.now + timedelta(minutes=1))
    rules.probe(world, instance, people)
    instance.beat_hearts(instance.living(), all_of_it=True)


def _let_go(workspace: Workspace) -> None:
    for switch in Switch.everywhere.all():
        kill_switch.resume(switch, actor="operator")
    if PublishHold.everywhere.filter(workspace=workspace).exists():
        workspace_hold.release_workspace(workspace, by=BY, now=utc_now())
    for queue in PublishQueue.everywhere.filter(workspace=workspace, is_paused=True):
        queues.change(queue, {"is_paused": False}, by=BY)
    for outlet in Outlet.everywhere.filter(workspace=workspace, is_simulated=True).order_by("id"):
        change_outlet(outlet, config={"script": []}, per_day=None, gap_minutes=None)
    for endpoint in Endpoint.everywhere.filter(workspace=workspace, deleted_at=None):
        endpoints.switch_on(endpoint, actor=BY)


# --- The database ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Template:
    """What every history begins with: two workspaces with two outlets and an endpoint each."""

    database: sqlite3.Connection
    workspaces: list[UUID]
    secrets: dict[str, str]


@cache
def _template() -> Template:
    opened = connection.connection
    sqlite3.connect(migrated.kept_file()).backup(opened)
    rules.watch()
    world = World(0)
    instance = Instance(world)
    with instance.entered():
        made = [_move_in(*one) for one in (("Newsroom", 60, False), ("Office", 6, True))]
        people = People(instance, made)
        for pk in made:
            people.add_endpoint(Workspace.everywhere.get(pk=pk))
    kept = sqlite3.connect(":memory:")
    opened.backup(kept)
    return Template(kept, made, {url: one.secrets[0][0] for url, one in instance.receivers.items()})


def _move_in(name: str, credits: int, approves: bool) -> UUID:
    plan = Plan.objects.create(name=name, credits_per_month=credits)
    workspace = workspaces.create(name, plan=plan)
    workspaces.whitelist(workspace, "operator")
    Workspace.everywhere.filter(pk=workspace.pk).update(requires_approval=approves)
    WorkspaceDefaults.everywhere.filter(workspace=workspace).update(engines=["Short Post"])
    Outlet.everywhere.create(
        workspace=workspace, platform="simulated", name="Second", is_simulated=True, config={"script": []}
    )
    slots = [{"weekday": day, "time": "09:00"} for day in range(7)]
    queues.change(PublishQueue.everywhere.get(workspace=workspace), {"slots": slots}, by=BY)
    return workspace.pk


@cache
def _warm_up() -> None:
    """What a process does once, such as to compile statements, takes ids that would be missing in its first history."""
    run(0, 3.0)
    # A history leaves little garbage behind, and most of what lives is code: looking through it takes a fifth of the time.
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)


@contextmanager
def in_memory() -> Iterator[None]:
    """This thread's connection is a database in memory, which `run()` fills anew for each history."""
    name = connection.settings_dict["NAME"]
    connection.close()
    connection.settings_dict["NAME"] = ":memory:"
    connection.ensure_connection()
    try:
        yield
    finally:
        kept, connection.connection = connection.connection, None
        kept.close()
        connection.settings_dict["NAME"] = name
