"""A whole instance in one process: the broker, the workers, the web process, and the machines that they
call."""

from __future__ import annotations

import hashlib
import random
import traceback
from collections import Counter, defaultdict, deque
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, TypeVar
from unittest import mock
from uuid import UUID

import structlog
from django.core.cache import caches
from django.db import connection

import pipeline.outlets.outlet_client
from config.core import counters, dispatcher, task_runner, work_leases
from config.core import jobs as core_jobs
from config.core.http_client import Response, TimedOut
from config.core.ids import decode
from pipeline import events
from pipeline.outlets.simulated_server import SimulatedServer
from pipeline.publish import send as sending
from pipeline.switches import kill_switch
from tests.simulation import platform
from tests.simulation.doorman import refuse_what_must_not_go_out
from tests.simulation.receivers import answer_of, signature_of
from tests.simulation.shares import Shares
from tests.simulation.world import START, Process, World
from webhooks import deliver, endpoint_validation, limits, results

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from tests.simulation.receivers import Receiver
SLOTS: Final = dict.fromkeys(core_jobs.QUEUES, 4)
JOBS: Final = frozenset(
    {
        "ingest.resume_raw_item",
        "generate.run_item",
        "compute.run_item",
        "render.render_film",
        "publish.send_publication",
        "publish.check_outlet",
        "webhooks.fan_out",
        "webhooks.deliver_to_endpoint",
        "webhooks.probe_endpoint",
        "webhooks.recover_deliveries",
        "analytics.count_events",
    }
)
"""Those of publishing, credits and deliveries. Sums, digests and retention would be most of a month's
work."""
RARELY: Final = 40_000.0
"""Seconds between two looks of the dispatcher's while nothing at all is due."""
FAULTS: Final = frozenset(
    {"task_failed", "work_failed", "not_claimed", "commit_broke", "not_recorded_together"}
)
"""Lines of the log that tell of a fault of our own."""
Answer = TypeVar("Answer")
OVERLAP: Final = timedelta(days=1)
"""How long a former secret signs beside the new one."""
MEANWHILE: Final = timedelta(minutes=5)
"""What began before a change of a person's may end so much later as it began."""


@dataclass(frozen=True)
class Message:
    job: str
    queue: str
    lease: work_leases.QueuedTask


class Instance:
    def __init__(self, world: World) -> None:
        self.world = world
        world.on_death = self._dies
        self.workers = [self._process(name, SLOTS) for name in ("worker-a", "worker-b")]
        self.web = self._process("web", {})
        self.queues: defaultdict[str, deque[Message]] = defaultdict(deque)
        self.receivers: dict[str, Receiver] = {}
        self.is_away = False
        self.flushes = 0
        self.woken_until = START
        self.beats_at: datetime | None = None
        self.shares = Shares(world, len(self.workers) * SLOTS["publish"])
        self.seconds = 0
        """How often a process did what each does once a second."""
        self.sent_again: set[UUID] = set()
        """Endpoints of which somebody has asked for something a second time."""
        self.errors: Counter[str] = Counter()

    def _process(self, name: str, slots: dict[str, int]) -> Process:
        chance = self.world.chance
        skew = chance.uniform(-5, 5) if self.world.happens(0.5) else 0.0
        return Process(name, slots, UUID(int=chance.getrandbits(128)), timedelta(seconds=skew))

    # --- Processes -----------------------------------------------------------------------------------------------

    def living(self) -> list[Process]:
        return [one for one in self.workers if one.is_alive]

    def _dies(self, process: Process) -> None:
        if process is self.web:
            self.web = self._process("web", {})
            return
        self.world.after(self.world.chance.choice((0.5, 3.0, 20.0, 300.0)), lambda: self._restart(process))
        self.beat_in(1.0)

    def _restart(self, process: Process) -> None:
        if process in self.workers:
            self.workers[self.workers.index(process)] = self._process(process.name, SLOTS)
        self.beat_in(0.1)

    # --- The broker ----------------------------------------------------------------------------------------------

    def send(self, job: core_jobs.Job, lease: work_leases.QueuedTask) -> None:
        world, chance = self.world, self.world.chance
        if self.is_away:
            message = "The broker is away."
            raise ConnectionError(message)
        sent, flushes = Message(job.name, job.queue, lease), self.flushes

        def arrive() -> None:
            if flushes == self.flushes:
                self.queues[sent.queue].append(sent)
                self.pump()

        if not world.happens(0.02):
            world.after(
                chance.uniform(0, 90) if world.happens(0.03) else chance.uniform(0.001, 0.015), arrive
            )
        else:
            self.beat_in(11.0)
        if world.happens(0.03):
            world.after(chance.uniform(0, 90), arrive)

    def count_waiting(self, queues: Collection[str]) -> Mapping[str, int]:
        return {queue: len(self.queues[queue]) for queue in queues}

    def wake(self) -> None:
        if self.world.now < self.woken_until:
            return
        self.woken_until = self.world.now + timedelta(seconds=1)
        if self.is_away or self.world.happens(0.02):
            self.beat_in(1.01)
        else:
            self.world.after(self.world.chance.uniform(0.001, 0.01), self.run_dispatcher)

    def rearm_wake(self) -> None:
        self.woken_until = self.world.now

    def flush(self) -> None:
        self.flushes += 1
        self.queues.clear()
        self.beat_in(1.0)

    def pump(self) -> None:
        """Workers take what waits."""
        for queue, waiting in self.queues.items():
            while waiting and (free := [one for one in self.workers if one.has_room(queue)]):
                self._begin(self.world.chance.choice(free), waiting.popleft())

    def _begin(self, process: Process, message: Message) -> None:
        queue, lease = message.queue, message.lease
        process.busy[queue] = process.busy.get(queue, 0) + 1
        self.world.note(f"{message.job} {lease.token}")
        self.shares.begun(message.job, lease.owner)

        def ended() -> None:
            process.busy[queue] -= 1
            self.shares.ended(message.job, lease.owner)
            self.world.after(0, self.pump)

        self.world.spawn(
            process,
            message.job,
            lambda: task_runner.run(message.job, lease.subject, lease.token, lease.holder),
            dies=0.04,
            ended=ended,
        )

    # --- The dispatcher ------------------------------------------------------------------------------------------

    def beat_in(self, seconds: float) -> None:
        """Beat, or a worker's heartbeat, wakes the dispatcher then at the latest."""
        moment = self.world.now + timedelta(seconds=seconds)
        if self.beats_at is None or moment < self.beats_at or self.beats_at <= self.world.now:
            self.beats_at = moment
            self.world.at(moment, self._beat)

    def _beat(self) -> None:
        if self.beats_at is not None and self.world.now >= self.beats_at:
            self.beats_at = None
            is_in_vain = self.is_away or self.world.now < self.woken_until
            self.wake()
            self.beat_in(1.0 if is_in_vain else RARELY)

    def _second(self) -> None:
        self.seconds += 1

    def run_dispatcher(self) -> None:
        living = self.living()
        if not living:
            return
        self.beat_hearts(living)
        self.world.spawn(
            self.world.chance.choice(living),
            "dispatch",
            lambda: dispatcher.run_rounds(self),
            dies=0.004,
            ended=lambda: self.world.after(0, self._plan),
        )

    def beat_hearts(self, living: list[Process], *, all_of_it: bool = False) -> None:
        """Each worker says every few seconds that it lives; here at the moment when somebody asks."""
        # All of them first: hours may have gone by, and what notes one worker forgets those not seen for minutes.
        with connection.cursor() as cursor:
            marks = ", ".join(["%s"] * len(living))
            moment = connection.ops.adapt_datetimefield_value(self.world.now)
            cursor.execute(
                f"UPDATE worker SET seen_at = %s WHERE id IN ({marks})",
                [moment, *(one.worker.hex for one in living)],
            )
        for one in living:
            if all_of_it or not one.is_noted or not self.world.chance.randrange(30):
                work_leases._worker["id"] = one.worker
                work_leases.note_worker(one.name, one.slots)
                one.is_noted = True

    def _plan(self) -> None:
        """The next beat that has something to do: those between would find nothing due."""
        tables = [
            job.model._meta.db_table
            for job in core_jobs.jobs().values()
            if not isinstance(job, core_jobs.BatchJob)
        ]
        each = [
            f"SELECT min(wake_at) AS at FROM {table} WHERE wake_at IS NOT NULL"
            for table in dict.fromkeys(tables)
        ]
        with connection.cursor() as cursor:
            cursor.execute(f"SELECT min(at) FROM ({' UNION ALL '.join(each)})")
            (raw,) = cursor.fetchone()
            cursor.execute(f"SELECT EXISTS ({events.NOT_DISPATCHED}) OR EXISTS ({events.NOT_COUNTED})")
            (is_waiting,) = cursor.fetchone()
        moment = datetime.fromisoformat(raw).replace(tzinfo=START.tzinfo) if raw else None
        wait = RARELY if moment is None else (moment - self.world.now).total_seconds()
        self.beat_in(1.0 if is_waiting or wait <= 0 else wait + self.world.chance.random())

    # --- The machines that are called ----------------------------------------------------------------------------

    def call(self, timeout: float, arrive: Callable[[], Answer]) -> Answer:
        """The network: it takes its time, loses what is sent or answered, and now and then the caller sleeps
        over it."""
        world, chance = self.world, self.world.chance
        if world.happens(0.01):
            world.wait(0.1)
            raise TimedOut("The connection was refused.", may_have_reached=False)
        there = chance.uniform(0.01, 0.2) if not world.happens(0.03) else chance.uniform(0.5, 20)
        if there >= timeout:
            world.wait(timeout)
            raise TimedOut("Nobody took it in time.", may_have_reached=True)
        world.wait(there)
        with world.observing():
            answer = arrive()
        if world.happens(0.02):
            world.wait(timeout - there)
            raise TimedOut("The answer was lost.", may_have_reached=True)
        world.wait(chance.uniform(0.01, 0.2) if not world.happens(0.01) else chance.uniform(30, 200))
        return answer

    def _client(self, **_: Any) -> Instance:
        return self

    def request(
        self, method: str, url: str, *, headers: Mapping[str, str], body: bytes, **options: Any
    ) -> Response:
        """What a delivery calls."""
        del method
        receiver, timeout = self.receivers[url], options["timeout"]
        receiver.at_once += 1
        receiver.begun.append(self.world.now)
        if receiver.at_once > limits.WEBHOOK_SLOTS and not self.world.has_faults:
            self.world.broken(f"{url} is sent {receiver.at_once} events at once")
        try:
            answer, mode = self.call(timeout, lambda: self._receive(url, headers, body))
            if mode == "slow":
                self.world.wait(3.0)
            if mode == "hangs":
                self.world.wait(timeout)
                raise TimedOut("It hangs.", may_have_reached=True)
            return answer
        finally:
            receiver.at_once -= 1

    def _receive(self, url: str, headers: Mapping[str, str], body: bytes) -> tuple[Response, str]:
        """Return the answer, and the receiver's mode when the request came: it may change before the answer goes."""
        receiver = self.receivers[url]
        event_id = decode("evt", headers["webhook-id"])
        assert event_id is not None
        sent_at = headers["webhook-timestamp"]
        signed = f"{headers['webhook-id']}.{sent_at}.".encode() + body
        known = [(signature_of(secret, signed), self.world.now - since) for secret, since in receiver.secrets]
        given = headers["webhook-signature"].split()
        newest, age = known[-1]
        wanted = [newest] if age > MEANWHILE else []
        if len(known) > 1 and MEANWHILE < age < OVERLAP - MEANWHILE:
            wanted.append(known[-2][0])
        if not set(wanted) <= set(given) or not {one for one, _ in known} & set(given):
            self.world.broken(f"{url} got signatures that it can't verify")
        if abs(int(sent_at) - self.world.now.timestamp()) > 30:
            self.world.broken(f"{url} got a time of signing that is wrong")
        with connection.cursor() as cursor:
            cursor.execute("SELECT body FROM event WHERE id = %s", [event_id.hex])
            stored = cursor.fetchone()
            cursor.execute(
                """SELECT 1 FROM delivery JOIN endpoint ON endpoint.id = endpoint_id
                   WHERE url = %s AND event_id = %s AND delivery.status = 'pending' AND attempts = 0""",
                [url, event_id.hex],
            )
            if cursor.fetchone() and not self.sent_again and not self.world.has_faults:
                self.world.broken(f"{url} gets an event by an attempt that isn't counted")
        if stored is None or bytes(stored[0]) != body:
            self.world.broken(f"{url} got an event that isn't there, or other bytes: {headers['webhook-id']}")
        mode = receiver.mode
        self.world.note(f"{url} {mode} {hashlib.sha256(body).hexdigest()[:8]}")
        status = {"ok": 200, "500": 500, "410": 410, "429": 429, "slow": 200, "hangs": 200}[mode]
        receiver.got.append((self.world.now, event_id, mode))
        return answer_of(url, status, {"retry-after": "120"} if status == 429 else {}), mode

    # --- All of it, in the place of the real ones ------------------------------------------------------------------

    @contextmanager
    def entered(self) -> Iterator[None]:
        instance, world = self, self.world

        class Server(SimulatedServer):
            def request(self, method: str, url: str, **options: Any) -> Response:
                def arrive() -> Response:
                    if method == "POST":
                        world.note(f"POST {options['json']['ref']}")
                        refuse_what_must_not_go_out(world, options["json"])
                    return SimulatedServer.request(self, method, url, **options)

                return instance.call(options.get("timeout", 10.0), arrive)

        def logged(_: Any, __: str, line: Any) -> Any:
            if line["event"] in FAULTS:
                world.broken(f"{line['event']}: {line.get('error') or line}\n{traceback.format_exc()}")
            self.errors[line["event"]] += 1
            raise structlog.DropEvent

        jobs = {name: job for name, job in core_jobs.jobs().items() if name in JOBS}
        was = structlog.get_config()
        with ExitStack() as stack:
            stack.callback(lambda: structlog.configure(**was))
            structlog.configure(
                processors=[logged],
                wrapper_class=structlog.make_filtering_bound_logger(30),
                cache_logger_on_first_use=False,
            )
            for patch in (
                mock.patch.dict(core_jobs._jobs, jobs, clear=True),
                mock.patch.dict(dispatcher._waker, {"it": self.wake}),
                mock.patch.dict(task_runner._did_at, {"at": 0.0}),
                mock.patch.dict(work_leases._worker),
                mock.patch.object(task_runner, "_every_second", [self._second]),
                mock.patch.object(pipeline.outlets.outlet_client, "SimulatedServer", Server),
                # Whoever lets go of a hold wakes what it held; a look each half minute would be most of a
                # month's work.
                mock.patch.object(sending, "HELD_WAIT", timedelta(hours=12)),
                platform.as_real_ones(),
                mock.patch.object(deliver, "_client", self._client),
                mock.patch.object(endpoint_validation, "connect_and_validate_address"),
            ):
                stack.enter_context(patch)
            # What a process keeps in memory begins empty.
            kill_switch._cache.clear()
            events._served_workspaces.clear()
            counters.drain()
            for cache in caches.all():
                cache.clear()
            results._default_random.seed(world.seed)
            random.seed(world.seed)
            stack.enter_context(world.entered())
            yield
