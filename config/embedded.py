"""Runs the worker and Beat of the embedded mode as threads of the web process."""

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
"""The pause before a crashed worker or Beat is started again."""
POLL_SECONDS: Final = 0.02
"""The pause between two checks whether tasks still run, while the worker stops."""


class EmbeddedInstance:
    """The worker and Beat of this process, which start once and stop once; after a crash either starts again."""

    def __init__(self) -> None:
        self._is_stopping = threading.Event()
        self._beat: Any = None
        self._threads = [
            threading.Thread(target=self._run_until_stopped, args=(run,), name=name, daemon=True)
            for name, run in (("worker", self._run_worker), ("beat", self._run_beat))
        ]

    def start(self) -> None:
        # Before this web process opens its first connection.
        database_connections.resize_pool(
            settings.WEB_CONNECTIONS + settings.WORKER_SLOTS + database_connections.EXTRA_CONNECTIONS
        )
        state.should_stop = None
        work_leases.start_worker()
        task_runner.start()
        in_process_broker.allow_waits(is_allowed=True)
        for thread in self._threads:
            thread.start()

    def stop(self, *, within: float) -> bool:
        """Begin no more tasks and let running ones finish; return False if one takes longer than `within` seconds.

        The row of a longer task is due again when its lease runs out.
        """
        deadline = monotonic() + within
        self._is_stopping.set()
        task_runner.stop()
        if self._beat is not None:
            self._beat.service.stop()
        while state.active_requests and monotonic() < deadline:
            sleep(POLL_SECONDS)
        is_idle = not state.active_requests
        # As the worker's own signal handler does; its loop reads it in each round.
        state.should_stop = 0  # type: ignore[assignment]  # an exit code
        in_process_broker.allow_waits(is_allowed=False)
        metric_counters.write_counters()
        work_leases.end_worker()
        for thread in self._threads:
            thread.join(max(deadline - monotonic(), 0))
        return is_idle and not any(thread.is_alive() for thread in self._threads)

    def _run_until_stopped(self, run: Callable[[], None]) -> None:
        """Run the worker or Beat, and again after each crash."""
        while not self._is_stopping.is_set():
            try:
                run()
            # The thread's outermost frame: otherwise the process would go on serving pages without a worker.
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
        # As a thread: by default Beat forks a process, whose messages would never reach the in-process transport.
        self._beat = EmbeddedService(celery.app, thread=True, scheduler_cls=celery.Beat)
        self._beat.run()
