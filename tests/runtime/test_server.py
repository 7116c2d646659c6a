"""How the server's processes stop."""

import os
import subprocess
import sys

from config import server
from config.core import counters, task_runner
from config.operations import metric_counters

STOPPED_WHILE_THE_POOL_IS_LOCKED = """
import signal
from unittest import mock

import django
django.setup()

from gunicorn.config import Config
from config.server import ThreadsWorker

config = Config()
worker = ThreadsWorker(0, 0, [], None, 30, config, mock.Mock())
worker.tpool = worker.get_thread_pool()
worker.method_queue.init()
signal.signal(signal.SIGQUIT, worker.handle_quit)
# What `ThreadPoolExecutor.submit` holds while the loop hands it a request.
with worker.tpool._shutdown_lock:
    signal.raise_signal(signal.SIGQUIT)
    signal.raise_signal(signal.SIGQUIT)
assert not worker.alive
print("left")
"""


def test_ctrl_c_in_the_middle_of_a_request_handed_over_waits_for_no_lock():
    # In a process of its own: a wait for that lock could be ended by nothing else.
    done = subprocess.run(
        [sys.executable, "-c", STOPPED_WHILE_THE_POOL_IS_LOCKED],
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "config.settings"},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.stdout == "left\n", done.stderr


def test_a_web_process_writes_its_counters_after_requests_and_at_its_end(db, monkeypatch):
    hooks = server.options(host="127.0.0.1", workers=1)
    monkeypatch.setattr(metric_counters, "_last_write", {"at": 0.0})
    monkeypatch.setattr(task_runner, "_did_at", {"at": 0.0})
    counters.drain()
    counters.add("attempts", "web")
    hooks["post_request"](None, None, {}, None)
    assert metric_counters.counter_sums() == {("attempts", "web"): 1}
    counters.add("attempts", "web")
    hooks["post_request"](None, None, {}, None)
    assert metric_counters.counter_sums() == {("attempts", "web"): 1}
    hooks["worker_exit"](None, None)
    assert metric_counters.counter_sums() == {("attempts", "web"): 2}
