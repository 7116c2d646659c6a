"""Keeps the secrets that senders prove themselves by.

They are stored encrypted, apart from the source, shown once, and kept in two generations: the current one and
the one before.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from django.db import transaction

from accounts import audit, limits
from config.core import states
from config.core.clock import utc_now
from config.core.errors import Conflict, Detail, Invalid
from config.core.ids import encode
from pipeline.ingest import collect
from pipeline.models import InboundSecret, Source
from pipeline.sources.webhook.signatures import (
    DEFAULT_HEADER,
    GIVEN_BY_THE_SENDER,
    find_secret_problem,
    make_secret,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from accounts.models import Workspace

_SECRET_FIELD: Final = "config.verification.secret"


@dataclass(frozen=True)
class Registered:
    """A saved source. `secret` is set only if we made one, which is shown now and never again."""

    source: Source
    secret: str | None = None


def register(
    workspace: Workspace,
    settings: collect.SourceSettings,
    *,
    test: bool = False,
    now: datetime | None = None,
) -> Registered:
    """Register a source by `collect.register`, and store a webhook source's secret.

    The secret is the one in the settings, or one that we make unless only the sender can. Raises `Invalid` if
    the secret is no valid one, and the errors of `collect.register`.
    """
    now = now or utc_now()
    with transaction.atomic():
        source = collect.register(workspace, settings, test=test, now=now)
        return Registered(source, _match_secret(source, _given_secret(settings.config), now=now))


def change(
    source: Source,
    changes: Mapping[str, Any],
    *,
    workspace: Workspace,
    now: datetime,
    expected_version: int | None = None,
) -> Registered:
    """Change a source by `collect.change`, and its secret with its settings.

    Another secret for the same verification leaves the old one valid for a day; another verification ends it
    at once. Raises `Invalid` if the secret is no valid one, and the errors of `collect.change`.
    """
    with transaction.atomic():
        row = collect.change(source, changes, workspace=workspace, now=now, expected_version=expected_version)
        if "config" not in changes:
            return Registered(row)
        return Registered(row, _match_secret(row, _given_secret(changes["config"]), now=now))


def rotate(
    source: Source,
    *,
    secret: str | None = None,
    overlap: timedelta = limits.TOKEN_OVERLAP_DEFAULT,
    actor: str,
    now: datetime | None = None,
    expected_version: int | None = None,
) -> str | None:
    """Store a new secret, and return it if we made it, else `None`. The old one stays valid for `overlap`.

    Raises `Conflict` if the source's verification takes no secret, `Invalid` if `overlap` is out of bounds, the
    secret is no valid one, or it is missing and only the sender can make it, and `states.Overtaken` if the source
    isn't the expected version.
    """
    now = now or utc_now()
    with transaction.atomic():
        # Two rotations at once must not both keep the same old secret and lose one of the new ones.
        locked = Source.everywhere.select_for_update(no_key=True).get(pk=source.pk)
        states.refuse_other_version(locked.version, expected_version)
        kind = kind_of(locked)
        if locked.type != "webhook" or kind == "address" or locked.deleted_at is not None:
            message = "This source takes no secret; set config.verification first."
            raise Conflict.because("no_secret", message, field="config.verification")
        if not timedelta(0) <= overlap <= limits.TOKEN_OVERLAP_MOST:
            message = f"Choose an overlap from 0 to {limits.TOKEN_OVERLAP_MOST.days} days."
            raise Invalid.one("overlap", "out_of_range", message)
        if secret is None and kind in GIVEN_BY_THE_SENDER:
            message = f"{kind.title()} makes this secret; copy it from there and give it here."
            raise Invalid.one("secret", "required", message)
        made_secret = None if secret is not None else make_secret(kind)
        _store_secret(locked, kind, secret or made_secret or "", overlap=overlap, path="secret", now=now)
        audit.note(
            "source.secret_rotated",
            workspace=locked.workspace,
            actor=actor,
            subject=encode("src", locked.pk),
            details={"overlap_seconds": int(overlap.total_seconds())},
        )
    return made_secret


def kind_of(source: Source) -> str:
    """Return the kind of verification of the source's senders, which is "address" if there is none."""
    return str(source.config.get("verification", {}).get("type", "address"))


def header_of(source: Source) -> str:
    """Return the name of the header that carries the secret."""
    return str(source.config.get("verification", {}).get("header") or DEFAULT_HEADER)


def load_valid_secrets(source: Source, *, now: datetime) -> list[str]:
    """Return the secrets that are valid now: the current one, and the previous one while they overlap.

    There are none if the stored ones belong to another kind of verification. They are decrypted at each call.
    """
    stored: InboundSecret | None = InboundSecret.objects.of(source.workspace_id).filter(source=source).first()
    if stored is None or stored.kind != kind_of(source):
        return []
    valid = [stored.secret.open()]
    if stored.previous is not None and stored.previous_until is not None and now < stored.previous_until:
        valid.append(stored.previous.open())
    return valid


def _given_secret(config: Mapping[str, Any]) -> str | None:
    """Return the secret as it was given, before cleaning removes it from the settings."""
    verification = config.get("verification")
    secret = verification.get("secret") if isinstance(verification, dict) else None
    return secret.strip() if isinstance(secret, str) else None


def _match_secret(source: Source, secret: str | None, *, now: datetime) -> str | None:
    """Store, make or delete a webhook source's secret to match its verification.

    Return a secret that we made, else `None`. Raises `Invalid` if `secret` is no valid one.
    """
    if source.type != "webhook":
        return None
    kind = kind_of(source)
    stored = InboundSecret.everywhere.filter(source=source)
    if kind == "address":
        stored.delete()
        return None
    if secret is not None:
        _store_secret(source, kind, secret, overlap=limits.TOKEN_OVERLAP_DEFAULT, path=_SECRET_FIELD, now=now)
        return None
    if stored.filter(kind=kind).exists():
        return None
    if kind in GIVEN_BY_THE_SENDER:
        # The sender issues its secret once it knows the address; until then every delivery is refused.
        stored.delete()
        return None
    made_secret = make_secret(kind)
    _store_secret(source, kind, made_secret, overlap=timedelta(0), path=_SECRET_FIELD, now=now)
    return made_secret


def _store_secret(
    source: Source, kind: str, secret: str, *, overlap: timedelta, path: str, now: datetime
) -> None:
    """Store a secret, and the old one of the same kind as the previous one if `overlap` isn't zero.

    Raises `Invalid` if the secret is no valid one of its kind.
    """
    problem = find_secret_problem(kind, secret, path)
    if problem is not None:
        raise Invalid(Detail(problem.field, problem.code, problem.message))
    stored: InboundSecret | None = InboundSecret.everywhere.select_for_update().filter(source=source).first()
    if stored is None:
        InboundSecret.everywhere.create(
            workspace_id=source.workspace_id, source=source, kind=kind, secret=secret, created_at=now
        )
        return
    if stored.kind == kind and stored.secret.open() == secret:
        return
    has_previous = stored.kind == kind and bool(overlap)
    InboundSecret.everywhere.filter(pk=stored.pk).update(
        kind=kind,
        secret=secret,
        previous=stored.secret if has_previous else None,
        previous_until=now + overlap if has_previous else None,
    )
