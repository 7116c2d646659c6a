"""Runs the project under gunicorn, in the embedded mode and with separate workers."""

from __future__ import annotations

import ctypes
import errno
import logging
import os
import signal
import socket
import sys
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from django.core.wsgi import get_wsgi_application
from gunicorn.app.base import BaseApplication
from gunicorn.glogging import Logger

from config import web_start_time
from config.connections.worker import ConnectionsWorker
from config.core import limits, task_runner
from config.embedded import EmbeddedInstance
from config.operations import metric_counters

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from gunicorn.config import Config

GRACE_SECONDS: Final = 30
"""The time for requests under way after a SIGTERM, before the arbiter kills their worker."""
DRAIN_SECONDS: Final = 20.0
"""The time for an embedded worker's running tasks after a SIGTERM; less than `GRACE_SECONDS`."""
INTERRUPTED_DRAIN_SECONDS: Final = 3.0
"""The time for those tasks after Ctrl-C, when a person waits; rows of longer ones are due again by their leases."""
INTERRUPTED_REQUEST_SECONDS: Final = 2
"""The time for requests under way after Ctrl-C."""
PORT_FREED_SECONDS: Final = 4.0
"""The time for which a worker that notices only by polling that its arbiter died may keep the port."""
PR_SET_PDEATHSIG: Final = 1
"""Linux's `prctl` option for the signal that a process gets when its parent dies."""


class ProjectLogger(Logger):
    """Sends gunicorn's own log lines to the service's log, from warnings upwards."""

    def setup(self, cfg: Config) -> None:
        super().setup(cfg)
        self.error_log.handlers.clear()
        self.error_log.propagate = True
        self.error_log.setLevel(logging.WARNING)


def options(*, host: str, workers: int) -> dict[str, Any]:
    """Return the gunicorn settings that the embedded server and `gunicorn.conf.py` share."""
    return {
        "bind": f"[{host}]:{settings.PORT}" if ":" in host else f"{host}:{settings.PORT}",
        "workers": workers,
        "worker_class": ThreadsWorker,
        "threads": settings.WEB_THREADS,
        "worker_connections": limits.CONNECTIONS,
        "timeout": 60,
        "graceful_timeout": GRACE_SECONDS,
        # Longer than a proxy keeps a connection: else it may send a request on one that is closing, and answer 502.
        "keepalive": 20,
        # In memory if possible: a slow disk must not make a worker look dead.
        "worker_tmp_dir": "/dev/shm" if os.path.isdir("/dev/shm") else None,  # noqa: PTH112, S108
        # The control socket would be opened in the home directory.
        "control_socket_disable": True,
        "logger_class": ProjectLogger,
        "pre_fork": web_start_time.note,
        "post_fork": end_with_the_arbiter,
        "post_request": after_request,
        "worker_exit": write_last_counters,
    }


def wait_for_port(host: str, port: int) -> None:
    """Return when the port is free.

    Raises `OSError` if it stays taken for `PORT_FREED_SECONDS`, or can't be listened at for another reason.
    """
    deadline = monotonic() + PORT_FREED_SECONDS
    while True:
        with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, port))
            except OSError as error:
                if error.errno != errno.EADDRINUSE or monotonic() > deadline:
                    raise
            else:
                return
        sleep(0.2)


def end_with_the_arbiter(_arbiter: Any, worker: Any) -> None:
    """Have the kernel kill this worker with its arbiter; outside Linux only gunicorn's polling ends it.

    gunicorn's own way keeps the port until every request in flight is answered, so that an arbiter that starts
    in the dead one's place finds the port taken. Rows in work are due again when their leases run out.
    """
    if not sys.platform.startswith("linux"):
        return
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != worker.ppid:
        # The arbiter was killed before prctl() took effect.
        os._exit(0)


def after_request(_worker: Any, _request: Any, _environ: Any, _response: Any) -> None:
    """Call the functions that each process calls about once a second, such as the one that writes counters."""
    task_runner.do_every_second()


def write_last_counters(_arbiter: Any, _worker: Any) -> None:
    """Write the counters that a web process has counted since it last wrote them."""
    metric_counters.write_counters()


class ThreadsWorker(ConnectionsWorker):
    """gunicorn's worker with threads, over our own connection handling."""

    def handle_quit(self, sig: int, frame: FrameType | None) -> None:
        """Leave through the loop, as after SIGTERM, with less time for the requests under way.

        gunicorn's own handler shuts the thread pool down inside of the signal handler. If the signal comes while
        the loop hands a request to that pool, the handler waits for a lock that the interrupted frame holds, until
        the arbiter kills the worker.
        """
        self.cfg.set("graceful_timeout", INTERRUPTED_REQUEST_SECONDS)
        if self.alive:
            self.cfg.worker_int(self)
        self.handle_exit(sig, frame)


class EmbeddedServer(BaseApplication):
    """A server of one web process with the worker in it; the arbiter restarts a dead process within a second."""

    def __init__(self, *, host: str) -> None:
        self._host = host
        self._engine: EmbeddedInstance | None = None
        self._drain_seconds = DRAIN_SECONDS
        super().__init__()

    def load_config(self) -> None:
        # One process: the broker and the cache of the embedded mode live in its memory.
        for name, value in options(host=self._host, workers=1).items():
            if value is not None:
                self.cfg.set(name, value)
        self.cfg.set("post_worker_init", self._start_engine)
        self.cfg.set("worker_int", self._hurry)
        self.cfg.set("worker_exit", self._end)

    def load(self) -> Callable[..., Any]:
        return get_wsgi_application()

    def _start_engine(self, _worker: Any) -> None:
        self._engine = EmbeddedInstance()
        self._engine.start()

    def _hurry(self, _worker: Any) -> None:
        self._drain_seconds = INTERRUPTED_DRAIN_SECONDS

    def _end(self, _server: Any, _worker: Any) -> None:
        if self._engine is None:
            return
        self._engine.stop(within=self._drain_seconds)
        logging.shutdown()
        sys.stdout.flush()
        sys.stderr.flush()
        # Python would wait here for every thread of every pool, for minutes if one waits for a slow platform.
        os._exit(0)
