"""The Celery app, its queue and the whole timetable."""

from __future__ import annotations

import os
import sys
import threading
from typing import Any, Final

import django
import structlog
from celery import Celery, signals
from celery.apps.worker import Worker as CommandLineWorker
from celery.beat import Scheduler
from django.apps import apps
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from redis.exceptions import RedisError

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
if not apps.apps_ready:
    # `celery -A config` comes here first; everything else has set Django up before.
    try:
        django.setup()
    except ImproperlyConfigured as error:
        sys.exit(f"The settings can't be used: {error}")

from config import half_restored, health, tallies
from config.ground import hands, inproc  # noqa: F401  the transport registers itself
from config.ground.nudges import Nudges

log = structlog.get_logger(__name__)

LOOK_EXPIRES_SECONDS: Final = 5.0
"""A look that waited longer has been overtaken by later ticks; working it too would only add to the backlog."""
SENT_APART_SECONDS: Final = 0.1 if settings.REDIS_URL else hands.TICK_SECONDS
"""Looks of one kind on their way from one process. In the embedded mode a look's start is seen and ends this wait."""
LEAST_APART_SECONDS: Final = 0.1 if settings.REDIS_URL else 0.02
"""Between two messages about one kind from one process, although the first one's look has started: what came of many
events is then looked for once.
"""

REST_SECONDS: Final = 20.0
"""For the rows in hand when a worker is told to stop; the lease of a row that takes longer brings it back."""

app = Celery("content_pipeline")
app.conf.update(
    broker_url=settings.CELERY_BROKER_URL,
    broker_connection_retry_on_startup=True,
    # The broker may be away for as long as it likes: the watch works meanwhile.
    broker_connection_max_retries=None,
    broker_connection_timeout=2,
    task_default_queue="looks",
    task_ignore_result=True,
    task_acks_late=True,
    task_reject_on_worker_lost=True,
    # A message is worth less than the wait for a second try: the next tick sends the same again.
    task_publish_retry=False,
    worker_pool="threads",
    worker_concurrency=settings.WORKER_THREADS,
    worker_prefetch_multiplier=1,
    worker_soft_shutdown_timeout=30,
    worker_hijack_root_logger=False,
    worker_redirect_stdouts=False,
    timezone="UTC",
    # In memory: the timetable is this file, and no entry needs to know when it last ran.
    beat_scheduler="config.celery:Beat",
    beat_max_loop_interval=1,
    beat_schedule={
        "tick": {
            "task": "tick",
            "schedule": hands.TICK_SECONDS,
            "options": {"expires": 3 * hands.TICK_SECONDS},
        },
    },
)
if settings.REDIS_URL:
    app.conf.broker_transport_options = {
        "visibility_timeout": 300,
        "unacked_restore_interval": 5,
        "unacked_restore_throttle": 1,
        # The client's own default of five seconds would end a blocking read in the middle of its wait.
        "socket_timeout": None,
        "socket_connect_timeout": 2,
        "socket_keepalive": True,
        "health_check_interval": 25,
    }


@app.task(name="look")
def look(kind: str) -> None:
    nudges.started(kind)
    hands.serve(kind)


@app.task(name="tick")
def tick() -> None:
    hands.tick()
    try:
        health.note_tick()
    except RedisError as error:
        # The other processes will say that no tick came, which is what they can know.
        log.warning("tick_not_noted", error=str(error))


def _send_look(kind: str) -> None:
    look.apply_async((kind,), expires=LOOK_EXPIRES_SECONDS, retry=False)


nudges: Final = Nudges(_send_look, apart=SENT_APART_SECONDS, least_apart=LEAST_APART_SECONDS)
hands.send_looks_with(nudges.ask)


class Beat(Scheduler):
    """Says once that the broker is away, instead of a traceback a second."""

    _is_away = False

    def apply_entry(self, entry: Any, producer: Any = None) -> None:
        try:
            self.apply_async(entry, producer=producer, advance=False)
        # Whatever the broker's client raises: the watch ticks instead, and the next second tries again.
        except Exception as error:  # noqa: BLE001
            if not self._is_away:
                log.warning("tick_not_sent", error=str(error))
            self._is_away = True
        else:
            self._is_away = False


# --- The watch: one in every process that works -----------------------------------------------------------------------

_watch_ends: Final = threading.Event()
_watches: Final[list[threading.Thread]] = []


def start_watch() -> None:
    """Unless there is one; a thread doesn't live on in a forked process."""
    if not any(watch.is_alive() for watch in _watches):
        _watch_ends.clear()
        watch = threading.Thread(target=hands.watch, args=(_watch_ends,), name="watch", daemon=True)
        _watches[:] = [watch]
        watch.start()


@signals.beat_init.connect
@signals.worker_init.connect
def _refuse_half_restored(sender: Any = None, **_: Any) -> None:
    try:
        half_restored.refuse_to_start(before_fork="prefork" in str(getattr(sender, "pool_cls", "")))
    except half_restored.HalfRestored as error:
        sys.exit(str(error))


@signals.worker_init.connect
def _watch_in_worker(sender: Any, **_: Any) -> None:
    # Before the connection to the broker is tried, which may take for ever. The parent of forked workers does no
    # work, and must not open a connection that they would share.
    if "prefork" not in str(sender.pool_cls):
        start_watch()


@signals.worker_process_init.connect
def _watch_in_forked_worker(**_: Any) -> None:
    start_watch()


@signals.worker_shutting_down.connect
def _rest(**_: Any) -> None:
    # The hands end after the row that each has in hand, instead of when nothing is due.
    hands.rest(0)


@signals.worker_shutdown.connect
def _end_worker(sender: Any, **_: Any) -> None:
    # The embedded engine's worker may be started again, and the engine itself ends the rest.
    if isinstance(sender, CommandLineWorker):
        end_watch()
        hands.rest(REST_SECONDS)
        tallies.write()


@signals.worker_process_shutdown.connect
def end_watch(**_: Any) -> None:
    _watch_ends.set()
    _watches.clear()
