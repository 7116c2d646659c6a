"""The secrets that senders prove themselves by: kept apart from the source, sealed, shown once, in two generations."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from django.db import transaction

from accounts import audit, limits
from config.core.clock import utc_now
from config.core.errors import Conflict, Detail, Invalid
from config.core.ids import encode
from pipeline.ingest import collect
from pipeline.models import InboundSecret, Source
from pipeline.sources.webhook.signatures import DEFAULT_HEADER, GIVEN_BY_THE_SENDER, make_secret, problem_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from accounts.models import Workspace

_PATH: Final = "config.verification.secret"


@dataclass(frozen=True)
class Registered:
    """`secret` is there only where we made one: it is shown now and never again."""

    source: Source
    secret: str | None = None


def register(
    workspace: Workspace,
    given: collect.SourceSettings,
    *,
    test: bool = False,
    now: datetime | None = None,
) -> Registered:
    """`collect.register`, and the secret of a webhook source's verification: the one given, or one that we make."""
    now = now or utc_now()
    with transaction.atomic():
        source = collect.register(workspace, given, test=test, now=now)
        return Registered(source, _settle(source, _secret_in(given.config), now=now))


def change(
    source: Source,
    changes: Mapping[str, Any],
    *,
    workspace: Workspace,
    now: datetime,
    expected_version: int | None = None,
) -> Registered:
    """`collect.change`, and the secret with it.

    Another secret for the same verification leaves the old one valid for a day; another verification ends it at once.
    """
    with transaction.atomic():
        row = collect.change(source, changes, workspace=workspace, now=now, expected_version=expected_version)
        if "config" not in changes:
            return Registered(row)
        return Registered(row, _settle(row, _secret_in(changes["config"]), now=now))


def rotate(
    source: Source,
    *,
    secret: str | None = None,
    overlap: timedelta = limits.TOKEN_OVERLAP_DEFAULT,
    actor: str,
    now: datetime | None = None,
) -> str | None:
    """A new secret; for `overlap` (0 to 7 days) the old one counts beside it. Returns it where we made it.

    Raises `Invalid` for a secret that can't be one, or that the sender has to give and nobody gave; `Conflict` for a
    source without a verification that takes one.
    """
    now = now or utc_now()
    with transaction.atomic():
        # Two rotations at once must not both keep the same old secret and lose one of the new ones.
        locked = Source.everywhere.select_for_update(no_key=True).get(pk=source.pk)
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
        made = None if secret is not None else make_secret(kind)
        _keep(locked, kind, secret or made or "", overlap=overlap, path="secret", now=now)
        audit.note(
            "source.secret_rotated",
            workspace=locked.workspace,
            actor=actor,
            subject=encode("src", locked.pk),
            details={"overlap_seconds": int(overlap.total_seconds())},
        )
    return made


def kind_of(source: Source) -> str:
    """How the source's senders prove themselves."""
    return str(source.config.get("verification", {}).get("type", "address"))


def header_of(source: Source) -> str:
    return str(source.config.get("verification", {}).get("header") or DEFAULT_HEADER)


def known_to(source: Source, *, now: datetime) -> list[str]:
    """The secrets that count now: the current one, and the one before while they overlap. Opened for this call."""
    kept: InboundSecret | None = InboundSecret.objects.of(source.workspace_id).filter(source=source).first()
    if kept is None or kept.kind != kind_of(source):
        return []
    known = [kept.secret.open()]
    if kept.previous is not None and kept.previous_until is not None and now < kept.previous_until:
        known.append(kept.previous.open())
    return known


def _secret_in(config: Mapping[str, Any]) -> str | None:
    """As it was given, before the settings are cleaned of it."""
    given = config.get("verification")
    secret = given.get("secret") if isinstance(given, dict) else None
    return secret.strip() if isinstance(secret, str) else None


def _settle(source: Source, secret: str | None, *, now: datetime) -> str | None:
    """What is kept agrees with the verification of now; returns the secret where we made it."""
    if source.type != "webhook":
        return None
    kind = kind_of(source)
    kept = InboundSecret.everywhere.filter(source=source)
    if kind == "address":
        kept.delete()
        return None
    if secret is not None:
        _keep(source, kind, secret, overlap=limits.TOKEN_OVERLAP_DEFAULT, path=_PATH, now=now)
        return None
    if kept.filter(kind=kind).exists():
        return None
    if kind in GIVEN_BY_THE_SENDER:
        # The sender tells it when it knows the address; until then everything is refused.
        kept.delete()
        return None
    made = make_secret(kind)
    _keep(source, kind, made, overlap=timedelta(0), path=_PATH, now=now)
    return made


def _keep(source: Source, kind: str, secret: str, *, overlap: timedelta, path: str, now: datetime) -> None:
    problem = problem_of(kind, secret, path)
    if problem is not None:
        raise Invalid(Detail(problem.field, problem.code, problem.message))
    kept: InboundSecret | None = InboundSecret.everywhere.select_for_update().filter(source=source).first()
    if kept is None:
        InboundSecret.everywhere.create(
            workspace_id=source.workspace_id, source=source, kind=kind, secret=secret, created_at=now
        )
        return
    if kept.kind == kind and kept.secret.open() == secret:
        return
    has_previous = kept.kind == kind and bool(overlap)
    InboundSecret.everywhere.filter(pk=kept.pk).update(
        kind=kind,
        secret=secret,
        previous=kept.secret if has_previous else None,
        previous_until=now + overlap if has_previous else None,
    )
