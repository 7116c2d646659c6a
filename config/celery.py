"""Creates the Celery app: queues and tasks, Beat's schedule, the brokers that wake the dispatcher, workers."""

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
# The web process and every command run Django's checks. Here they would load pages that a worker never shows.
os.environ.setdefault("CELERY_SKIP_CHECKS", "true")
if not apps.apps_ready:
    # `celery -A config` imports this first; everything else has set Django up before.
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
"""Messages expire after this time, by a worker's clock; their rows were claimed again long before."""
MAX_WAITING_WAKES: Final = 4
"""The most wakes in the dispatcher's queue while no worker takes them."""
AWAY_SECONDS: Final = 1.0
"""The time for which wakes don't try a broker again that failed."""
WAIT_SECONDS: Final = 0.05
"""The longest time that a wake waits for a connection to Redis, or for an answer."""
RECONNECT_SECONDS: Final = 1.0
KILLED_AFTER_SECONDS: Final = 30
"""The time between a task's time limit and the end of its process, if the task ignores the limit."""
SHUTDOWN_SECONDS: Final = 20.0
"""The time for running tasks when a worker stops; the rows of longer ones are due again by their leases."""


def pool_settings(argv: Sequence[str]) -> dict[str, str]:
    """Return the setting of a pool of threads, or none if the command line names a pool.

    A fixed setting would override even `-P prefork`, because that is Celery's default.
    """
    is_named = any(argument.startswith(("-P", "--pool")) for argument in argv)
    return {} if is_named else {"worker_pool": "threads"}


app = Celery("content_pipeline")
app.conf.update(
    broker_url=settings.CELERY_BROKER_URL,
    broker_connection_retry_on_startup=True,
    broker_connection_max_retries=None,
    broker_connection_timeout=2,
    # Redis keeps no list of unacknowledged messages: a lost one is sent again, because its row is due again.
    task_queues=[
        Queue(name, Exchange(name), routing_key=name, no_ack=bool(settings.REDIS_URL)) for name in jobs.QUEUES
    ],
    task_default_queue="dispatch",
    task_ignore_result=True,
    # The row decides, and its lease makes it due again: late acknowledgement would only duplicate messages.
    task_acks_late=False,
    task_publish_retry=False,
    worker_consumer="config.celery:Consumer",
    **pool_settings(sys.argv),
    # Each task gives its own connections back; Celery would close the whole pool before and after each task.
    CELERY_DB_REUSE_MAX=sys.maxsize,
    worker_concurrency=settings.WORKER_SLOTS,
    worker_prefetch_multiplier=1,
    worker_hijack_root_logger=False,
    worker_redirect_stdouts=False,
    worker_send_task_events=False,
    timezone="UTC",
    # Kept in memory: the table of leases has the pace of batch jobs; this entry only wakes the dispatcher.
    beat_scheduler="config.celery:Beat",
    beat_max_loop_interval=1,
    beat_schedule={"wake the dispatcher": {"task": "dispatch.wake", "schedule": WAKE_EVERY_SECONDS}},
)
if settings.REDIS_URL:
    app.conf.update(
        # A worker takes no more messages than it has threads or processes, so that others get the rest.
        worker_disable_prefetch=True,
        broker_transport_options={
            # The client's default of five seconds would interrupt a blocking read.
            "socket_timeout": None,
            "socket_connect_timeout": 2,
            "socket_keepalive": True,
            "health_check_interval": 25,
        },
    )


# --- Tasks -----------------------------------------------------------------------------------------------------------


@app.task(name="dispatch.wake")
def run_dispatcher() -> None:
    """Queue due work, and note that the dispatcher ran."""
    dispatcher.run_rounds(broker)
    try:
        health.note_run()
    except RedisError as error:
        # Other processes will report that the dispatcher doesn't run; they can't know better.
        log.warning("run_not_noted", error=str(error))


def _add_task(job: jobs.Job) -> None:
    """Add the job's task, whose messages name the row, the token and, for people who watch, the workspace."""
    name, limit = job.name, round(job.time_limit.total_seconds())

    # Limits work in processes only: threads can't be stopped, but each of their waits has its own deadline.
    @app.task(name=name, soft_time_limit=limit, time_limit=limit + KILLED_AFTER_SECONDS)
    def work(subject: str, token: int, holder: str | None = None, workspace: str = "") -> None:
        del workspace
        task_runner.run(name, UUID(subject), token, UUID(holder) if holder else None)


for _job in jobs.jobs().values():
    _add_task(_job)


# --- Waking and sending ----------------------------------------------------------------------------------------------


class _Broker:
    """The base of both brokers, which sends a message for each lease."""

    def send(self, job: jobs.Job, lease: work_leases.QueuedTask) -> None:
        watch_kwargs = {"workspace": str(lease.owner)} if lease.owner else {}
        app.send_task(
            job.name,
            (str(lease.subject), lease.token, str(lease.holder) if lease.holder else None),
            watch_kwargs,
            queue=job.queue,
            expires=STALE_AFTER_SECONDS,
            retry=False,
        )

    def _send_wake(self) -> None:
        app.send_task("dispatch.wake", queue="dispatch", expires=STALE_AFTER_SECONDS, retry=False)


class RedisBroker(_Broker):
    """Sends one message for a burst of wakes: the first sets `dispatch:wake`, deleted before the last round."""

    _WAKE: Final = "dispatch:wake"

    def __init__(self, url: str) -> None:
        # One try: the client's default of ten would delay a request by half a minute.
        self._redis = redis.Redis.from_url(
            url, socket_connect_timeout=WAIT_SECONDS, socket_timeout=WAIT_SECONDS, retry=Retry(NoBackoff(), 0)
        )
        self._retry_at = 0.0
        self._is_away = False

    def wake(self) -> None:
        """Send a wake unless one was sent lately, too many wait, or Redis has failed within `AWAY_SECONDS`."""
        if time.monotonic() < self._retry_at:
            return
        try:
            pipe = self._redis.pipeline(transaction=False)
            pipe.set(self._WAKE, 1, nx=True, px=round(WAKE_EVERY_SECONDS * 1000))
            pipe.llen("dispatch")
            is_first, waiting = pipe.execute()
            if is_first and waiting < MAX_WAITING_WAKES:
                self._send_wake()
        # The client may raise anything. The row is committed, and Beat wakes the dispatcher each second.
        except Exception as error:  # noqa: BLE001
            self._retry_at = time.monotonic() + AWAY_SECONDS
            self.note_away(error)
        else:
            if self._is_away:
                log.warning("broker_back")
            self._is_away = False

    def note_away(self, error: Exception) -> None:
        """Log that the broker is unavailable, once until a wake finds it back."""
        if not self._is_away:
            log.warning("broker_away", error=str(error))
        self._is_away = True

    def rearm_wake(self) -> None:
        try:
            self._redis.delete(self._WAKE)
        except RedisError as error:
            self.note_away(error)

    def count_waiting(self, queues: Collection[str]) -> Mapping[str, int]:
        names = list(queues)
        pipe = self._redis.pipeline(transaction=False)
        for name in names:
            pipe.llen(name)
        try:
            return dict(zip(names, pipe.execute(), strict=True))
        except RedisError as error:
            # Sending will fail too then, and the claims are given back.
            self.note_away(error)
            return {}


class InProcessBroker(_Broker):
    """The broker of an instance with a single process, in whose memory it is always available."""

    def __init__(self) -> None:
        self._last_wake_at = -WAKE_EVERY_SECONDS

    def wake(self) -> None:
        now = time.monotonic()
        if now - self._last_wake_at >= WAKE_EVERY_SECONDS:
            self._last_wake_at = now
            if in_process_broker.count_waiting("dispatch") < MAX_WAITING_WAKES:
                self._send_wake()

    def rearm_wake(self) -> None:
        self._last_wake_at = -WAKE_EVERY_SECONDS

    def note_away(self, error: Exception) -> None:
        log.warning("broker_away", error=str(error))

    def count_waiting(self, queues: Collection[str]) -> Mapping[str, int]:
        return {name: in_process_broker.count_waiting(name) for name in queues}


broker: Final = RedisBroker(settings.REDIS_URL) if settings.REDIS_URL else InProcessBroker()
dispatcher.set_waker(broker.wake)


class Beat(Scheduler):
    """Wakes the dispatcher by the broker's `wake()`, so that messages don't pile up while no worker runs."""

    def apply_entry(self, entry: Any, producer: Any = None) -> None:
        del producer
        if entry.task == "dispatch.wake":
            broker.wake()
        else:
            self.apply_async(entry, advance=False)


# --- Workers ---------------------------------------------------------------------------------------------------------


class Consumer(CeleryConsumer):
    """Tries to connect to an unavailable broker each second; Celery's own consumer would wait for up to 30 s."""

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
    """Return the tasks of jobs that run in this worker; the dispatcher's task isn't one of them."""
    return [
        RunningTask(request.name, UUID(request.args[0]), request.args[1], time.time() - request.time_start)
        for request in list(celery_state.active_requests)
        if request.name in jobs.jobs() and request.time_start
    ]


class Heartbeat(bootsteps.StartStopStep):
    """Wakes the dispatcher and writes counters each second; every few seconds, records that this worker lives.

    Then it checks the running tasks, too. It neither claims nor runs anything itself.
    """

    requires = ("celery.worker.components:Pool",)

    def __init__(self, worker: Any, **_: Any) -> None:
        self._connections = connections_of(worker)
        # Before the pool forks. An embedded worker shares its web process's pool of connections.
        if isinstance(worker, CommandLineWorker):
            pool_size = database_connections.OF_FORKED if forks(worker) else self._connections
            database_connections.resize_pool(pool_size)
        self._stop_event = threading.Event()
        self._thread: threading.Thread | None = None
        self._watch = TaskWatch()

    def start(self, worker: Any) -> None:
        self._stop_event.clear()
        self._beat(worker)
        self._wake(worker)
        self._thread = threading.Thread(target=self._run, args=(worker,), name="heartbeat", daemon=True)
        self._thread.start()

    def stop(self, _worker: Any) -> None:
        self._stop_event.set()
        if self._thread is not None:
            self._thread.join(1)

    def terminate(self, worker: Any) -> None:
        self.stop(worker)

    def _run(self, worker: Any) -> None:
        next_beat = time.monotonic() + work_leases.SEEN_EVERY_SECONDS
        while not self._stop_event.wait(WAKE_EVERY_SECONDS):
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
            # A worker that is stopping takes no more tasks.
            slots = {} if task_runner.is_stopping() else slots_of(worker)
            work_leases.note_worker(worker.hostname, slots, connections=self._connections)
            self._watch.check(running_tasks())
        # The database may be away. Then nothing is claimed for this worker.
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
def _stop_beginning_tasks(**_: Any) -> None:
    task_runner.stop()
    # Python would wait for a stuck thread for ever.
    timer = threading.Timer(SHUTDOWN_SECONDS, _end_now)
    timer.daemon = True
    timer.start()


def _end_now() -> None:
    metric_counters.write_counters()
    work_leases.end_worker()
    os._exit(0)


@signals.worker_process_shutdown.connect
def _end_child(**_: Any) -> None:
    metric_counters.write_counters()


@signals.worker_shutdown.connect
def _end_worker(sender: Any, **_: Any) -> None:
    # An embedded worker may be started again in the same process.
    if isinstance(sender, CommandLineWorker):
        metric_counters.write_counters()
        work_leases.end_worker()
