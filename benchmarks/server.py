"""What the benchmarks' gunicorn serves: the project, and the floor beside it under `/floor/`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.conf import settings

from benchmarks.floor import Floor, PostgresFloor, SqliteFloor
from config.wsgi import application as project

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


def make_floor() -> Floor:
    database: dict[str, Any] = settings.DATABASES["default"]
    common = {"public_url": settings.PUBLIC_URL, "key": settings.SECRET_KEY}
    if not settings.IS_POSTGRES:
        # The same settings of the same engine: only what runs above it is compared.
        return SqliteFloor(database["NAME"], pragmas=database["OPTIONS"]["init_command"], **common)
    parts = {
        "host": database["HOST"],
        "port": database["PORT"],
        "user": database["USER"],
        "password": database["PASSWORD"],
        "dbname": database["NAME"],
    }
    return PostgresFloor(" ".join(f"{name}={value}" for name, value in parts.items() if value), **common)


floor = make_floor()


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    serve: Callable[..., Iterable[bytes]] = floor if environ["PATH_INFO"].startswith("/floor/") else project
    return serve(environ, start_response)
