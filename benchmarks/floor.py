"""Serves the floor: bare WSGI views with hand-written SQL that do what `GET /v1/generated` and `POST /v1/raw` do.

It changes only when the answers gain a field, so that what makes the project faster can't make the floor faster too.
Of the project's code it uses only `search_words`, which a trigger calls. It authenticates by the token's hash, reads and writes the same rows, and answers the same bytes of `data`; it has no
strict input, no filters, no other pages, no scopes, no entity tags, no rate headers and no error messages.

gunicorn serves it under `/floor/`, together with the project. `python -m benchmarks.floor TOKEN URL FIRST COUNT` is the floor of a text
from push to webhook: it pushes COUNT times without a server, posts each answer to URL over one kept connection, and
prints the seconds and the CPU time that this took.
"""

from __future__ import annotations

import json
import sqlite3
import sys
import time
from io import BytesIO
from typing import TYPE_CHECKING, Any, Final

import psycopg
from psycopg.types.json import Jsonb

from benchmarks.floors.views import Floor, dump
from config.core.database.search_words import search_words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from uuid import UUID

    Environ = dict[str, Any]
    StartResponse = Callable[..., Any]

_ALPHABET: Final = "0123456789abcdefghjkmnpqrstvwxyz"
_PAIRS: Final = tuple(first + second for first in _ALPHABET for second in _ALPHABET)


class PostgresFloor(Floor):
    def __init__(self, address: str, **kwargs: str) -> None:
        self._address = address
        super().__init__(**kwargs)

    def connect(self) -> psycopg.Connection[Any]:
        return psycopg.connect(self._address, autocommit=True, options="-c timezone=UTC")

    def write(self, connection: Any, statements: Iterable[tuple[str, Sequence[Any]]]) -> None:
        with connection.transaction(), connection.cursor() as cursor:
            for sql, values in statements:
                cursor.execute(sql, values)

    def encode(self, prefix: str, key: UUID) -> str:
        return f"{prefix}_{public_letters(key.int)}"

    hex_out = staticmethod(lambda key: key.hex)
    key_in = staticmethod(lambda key: key)
    json_in = staticmethod(Jsonb)
    json_out = staticmethod(lambda value: value)
    moment_in = staticmethod(lambda moment: moment)
    moment_out = staticmethod(
        lambda moment: None if moment is None else moment.isoformat(timespec="milliseconds")[:-6] + "Z"
    )
    day_in = staticmethod(lambda moment: moment.date().replace(day=1))


class SqliteFloor(Floor):
    mark = "?"
    no = 0

    def __init__(self, path: str, *, pragmas: str, **kwargs: str) -> None:
        self._path = path
        self._pragmas = pragmas
        super().__init__(**kwargs)

    def connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._path, timeout=20, isolation_level=None)
        # A trigger on the items calls this function of the project.
        connection.create_function("search_words", 1, search_words, deterministic=True)
        connection.executescript(self._pragmas)
        return connection

    def write(self, connection: Any, statements: Iterable[tuple[str, Sequence[Any]]]) -> None:
        connection.execute("BEGIN IMMEDIATE")
        try:
            for sql, values in statements:
                connection.execute(sql, values)
        except sqlite3.Error:
            connection.execute("ROLLBACK")
            raise
        connection.execute("COMMIT")

    def encode(self, prefix: str, key: str) -> str:
        return f"{prefix}_{public_letters(int(key, 16))}"

    hex_out = staticmethod(lambda key: key)
    key_in = staticmethod(lambda key: key.hex)
    json_in = staticmethod(json.dumps)
    json_out = staticmethod(lambda text: None if text is None else json.loads(text))
    # SQLite keeps moments as text in UTC, without a fraction if it is zero.
    moment_in = staticmethod(lambda moment: moment.isoformat(sep=" ")[:-6])
    moment_out = staticmethod(
        lambda text: None if text is None else f"{text[:10]}T{text[11:19]}.{text[20:23] or '000'}Z"
    )
    day_in = staticmethod(lambda moment: moment.strftime("%Y-%m-01"))


def public_letters(number: int) -> str:
    """Return the letters of a public id, which follow its prefix."""
    pairs = _PAIRS
    return (
        f"{pairs[number >> 120]}{pairs[number >> 110 & 1023]}{pairs[number >> 100 & 1023]}"
        f"{pairs[number >> 90 & 1023]}{pairs[number >> 80 & 1023]}{pairs[number >> 70 & 1023]}"
        f"{pairs[number >> 60 & 1023]}{pairs[number >> 50 & 1023]}{pairs[number >> 40 & 1023]}"
        f"{pairs[number >> 30 & 1023]}{pairs[number >> 20 & 1023]}{pairs[number >> 10 & 1023]}"
        f"{pairs[number & 1023]}"
    )


# --- How it is run ---------------------------------------------------------------------------------------------------


def make_floor() -> Floor:
    """Return the floor on the settings' database."""
    from django.conf import settings  # noqa: PLC0415  the address alone comes from the project

    database: dict[str, Any] = settings.DATABASES["default"]
    common = {"public_url": settings.PUBLIC_URL, "key": settings.SECRET_KEY}
    if not settings.IS_POSTGRES:
        # The same settings of the same engine, so that only the code above it is compared.
        return SqliteFloor(database["NAME"], pragmas=database["OPTIONS"]["init_command"], **common)
    names = {"host": "HOST", "port": "PORT", "user": "USER", "password": "PASSWORD", "dbname": "NAME"}
    parameters = {name: database[setting] for name, setting in names.items() if database[setting]}
    return PostgresFloor(" ".join(f"{name}={value}" for name, value in parameters.items()), **common)


_served: Final[dict[str, Callable[..., Any]]] = {}


def application(environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
    """Serve the project, and the floor below `/floor/`."""
    if not _served:
        from config.wsgi import application as project  # noqa: PLC0415

        _served.update(project=project, floor=make_floor())
    name = "floor" if environ["PATH_INFO"].startswith("/floor/") else "project"
    answer: Iterable[bytes] = _served[name](environ, start_response)
    return answer


def push_and_post(token: str, url: str, numbers: Iterable[int]) -> tuple[float, float]:
    """Push each number and post its answer to the URL; return the seconds and the CPU seconds that this took."""
    import requests  # noqa: PLC0415

    floor = make_floor()
    floor.connection()
    started, cpu = time.perf_counter(), time.process_time()
    with requests.Session() as session:
        session.trust_env = False
        for number in numbers:
            content = {"external_id": f"floor-{number}", "url": f"https://news.example/{number}"}
            body = dump(content | {"title": "Tram line approved", "body": "The council approved it. " * 20})
            environ = {
                "HTTP_AUTHORIZATION": f"Bearer {token}",
                "REQUEST_METHOD": "POST",
                "CONTENT_LENGTH": str(len(body)),
                "wsgi.input": BytesIO(body),
            }
            [answer] = floor(environ, lambda *_: None)
            session.post(url, data=answer, timeout=30)
    return time.perf_counter() - started, time.process_time() - cpu


if __name__ == "__main__":
    import django

    django.setup()
    _token, _url, _first, _count = sys.argv[1:]
    print(json.dumps(push_and_post(_token, _url, range(int(_first), int(_first) + int(_count)))))
