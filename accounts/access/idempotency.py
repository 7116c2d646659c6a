"""Replays the first answer to an `Idempotency-Key`, which is stored in the transaction of its effect."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from django.db import connection, transaction

from accounts import limits
from accounts.models import IdempotencyKey
from config.core.clock import utc_now
from config.core.crash_points import crash_point
from config.core.encrypted_fields import seal, unseal
from config.core.errors import AppError, Detail, Invalid

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

    from accounts.access.authentication import Caller

_PRINTABLE_ASCII: Final = re.compile(r"[\x20-\x7e]+")
_QUOTED_KEY: Final = re.compile(r'"((?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\["\\])*)"')
"""A quoted string of printable ASCII with escaped quotes and backslashes, such as `"order \\"7\\""`."""
_SEALED_PREFIX: Final = b"sealed:"
"""Stands before a body that is stored encrypted; no JSON begins so."""
_DELETED_AT_ONCE: Final = 500
"""Rows of one deletion, few because it holds the only write lock on SQLite."""


class KeyReused(AppError):
    """Raised if the key was used with another request before."""

    code = "idempotency_key_reused"

    def __init__(self) -> None:
        message = "This Idempotency-Key was used with another request; make a new key for each new request."
        super().__init__(Detail("Idempotency-Key", self.code, message))


class InProgress(AppError):
    """Raised while the first request with the key is still running."""

    code = "idempotency_in_progress"

    def __init__(self) -> None:
        message = "The first request with this Idempotency-Key is still running; ask again in a second."
        super().__init__(Detail("Idempotency-Key", self.code, message), headers={"Retry-After": "1"})


@dataclass(frozen=True)
class StoredAnswer:
    """An answer as it goes over the wire, so that a replay is byte for byte the first.

    `is_secret` says that the body contains a secret, so it is stored encrypted.
    """

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    is_secret: bool = False


def request_digest(method: str, path: str, body: bytes) -> bytes:
    """Return a hash that tells two requests apart; a trailing slash of the path makes no difference."""
    head = f"{method.upper()}\0{path.rstrip('/')}\0".encode()
    return hashlib.sha256(head + body).digest()


def read_key(header: str | None) -> str | None:
    """Return the key of the header, plain or quoted as the IETF draft has it, or `None` without a header.

    Raises `Invalid` for a key that is empty, too long, badly quoted or not printable ASCII.
    """
    if header is None:
        return None
    text = header.strip(" \t")
    if text.startswith('"'):
        quoted = _QUOTED_KEY.fullmatch(text)
        text = re.sub(r"\\(.)", r"\1", quoted[1]) if quoted else ""
    if len(text) > limits.IDEMPOTENCY_KEY_CHARACTERS or not _PRINTABLE_ASCII.fullmatch(text):
        message = f"Give 1 to {limits.IDEMPOTENCY_KEY_CHARACTERS} printable ASCII characters."
        raise Invalid.one(field="Idempotency-Key", code="invalid", message=message)
    return text


def run_once(
    caller: Caller, key_header: str | None, digest: bytes, effect: Callable[[], StoredAnswer]
) -> tuple[StoredAnswer, bool]:
    """Run the effect once per key; return its answer and whether that is a replay.

    `digest` comes from `request_digest`. Raises `Invalid` for a malformed key, `KeyReused` if the key came with
    another request, `InProgress` while its first request runs.

    With a key, `effect` runs in one transaction with the row that keeps its answer: there is never an effect
    without its answer, nor an answer without its effect. An effect that raises leaves nothing, so a retry
    really retries; answers other than 2xx are not kept. Without a key there is no transaction of ours.
    """
    key = read_key(key_header)
    if key is None:
        return effect(), False
    with transaction.atomic():
        _refuse_while_in_flight(caller, key)
        now = utc_now()
        rows = IdempotencyKey.everywhere.filter(workspace=caller.workspace, test=caller.test, key=key)
        stored: IdempotencyKey | None = rows.first()
        if stored is not None and stored.created_at > now - limits.IDEMPOTENCY_KEPT:
            if bytes(stored.request_digest) != digest:
                raise KeyReused
            return _stored_answer(stored), True
        answer = effect()
        if 200 <= answer.status < 300:
            if stored is not None:
                rows.delete()
            body = answer.body
            if answer.is_secret:
                body = _SEALED_PREFIX + seal(body.decode()).encode()
            IdempotencyKey.everywhere.create(
                workspace=caller.workspace,
                test=caller.test,
                key=key,
                request_digest=digest,
                status=answer.status,
                body=body,
                headers=dict(answer.headers),
                created_at=now,
            )
            crash_point("idempotency.stored")
    return answer, False


def has_answer(caller: Caller, key_header: str | None) -> bool:
    """Return whether a replay is likely, to skip costly work. Raises `Invalid` for a malformed key."""
    key = read_key(key_header)
    if key is None:
        return False
    oldest = utc_now() - limits.IDEMPOTENCY_KEPT
    rows = IdempotencyKey.everywhere.filter(workspace=caller.workspace, test=caller.test, key=key)
    return bool(rows.filter(created_at__gt=oldest).exists())


def _stored_answer(row: IdempotencyKey) -> StoredAnswer:
    """Return the answer of a row, decrypted if it was stored encrypted."""
    body = bytes(row.body)
    if not body.startswith(_SEALED_PREFIX):
        return StoredAnswer(row.status, body, row.headers)
    unsealed = unseal(body.removeprefix(_SEALED_PREFIX).decode()).encode()
    return StoredAnswer(row.status, unsealed, row.headers, is_secret=True)


def _refuse_while_in_flight(caller: Caller, key: str) -> None:
    """Raise `InProgress` if another transaction holds the key and hasn't ended.

    There is no row to lock before the first commit, so on PostgreSQL an advisory lock is held on a hash of
    the key until the transaction ends. On SQLite the one write lock, which every transaction takes at its
    start, makes the second wait.
    """
    if connection.vendor != "postgresql":
        return
    identity = f"{caller.workspace.pk}\0{caller.test}\0{key}".encode()
    lock_id = int.from_bytes(hashlib.sha256(identity).digest()[:8], signed=True)
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [lock_id])
        if not cursor.fetchone()[0]:
            raise InProgress


def delete_expired(now: datetime) -> int:
    """Delete up to `_DELETED_AT_ONCE` expired answers, oldest first, and return how many."""
    expired = IdempotencyKey.everywhere.filter(created_at__lte=now - limits.IDEMPOTENCY_KEPT)
    ids = list(expired.order_by("created_at").values_list("pk", flat=True)[:_DELETED_AT_ONCE])
    if ids:
        IdempotencyKey.everywhere.filter(pk__in=ids).delete()
    return len(ids)
