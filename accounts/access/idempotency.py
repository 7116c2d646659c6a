"""Idempotency-Key: the first answer is kept beside its effect and replayed."""

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

_PRINTABLE: Final = re.compile(r"[\x20-\x7e]+")
_QUOTED: Final = re.compile(r'"((?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\["\\])*)"')
_SEALED: Final = b"sealed:"
"""Before a body that is sealed; no JSON begins so."""
_FORGOTTEN_AT_ONCE: Final = 500
"""Rows of one deletion: on SQLite it holds the only write lock."""


class KeyReused(AppError):
    code = "idempotency_key_reused"

    def __init__(self) -> None:
        message = "This Idempotency-Key was used with another request; make a new key for each new request."
        super().__init__(Detail("Idempotency-Key", self.code, message))


class InProgress(AppError):
    code = "idempotency_in_progress"

    def __init__(self) -> None:
        message = "The first request with this Idempotency-Key is still running; ask again in a second."
        super().__init__(Detail("Idempotency-Key", self.code, message), headers={"Retry-After": "1"})


@dataclass(frozen=True)
class StoredAnswer:
    """An answer as it goes over the wire, so that a replay is byte for byte the first.

    The body of one that `is_secret` is kept sealed.
    """

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    is_secret: bool = False


def request_digest(method: str, path: str, body: bytes) -> bytes:
    """What tells two requests apart; the form of a path with a trailing slash is the same address."""
    head = f"{method.upper()}\0{path.rstrip('/')}\0".encode()
    return hashlib.sha256(head + body).digest()


def read_key(header: str | None) -> str | None:
    """The key of the header, plain or quoted as the draft has it; 400 for everything else."""
    if header is None:
        return None
    text = header.strip(" \t")
    if text.startswith('"'):
        quoted = _QUOTED.fullmatch(text)
        text = re.sub(r"\\(.)", r"\1", quoted[1]) if quoted else ""
    if len(text) > limits.IDEMPOTENCY_KEY_CHARACTERS or not _PRINTABLE.fullmatch(text):
        message = f"Give 1 to {limits.IDEMPOTENCY_KEY_CHARACTERS} printable ASCII characters."
        raise Invalid.one(field="Idempotency-Key", code="invalid", message=message)
    return text


def run_once(
    caller: Caller, key_header: str | None, digest: bytes, effect: Callable[[], StoredAnswer]
) -> tuple[StoredAnswer, bool]:
    """The answer, and whether it is a replay. `digest` is the request's `request_digest`.

    With a key, `effect` runs in one transaction with the row that keeps its answer: there is never an effect without
    its answer, nor an answer without its effect. An effect that raises leaves nothing, so a retry really retries;
    answers other than 2xx are not kept. Without a key there is no transaction of ours.
    """
    key = read_key(key_header)
    if key is None:
        return effect(), False
    with transaction.atomic():
        _refuse_while_in_flight(caller, key)
        now = utc_now()
        same_key = IdempotencyKey.everywhere.filter(workspace=caller.workspace, test=caller.test, key=key)
        kept: IdempotencyKey | None = same_key.first()
        if kept is not None and kept.created_at > now - limits.IDEMPOTENCY_KEPT:
            if bytes(kept.request_digest) != digest:
                raise KeyReused
            return _stored_answer(kept), True
        answer = effect()
        if 200 <= answer.status < 300:
            if kept is not None:
                same_key.delete()
            IdempotencyKey.everywhere.create(
                workspace=caller.workspace,
                test=caller.test,
                key=key,
                request_digest=digest,
                status=answer.status,
                body=_SEALED + seal(answer.body.decode()).encode() if answer.is_secret else answer.body,
                headers=dict(answer.headers),
                created_at=now,
            )
            crash_point("idempotency.stored")
    return answer, False


def has_answer(caller: Caller, key_header: str | None) -> bool:
    """Whether `run_once` would most likely not run the effect: what is dear to prepare for it may be left out."""
    key = read_key(key_header)
    if key is None:
        return False
    fresh = utc_now() - limits.IDEMPOTENCY_KEPT
    same_key = IdempotencyKey.everywhere.filter(workspace=caller.workspace, test=caller.test, key=key)
    return bool(same_key.filter(created_at__gt=fresh).exists())


def _stored_answer(kept: IdempotencyKey) -> StoredAnswer:
    body = bytes(kept.body)
    if not body.startswith(_SEALED):
        return StoredAnswer(kept.status, body, kept.headers)
    opened = unseal(body.removeprefix(_SEALED).decode()).encode()
    return StoredAnswer(kept.status, opened, kept.headers, is_secret=True)


def _refuse_while_in_flight(caller: Caller, key: str) -> None:
    """Raises `InProgress` where another transaction has the key and isn't committed.

    There is no row to lock before the first commit, so on PostgreSQL a number made of the key is locked until the
    transaction ends. On SQLite the one write lock, which every transaction takes at its start, made the second wait.
    """
    if connection.vendor != "postgresql":
        return
    name = f"{caller.workspace.pk}\0{caller.test}\0{key}".encode()
    number = int.from_bytes(hashlib.sha256(name).digest()[:8], signed=True)
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [number])
        if not cursor.fetchone()[0]:
            raise InProgress


def forget_expired(now: datetime) -> int:
    """Delete some of the answers that are past their time; 0 when none are left."""
    expired = IdempotencyKey.everywhere.filter(created_at__lte=now - limits.IDEMPOTENCY_KEPT)
    some = list(expired.order_by("created_at").values_list("pk", flat=True)[:_FORGOTTEN_AT_ONCE])
    if some:
        IdempotencyKey.everywhere.filter(pk__in=some).delete()
    return len(some)
