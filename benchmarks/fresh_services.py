"""A PostgreSQL database of its own and Redis, as the environment of a benchmark and of the workers that it starts."""

from __future__ import annotations

import os
import tempfile
from contextlib import contextmanager
from typing import TYPE_CHECKING

from benchmarks.__main__ import OURS, scratch_postgres
from tools.suite import find_postgres, find_redis

if TYPE_CHECKING:
    from collections.abc import Iterator


class NotRun(Exception):
    """A service is missing; the text says which."""


@contextmanager
def own_services(**surroundings: str) -> Iterator[None]:
    """Sets Django up on a fresh database, with these variables besides; raises `NotRun`."""
    address, reason = find_postgres()
    redis, redis_reason = find_redis()
    if not address or not redis:
        raise NotRun(reason or redis_reason)
    environment = {name: value for name, value in os.environ.items() if name not in OURS}
    with scratch_postgres(address) as own, tempfile.TemporaryDirectory(prefix="benchmark-") as folder:
        os.environ.clear()
        os.environ.update(environment)
        os.environ |= {
            "ENV_FILE": "tests/settings.env",
            "LOG_LEVEL": "ERROR",
            "DATA_DIR": folder,
            "DATABASE_URL": own,
            "REDIS_URL": redis,
            "DJANGO_SETTINGS_MODULE": "config.settings",
            **surroundings,
        }
        import django  # noqa: PLC0415  after the environment is as it is to be

        django.setup()
        from django.core.management import call_command  # noqa: PLC0415
        from django.db import connections  # noqa: PLC0415

        call_command("migrate", verbosity=0)
        try:
            yield
        finally:
            connections.close_all()


def missing(error: NotRun) -> int:
    """Says so; the exit code."""
    print(f"NOT RUN on PostgreSQL and Redis: {error}.")
    return 1 if os.environ.get("REQUIRE_SERVICES") == "1" else 0
