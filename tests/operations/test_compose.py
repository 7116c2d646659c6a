"""compose.yaml agrees with the Dockerfile, the settings and the code; its commands start and its probes work."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import pytest
import redis
from django.conf import settings

from config import celery, server
from config.operations import health
from tests.documents.text import ROOT
from tests.faults.instance import free_port
from tests.operations.deployment import (
    COMPOSE_ONLY,
    compose,
    compose_text,
    dockerfile_steps,
    env_example,
    image,
    seconds,
    settings_names,
)

OURS = ("web", "worker", "compute", "render", "beat", "migrate", "backup")
THEIRS = ("database", "redis")
# Of the compose specification; a name that isn't in it would be refused, or worse, do nothing.
TOP = {"name", "services", "volumes"}
SERVICE = {
    "image", "build", "env_file", "environment", "init", "read_only", "tmpfs", "cap_drop", "security_opt", "restart",
    "volumes", "logging", "command", "depends_on", "ports", "stop_grace_period", "stop_signal", "healthcheck",
    "profiles", "shm_size",
}  # fmt: skip
HEALTH = {"test", "interval", "timeout", "start_period", "retries", "disable"}
CONDITIONS = {"service_started", "service_healthy", "service_completed_successfully"}


@pytest.fixture(scope="module")
def services():
    return compose(POSTGRES_PASSWORD="p" * 32)["services"]


def test_every_key_is_of_the_specification(services):
    there = {key for key in compose(POSTGRES_PASSWORD="p") if not key.startswith("x-")}
    assert there == TOP
    assert set(services) == {*OURS, *THEIRS}
    for name, service in services.items():
        assert set(service) - SERVICE == set(), name
        assert set(service.get("healthcheck", {})) - HEALTH == set(), name
        waits = service.get("depends_on", {})
        assert set(waits) - set(services) == set(), name
        assert {how["condition"] for how in waits.values()} <= CONDITIONS, name
        assert service["restart"] in {"no", "unless-stopped"}, name
        command = service.get("command", [])
        assert all(isinstance(word, str) for word in command), (
            f"{name}: YAML made something else of {command}"
        )


def test_every_volume_is_declared_and_used(services):
    declared = set(compose(POSTGRES_PASSWORD="p")["volumes"])
    used = {mount.split(":")[0] for service in services.values() for mount in service.get("volumes", ())}
    assert used == declared


def test_waits_lead_to_a_check_or_an_end(services):
    for name, service in services.items():
        for other, how in service.get("depends_on", {}).items():
            awaited = services[other]
            if how["condition"] == "service_completed_successfully":
                assert awaited["restart"] == "no", f"{name} waits for {other}, which never ends"
            else:
                assert "test" in awaited["healthcheck"], f"{name} waits for {other}, which nobody probes"
    for name in ("web", "worker", "beat"):
        assert set(services[name]["depends_on"]) == {"database", "redis", "migrate"}


def test_every_setting_that_is_named_exists(services):
    ours = {key for name in OURS for key in services[name]["environment"]}
    assert ours - settings_names() == set()
    assert set(env_example()) - settings_names() - COMPOSE_ONLY == set()
    replaced = set(re.findall(r"(?<!\$)\$\{(\w+)", compose_text()))
    assert replaced == COMPOSE_ONLY


def test_the_example_names_what_production_must_have():
    wanted = {"PUBLIC_URL", "OPERATOR_CONTACT", "SECRET_KEY", "FIELD_KEYS", "POSTGRES_PASSWORD"}
    given = {name for name, (is_comment, _) in env_example().items() if not is_comment}
    assert wanted - given == set()
    # Whoever forgets to fill them in is stopped; a key in an example would be everybody's key.
    assert {name: env_example()[name][1] for name in ("SECRET_KEY", "FIELD_KEYS", "POSTGRES_PASSWORD")} == {
        "SECRET_KEY": "",
        "FIELD_KEYS": "",
        "POSTGRES_PASSWORD": "",
    }


def test_the_keys_that_the_example_makes_are_good(tmp_path):
    text = (ROOT / "deploy/env.example").read_text()
    made = {}
    for name in ("SECRET_KEY", "FIELD_KEYS"):
        line = next(
            line
            for line in text.split(f"{name}=")[0].splitlines()[::-1]
            if re.match(r"# (openssl|python3) ", line)
        )
        made[name] = subprocess.run(
            line.removeprefix("# "), shell=True, capture_output=True, text=True, check=True
        ).stdout.strip()
    done = start(["python", "manage.py", "check"], environment(tmp_path, **made))
    assert (done.returncode, done.stderr) == (0, "")


def test_every_part_has_the_whole_of_the_same_settings(services):
    for name in OURS:
        assert services[name]["env_file"] == ".env"
        given = {key: value for key, value in services[name]["environment"].items() if key != "BACKUP_DIR"}
        assert given == services["web"]["environment"]
    password = services["database"]["environment"]["POSTGRES_PASSWORD"]
    assert (
        services["web"]["environment"]["DATABASE_URL"]
        == f"postgres://pipeline:{password}@database:5432/pipeline"
    )


def test_nothing_of_ours_can_write_but_to_volumes_and_memory(services):
    for name in OURS:
        service = services[name]
        assert (service["read_only"], service["cap_drop"]) == (True, ["ALL"])
        assert service["security_opt"] == ["no-new-privileges:true"]
        assert service["tmpfs"] == ["/tmp"]
        assert {mount.split(":")[1] for mount in service["volumes"]} >= {"/data", "/media"}
    for name in THEIRS:
        assert (services[name]["read_only"], services[name]["security_opt"]) == (
            True,
            ["no-new-privileges:true"],
        )


def test_mounts_are_folders_that_the_image_has_for_its_user(services):
    made = image()
    owned = re.search(r"install -d -o (\w+) ([/\w ]+)", "\n".join(made.runs))
    assert (owned[1], made.environment["DATA_DIR"]) == (made.user, "/data")
    mounted = {mount.split(":")[1] for name in OURS for mount in services[name]["volumes"]}
    assert mounted == set(owned[2].split())
    assert {services[name]["environment"]["MEDIA_ROOT"] for name in OURS} == {"/media"}
    assert services["backup"]["environment"]["BACKUP_DIR"] == "/backups"


def test_the_port_is_the_images(services):
    assert services["web"]["ports"] == ["127.0.0.1:8000:8000"]
    assert image().ports == ["8000"]
    assert "PORT" not in services["web"]["environment"]


def test_an_end_is_waited_for_as_long_as_it_may_take(services):
    assert seconds(services["web"]["stop_grace_period"]) > server.GRACE_SECONDS
    worker = celery.SHUTDOWN_SECONDS
    assert seconds(services["worker"]["stop_grace_period"]) > worker


def test_database_and_client_programs_are_of_one_version(services):
    version = re.fullmatch(r"postgres:(\d+)-(\w+)", services["database"]["image"])
    assert f"postgresql-client-{version[1]}" in " ".join(image().runs)
    bases = {rest.split()[0] for word, rest in dockerfile_steps() if word == "FROM"}
    assert bases == {f"python:3.11-slim-{version[2]}"}


# --- Their commands, started here ------------------------------------------------------------------------------------


def environment(data, **more):
    """What a container would have: nothing of this machine's but the way to the programs."""
    return {
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "MODE": "production",
        "ENV_FILE": os.devnull,
        "DATA_DIR": str(data),
        "PUBLIC_URL": "https://pipeline.example",
        "OPERATOR_CONTACT": "operator@pipeline.example",
        "SECRET_KEY": "s" * 40,
        "FIELD_KEYS": f"k1:{'A' * 43}=",
        "PYTHONDONTWRITEBYTECODE": "1",
        **more,
    }


def start(command, env):
    # All migrations take a minute on a busy machine.
    return subprocess.run(
        command, cwd=ROOT, env=env, capture_output=True, text=True, timeout=250, check=False
    )


def test_web_parses(services, tmp_path):
    done = start([*services["web"]["command"], "--check-config"], environment(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("name", ["worker", "beat"])
def test_what_celery_is_asked_for_parses(services, tmp_path, name):
    program, *words = services[name]["command"]
    done = start([program, *words, "--help"], environment(tmp_path))
    assert (done.returncode, done.stdout.startswith(f"Usage: celery {name} [OPTIONS]")) == (0, True), (
        done.stderr
    )


@pytest.mark.slow
@pytest.mark.sqlite
def test_migrate_and_backup_do_their_work(services, tmp_path):
    (tmp_path / "backups").mkdir()
    env = environment(tmp_path, BACKUP_DIR=str(tmp_path / "backups"), LOG_LEVEL="ERROR")
    done = start(services["migrate"]["command"], env)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "static/admin/css/base.css").is_file()
    done = start(services["backup"]["command"], env)
    assert (done.returncode, done.stderr) == (0, "")
    assert len(list((tmp_path / "backups").glob("pipeline-*.tar.gz"))) == 1


@pytest.mark.slow
def test_redis_takes_its_options_and_its_probe(services, tmp_path):
    port = str(free_port())
    command = [*services["redis"]["command"], "--port", port, "--dir", str(tmp_path)]
    with running(command, environment(tmp_path)):
        program, *words = services["redis"]["healthcheck"]["test"][1:]
        until = time.monotonic() + 20
        while start([program, "-p", port, *words], environment(tmp_path)).stdout != "PONG\n":
            assert time.monotonic() < until
            time.sleep(0.1)
        there = redis.Redis(port=int(port), decode_responses=True)
        asked = {name: there.config_get(name)[name] for name in ("save", "appendonly", "maxmemory-policy")}
        assert asked == {"save": "", "appendonly": "no", "maxmemory-policy": "noeviction"}


@pytest.mark.slow
@pytest.mark.postgres
def test_worker_and_beat_pass_their_probes_and_end_in_time(services, tmp_path, transactional_db):
    """The probe of the worker is what compose runs, with the names that it would put in."""
    if not settings.REDIS_URL:
        pytest.skip("Without Redis there are no separate processes.")
    test_name = settings.DATABASES["default"]["NAME"]
    url = re.sub(r"/[^/]*$", f"/{test_name}", os.environ["DATABASE_URL"])
    env = environment(tmp_path, DATABASE_URL=url, REDIS_URL=settings.REDIS_URL, HOSTNAME=os.uname().nodename)
    probe = services["worker"]["healthcheck"]["test"]
    assert probe[0] == "CMD-SHELL"
    said = {name: tmp_path / f"{name}.log" for name in ("worker", "beat")}
    began = time.monotonic()
    with (
        running(services["worker"]["command"], env, said["worker"]) as worker,
        running(services["beat"]["command"], env, said["beat"]) as beat,
    ):

        def are_well():
            assert (worker.poll(), beat.poll()) == (None, None), said["worker"].read_text()
            assert time.monotonic() - began < 90, [log.read_text() for log in said.values()]

        # What has not come this far yet would be ended by the signal itself, and not in order.
        while health.seconds_since_run_elsewhere() > time.monotonic() - began:
            are_well()
            time.sleep(0.1)
        while (done := start(["sh", "-c", probe[1].replace("$$", "$")], env)).returncode:
            are_well()
        assert "pong" in done.stdout
        for process, name in ((beat, "beat"), (worker, "worker")):
            started = time.monotonic()
            process.terminate()
            code = process.wait(timeout=seconds(services[name]["stop_grace_period"]))
            assert code == 0, f"{name} ended with {code}:\n{said[name].read_text()}"
            assert time.monotonic() - started < seconds(services[name]["stop_grace_period"])


@pytest.mark.slow
@pytest.mark.postgres
def test_the_databases_probe_is_understood(services):
    probe = services["database"]["healthcheck"]["test"][1]
    user = re.search(r"--username=(\w+)", probe)[1]
    assert services["database"]["environment"]["POSTGRES_USER"] == user
    done = subprocess.run(["sh", "-c", probe.replace(f"--username={user}", "")], check=False)
    # 0 where it answers, 3 for words that it doesn't know.
    assert done.returncode == 0


@contextmanager
def running(command, env, log=os.devnull):
    with Path(log).open("wb") as output:
        process = subprocess.Popen(command, cwd=ROOT, env=env, stdout=output, stderr=output)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
