"""The floor: bare WSGI views with hand-written SQL that do what `GET /v1/generated` and `POST /v1/raw` do.

Frozen: it shares no code with the project, so that what makes the project faster can't make the floor faster too.
It authenticates by the token's hash, reads and writes the same rows, and answers the same bytes of `data`; it has no
strict input, no filters, no other pages, no scopes, no entity tags, no rate headers and no errors in words.

gunicorn serves it under `/floor/`, beside the project. `python -m benchmarks.floor TOKEN URL FIRST COUNT` is the floor of a text
from push to webhook: it pushes COUNT times without a server, posts what was answered to URL over one kept connection, and
prints the seconds that this took and the CPU time of it.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import sqlite3
import sys
import threading
import time
from base64 import urlsafe_b64encode
from datetime import UTC, datetime
from io import BytesIO
from typing import TYPE_CHECKING, Any, ClassVar, Final

import psycopg
from psycopg.types.json import Jsonb
from uuid_utils.compat import uuid7

from config.core.database.search_words import search_words

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from uuid import UUID

    Environ = dict[str, Any]
    StartResponse = Callable[..., Any]

PAGE: Final = 25
_ALPHABET: Final = "0123456789abcdefghjkmnpqrstvwxyz"
_PAIRS: Final = tuple(first + second for first in _ALPHABET for second in _ALPHABET)

TOKEN: Final = """
    SELECT workspace.id, api_token.scopes, api_token.is_test, workspace.whitelisted_at
    FROM api_token JOIN workspace ON workspace.id = api_token.workspace_id
    WHERE api_token.digest = %s AND api_token.revoked_at IS NULL AND workspace.deleted_at IS NULL
        AND (api_token.expires_at IS NULL OR api_token.expires_at > %s)
"""
LIST: Final = """
    SELECT id, test, bucket, engine_output, status, held, flagged, revision, version, variant_group, variant_index,
        angle, title, body, body_format, excerpt, language, source_id, raw_item_id, topic_id, persona_id, outlets,
        overrides,
        approval_required, approved_by, approved_at, approved_revision, rejection, generator, checks_revision, error, publish_at,
        created_at, ready_at, published_at, updated_at
    FROM generated_item
    WHERE workspace_id = %s AND test = FALSE AND deleted_at IS NULL
    ORDER BY id DESC LIMIT 26
"""
PUBLICATIONS: Final = """
    SELECT item_id, id, version, revision, outlet_id, platform, status, external_id, url, attempt_count, error, due_at,
        local_time, zone, late_policy, max_lateness_minutes, next_attempt_at, published_at, test, created_at, updated_at
    FROM publication WHERE item_id IN ({marks}) ORDER BY id
"""
ASSETS: Final = """
    SELECT item_id, id, role, position, kind, name, secret, mime_type, bytes, width, height, duration, alt_text
    FROM asset WHERE item_id IN ({marks}) AND revoked_at IS NULL ORDER BY position, id
"""
DEFAULTS: Final = """
    SELECT push_source_id, workspace_defaults.persona_id, workspace_defaults.engines, workspace_defaults.outlets,
        source.variants
    FROM workspace_defaults JOIN source ON source.id = workspace_defaults.push_source_id
    WHERE workspace_defaults.workspace_id = %s
"""


def insert_sql(table: str, columns: str) -> str:
    return f"INSERT INTO {table} ({columns}) VALUES ({', '.join(['%s'] * len(columns.split(',')))})"


RAW_ITEM: Final = insert_sql(
    "raw_item",
    "id, workspace_id, lease_token, attempts, test, source_id, dedup_key, external_id, url, title, language, author, "
    "media, metadata, engines, variants, persona_id, content_hash, version, content_version, status, request_id, "
    "created_at, updated_at",
)
RAW_BODY: Final = insert_sql(
    "raw_body", "id, workspace_id, raw_item_id, number, title, body, body_format, content_hash, created_at"
)
GENERATION: Final = insert_sql(
    "generation",
    "id, workspace_id, due_at, wake_at, lease_token, attempts, test, engine, raw_item_id, raw_version, persona_id, "
    "variants, status, stage, answers, credits_reserved, request_id, created_at",
)
GENERATED_ITEM: Final = insert_sql(
    "generated_item",
    "id, workspace_id, test, generation_id, source_id, raw_item_id, persona_id, bucket, engine_output, "
    "engine_version, status, held, revision, version, variant_group, variant_index, angle, title, body, body_format, "
    "content, excerpt, language, outlets, overrides, approval_required, approved_by, generator, claims, checks, "
    "created_at, updated_at",
)
EVENT: Final = insert_sql(
    "event", "id, workspace_id, test, type, body, raw_item_id, source_id, request_id, created_at"
)
BALANCE: Final = """
    UPDATE credit_balance SET available = available - %s, reserved = reserved + %s
    WHERE workspace_id = %s AND period_start = %s
"""
LEDGER: Final = insert_sql(
    "ledger_entry",
    "id, workspace_id, kind, amount, reserved_change, used_change, subject, reason, created_at",
)


class Floor:
    """The WSGI application; `public_url` and `key` are what the project's own answers are made with."""

    # How each database takes and gives what the statements name.
    mark: ClassVar[str] = "%s"

    def __init__(self, *, public_url: str, key: str) -> None:
        self._public_url = public_url
        self._key = key.encode()
        self._local = threading.local()
        marks = ", ".join([self.mark] * PAGE)
        self.token_sql, self.list_sql, self.defaults_sql = map(self._own, (TOKEN, LIST, DEFAULTS))
        self.publications_sql = PUBLICATIONS.format(marks=marks)
        self.assets_sql = ASSETS.format(marks=marks)
        self._inserts = tuple(
            map(self._own, (RAW_ITEM, RAW_BODY, GENERATION, GENERATED_ITEM, EVENT, BALANCE, LEDGER))
        )

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        status, body = self._answer(environ)
        start_response(status, [("Content-Type", "application/json"), ("Content-Length", str(len(body)))])
        return [body]

    def _answer(self, environ: Environ) -> tuple[str, bytes]:
        connection = self.connection()
        digest = hashlib.sha256(environ["HTTP_AUTHORIZATION"][7:].encode()).digest()
        now = datetime.now(UTC)
        found = self.ask(connection, self.token_sql, (digest, self.moment_in(now)))
        if not found or found[0][3] is None:
            return "401 Unauthorized", b'{"error":"unauthenticated"}'
        workspace_id, scopes, is_test, _ = found[0]
        wanted = "raw:write" if environ["REQUEST_METHOD"] == "POST" else "generated:read"
        if is_test or wanted not in self.json_out(scopes):
            return "403 Forbidden", b'{"error":"insufficient_scope"}'
        if environ["REQUEST_METHOD"] == "POST":
            pushed = json.loads(environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"])))
            return "202 Accepted", _dump(self._push(connection, workspace_id, pushed, now))
        return "200 OK", _dump(self._list(connection, workspace_id))

    # --- GET -----------------------------------------------------------------------------------------------------

    def read_rows(self, connection: Any, workspace_id: Any) -> tuple[list[Any], list[Any], list[Any]]:
        """What the list costs the database: its items, their publications, their files."""
        rows = self.ask(connection, self.list_sql, (workspace_id,))
        keys = [row[0] for row in rows[:PAGE]]
        return (
            rows,
            self.ask(connection, self.publications_sql, keys),
            self.ask(connection, self.assets_sql, keys),
        )

    def _list(self, connection: Any, workspace_id: Any) -> dict[str, Any]:
        rows, publications, assets = self.read_rows(connection, workspace_id)
        encode, at, js, flag = self.encode, self.moment_out, self.json_out, bool
        of_item: dict[Any, list[Any]] = {}
        for (
            item, key, version, revision, outlet, platform, status, external_id, url, attempts, error, due_at,
            local_time, zone, late_policy, max_lateness, next_at, published_at, test, created_at, updated_at,
        ) in publications:  # fmt: skip
            of_item.setdefault(item, []).append(
                {
                    "id": encode("pub", key),
                    "version": version,
                    "revision": revision,
                    "outlet": encode("out", outlet),
                    "platform": platform,
                    "status": status,
                    "external_id": external_id or None,
                    "url": url or None,
                    "attempts": attempts,
                    "error": js(error),
                    "due_at": at(due_at),
                    "scheduled_for": {"local_time": local_time, "timezone": zone} if local_time else None,
                    "late_policy": late_policy,
                    "max_lateness_minutes": max_lateness,
                    "overdue_seconds": 0,
                    "waits_for": None,
                    "next_attempt_at": at(next_at),
                    "published_at": at(published_at),
                    "test": flag(test),
                    "created_at": at(created_at),
                    "updated_at": at(updated_at),
                }
            )
        files: dict[Any, list[Any]] = {}
        for (
            item, key, role, position, kind, name, secret, mime_type, size, width, height, duration, alt_text,
        ) in assets:  # fmt: skip
            files.setdefault(item, []).append(
                {
                    "id": encode("ast", key),
                    "role": role,
                    "position": position,
                    "kind": kind,
                    "url": f"{self._public_url}/media/{secret}/{name}",
                    "mime_type": mime_type,
                    "bytes": size,
                    "width": width,
                    "height": height,
                    "duration": duration,
                    "alt_text": alt_text,
                }
            )
        data = []
        for (
            key, test, bucket, engine_output, status, held, flagged, revision, version, variant_group, variant_index,
            angle, title, body, body_format, excerpt, language, source, raw_item, topic, persona, outlets, overrides,
            approval_required, approved_by, approved_at, approved_revision, rejection, generator, checks_revision, error, publish_at,
            created_at, ready_at, published_at, updated_at,
        ) in rows[:PAGE]:  # fmt: skip
            raw = encode("raw", raw_item) if raw_item else None
            data.append(
                {
                    "id": encode("gen", key),
                    "bucket": bucket,
                    "engine_output": engine_output,
                    "status": status,
                    "revision": revision,
                    "version": version,
                    "variant": {
                        "group": self.hex_out(variant_group),
                        "index": variant_index,
                        "angle": angle or None,
                    },
                    "title": title,
                    "body": body,
                    "body_format": body_format,
                    "excerpt": excerpt,
                    "language": language or None,
                    "assets": files.get(key, []),
                    "source": encode("src", source) if source else None,
                    "raw_item": raw,
                    "raw_items": [raw] if raw else [],
                    "topic": encode("top", topic) if topic else None,
                    "persona": encode("per", persona) if persona else None,
                    "outlets": js(outlets),
                    "overrides": js(overrides),
                    "approval": {
                        "required": flag(approval_required),
                        "by": approved_by or None,
                        "at": at(approved_at),
                        "revision": approved_revision,
                    },
                    "rejection": js(rejection),
                    "publications": of_item.get(key, []),
                    "publish_at": at(publish_at),
                    "overdue_seconds": 0,
                    "held": held or None,
                    "flagged": flagged or None,
                    "generator": js(generator) or None,
                    "checks_revision": checks_revision if checks_revision == revision else None,
                    "error": js(error),
                    "progress": None,
                    "test": flag(test),
                    "created_at": at(created_at),
                    "ready_at": at(ready_at),
                    "published_at": at(published_at),
                    "updated_at": at(updated_at),
                }
            )
        has_more = len(rows) > PAGE
        cursor = None
        if has_more:
            content = str(rows[PAGE - 1][0]).encode()
            mac = hmac.digest(self._key, content, "sha256")[:12]
            cursor = urlsafe_b64encode(mac + content).decode()
        return {"data": data, "has_more": has_more, "next_cursor": cursor}

    # --- POST ----------------------------------------------------------------------------------------------------

    def _push(
        self, connection: Any, workspace_id: Any, pushed: dict[str, Any], now: datetime
    ) -> dict[str, Any]:
        source, persona, engines, outlets, variants = self.ask(
            connection, self.defaults_sql, (workspace_id,)
        )[0]
        engines, outlets = self.json_out(engines), self.json_out(outlets)
        title, body = pushed["title"], pushed["body"]
        digest = hashlib.sha256(f"{title}\n{body}".encode()).hexdigest()
        key_in, json_in, at = self.key_in, self.json_in, self.moment_in(now)
        raw, generation, item, event = uuid7(), uuid7(), uuid7(), uuid7()
        raw_key, generation_key = key_in(raw), key_in(generation)
        request_id = f"req_{uuid7().hex}"
        shown_at = self.moment_out(at)
        shown = {
            "id": self.encode("raw", raw_key),
            "status": "queued",
            "reason": None,
            "version": 1,
            "content_version": 1,
            "source": self.encode("src", source),
            "external_id": pushed["external_id"],
            "url": pushed["url"],
            "title": title,
            "language": None,
            "language_guessed": False,
            "author": None,
            "published_at": None,
            "media": [],
            "metadata": {},
            "engines": engines,
            "variants": variants,
            "outcomes": [
                {
                    "engine_output": "Short Post",
                    "variant": 0,
                    "outcome": "pending",
                    "reason": None,
                    "retryable": None,
                    "generated_item": self.encode("gen", key_in(item)),
                }
            ],
            "persona": self.encode("per", persona),
            "near_duplicate": None,
            "withdrawn_at": None,
            "test": False,
            "deleted_at": None,
            "created_at": shown_at,
            "updated_at": shown_at,
        }
        envelope = _dump(
            {
                "id": self.encode("evt", key_in(event)),
                "type": "raw.ingested",
                "timestamp": shown_at,
                "workspace": self.encode("ws", workspace_id),
                "data": {"raw_item": shown},
            }
        )
        no, empty_object, empty_list = self.no, json_in({}), json_in([])
        dedup_key = f"x:{self.hex_out(source)}:{pushed['external_id']}"
        values: Sequence[Sequence[Any]] = (
            (
                raw_key, workspace_id, 0, 0, no, source, dedup_key, pushed["external_id"], pushed["url"], title, "",
                "", empty_list, empty_object, json_in(engines), variants, persona, digest, 1, 1, "queued",
                request_id, at, at,
            ),
            (key_in(uuid7()), workspace_id, raw_key, 1, title, body, "markdown", digest, at),
            (
                generation_key, workspace_id, at, at, 0, 0, no, "short_post", raw_key, 1, persona, variants, "queued",
                "brief", empty_object, 1, request_id, at,
            ),
            (
                key_in(item), workspace_id, no, generation_key, source, raw_key, persona, "text", "Short Post", 1,
                "queued", "", 0, 1, generation_key, 0, "", "", "", "text", empty_object, "", "", json_in(outlets),
                empty_object, no, "", empty_object, empty_list, empty_list, at, at,
            ),
            (key_in(event), workspace_id, no, "raw.ingested", envelope, raw_key, source, request_id, at),
            (1, 1, workspace_id, self.day_in(now)),
            (key_in(uuid7()), workspace_id, "reserve", -1, 1, 0, generation_key, "", at),
        )  # fmt: skip
        self.write(connection, zip(self._inserts, values, strict=True))
        return {**shown, "duplicate": False, "revised": False}

    # --- The database --------------------------------------------------------------------------------------------

    no: ClassVar[Any] = False

    def connection(self) -> Any:
        """One for each thread, kept open."""
        if not hasattr(self._local, "connection"):
            self._local.connection = self.connect()
        return self._local.connection

    def _own(self, sql: str) -> str:
        return sql.replace("%s", self.mark)

    def connect(self) -> Any:
        raise NotImplementedError

    def ask(self, connection: Any, sql: str, values: Sequence[Any]) -> list[Any]:
        found: list[Any] = connection.execute(sql, values).fetchall()
        return found

    def write(self, connection: Any, statements: Iterable[tuple[str, Sequence[Any]]]) -> None:
        raise NotImplementedError

    def encode(self, prefix: str, key: Any) -> str:
        raise NotImplementedError

    hex_out: Callable[[Any], str]
    key_in: Callable[[UUID], Any]
    json_in: Callable[[Any], Any]
    json_out: Callable[[Any], Any]
    moment_in: Callable[[datetime], Any]
    moment_out: Callable[[Any], str | None]
    day_in: Callable[[datetime], Any]


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
        return f"{prefix}_{letters(key.int)}"

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
        # A trigger of the items calls it.
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
        return f"{prefix}_{letters(int(key, 16))}"

    hex_out = staticmethod(lambda key: key)
    key_in = staticmethod(lambda key: key.hex)
    json_in = staticmethod(json.dumps)
    json_out = staticmethod(lambda text: None if text is None else json.loads(text))
    # SQLite keeps moments as text in UTC, without a fraction where there is none.
    moment_in = staticmethod(lambda moment: moment.isoformat(sep=" ")[:-6])
    moment_out = staticmethod(
        lambda text: None if text is None else f"{text[:10]}T{text[11:19]}.{text[20:23] or '000'}Z"
    )
    day_in = staticmethod(lambda moment: moment.strftime("%Y-%m-01"))


def letters(number: int) -> str:
    """A public id without its prefix."""
    pairs = _PAIRS
    return (
        f"{pairs[number >> 120]}{pairs[number >> 110 & 1023]}{pairs[number >> 100 & 1023]}"
        f"{pairs[number >> 90 & 1023]}{pairs[number >> 80 & 1023]}{pairs[number >> 70 & 1023]}"
        f"{pairs[number >> 60 & 1023]}{pairs[number >> 50 & 1023]}{pairs[number >> 40 & 1023]}"
        f"{pairs[number >> 30 & 1023]}{pairs[number >> 20 & 1023]}{pairs[number >> 10 & 1023]}"
        f"{pairs[number & 1023]}"
    )


def _dump(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


# --- How it is run ---------------------------------------------------------------------------------------------------


def make() -> Floor:
    """On the database of the settings."""
    from django.conf import settings  # noqa: PLC0415  the address alone comes from the project

    database: dict[str, Any] = settings.DATABASES["default"]
    common = {"public_url": settings.PUBLIC_URL, "key": settings.SECRET_KEY}
    if not settings.IS_POSTGRES:
        # The same settings of the same engine: only what runs above it is compared.
        return SqliteFloor(database["NAME"], pragmas=database["OPTIONS"]["init_command"], **common)
    names = {"host": "HOST", "port": "PORT", "user": "USER", "password": "PASSWORD", "dbname": "NAME"}
    parts = {name: database[theirs] for name, theirs in names.items() if database[theirs]}
    return PostgresFloor(" ".join(f"{name}={value}" for name, value in parts.items()), **common)


_served: Final[dict[str, Callable[..., Any]]] = {}


def application(environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
    """The project, and the floor beside it."""
    if not _served:
        from config.wsgi import application as project  # noqa: PLC0415

        _served.update(project=project, floor=make())
    name = "floor" if environ["PATH_INFO"].startswith("/floor/") else "project"
    answer: Iterable[bytes] = _served[name](environ, start_response)
    return answer


def push_and_post(token: str, url: str, numbers: Iterable[int]) -> tuple[float, float]:
    """Seconds, and CPU seconds."""
    import requests  # noqa: PLC0415

    floor = make()
    floor.connection()
    began, cpu = time.perf_counter(), time.process_time()
    with requests.Session() as session:
        session.trust_env = False
        for number in numbers:
            pushed = {"external_id": f"floor-{number}", "url": f"https://news.example/{number}"}
            body = _dump(pushed | {"title": "Tram line approved", "body": "The council approved it. " * 20})
            environ = {
                "HTTP_AUTHORIZATION": f"Bearer {token}",
                "REQUEST_METHOD": "POST",
                "CONTENT_LENGTH": str(len(body)),
                "wsgi.input": BytesIO(body),
            }
            [answer] = floor(environ, lambda *_: None)
            session.post(url, data=answer, timeout=30)
    return time.perf_counter() - began, time.process_time() - cpu


if __name__ == "__main__":
    import django

    django.setup()
    _token, _url, _first, _count = sys.argv[1:]
    print(json.dumps(push_and_post(_token, _url, range(int(_first), int(_first) + int(_count)))))
