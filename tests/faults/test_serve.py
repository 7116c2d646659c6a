"""`manage.py serve` as people meet it: it starts, stops, comes back, and leaves nothing behind."""

from __future__ import annotations

import os
import shlex
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
import requests

from tests.faults.instance import ROOT, Instance, children_of

pytestmark = [pytest.mark.slow, pytest.mark.alone]


@pytest.fixture
def instance(tmp_path):
    with Instance(tmp_path) as running:
        yield running


def is_alive(pid):
    with suppress(OSError):
        os.kill(pid, 0)
        return True
    return False


def wait_while(condition, seconds):
    until = time.monotonic() + seconds
    while condition() and time.monotonic() < until:
        time.sleep(0.05)
    return not condition()


def is_processed(instance, token, raw_id):
    return instance.call("GET", f"/v1/raw/{raw_id}", token).json()["status"] == "processed"


def test_ctrl_c_stops_everything_within_a_few_seconds_and_without_a_traceback(instance):
    pids = instance.processes()
    assert len(pids) == 2
    assert instance.stop(signal.SIGINT) < 6
    assert not any(is_alive(pid) for pid in pids)
    assert "Traceback" not in instance.log.read_text()
    assert "SIGKILL" not in instance.log.read_text()


def test_sigterm_stops_everything(instance):
    pids = instance.processes()
    assert instance.stop() < 15
    assert not any(is_alive(pid) for pid in pids)
    assert "Traceback" not in instance.log.read_text()


@pytest.mark.parametrize("more", [{}, {"HOST": "0.0.0.0", "BIND": "0.0.0.0"}], ids=["alone", "with a HOST"])
def test_what_make_up_starts_is_reached_from_this_machine_alone(tmp_path, more):
    """`make up` runs `manage.py serve` in development: no other address of the machine answers, nor shows a traceback."""
    with Instance(tmp_path, **more) as instance:
        listens = {line.split()[1] for line in Path("/proc/net/tcp").read_text().splitlines()[1:]}
        assert {one.partition(":")[0] for one in listens if one.endswith(f":{instance.port:04X}")} == {
            "0100007F"
        }
        page = requests.get(f"{instance.url}/nothing-is-here", headers={"Host": "evil.example"}, timeout=15)
        assert (page.status_code, "Traceback" in page.text, "DEBUG" in page.text) == (400, False, False)


def threads_of(pid):
    return len(list(Path(f"/proc/{pid}/task").iterdir()))


def test_the_arbiter_keeps_no_pool_that_its_worker_would_inherit(instance):
    """A pool's threads don't live on in a forked process, which would wait for connections in vain."""
    arbiter, _worker = instance.processes()
    assert threads_of(arbiter) == 1


def answers(url):
    with suppress(requests.RequestException):
        return requests.get(url, timeout=3, proxies={"http": ""}).ok
    return False


@pytest.mark.postgres
def test_gunicorns_arbiter_keeps_no_pool_either(tmp_path):
    instance = Instance(tmp_path)
    command = [sys.executable, "-m", "gunicorn", "config.wsgi"]
    process = subprocess.Popen(command, cwd=ROOT, env=instance.environment, start_new_session=True)
    try:
        # Ready it never is: there is no worker.
        assert wait_while(lambda: not answers(f"{instance.url}/healthz"), 60)
        assert threads_of(process.pid) == 1
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        instance.__exit__()


def test_a_killed_worker_is_back_within_seconds(instance):
    arbiter, worker = instance.processes()
    os.kill(worker, signal.SIGKILL)
    killed = time.monotonic()
    assert wait_while(lambda: not (set(children_of(arbiter)) - {worker}), 20)
    instance.wait_until_ready(20)
    assert time.monotonic() - killed < 30
    assert instance.processes()[0] == arbiter


def test_a_killed_arbiter_leaves_no_orphan_and_the_port_can_be_had_again(instance):
    arbiter, worker = instance.processes()
    os.kill(arbiter, signal.SIGKILL)
    instance._process.wait()
    instance.start(waits=False)
    # It may still answer in the moment that it takes to end; ready counts from there.
    assert wait_while(lambda: is_alive(worker), 2)
    instance.wait_until_ready()


def test_a_killed_arbiter_s_worker_ends_at_once_even_in_the_middle_of_a_request(instance):
    """It would keep the port until the request is answered, and the arbiter that takes over would find it taken."""
    arbiter, worker = instance.processes()
    with socket.create_connection(("127.0.0.1", instance.port)) as unfinished:
        unfinished.sendall(b"POST /v1/raw HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{")
        time.sleep(0.5)
        os.kill(arbiter, signal.SIGKILL)
        instance._process.wait()
        assert wait_while(lambda: is_alive(worker), 2)


def test_pushed_items_become_generated_ones_without_a_tick_to_wait_for(instance):
    token = instance.token("Quick", "--unlimited")
    seconds = []
    for number in range(5):
        body = {"title": f"Number {number}", "body": f"The ferry number {number} leaves at seven. " * 20}
        started = time.monotonic()
        raw = instance.call("POST", "/v1/raw", token, body)
        assert raw.status_code == 202, raw.text

        assert wait_while(lambda: not is_processed(instance, token, raw.json()["id"]), 30), instance.tail()  # noqa: B023
        seconds.append(time.monotonic() - started)
    assert sorted(seconds)[2] < 2


def test_the_demo_prints_five_lines_that_work_as_pasted(instance):
    said = instance.manage("demo")
    lines = [line for line in said.splitlines() if line.startswith("curl ")]
    assert len(lines) == 5
    answers = []
    for line in lines:
        # As a shell reads it; --fail makes an error of every status from 400 on.
        done = subprocess.run(
            [*shlex.split(line), "--noproxy", "*", "--fail-with-body"],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, (line, done.stdout, done.stderr)
        answers.append(done.stdout)
        time.sleep(0.5)
    assert '"status":"ready"' in answers[0].replace(" ", "")
    assert '"platform":"feed"' in answers[3].replace(" ", "")


def test_the_demo_run_again_keeps_everything_and_prints_no_secret(instance):
    first = instance.manage("demo")
    before = {
        name: instance.query(f"SELECT COUNT(*) FROM {name}")
        for name in ("workspace", "source", "api_token", "raw_item")
    }
    second = instance.manage("demo")
    after = {name: instance.query(f"SELECT COUNT(*) FROM {name}") for name in before}
    assert after == before
    assert "cpk_live_" in first
    assert "cpk_live_" not in second
    assert "make -s token" in second
    assert len([line for line in second.splitlines() if line.startswith("curl ")]) == 5


def test_another_instance_on_the_same_port_says_so(instance):
    done = subprocess.run(
        [str(ROOT / ".venv" / "bin" / "python"), "manage.py", "serve"],
        cwd=ROOT,
        env=instance.environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert f"Port {instance.port} is in use." in done.stderr
