"""Register, change and delete sources, and have one polled at once.

Only a person pauses a source, by `change`; polls that fail make it `failing` and then `gone` (`poll_source.py`).
"""

from __future__ import annotations

import copy
import secrets
from contextlib import suppress
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from django.db import transaction
from django.db.models import F

from config.core import dispatcher, states, work_queue
from config.core.clock import utc_now
from config.core.errors import Conflict, Detail, Invalid
from config.core.middleware import request_id
from pipeline import personas
from pipeline.ingest import own_feeds
from pipeline.ingest.collect.source_validation import (
    as_meant,
    beside_config,
    check_interval,
    check_pool,
    check_references,
    clean_config,
    kind_of,
    name_for,
    refuse_past_plan,
    refuse_unavailable,
    written,
)
from pipeline.models import Source
from pipeline.states import POLLED_SOURCES
from pipeline.switches.availability import EngineUnavailable, SourceUnavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime
    from uuid import UUID

    from accounts.models import Workspace
    from pipeline.sources.base import Source as SourceKind

CHANGEABLE: Final = (
    "name",
    "config",
    "engines",
    "variants",
    "persona_id",
    "outlets",
    "poll_interval_minutes",
    "autopilot",
    "first_poll",
    "max_age_days",
    "max_burst",
)


_ABILITIES: Final = frozenset({"config", "engines", "persona_id"})
"""What decides whether a source can work here."""


_ADDRESSES: Final = ("url", "sitemap")
"""Settings that hold what is fetched."""


@dataclass(frozen=True)
class SourceSettings:
    """What a person says of a source; None where it isn't said."""

    type: str
    name: str = ""
    config: Mapping[str, Any] = field(default_factory=dict)
    engines: Sequence[str] = ()
    variants: int = 1
    persona_id: UUID | None = None
    outlets: Sequence[str] = ()
    poll_interval_minutes: int | None = None
    autopilot: bool = False
    first_poll: Any = None
    max_age_days: int | None = None
    max_burst: int | None = None


def register(
    workspace: Workspace, given: SourceSettings, *, test: bool = False, now: datetime | None = None
) -> Source:
    """A new source, polled at once where its kind is fetched.

    Raises `Invalid`, `SourcesExceeded`, and `SourceUnavailable` or `EngineUnavailable` for what can't work here.
    """
    now = now or utc_now()
    return add(checked(workspace, given, test=test, now=now), workspace=workspace, now=now)


def add(source: Source, *, workspace: Workspace, now: datetime) -> Source:
    """Store what `checked` made, polled at once where its kind is fetched; raises `SourcesExceeded`."""
    wake_at = now if kind_of(source.type).fetches else None
    with transaction.atomic():
        refuse_past_plan(workspace, test=source.test)
        source.inbound_token = secrets.token_urlsafe(24) if source.type == "webhook" else None
        source.due_at = source.wake_at = wake_at
        source.save(force_insert=True)
        personas.align_open_slot(source, now=now)
        dispatcher.wake()
    return source


def checked(workspace: Workspace, given: SourceSettings, *, test: bool, now: datetime) -> Source:
    """The source as a row that isn't stored.

    Raises `Invalid` with all that is wrong at once, what can't work here among it and the form that would be taken; else
    `SourceUnavailable` or `EngineUnavailable`.
    """
    config, faults = _settings_of(kind_of(given.type), given.config, {"type": given.type})
    faults += _faults_beside(
        workspace,
        engines=given.engines,
        persona_id=given.persona_id,
        outlets=given.outlets,
        config=config or {},
        minutes=given.poll_interval_minutes,
        test=test,
    )
    row = row_of(workspace, given, config or {}, test=test, now=now)
    _refuse(faults, row if config is not None else None)
    return row


def _settings_of(
    kind: SourceKind,
    given: Mapping[str, Any],
    named: Mapping[str, str],
    kept: Mapping[str, Any] = MappingProxyType({}),
) -> tuple[dict[str, Any] | None, list[Detail]]:
    """The settings as they would be stored, and what is wrong with them.

    The first fault says the form that would be taken, which begins with what is `named`, and in which settings that
    aren't given are those that are `kept`. None where no such form is known.
    """
    try:
        return clean_config(kind, given), []
    except Invalid as error:
        first, *others = error.detail
    for settings in ({**kept, **given}, given):
        meant = as_meant(kind, settings)
        with suppress(Invalid):
            config = clean_config(kind, meant)
            fields = {**named, **beside_config(kind, given)}
            form = ", ".join([*filter(None, [written(fields)[1:-1]]), f'"config": {written(meant)}'])
            return config, [replace(first, message=f"{first.message} Send {{{form}}}."), *others]
    return None, [first, *others]


def _faults_beside(
    workspace: Workspace,
    *,
    engines: Sequence[str],
    persona_id: UUID | None,
    outlets: Sequence[str],
    config: Mapping[str, Any],
    minutes: int | None,
    test: bool,
) -> list[Detail]:
    """What is wrong with what a source refers to, and with how often it is polled."""
    faults: list[Detail] = []
    checks: tuple[Callable[[], None], ...] = (
        lambda: check_references(workspace, engines, persona_id, outlets, test=test),
        lambda: check_pool(workspace, config, test=test),
        lambda: own_feeds.refuse(
            workspace.pk, {f"config.{name}": config[name] for name in _ADDRESSES if name in config}
        ),
        lambda: check_interval(workspace, minutes),
    )
    for check in checks:
        try:
            check()
        except Invalid as error:
            faults += error.detail
    return faults


def _refuse(faults: list[Detail], row: Source | None) -> None:
    """Raises for all that is wrong at once; what a `row` can't do here is among it, or the one refusal."""
    if row is not None:
        try:
            refuse_unavailable(row)
        except (SourceUnavailable, EngineUnavailable) as error:
            if not faults:
                raise
            faults = [*faults, *error.detail]
    if faults:
        raise Invalid(*faults)


def row_of(
    workspace: Workspace, given: SourceSettings, config: Mapping[str, Any], *, test: bool, now: datetime
) -> Source:
    """What a person says as a row that isn't stored."""
    return Source(
        workspace=workspace,
        test=test,
        name=given.name or name_for(kind_of(given.type), config),
        type=given.type,
        config=dict(config),
        engines=list(given.engines),
        variants=given.variants,
        persona_id=given.persona_id,
        outlets=list(given.outlets),
        poll_interval_minutes=given.poll_interval_minutes,
        autopilot=given.autopilot,
        first_poll=given.first_poll,
        max_age_days=given.max_age_days,
        max_burst=given.max_burst,
        request_id=request_id(),
        created_at=now,
        updated_at=now,
    )


def change(
    source: Source,
    changes: Mapping[str, Any],
    *,
    workspace: Workspace,
    now: datetime,
    expected_version: int | None = None,
) -> Source:
    """Change settings and, with `status`, pause or resume. `changes` holds only what was given.

    `expected_version` raises `states.Overtaken` as a `version_conflict` where the row has moved on since it was read.
    Raises as `register` for what the source, as it would be, can't do here; one that is paused is asked when it resumes.
    """
    with transaction.atomic():
        # Locked, so that two changes at once meet each other's version and settings.
        row: Source = Source.everywhere.select_for_update().get(pk=source.pk)
        states.refuse_other_version(row.version, expected_version)
        if row.deleted_at is not None:
            raise Conflict.because(code="deleted", message="This source was deleted.", field=None)
        if not changes:
            # Nothing was said, so nothing is written and the version stays.
            return row
        kind = kind_of(row.type)
        values = checked_changes(row, changes, workspace=workspace)
        if "config" in values and values["config"] != row.config:
            # What the plug-in remembers stays: it forgets what is of another address, and nothing else may be lost.
            values |= {"window": None, "moved": None, "interval_seconds": None}
        status = changes.get("status")
        if status is not None and status != row.status:
            _switch(row, status, workspace, fetches=kind.fetches, now=now)
        elif (
            kind.fetches
            and row.status in POLLED_SOURCES
            and values.keys() & {"config", "poll_interval_minutes"}
        ):
            values["wake_at"] = values["due_at"] = now
        Source.everywhere.filter(pk=row.pk).update(
            **values, **work_queue.overtake(), version=F("version") + 1, updated_at=now
        )
        row.refresh_from_db()
        if "config" in values or status is not None:
            personas.align_open_slot(row, now=now)
        dispatcher.wake()
    return row


def checked_changes(row: Source, changes: Mapping[str, Any], *, workspace: Workspace) -> dict[str, Any]:
    """What would be written of these changes. Raises as `checked`, with the settings of the row in the form."""
    values = {name: value for name, value in changes.items() if name in CHANGEABLE}
    faults: list[Detail] = []
    config: dict[str, Any] | None = row.config
    if "config" in values:
        config, faults = _settings_of(kind_of(row.type), values["config"], {}, row.config)
        values["config"] = config or {}
    faults += _faults_beside(
        workspace,
        engines=values.get("engines", ()),
        persona_id=values.get("persona_id"),
        outlets=values.get("outlets", ()),
        config=values.get("config", {}),
        minutes=values.get("poll_interval_minutes"),
        test=row.test,
    )
    becomes = changes.get("status") or row.status
    is_other = any(values[name] != getattr(row, name) for name in _ABILITIES & values.keys())
    is_asked = becomes in POLLED_SOURCES and (becomes != row.status or is_other)
    _refuse(faults, _as_changed(row, values) if is_asked and config is not None else None)
    return values


def _as_changed(row: Source, values: Mapping[str, Any]) -> Source:
    """The row with these values, in memory alone."""
    changed = copy.copy(row)
    for name, value in values.items():
        setattr(changed, name, value)
    return changed


def _switch(row: Source, status: str, workspace: Workspace, *, fetches: bool, now: datetime) -> None:
    if status == "active" and row.status not in POLLED_SOURCES:
        refuse_past_plan(workspace, test=row.test)
    wake_at = now if status == "active" and fetches else None
    states.move(
        row,
        status,
        wake_at=wake_at,
        due_at=wake_at,
        last_error=None,
        failures=0,
        failing_since=None,
        updated_at=now,
    )


def poll_now(source: Source, *, now: datetime) -> Source:
    """Have a source polled at once. Raises `Conflict` for one that isn't fetched, or is paused or gone."""
    kind = kind_of(source.type)
    if source.type == personas.KIND:
        return personas.bring_forward(source, now=now)
    if not kind.fetches:
        message = f"Sources of type {source.type} are not fetched; push to them with POST /v1/raw."
        raise Conflict.because(code="not_fetched", message=message, field="type")
    with transaction.atomic():
        # The status is asked in the statement itself: a source that is paused at this moment stays so.
        woken = Source.everywhere.filter(pk=source.pk, status__in=POLLED_SOURCES, deleted_at=None).update(
            wake_at=now, due_at=now, request_id=request_id(), **work_queue.overtake()
        )
        source.refresh_from_db()
        if not woken:
            message = f"The source is {source.status}; PATCH its status to active, which polls it at once."
            raise Conflict.because(code="not_active", message=message)
        dispatcher.wake()
    return source


def delete(source: Source, *, now: datetime) -> None:
    """Mark it deleted; what was made from it stays."""
    if source.is_push:
        message = "The workspace's own push source can't be deleted: POST /v1/raw needs it."
        raise Conflict.because(code="push_source", message=message, field=None)
    with transaction.atomic():
        Source.everywhere.filter(pk=source.pk, deleted_at=None).update(
            deleted_at=now,
            wake_at=None,
            inbound_token=None,
            version=F("version") + 1,
            updated_at=now,
            **work_queue.overtake(),
        )
        source.refresh_from_db()
        personas.align_open_slot(source, now=now)


def restore(source: Source, *, workspace: Workspace, now: datetime) -> Source:
    """Undo a deletion: it goes on as it was. Raises `SourcesExceeded` where another one has taken its place.

    An inbound address is gone for good when its source is deleted; it comes back with another one.
    """
    with transaction.atomic():
        row: Source = Source.everywhere.select_for_update().get(pk=source.pk)
        if row.deleted_at is None:
            return row
        if row.status in POLLED_SOURCES:
            refuse_past_plan(workspace, test=row.test)
        wake_at = now if row.status in POLLED_SOURCES and kind_of(row.type).fetches else None
        Source.everywhere.filter(pk=row.pk).update(
            deleted_at=None,
            wake_at=wake_at,
            due_at=wake_at,
            inbound_token=secrets.token_urlsafe(24) if row.type == "webhook" else None,
            version=F("version") + 1,
            updated_at=now,
            **work_queue.overtake(),
        )
        row.refresh_from_db()
        personas.align_open_slot(row, now=now)
        dispatcher.wake()
    return row
