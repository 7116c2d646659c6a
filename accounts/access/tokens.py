"""Issues, finds, rotates and revokes API tokens, stored as hashes; pages call them API keys."""

from __future__ import annotations

import hashlib
import re
import secrets
import string
import zlib
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from django.db import transaction
from django.db.models import Q

from accounts import audit, limits
from accounts.models import ApiToken, AuditEntry
from config.core import limits as core_limits
from config.core.clock import utc_now
from config.core.database.prepared_queries import Prepared
from config.core.errors import Conflict, Invalid
from config.core.ids import decode, encode

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from accounts.models import User, Workspace

SCOPES: Final = (
    "sources:read",
    "sources:write",
    "raw:read",
    "raw:write",
    "raw:delete",
    "generated:read",
    "generated:write",
    "generated:approve",
    "generated:publish",
    "analytics:read",
)
PRESETS: Final[Mapping[str, tuple[str, ...]]] = {
    "full": SCOPES,
    "read-only": tuple(scope for scope in SCOPES if scope.endswith(":read")),
    "push-only": ("raw:write",),
}

PATTERN: Final = r"cpk_(?:live|test)_[0-9A-Za-z]{36}"
"""A regular expression for secret scanners; the last six characters are a checksum of the others."""
_PATTERN_RE: Final = re.compile(PATTERN)
_BASE_62: Final = string.digits + string.ascii_uppercase + string.ascii_lowercase
_RANDOM_CHARACTERS: Final = 30
_CHECKSUM_CHARACTERS: Final = 6
_SHOWN_PREFIX_LENGTH: Final = len("cpk_live_") + 4


@dataclass(frozen=True)
class IssuedToken:
    """A new token with its secret text, which is shown once and stored nowhere."""

    token: ApiToken
    secret: str


def issue(
    workspace: Workspace,
    *,
    name: str,
    scopes: Iterable[str] = SCOPES,
    is_test: bool = False,
    expires_at: datetime | None = None,
    created_by: User | None = None,
    actor: str | None = None,
) -> IssuedToken:
    """Create a token.

    The audit log names `actor`, or else the address of `created_by`, or else `system`. Raises `Invalid` for
    unknown or missing scopes and for an `expires_at` in the past.
    """
    valid_scopes = _validated_scopes(scopes)
    if expires_at is not None and expires_at <= utc_now():
        raise Invalid.one(
            field="expires_at", code="in_the_past", message="Give a time in the future, or none."
        )
    with transaction.atomic():
        issued = _insert_token(
            workspace,
            name=name,
            scopes=valid_scopes,
            is_test=is_test,
            expires_at=expires_at,
            created_by=created_by,
        )
        audit.note(
            "token.issued",
            workspace=workspace,
            actor=actor or (created_by.email if created_by else "system"),
            subject=public_id(issued.token),
            details={"name": issued.token.name, "scopes": valid_scopes, "test": is_test},
        )
    return issued


def _validated_scopes(scopes: Iterable[str]) -> list[str]:
    """Return the scopes in the order of `SCOPES`, each once. Raises `Invalid` for unknown ones or none."""
    requested = set(scopes)
    unknown = sorted(requested - set(SCOPES))
    if unknown:
        message = f"There is no scope {', '.join(unknown)}; known are: {', '.join(SCOPES)}."
        raise Invalid.one(field="scopes", code="unknown_scope", message=message)
    if not requested:
        raise Invalid.one(field="scopes", code="required", message="Choose at least one scope.")
    return [scope for scope in SCOPES if scope in requested]


def _insert_token(
    workspace: Workspace,
    *,
    name: str,
    scopes: list[str],
    is_test: bool,
    expires_at: datetime | None,
    created_by: User | None,
    rotated_from: ApiToken | None = None,
) -> IssuedToken:
    """Store a token with a new secret; only its hash, beginning and last four characters are kept."""
    secret = _new_secret(is_test=is_test)
    token: ApiToken = ApiToken.everywhere.create(
        workspace=workspace,
        name=name.strip()[: core_limits.NAME_CHARACTERS],
        digest=digest(secret),
        prefix=secret[:_SHOWN_PREFIX_LENGTH],
        last_four=secret[-4:],
        scopes=scopes,
        is_test=is_test,
        expires_at=expires_at,
        created_by=created_by,
        rotated_from=rotated_from,
    )
    return IssuedToken(token, secret)


def _new_secret(*, is_test: bool) -> str:
    characters = "".join(secrets.choice(_BASE_62) for _ in range(_RANDOM_CHARACTERS))
    head = f"cpk_{'test' if is_test else 'live'}_{characters}"
    return head + _checksum(head)


def _checksum(head: str) -> str:
    """Return the CRC-32 of the text in base 62, filled up with zeros to six characters."""
    number = zlib.crc32(head.encode())
    digits = ""
    for _ in range(_CHECKSUM_CHARACTERS):
        number, digit = divmod(number, len(_BASE_62))
        digits = _BASE_62[digit] + digits
    return digits


def is_well_formed(text: str) -> bool:
    """Return whether the text has a token's form and checksum, so that a mistyped one costs no query."""
    return _PATTERN_RE.fullmatch(text) is not None and text[-_CHECKSUM_CHARACTERS:] == _checksum(
        text[:-_CHECKSUM_CHARACTERS]
    )


def digest(text: str) -> bytes:
    """Return the hash by which a token is stored and found."""
    return hashlib.sha256(text.encode()).digest()


# Compiled once, because every API request runs it.
_LIVE_TOKEN_QUERY: Final[Prepared[ApiToken]] = Prepared(
    lambda digest, now: (
        ApiToken.everywhere.select_related("workspace__plan")
        .filter(digest=digest, revoked_at=None, workspace__deleted_at=None)
        .filter(Q(expires_at=None) | Q(expires_at__gt=now))[:1]
    )
)


def find_token(text: str, now: datetime) -> ApiToken | None:
    """Return the live token with this text, or `None` if there is none or its workspace was deleted.

    A token is live if it is neither revoked nor expired at `now`. It is read with its workspace and plan in one
    query, and without a query if the text isn't well formed.
    """
    if not is_well_formed(text):
        return None
    matches = _LIVE_TOKEN_QUERY.ask(digest=digest(text), now=now)
    return matches[0] if matches else None


def record_use(token: ApiToken, *, address: str | None, now: datetime) -> None:
    """Store when and from where the token was last used, at most once per `limits.TOKEN_USE_NOTED_EVERY`."""
    stale = now - limits.TOKEN_USE_NOTED_EVERY
    if token.last_used_at is not None and token.last_used_at > stale:
        return
    # Of many requests that read the same old row, one writes.
    ApiToken.everywhere.filter(Q(last_used_at=None) | Q(last_used_at__lte=stale), pk=token.pk).update(
        last_used_at=now, last_used_from=address
    )


def rotate(token: ApiToken, *, overlap: timedelta = limits.TOKEN_OVERLAP_DEFAULT, by: User) -> IssuedToken:
    """Create a successor with the same rights; the old token keeps working for `overlap`.

    The old token never works longer than it would have without the rotation. Raises `Invalid` for an overlap
    out of range, `Conflict` if the token has a live successor or no longer works.
    """
    if not timedelta(0) <= overlap <= limits.TOKEN_OVERLAP_MOST:
        max_days = limits.TOKEN_OVERLAP_MOST.days
        raise Invalid.one(
            field="overlap", code="out_of_range", message=f"The overlap may be 0 to {max_days} days."
        )
    with transaction.atomic():
        # Two rotations of one token at once would leave two successors, one of which nobody knows. The clock is
        # read under the lock: the first rotation may have ended the token after the second was asked for.
        current: ApiToken = (
            ApiToken.everywhere.select_for_update(of=("self",)).select_related("workspace").get(pk=token.pk)
        )
        now = utc_now()
        if ApiToken.everywhere.filter(rotated_from=current, revoked_at=None).exists():
            message = "This key already has a replacement. Rotate that one, or revoke it first."
            raise Conflict.because(code="token_rotated", message=message, field=None)
        if current.revoked_at is not None or (current.expires_at is not None and current.expires_at <= now):
            raise Conflict.because(
                code="token_not_live", message="This key no longer works. Make a new one.", field=None
            )
        issued = _insert_token(
            current.workspace,
            name=current.name,
            scopes=current.scopes,
            is_test=current.is_test,
            expires_at=current.expires_at,
            created_by=by,
            rotated_from=current,
        )
        end = now + overlap
        token.expires_at = end if current.expires_at is None else min(end, current.expires_at)
        token.save(update_fields=["expires_at"])
        audit.note(
            "token.rotated",
            workspace=current.workspace,
            actor=by.email,
            subject=public_id(token),
            details={"successor": public_id(issued.token), "overlap_seconds": int(overlap.total_seconds())},
        )
    return issued


def revoke(token: ApiToken, by: User) -> None:
    """Revoke the token from the next request on; revoking it again changes nothing."""
    now = utc_now()
    with transaction.atomic():
        if ApiToken.everywhere.filter(pk=token.pk, revoked_at=None).update(revoked_at=now):
            token.revoked_at = now
            audit.note("token.revoked", workspace=token.workspace, actor=by.email, subject=public_id(token))


def unrevoke(token: ApiToken, by: User) -> None:
    """Undo the user's own revocation within `limits.TOKEN_UNDO`; nothing changes for a token that isn't revoked.

    Raises `Conflict` if it is too late, if somebody else revoked the token, or if its predecessor has another
    live successor by now.
    """
    subject = public_id(token)
    with transaction.atomic():
        # Lock the token and its predecessor, by rising id: a rotation of the predecessor, which would give it a
        # second successor, waits for the same row.
        family = {token.pk, token.rotated_from_id} - {None}
        rows = ApiToken.everywhere.select_for_update(of=("self",)).filter(pk__in=family).order_by("pk")
        current: ApiToken = {row.pk: row for row in rows}[token.pk]
        if current.revoked_at is None:
            return
        # The user's entry must not be older than this revocation: somebody who revoked and undid before may
        # not undo what the operator did since.
        own_revocations = AuditEntry.objects.of(current.workspace_id).filter(
            action="token.revoked", subject=subject, actor=by.email, created_at__gte=current.revoked_at
        )
        if current.revoked_at <= utc_now() - limits.TOKEN_UNDO or not own_revocations.exists():
            message = "This can't be undone any more. Make a new key."
            raise Conflict.because(code="undo_over", message=message, field=None)
        successors = ApiToken.everywhere.filter(rotated_from=current.rotated_from_id, revoked_at=None)
        if current.rotated_from_id is not None and successors.exists():
            message = "The key that this one replaced has a newer replacement. Use that one."
            raise Conflict.because(code="token_rotated", message=message, field=None)
        ApiToken.everywhere.filter(pk=current.pk).update(revoked_at=None)
        token.revoked_at = None
        audit.note("token.unrevoked", workspace=token.workspace, actor=by.email, subject=subject)


def revoke_all(workspace: Workspace, by: User) -> int:
    """Revoke the workspace's tokens, also expired ones; return how many weren't revoked before."""
    with transaction.atomic():
        revoked = ApiToken.objects.of(workspace).filter(revoked_at=None).update(revoked_at=utc_now())
        if revoked:
            audit.note(
                "token.all_revoked",
                workspace=workspace,
                actor=by.email,
                subject=workspace.public_id,
                details={"tokens": revoked},
            )
    return revoked


def public_id(token: ApiToken) -> str:
    """Return the token's `tok_…` id."""
    return encode("tok", token.pk)


def actor_name(actor: str) -> str:
    """Return an actor's name for people: the name of an API key, or else `actor` as it is.

    `actor` is a token's public id, a user's email address or a command, as in the audit log.
    """
    token_id = decode("tok", actor)
    name = (
        ApiToken.everywhere.filter(pk=token_id).values_list("name", flat=True).first() if token_id else None
    )
    return f"API key “{name}”" if name else actor
