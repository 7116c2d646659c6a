"""Registers, changes, deletes and restores sources, and lets one be polled at once.

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
    check_interval,
    check_pool,
    check_references,
    clean_config,
    find_misplaced_fields,
    guess_settings,
    kind_of,
    name_for,
    refuse_past_plan,
    refuse_unavailable,
    settings_as_text,
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


_AVAILABILITY_FIELDS: Final = frozenset({"config", "engines", "persona_id"})
"""Fields that decide whether a source can work on this instance."""


_ADDRESS_SETTINGS: Final = ("url", "sitemap")
"""Settings that hold the address that is fetched."""


@dataclass(frozen=True)
class SourceSettings:
    """The fields of a source as a person sets them; a field without a value is `None`."""

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
    workspace: Workspace, settings: SourceSettings, *, test: bool = False, now: datetime | None = None
) -> Source:
    """Save and return a new source, which is polled at once if its kind is fetched.

    Raises `Invalid` if a field is invalid, `SourcesExceeded` if the plan is used up, and `SourceUnavailable` or
    `EngineUnavailable` if the source or an engine can't work here.
    """
    now = now or utc_now()
    return add(validate_source(workspace, settings, test=test, now=now), workspace=workspace, now=now)


def add(source: Source, *, workspace: Workspace, now: datetime) -> Source:
    """Save a validated row, polled at once if its kind is fetched. Raises `SourcesExceeded` past the plan."""
    wake_at = now if kind_of(source.type).fetches else None
    with transaction.atomic():
        refuse_past_plan(workspace, test=source.test)
        source.inbound_token = secrets.token_urlsafe(24) if source.type == "webhook" else None
        source.due_at = source.wake_at = wake_at
        source.save(force_insert=True)
        personas.align_open_slot(source, now=now)
        dispatcher.wake()
    return source


def validate_source(workspace: Workspace, settings: SourceSettings, *, test: bool, now: datetime) -> Source:
    """Return the validated source as a row that isn't saved.

    Raises `Invalid` with all faults at once if there are any, with the form that would be accepted. If the only fault
    is that the source or an engine can't work here, raises `SourceUnavailable` or `EngineUnavailable` instead.
    """
    config, faults = _clean_settings(kind_of(settings.type), settings.config, {"type": settings.type})
    faults += _check_fields(
        workspace,
        engines=settings.engines,
        persona_id=settings.persona_id,
        outlets=settings.outlets,
        config=config or {},
        minutes=settings.poll_interval_minutes,
        test=test,
    )
    row = row_of(workspace, settings, config or {}, test=test, now=now)
    _raise_faults(faults, row if config is not None else None)
    return row


def _clean_settings(
    kind: SourceKind,
    new: Mapping[str, Any],
    shown_fields: Mapping[str, str],
    stored: Mapping[str, Any] = MappingProxyType({}),
) -> tuple[dict[str, Any] | None, list[Detail]]:
    """Return the settings as they would be stored, and their faults.

    The message of the first fault shows a form that would be accepted: it begins with the fields of
    `shown_fields`, and takes settings that aren't in `new` from `stored`. If no such form is known, the
    settings are `None`, and the message shows none.
    """
    try:
        return clean_config(kind, new), []
    except Invalid as error:
        first, *others = error.detail
    for settings in ({**stored, **new}, new):
        corrected = guess_settings(kind, settings)
        with suppress(Invalid):
            config = clean_config(kind, corrected)
            fields = {**shown_fields, **find_misplaced_fields(kind, new)}
            # The fields without their braces, because the example is one object with `config`.
            fields_text = settings_as_text(fields)[1:-1]
            config_text = f'"config": {settings_as_text(corrected)}'
            example = ", ".join(filter(None, [fields_text, config_text]))
            return config, [replace(first, message=f"{first.message} Send {{{example}}}."), *others]
    return None, [first, *others]


def _check_fields(
    workspace: Workspace,
    *,
    engines: Sequence[str],
    persona_id: UUID | None,
    outlets: Sequence[str],
    config: Mapping[str, Any],
    minutes: int | None,
    test: bool,
) -> list[Detail]:
    """Return the faults of a source's references and of its poll interval."""
    faults: list[Detail] = []
    checks: tuple[Callable[[], None], ...] = (
        lambda: check_references(workspace, engines, persona_id, outlets, test=test),
        lambda: check_pool(workspace, config, test=test),
        lambda: own_feeds.refuse(
            workspace.pk, {f"config.{name}": config[name] for name in _ADDRESS_SETTINGS if name in config}
        ),
        lambda: check_interval(workspace, minutes),
    )
    for check in checks:
        try:
            check()
        except Invalid as error:
            faults += error.detail
    return faults


def _raise_faults(faults: list[Detail], row: Source | None) -> None:
    """Raise `Invalid` if there are faults, with those of availability among them.

    If the only fault is that `row` can't work here, raises `SourceUnavailable` or `EngineUnavailable` instead.
    """
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
    workspace: Workspace, settings: SourceSettings, config: Mapping[str, Any], *, test: bool, now: datetime
) -> Source:
    """Return a person's settings as a source row that isn't saved."""
    return Source(
        workspace=workspace,
        test=test,
        name=settings.name or name_for(kind_of(settings.type), config),
        type=settings.type,
        config=dict(config),
        engines=list(settings.engines),
        variants=settings.variants,
        persona_id=settings.persona_id,
        outlets=list(settings.outlets),
        poll_interval_minutes=settings.poll_interval_minutes,
        autopilot=settings.autopilot,
        first_poll=settings.first_poll,
        max_age_days=settings.max_age_days,
        max_burst=settings.max_burst,
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
    """Change settings and, with `status`, pause or resume. `changes` holds only the fields to change.

    What can't work here isn't checked for a paused source before it resumes. Raises `states.Overtaken` as a
    `version_conflict` if the row doesn't have `expected_version` any more, `Conflict` if it was deleted, and
    the errors of `register`.
    """
    with transaction.atomic():
        # Locked, so that two changes at once meet each other's version and settings.
        row: Source = Source.everywhere.select_for_update().get(pk=source.pk)
        states.refuse_other_version(row.version, expected_version)
        if row.deleted_at is not None:
            raise Conflict.because(code="deleted", message="This source was deleted.", field=None)
        if not changes:
            # Without changes nothing is written, and the version stays.
            return row
        kind = kind_of(row.type)
        values = validate_changes(row, changes, workspace=workspace)
        if "config" in values and values["config"] != row.config:
            # The plug-in's state stays: it drops what belongs to another address, and nothing else may be lost.
            values |= {"window": None, "moved": None, "interval_seconds": None}
        status = changes.get("status")
        if status is not None and status != row.status:
            _change_status(row, status, workspace, fetches=kind.fetches, now=now)
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


def validate_changes(row: Source, changes: Mapping[str, Any], *, workspace: Workspace) -> dict[str, Any]:
    """Return the values to write. Raises the errors of `validate_source`, showing the row's settings too."""
    values = {name: value for name, value in changes.items() if name in CHANGEABLE}
    faults: list[Detail] = []
    config: dict[str, Any] | None = row.config
    if "config" in values:
        config, faults = _clean_settings(kind_of(row.type), values["config"], {}, row.config)
        values["config"] = config or {}
    faults += _check_fields(
        workspace,
        engines=values.get("engines", ()),
        persona_id=values.get("persona_id"),
        outlets=values.get("outlets", ()),
        config=values.get("config", {}),
        minutes=values.get("poll_interval_minutes"),
        test=row.test,
    )
    new_status = changes.get("status") or row.status
    is_changed = any(values[name] != getattr(row, name) for name in _AVAILABILITY_FIELDS & values.keys())
    needs_check = new_status in POLLED_SOURCES and (new_status != row.status or is_changed)
    _raise_faults(faults, _with_values(row, values) if needs_check and config is not None else None)
    return values


def _with_values(row: Source, values: Mapping[str, Any]) -> Source:
    """Return a copy of the row with these values, in memory only."""
    changed_row = copy.copy(row)
    for name, value in values.items():
        setattr(changed_row, name, value)
    return changed_row


def _change_status(row: Source, status: str, workspace: Workspace, *, fetches: bool, now: datetime) -> None:
    """Move the source to a status, without failures. Raises `SourcesExceeded` if it becomes active past the plan."""
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


def poll_now(source: Source, *, now: datetime, expected_version: int | None = None) -> Source:
    """Let a source be polled at once; a brand lane makes its next item at once.

    Raises `Conflict` if the source isn't fetched, is paused or gone, or was deleted, and `states.Overtaken` if it
    isn't the expected version.
    """
    kind = kind_of(source.type)
    if source.type == personas.KIND:
        return personas.bring_forward(source, now=now, expected_version=expected_version)
    if not kind.fetches:
        message = f"Sources of type {source.type} are not fetched; push to them with POST /v1/raw."
        raise Conflict.because(code="not_fetched", message=message, field="type")
    with transaction.atomic():
        states.lock_expected_version(source, expected_version)
        # The status is checked in the statement itself: a source that is being paused meanwhile stays paused.
        woken = Source.everywhere.filter(pk=source.pk, status__in=POLLED_SOURCES, deleted_at=None).update(
            wake_at=now, due_at=now, request_id=request_id(), **work_queue.overtake()
        )
        source.refresh_from_db()
        if not woken:
            message = f"The source is {source.status}; PATCH its status to active, which polls it at once."
            raise Conflict.because(code="not_active", message=message)
        dispatcher.wake()
    return source


def delete(source: Source, *, now: datetime, expected_version: int | None = None) -> None:
    """Mark the source as deleted; items made of it stay.

    Raises `Conflict` if it is the push source, and `states.Overtaken` if it isn't the expected version.
    """
    if source.is_push:
        message = "The workspace's own push source can't be deleted: POST /v1/raw needs it."
        raise Conflict.because(code="push_source", message=message, field=None)
    with transaction.atomic():
        states.lock_expected_version(source, expected_version)
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
    """Undo a deletion, with the source as it was; a source that isn't deleted stays the same.

    An inbound address is gone for good when its source is deleted; the restored source gets a new one. Raises
    `SourcesExceeded` if the source is polled and the plan is used up.
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
