"""The embedded mode's worker: a Celery worker and Beat as threads of the web process."""

from __future__ import annotations

import threading
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, Final

import structlog
from celery.beat import EmbeddedService
from celery.worker import WorkController, state
from django.conf import settings

from config import celery, database_connections, in_process_broker
from config.core import task_runner, work_leases
from config.operations import metric_counters

if TYPE_CHECKING:
    from collections.abc import Callable

log = structlog.get_logger(__name__)

RESTART_SECONDS: Final = 1.0
POLL_SECONDS: Final = 0.02


class EmbeddedInstance:
    """Starts once in a process and stops once.

    A worker or Beat that falls over is started again.
    """

    def __init__(self) -> None:
        self._is_stopping = threading.Event()
        self._beat: Any = None
        self._threads = [
            threading.Thread(target=self._keep_up, args=(run,), name=name, daemon=True)
            for name, run in (("worker", self._run_worker), ("beat", self._run_beat))
        ]

    def start(self) -> None:
        # Of the web process that this runs in, before it opens one.
        database_connections.resize_pool(
            settings.WEB_CONNECTIONS + settings.WORKER_SLOTS + database_connections.BESIDE_TASKS
        )
        state.should_stop = None
        work_leases.start_worker()
        task_runner.start()
        in_process_broker.allow_waits(is_allowed=True)
        for thread in self._threads:
            thread.start()

    def stop(self, *, within: float) -> bool:
        """Let the tasks at work be finished; False where one took longer, and then its lease brings its row back."""
        until = monotonic() + within
        self._is_stopping.set()
        task_runner.stop()
        if self._beat is not None:
            self._beat.service.stop()
        while state.active_requests and monotonic() < until:
            sleep(POLL_SECONDS)
        has_rested = not state.active_requests
        # What the worker's own signal handler would set; its loop reads it at every turn.
        state.should_stop = 0  # type: ignore[assignment]  # an exit code
        in_process_broker.allow_waits(is_allowed=False)
        metric_counters.write_counters()
        work_leases.end_worker()
        for thread in self._threads:
            thread.join(max(until - monotonic(), 0))
        return has_rested and not any(thread.is_alive() for thread in self._threads)

    def _keep_up(self, run: Callable[[], None]) -> None:
        while not self._is_stopping.is_set():
            try:
                run()
            # The edge of the thread: without it the process would go on serving pages with no worker.
            except Exception:
                log.exception("engine_part_failed", part=run.__name__)
            self._is_stopping.wait(RESTART_SECONDS)

    def _run_worker(self) -> None:
        worker = celery.app.WorkController(
            hostname=database_connections.EMBEDDED,
            pool="threads",
            concurrency=settings.WORKER_SLOTS,
            without_gossip=True,
            without_mingle=True,
            without_heartbeat=True,
        )
        assert isinstance(worker, WorkController)  # noqa: S101  for the types
        worker.start()

    def _run_beat(self) -> None:
        # A thread: by default Beat forks a process, whose messages would never reach the in-process transport.
        self._beat = EmbeddedService(celery.app, thread=True, scheduler_cls=celery.Beat)
        self._beat.run()
