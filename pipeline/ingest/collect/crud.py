"""Register, change and delete sources, and have one polled at once."""

from __future__ import annotations

import copy
import secrets
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from django.db import transaction
from django.db.models import F

from config.core import dispatch, states, work_queue
from config.core.clock import utc_now
from config.core.errors import Conflict, Detail, Invalid
from config.core.middleware import request_id
from pipeline import personas
from pipeline.ingest.collect.validation import (
    as_meant,
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
    source = checked(workspace, given, test=test, now=now)
    wake_at = now if kind_of(given.type).fetches else None
    with transaction.atomic():
        refuse_past_plan(workspace, test=test)
        source.inbound_token = secrets.token_urlsafe(24) if given.type == "webhook" else None
        source.due_at = source.wake_at = wake_at
        source.save(force_insert=True)
        personas.align_open_slot(source, now=now)
        dispatch.wake()
    return source


def checked(workspace: Workspace, given: SourceSettings, *, test: bool, now: datetime) -> Source:
    """The source as a row that isn't stored.

    Raises `Invalid` with all that is wrong at once, what can't work here among it and the form that would be taken; else
    `SourceUnavailable` or `EngineUnavailable`.
    """
    kind = kind_of(given.type)
    faults: list[Detail] = []
    config: dict[str, Any] | None = None
    try:
        config = clean_config(kind, given.config)
    except Invalid as error:
        meant = as_meant(kind, given.config)
        with suppress(Invalid):
            config = clean_config(kind, meant)
        first, *others = error.detail
        if config is not None:
            form = f'{{"type": "{given.type}", "config": {written(meant)}}}'
            first = replace(first, message=f"{first.message} Send {form}.")
        faults += [first, *others]
    checks: tuple[Callable[[], None], ...] = (
        lambda: check_references(workspace, given.engines, given.persona_id, given.outlets, test=test),
        lambda: check_pool(workspace, config or {}, test=test),
        lambda: check_interval(workspace, given.poll_interval_minutes),
    )
    for check in checks:
        try:
            check()
        except Invalid as error:
            faults += error.detail
    row = row_of(workspace, given, config or {}, test=test, now=now)
    if config is not None:
        try:
            refuse_unavailable(row)
        except (SourceUnavailable, EngineUnavailable) as error:
            if not faults:
                raise
            faults += error.detail
    if faults:
        raise Invalid(*faults)
    return row


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
        values = {name: value for name, value in changes.items() if name in CHANGEABLE}
        kind = kind_of(row.type)
        if "config" in values:
            values["config"] = clean_config(kind, values["config"])
            check_pool(workspace, values["config"], test=row.test)
            if values["config"] != row.config:
                # What the plug-in remembers stays: it forgets what is of another address, and nothing else may be lost.
                values |= {"window": None, "moved": None, "interval_seconds": None}
        check_references(
            workspace,
            values.get("engines", ()),
            values.get("persona_id"),
            values.get("outlets", ()),
            test=row.test,
        )
        check_interval(workspace, values.get("poll_interval_minutes"))
        status = changes.get("status")
        becomes = status or row.status
        is_other = any(values[name] != getattr(row, name) for name in _ABILITIES & values.keys())
        if becomes in POLLED_SOURCES and (becomes != row.status or is_other):
            refuse_unavailable(_as_changed(row, values))
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
        dispatch.wake()
    return row


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
        dispatch.wake()
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
        dispatch.wake()
    return row
