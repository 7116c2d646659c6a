"""The Celery app: queues, tasks, Beat's timetable, and how the dispatcher is woken."""

from __future__ import annotations

import os
import sys
import threading
import time
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

import django
import redis
import structlog
from celery import Celery, bootsteps, signals
from celery.apps.worker import Worker as CommandLineWorker
from celery.beat import Scheduler
from celery.worker import state as celery_state
from celery.worker.consumer import Consumer as CeleryConsumer
from django.apps import apps
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from kombu import Exchange, Queue
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
# The web process and every command make Django's checks. Here they would load each page that a worker never shows.
os.environ.setdefault("CELERY_SKIP_CHECKS", "true")
if not apps.apps_ready:
    # `celery -A config` comes here first; everything else has set Django up before.
    try:
        django.setup()
    except ImproperlyConfigured as error:
        sys.exit(f"The settings can't be used: {error}")

from config import database_connections, in_process_broker, redis_transport  # noqa: F401  its aliases
from config.core import dispatcher, jobs, task_runner, work_leases, work_queue
from config.database_connections import connections_of, forks, slots_of
from config.operations import health, metric_counters, unfinished_restore
from config.task_watch import RunningTask, TaskWatch

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

log = structlog.get_logger(__name__)

WAKE_EVERY_SECONDS: Final = 1.0
STALE_AFTER_SECONDS: Final = 60
"""By a worker's clock; a message that waited longer has long been replaced."""
WAKES_WAITING_MOST: Final = 4
"""Where nobody takes the dispatcher's queue, no more messages are added to it."""
AWAY_SECONDS: Final = 1.0
"""How long a broker that failed isn't tried again in a request."""
WAIT_SECONDS: Final = 0.05
"""The longest that a wake waits for Redis."""
RECONNECT_SECONDS: Final = 1.0
KILLED_AFTER_SECONDS: Final = 30
"""A task that doesn't heed its time limit is killed so long after it."""
SHUTDOWN_SECONDS: Final = 20.0
"""For the tasks at work when a worker is told to stop; the lease of a row that takes longer brings it back."""


def pool_settings(argv: Sequence[str]) -> dict[str, str]:
    """Threads, where the command line names no pool: Celery would take these for `-P prefork` too, its own default."""
    is_named = any(one.startswith(("-P", "--pool")) for one in argv)
    return {} if is_named else {"worker_pool": "threads"}


app = Celery("content_pipeline")
app.conf.update(
    broker_url=settings.CELERY_BROKER_URL,
    broker_connection_retry_on_startup=True,
    broker_connection_max_retries=None,
    broker_connection_timeout=2,
    # Redis keeps no list of what was delivered and not acknowledged: a message that is lost is sent again by its row.
    task_queues=[
        Queue(name, Exchange(name), routing_key=name, no_ack=bool(settings.REDIS_URL)) for name in jobs.QUEUES
    ],
    task_default_queue="dispatch",
    task_ignore_result=True,
    # The row is the truth, and its lease brings it back: late acknowledgement would only make copies.
    task_acks_late=False,
    task_publish_retry=False,
    worker_consumer="config.celery:Consumer",
    **pool_settings(sys.argv),
    # Each task gives its own connections back; Celery's way would close a process's whole pool before and after each.
    CELERY_DB_REUSE_MAX=sys.maxsize,
    worker_concurrency=settings.WORKER_SLOTS,
    worker_prefetch_multiplier=1,
    worker_hijack_root_logger=False,
    worker_redirect_stdouts=False,
    worker_send_task_events=False,
    timezone="UTC",
    # In memory: what returns rarely is kept in the table of leases, and this entry only asks.
    beat_scheduler="config.celery:Beat",
    beat_max_loop_interval=1,
    beat_schedule={"wake the dispatcher": {"task": "dispatch.wake", "schedule": WAKE_EVERY_SECONDS}},
)
if settings.REDIS_URL:
    app.conf.update(
        # A worker takes no more messages than it has threads or processes; what is due stays with the others.
        worker_disable_prefetch=True,
        broker_transport_options={
            # The client's own default of five seconds would end a blocking read in the middle of its wait.
            "socket_timeout": None,
            "socket_connect_timeout": 2,
            "socket_keepalive": True,
            "health_check_interval": 25,
        },
    )


# --- Tasks -----------------------------------------------------------------------------------------------------------


@app.task(name="dispatch.wake")
def run_dispatcher() -> None:
    """Queue what is due."""
    dispatcher.run_rounds(broker)
    try:
        health.note_run()
    except RedisError as error:
        # The other processes will say that the dispatcher doesn't run, which is what they can know.
        log.warning("run_not_noted", error=str(error))


def _add_task(job: jobs.Job) -> None:
    """A message names its row, the token and, for those who watch, the workspace."""
    name, limit = job.name, round(job.time_limit.total_seconds())

    # In processes alone: threads can't be stopped, and each of their waits has a deadline of its own.
    @app.task(name=name, soft_time_limit=limit, time_limit=limit + KILLED_AFTER_SECONDS)
    def work(subject: str, token: int, holder: str | None = None, workspace: str = "") -> None:
        del workspace
        task_runner.run(name, UUID(subject), token, UUID(holder) if holder else None)


for _job in jobs.jobs().values():
    _add_task(_job)


# --- Waking and sending ----------------------------------------------------------------------------------------------


class _Broker:
    """What both brokers have in common: a message for each lease."""

    def send(self, job: jobs.Job, lease: work_leases.QueuedTask) -> None:
        shown = {"workspace": str(lease.owner)} if lease.owner else {}
        app.send_task(
            job.name,
            (str(lease.subject), lease.token, str(lease.holder) if lease.holder else None),
            shown,
            queue=job.queue,
            expires=STALE_AFTER_SECONDS,
            retry=False,
        )

    def _send_wake(self) -> None:
        app.send_task("dispatch.wake", queue="dispatch", expires=STALE_AFTER_SECONDS, retry=False)


class RedisBroker(_Broker):
    """A burst of wakes is one message: `dispatch:wake` is set by who sends it, and removed before the dispatcher asks."""

    _WAKE: Final = "dispatch:wake"

    def __init__(self, url: str) -> None:
        # One try: the client's own ten would hold a request back for half a minute.
        self._redis = redis.Redis.from_url(
            url,
            socket_connect_timeout=WAIT_SECONDS,
            socket_timeout=WAIT_SECONDS,
            retry=Retry(NoBackoff(), 0),
        )
        self._quiet_until = 0.0
        self._is_away = False

    def wake(self) -> None:
        if time.monotonic() < self._quiet_until:
            return
        try:
            pipe = self._redis.pipeline(transaction=False)
            pipe.set(self._WAKE, 1, nx=True, px=round(WAKE_EVERY_SECONDS * 1000))
            pipe.llen("dispatch")
            is_first, waiting = pipe.execute()
            if is_first and waiting < WAKES_WAITING_MOST:
                self._send_wake()
        # Whatever the broker's client raises: the row is committed, and Beat asks each second.
        except Exception as error:  # noqa: BLE001
            self._quiet_until = time.monotonic() + AWAY_SECONDS
            self.note_away(error)
        else:
            if self._is_away:
                log.warning("broker_back")
            self._is_away = False

    def note_away(self, error: Exception) -> None:
        """Say so once."""
        if not self._is_away:
            log.warning("broker_away", error=str(error))
        self._is_away = True

    def woken(self) -> None:
        try:
            self._redis.delete(self._WAKE)
        except RedisError as error:
            self.note_away(error)

    def waiting(self, queues: Collection[str]) -> Mapping[str, int]:
        names = list(queues)
        pipe = self._redis.pipeline(transaction=False)
        for name in names:
            pipe.llen(name)
        try:
            return dict(zip(names, pipe.execute(), strict=True))
        except RedisError as error:
            # Then sending fails too, and what was claimed is given back.
            self.note_away(error)
            return {}


class InProcessBroker(_Broker):
    """The same in the memory of the one process there is, where nothing can be away."""

    def __init__(self) -> None:
        self._woke_at = -WAKE_EVERY_SECONDS

    def wake(self) -> None:
        now = time.monotonic()
        if now - self._woke_at >= WAKE_EVERY_SECONDS:
            self._woke_at = now
            if in_process_broker.waiting("dispatch") < WAKES_WAITING_MOST:
                self._send_wake()

    def woken(self) -> None:
        self._woke_at = -WAKE_EVERY_SECONDS

    def note_away(self, error: Exception) -> None:
        log.warning("broker_away", error=str(error))

    def waiting(self, queues: Collection[str]) -> Mapping[str, int]:
        return {name: in_process_broker.waiting(name) for name in queues}


broker: Final = RedisBroker(settings.REDIS_URL) if settings.REDIS_URL else InProcessBroker()
dispatcher.wake_with(broker.wake)


class Beat(Scheduler):
    """Its entry wakes the dispatcher as everybody does, so that messages don't pile up while no worker runs."""

    def apply_entry(self, entry: Any, producer: Any = None) -> None:
        del producer
        if entry.task == "dispatch.wake":
            broker.wake()
        else:
            self.apply_async(entry, advance=False)


# --- Workers ---------------------------------------------------------------------------------------------------------


class Consumer(CeleryConsumer):
    """Tries a broker that is away each second; Celery's own would wait for up to 30 s."""

    def ensure_connected(self, conn: Any) -> Any:
        conn.ensure_connection(
            lambda error, _: broker.note_away(error),
            None,
            interval_start=RECONNECT_SECONDS,
            interval_step=0,
            interval_max=RECONNECT_SECONDS,
            callback=celery_state.maybe_shutdown,
        )
        self.first_connection_attempt = False
        return conn


def running_tasks() -> list[RunningTask]:
    """What runs in this worker; the dispatcher is no job."""
    return [
        RunningTask(request.name, UUID(request.args[0]), request.args[1], time.time() - request.time_start)
        for request in list(celery_state.active_requests)
        if request.name in jobs.jobs() and request.time_start
    ]


class Heartbeat(bootsteps.StartStopStep):
    """Once a second: wake the dispatcher and write down what was counted. Every few seconds: say that this worker lives,
    and look at what it runs.

    It claims and runs nothing.
    """

    requires = ("celery.worker.components:Pool",)

    def __init__(self, worker: Any, **_: Any) -> None:
        self._connections = connections_of(worker)
        # Before the pool forks. The embedded worker shares the pool of its web process.
        if isinstance(worker, CommandLineWorker):
            database_connections.resize_pool(
                database_connections.OF_FORKED if forks(worker) else self._connections
            )
        self._ends = threading.Event()
        self._thread: threading.Thread | None = None
        self._watch = TaskWatch()

    def start(self, worker: Any) -> None:
        self._ends.clear()
        self._beat(worker)
        self._wake(worker)
        self._thread = threading.Thread(target=self._run, args=(worker,), name="heartbeat", daemon=True)
        self._thread.start()

    def stop(self, _worker: Any) -> None:
        self._ends.set()
        if self._thread is not None:
            self._thread.join(1)

    def terminate(self, worker: Any) -> None:
        self.stop(worker)

    def _run(self, worker: Any) -> None:
        next_beat = time.monotonic() + work_leases.SEEN_EVERY_SECONDS
        while not self._ends.wait(WAKE_EVERY_SECONDS):
            self._wake(worker)
            task_runner.do_every_second()
            if time.monotonic() >= next_beat or task_runner.is_stopping():
                next_beat = time.monotonic() + work_leases.SEEN_EVERY_SECONDS
                self._beat(worker)
            work_queue.release_connections()

    def _wake(self, worker: Any) -> None:
        if "dispatch" in worker.app.amqp.queues.consume_from:
            broker.wake()

    def _beat(self, worker: Any) -> None:
        try:
            # One that stops takes nothing any more.
            slots = {} if task_runner.is_stopping() else slots_of(worker)
            work_leases.note_worker(worker.hostname, slots, connections=self._connections)
            self._watch.look(running_tasks())
        # The database may be away: meanwhile nothing is claimed for this worker.
        except Exception as error:  # noqa: BLE001
            log.warning("heartbeat_failed", error=str(error))
        finally:
            work_queue.release_connections()


app.steps["worker"].add(Heartbeat)


@signals.beat_init.connect
@signals.worker_init.connect
def _refuse_half_restored(sender: Any = None, **_: Any) -> None:
    try:
        # Beat never forks, and an embedded worker's threads share their pool of connections with the pages.
        unfinished_restore.refuse_to_start(before_fork=isinstance(sender, CommandLineWorker))
    except unfinished_restore.HalfRestored as error:
        sys.exit(str(error))


@signals.worker_init.connect
def _start_worker(**_: Any) -> None:
    # Before the pool forks: its children are part of this worker.
    work_leases.start_worker()
    task_runner.start()


@signals.worker_shutting_down.connect
def _begin_nothing_more(**_: Any) -> None:
    task_runner.stop()
    # Python would wait for ever for a thread that is stuck.
    last = threading.Timer(SHUTDOWN_SECONDS, _end_now)
    last.daemon = True
    last.start()


def _end_now() -> None:
    metric_counters.write_counters()
    work_leases.end_worker()
    os._exit(0)


@signals.worker_process_shutdown.connect
def _end_child(**_: Any) -> None:
    metric_counters.write_counters()


@signals.worker_shutdown.connect
def _end_worker(sender: Any, **_: Any) -> None:
    # The embedded worker may be started again in its process.
    if isinstance(sender, CommandLineWorker):
        metric_counters.write_counters()
        work_leases.end_worker()
