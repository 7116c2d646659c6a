"""Answers as the project answers. The views are frozen, except for fields that the answers gain."""

from __future__ import annotations

import hashlib
import hmac
import json
import threading
from base64 import urlsafe_b64encode
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, ClassVar, Final

from uuid_utils.compat import uuid7

from benchmarks.floors.sql import (
    ASSETS,
    BALANCE,
    DEFAULTS,
    EVENT,
    GENERATED_ITEM,
    GENERATION,
    LEDGER,
    LIST,
    PUBLICATIONS,
    RAW_BODY,
    RAW_ITEM,
    TOKEN,
    ListedItem,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from uuid import UUID

    Environ = dict[str, Any]
    StartResponse = Callable[..., Any]

PAGE_SIZE: Final = 25


class Floor:
    """Serves the floor by WSGI; `public_url` and `key` are those with which the project makes its answers."""

    # The mark of a parameter in a statement of this database.
    mark: ClassVar[str] = "%s"

    def __init__(self, *, public_url: str, key: str) -> None:
        self._public_url = public_url
        self._key = key.encode()
        self._local = threading.local()
        marks = ", ".join([self.mark] * PAGE_SIZE)
        self.token_sql, self.list_sql, self.defaults_sql = map(self._for_database, (TOKEN, LIST, DEFAULTS))
        self.publications_sql = PUBLICATIONS.format(marks=marks)
        self.assets_sql = ASSETS.format(marks=marks)
        self._inserts = tuple(
            map(self._for_database, (RAW_ITEM, RAW_BODY, GENERATION, GENERATED_ITEM, EVENT, BALANCE, LEDGER))
        )

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        status, body = self._answer(environ)
        start_response(status, [("Content-Type", "application/json"), ("Content-Length", str(len(body)))])
        return [body]

    def _answer(self, environ: Environ) -> tuple[str, bytes]:
        """Authenticate the request, and return the status and the body of its answer."""
        connection = self.connection()
        digest = hashlib.sha256(environ["HTTP_AUTHORIZATION"][7:].encode()).digest()
        now = datetime.now(UTC)
        token_rows = self.ask(connection, self.token_sql, (digest, self.moment_in(now)))
        if not token_rows or token_rows[0][3] is None:
            return "401 Unauthorized", b'{"error":"unauthenticated"}'
        workspace_id, scopes, is_test, _, requires_approval = token_rows[0]
        required_scope = "raw:write" if environ["REQUEST_METHOD"] == "POST" else "generated:read"
        if is_test or required_scope not in self.json_out(scopes):
            return "403 Forbidden", b'{"error":"insufficient_scope"}'
        if environ["REQUEST_METHOD"] == "POST":
            content = json.loads(environ["wsgi.input"].read(int(environ["CONTENT_LENGTH"])))
            return "202 Accepted", dump(self._push(connection, workspace_id, content, now))
        return "200 OK", dump(self._list(connection, workspace_id, requires_approval=bool(requires_approval)))

    # --- GET -----------------------------------------------------------------------------------------------------

    def read_rows(self, connection: Any, workspace_id: Any) -> tuple[list[Any], list[Any], list[Any]]:
        """Return the rows of the list from the database: the items, their publications and their files."""
        rows = self.ask(connection, self.list_sql, (workspace_id,))
        keys = [row[0] for row in rows[:PAGE_SIZE]]
        return (
            rows,
            self.ask(connection, self.publications_sql, keys),
            self.ask(connection, self.assets_sql, keys),
        )

    def _list(self, connection: Any, workspace_id: Any, *, requires_approval: bool) -> dict[str, Any]:
        """Return the first page of items, with the signed cursor of the next."""
        rows, publications, assets = self.read_rows(connection, workspace_id)
        encode, format_time, load_json, to_bool = self.encode, self.moment_out, self.json_out, bool
        publications_by_item: dict[Any, list[Any]] = {}
        for (
            item, key, version, revision, outlet, platform, status, external_id, url, attempts, error, due_at,
            local_time, zone, late_policy, max_lateness, next_at, published_at, test, created_at, updated_at,
        ) in publications:  # fmt: skip
            publications_by_item.setdefault(item, []).append(
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
                    "error": load_json(error),
                    "due_at": format_time(due_at),
                    "scheduled_for": {"local_time": local_time, "timezone": zone} if local_time else None,
                    "late_policy": late_policy,
                    "max_lateness_minutes": max_lateness,
                    "overdue_seconds": 0,
                    "waits_for": None,
                    "next_attempt_at": format_time(next_at),
                    "published_at": format_time(published_at),
                    "test": to_bool(test),
                    "created_at": format_time(created_at),
                    "updated_at": format_time(updated_at),
                }
            )
        files_by_item: dict[Any, list[Any]] = {}
        for (
            item, key, role, position, kind, name, secret, mime_type, size, width, height, duration, alt_text,
        ) in assets:  # fmt: skip
            files_by_item.setdefault(item, []).append(
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
        for item in map(ListedItem._make, rows[:PAGE_SIZE]):
            raw = encode("raw", item.raw_item_id) if item.raw_item_id else None
            data.append(
                {
                    "id": encode("gen", item.id),
                    "bucket": item.bucket,
                    "engine_output": item.engine_output,
                    "status": item.status,
                    "revision": item.revision,
                    "version": item.version,
                    "variant": {
                        "group": self.hex_out(item.variant_group),
                        "index": item.variant_index,
                        "angle": item.angle or None,
                    },
                    "title": item.title,
                    "body": item.body,
                    "body_format": item.body_format,
                    "excerpt": item.excerpt,
                    "language": item.language or None,
                    "assets": files_by_item.get(item.id, []),
                    "source": encode("src", item.source_id) if item.source_id else None,
                    "raw_item": raw,
                    "raw_items": [raw] if raw else [],
                    "topic": encode("top", item.topic_id) if item.topic_id else None,
                    "persona": encode("per", item.persona_id) if item.persona_id else None,
                    "outlets": load_json(item.outlets),
                    "overrides": load_json(item.overrides),
                    "approval": {
                        "required": requires_approval,
                        "by": item.approved_by or None,
                        "at": format_time(item.approved_at),
                        "revision": item.approved_revision,
                    },
                    "rejection": load_json(item.rejection),
                    "publications": publications_by_item.get(item.id, []),
                    "publish_at": format_time(item.publish_at),
                    "overdue_seconds": 0,
                    "held": item.held or None,
                    "flagged": item.flagged or None,
                    "generator": load_json(item.generator) or None,
                    "checks_revision": (
                        item.checks_revision if item.checks_revision == item.revision else None
                    ),
                    "error": load_json(item.error),
                    "progress": None,
                    "test": to_bool(item.test),
                    "created_at": format_time(item.created_at),
                    "ready_at": format_time(item.ready_at),
                    "published_at": format_time(item.published_at),
                    "updated_at": format_time(item.updated_at),
                }
            )
        has_more = len(rows) > PAGE_SIZE
        cursor = None
        if has_more:
            content = str(rows[PAGE_SIZE - 1][0]).encode()
            mac = hmac.digest(self._key, content, "sha256")[:12]
            cursor = urlsafe_b64encode(mac + content).decode()
        return {"data": data, "has_more": has_more, "next_cursor": cursor}

    # --- POST ----------------------------------------------------------------------------------------------------

    def _push(
        self, connection: Any, workspace_id: Any, content: dict[str, Any], now: datetime
    ) -> dict[str, Any]:
        """Write the rows of a push in one transaction, and return the raw item."""
        source, persona, engines, outlets, variants = self.ask(
            connection, self.defaults_sql, (workspace_id,)
        )[0]
        engines, outlets = self.json_out(engines), self.json_out(outlets)
        title, body = content["title"], content["body"]
        digest = hashlib.sha256(f"{title}\n{body}".encode()).hexdigest()
        key_in, json_in, at = self.key_in, self.json_in, self.moment_in(now)
        raw, generation, item, event = uuid7(), uuid7(), uuid7(), uuid7()
        raw_key, generation_key = key_in(raw), key_in(generation)
        request_id = f"req_{uuid7().hex}"
        created_at = self.moment_out(at)
        raw_item = {
            "id": self.encode("raw", raw_key),
            "status": "queued",
            "reason": None,
            "version": 1,
            "content_version": 1,
            "source": self.encode("src", source),
            "external_id": content["external_id"],
            "url": content["url"],
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
            "created_at": created_at,
            "updated_at": created_at,
        }
        envelope = dump(
            {
                "id": self.encode("evt", key_in(event)),
                "type": "raw.ingested",
                "timestamp": created_at,
                "workspace": self.encode("ws", workspace_id),
                "data": {"raw_item": raw_item},
            }
        )
        no, empty_object, empty_list = self.no, json_in({}), json_in([])
        dedup_key = f"x:{self.hex_out(source)}:{content['external_id']}"
        values: Sequence[Sequence[Any]] = (
            (
                raw_key, workspace_id, 0, 0, no, source, dedup_key, content["external_id"], content["url"], title, "",
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
        return {**raw_item, "duplicate": False, "revised": False}

    # --- The database --------------------------------------------------------------------------------------------

    # The database's false, and below how it takes (`_in`) and returns (`_out`) the other values.
    no: ClassVar[Any] = False

    def connection(self) -> Any:
        """Return the thread's connection, which is kept open."""
        if not hasattr(self._local, "connection"):
            self._local.connection = self.connect()
        return self._local.connection

    def _for_database(self, sql: str) -> str:
        return sql.replace("%s", self.mark)

    def connect(self) -> Any:
        raise NotImplementedError

    def ask(self, connection: Any, sql: str, values: Sequence[Any]) -> list[Any]:
        rows: list[Any] = connection.execute(sql, values).fetchall()
        return rows

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


def dump(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
