"""A setting that is missing or wrong stops the start with a sentence and no traceback."""

from __future__ import annotations

import os
import pkgutil
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from cryptography.fernet import Fernet
from django.conf import settings

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
COMPLETE = {
    "MODE": "production",
    "PUBLIC_URL": "https://pipeline.example",
    "OPERATOR_CONTACT": "operator@pipeline.example",
    "SECRET_KEY": "s" * 50,
    "FIELD_KEYS": f"k1:{Fernet.generate_key().decode()}",
}


def start(tmp_path, environment, *command):
    return subprocess.run(
        [sys.executable, *(command or ("manage.py", "diffsettings"))],
        cwd=ROOT,
        env={
            "PATH": os.environ["PATH"],
            "ENV_FILE": os.devnull,
            "DATA_DIR": str(tmp_path),
            **environment,
        },
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def refusal(tmp_path, environment, *command):
    done = start(tmp_path, environment, *command)
    assert done.returncode == 1
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert len(lines) == 1, done.stderr
    return lines[0].removeprefix("The settings can't be used: ")


def test_production_starts_with_its_keys(tmp_path):
    done = start(tmp_path, COMPLETE)
    assert (done.returncode, done.stderr) == (0, "")


def test_production_is_the_default(tmp_path):
    done = start(tmp_path, {name: value for name, value in COMPLETE.items() if name != "MODE"})
    assert "MODE = 'production'" in done.stdout.splitlines()[0:400] or "'production'" in done.stdout


@pytest.mark.parametrize("missing", ["PUBLIC_URL", "OPERATOR_CONTACT", "SECRET_KEY", "FIELD_KEYS"])
def test_production_refuses_to_start_without_its_keys(tmp_path, missing):
    environment = {name: value for name, value in COMPLETE.items() if name != missing}
    assert refusal(tmp_path, environment).startswith(f"{missing} must be set")


@pytest.mark.parametrize("missing", ["SECRET_KEY", "FIELD_KEYS"])
def test_development_refuses_to_start_without_its_keys(tmp_path, missing):
    environment = {name: value for name, value in COMPLETE.items() if name != missing}
    assert refusal(tmp_path, environment | {"MODE": "development"}).startswith(f"{missing} must be set")


def test_settings_come_from_a_file_unless_the_environment_has_them(tmp_path):
    file = tmp_path / "settings"
    file.write_text("".join(f"{name}={value}\n" for name, value in COMPLETE.items()) + "PORT=8123\n")
    asked = "from django.conf import settings; import os; print(settings.MODE, settings.PORT, 'PORT' in os.environ)"
    command = ("manage.py", "shell", "--no-imports", "-c", asked)
    assert start(tmp_path, {"ENV_FILE": str(file)}, *command).stdout == "production 8123 False\n"
    given = {"ENV_FILE": str(file), "PORT": "8124", "MODE": "development"}
    assert start(tmp_path, given, *command).stdout == "development 8124 True\n"


def test_a_file_of_settings_that_is_not_there_is_named(tmp_path):
    said = refusal(tmp_path, {**COMPLETE, "ENV_FILE": str(tmp_path / "none")})
    assert said == f"The settings in {tmp_path}/none can't be read: No such file or directory."


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("MODE", "staging", "MODE must be one of development, production, not 'staging'."),
        ("PORT", "http", "PORT must be a whole number, not 'http'."),
        ("PORT", "70000", "PORT must be from 1 to 65535, not 70000."),
        ("WEB_THREADS", "0", "WEB_THREADS must be from 1 to 64, not 0."),
        ("WORKER_THREADS", "1", "WORKER_THREADS must be from 2 to 64, not 1."),
        (
            "BEHIND_PROXY",
            "maybe",
            "BEHIND_PROXY must be 1 or 0 (true, yes, on; false, no, off), not 'maybe'.",
        ),
        ("LOG_LEVEL", "loud", "LOG_LEVEL must be one of DEBUG, INFO, WARNING, ERROR, not 'loud'."),
        (
            "DATABASE_URL",
            "mysql://h/d",
            "DATABASE_URL must be a postgres:// address; leave it out for SQLite.",
        ),
        (
            "REDIS_URL",
            "localhost",
            "REDIS_URL must be a redis:// or rediss:// address; leave it out for the embedded mode.",
        ),
        (
            "PUBLIC_URL",
            "pipeline",
            "PUBLIC_URL must be a web address such as https://pipeline.example, not 'pipeline'.",
        ),
        ("EMAIL_URL", "post", "EMAIL_URL must be a mail address such as smtp+tls://user:password@host:587."),
        (
            "SECRET_KEY",
            "short",
            "SECRET_KEY must have at least 32 characters; it signs sessions and cursors.",
        ),
    ],
)
def test_a_wrong_value_stops_the_start_with_a_sentence(tmp_path, name, value, sentence):
    assert refusal(tmp_path, {**COMPLETE, name: value}) == sentence


def test_a_wrong_field_key_is_not_quoted(tmp_path):
    said = refusal(tmp_path, {**COMPLETE, "FIELD_KEYS": "k1:not-a-key"})
    assert said.startswith("FIELD_KEYS must hold id:key pairs")
    assert "not-a-key" not in said


def test_a_password_in_a_wrong_address_is_not_quoted(tmp_path):
    said = refusal(tmp_path, {**COMPLETE, "DATABASE_URL": "postgres://user:hunter2@host:port/name"})
    assert said.startswith("DATABASE_URL must be a database address")
    assert "hunter2" not in said


def test_every_command_says_it_the_same_way(tmp_path):
    for command in ("serve", "migrate", "help"):
        assert refusal(tmp_path, {"MODE": "production"}, "manage.py", command).startswith(
            "PUBLIC_URL must be set"
        )


def test_celery_says_it_in_a_sentence(tmp_path):
    said = refusal(tmp_path, {"MODE": "production"}, "-m", "celery", "-A", "config", "worker")
    assert said.startswith("PUBLIC_URL must be set")


@pytest.mark.slow
def test_a_port_in_use_is_told_in_a_sentence(tmp_path):
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        given = {**COMPLETE, "MODE": "development", "PORT": port}
        done = start(tmp_path, given, "manage.py", "serve")
    assert done.returncode == 1
    assert done.stderr.strip().splitlines()[-1] == (
        f"CommandError: Port {port} is in use. Stop what listens there, or choose another: PORT=8001."
    )


OURS = re.compile(r"(?:config|accounts|pipeline|webhooks|analytics)(?:\.[A-Za-z_]\w*)+")
"""Code of ours, as settings name it."""


def _named_in(value: object) -> Iterator[str]:
    if isinstance(value, str):
        if OURS.fullmatch(value):
            yield value
    elif isinstance(value, dict):
        for part in (*value, *value.values()):
            yield from _named_in(part)
    elif isinstance(value, list | tuple | set | frozenset):
        for part in value:
            yield from _named_in(part)


NAMED = sorted(
    {name for setting in dir(settings) if setting.isupper() for name in _named_in(getattr(settings, setting))}
    - {settings.AUTH_USER_MODEL}
)


def test_settings_name_code():
    assert len(NAMED) > 40


@pytest.mark.parametrize("name", NAMED)
def test_code_that_settings_name_is_there(name):
    """Some of it is imported only when a worker, a sign-up or an erasure needs it."""
    pkgutil.resolve_name(name)
