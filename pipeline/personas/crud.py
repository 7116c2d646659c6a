"""Personas: made, changed as versions, taken back to an earlier one, deleted and restored."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from django.db import transaction
from django.db.models import F
from django.utils.translation import gettext as _

from accounts import audit
from accounts.models import Workspace
from config.core import limits as core_limits
from config.core import states
from config.core.errors import Conflict, NotFound
from config.core.ids import encode
from pipeline import limits
from pipeline.generate.persona_cards import persona_content
from pipeline.models import Persona, PersonaVersion, Series, Source, WorkspaceDefaults
from pipeline.models.persona import VERSIONED_FIELDS
from pipeline.personas import validation

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

_READERS: Final[Mapping[str, Any]] = {
    "name": partial(validation.read_line, most=core_limits.NAME_CHARACTERS, is_needed=True),
    "handle": validation.read_handle,
    "language": validation.read_language,
    "links": validation.read_links,
    "brand": validation.read_brand,
    "who_you_are": partial(validation.read_text, most=limits.PERSONA_TEXT_CHARACTERS),
    "voice": partial(validation.read_text, most=limits.PERSONA_TEXT_CHARACTERS),
    "banned_words": partial(
        validation.read_lines, most=limits.BANNED_WORDS, characters=limits.BANNED_WORD_CHARACTERS
    ),
    "required_structures": validation.read_structures,
    "reference_posts": partial(
        validation.read_texts, most=limits.REFERENCE_POSTS, characters=limits.REFERENCE_POST_CHARACTERS
    ),
    "approved_lines": partial(
        validation.read_lines, most=limits.APPROVED_LINES, characters=limits.APPROVED_LINE_CHARACTERS
    ),
}


def create(workspace: Workspace, given: Mapping[str, Any], *, by: str, now: datetime) -> Persona:
    """A new persona with its first version. `given` holds names of `VERSIONED_FIELDS`; only `name` is needed.

    Raises `Invalid` naming every fault, `Conflict` past `limits.PERSONAS`.
    """
    values = clean({"name": "", **given})
    with transaction.atomic():
        # Two at once must not both be the last one.
        Workspace.everywhere.select_for_update(no_key=True).get(pk=workspace.pk)
        if Persona.objects.of(workspace).filter(deleted_at=None).count() >= limits.PERSONAS:
            message = _("A workspace has %(most)d personas at most; delete one first.") % {
                "most": limits.PERSONAS
            }
            raise Conflict.because(code="too_many", message=message, field=None)
        persona: Persona = Persona.everywhere.create(
            workspace=workspace, created_at=now, updated_at=now, **values
        )
        _keep(persona, by=by, now=now)
        _note("persona.created", persona, by, {"name": persona.name})
    return persona


def change(
    persona: Persona,
    changes: Mapping[str, Any],
    *,
    by: str,
    now: datetime,
    expected_version: int | None = None,
) -> Persona:
    """Write what is given as the next version; nothing new writes nothing and the version stays.

    `changes` holds names of `VERSIONED_FIELDS`. What is at work already keeps the version that it began with. Raises `Invalid`,
    `Conflict` for a deleted one, and `states.Overtaken` as a `version_conflict` where it has moved on since
    `expected_version` was read.
    """
    values = clean(changes)
    with transaction.atomic():
        row = _locked(persona)
        states.refuse_other_version(row.version, expected_version)
        new = {name: value for name, value in values.items() if getattr(row, name) != value}
        if not new:
            return row
        _write(row, new, by=by, now=now)
        _note("persona.changed", row, by, {"version": row.version, "changed": sorted(new)})
    return row


def versions(persona: Persona) -> list[PersonaVersion]:
    """All that are kept, newest first; the first is the persona as it is."""
    return list(PersonaVersion.objects.of(persona.workspace_id).filter(persona=persona).order_by("-number"))


def go_back_to(
    persona: Persona, number: int, *, by: str, now: datetime, expected_version: int | None = None
) -> Persona:
    """Make an earlier version the newest one again; history only grows, so this can be taken back too.

    Raises `NotFound` for a version that isn't kept, and what `change` raises.
    """
    with transaction.atomic():
        row = _locked(persona)
        states.refuse_other_version(row.version, expected_version)
        kept = PersonaVersion.everywhere.filter(persona=row, number=number).first()
        if kept is None:
            raise NotFound
        new = {
            name: kept.content[name] for name in VERSIONED_FIELDS if getattr(row, name) != kept.content[name]
        }
        if not new:
            return row
        _write(row, new, by=by, now=now)
        _note("persona.restored", row, by, {"version": row.version, "as": number})
    return row


def delete(persona: Persona, *, by: str, now: datetime) -> None:
    """Mark it deleted; what was made with it stays, and its own topics rest. Raises `Conflict` while it is in use."""
    with transaction.atomic():
        row = _locked(persona)
        _refuse_in_use(row)
        Persona.everywhere.filter(pk=row.pk).update(deleted_at=now, updated_at=now)
        _note("persona.deleted", row, by, {"name": row.name})


def restore(persona: Persona, *, by: str, now: datetime) -> Persona:
    """Undo a deletion, with its topics."""
    with transaction.atomic():
        row: Persona = Persona.everywhere.select_for_update().get(pk=persona.pk)
        if row.deleted_at is not None:
            Persona.everywhere.filter(pk=row.pk).update(deleted_at=None, updated_at=now)
            row.deleted_at = None
            _note("persona.undeleted", row, by, {"name": row.name})
    return row


def clean(given: Mapping[str, Any]) -> dict[str, Any]:
    """What was given, as it is stored; raises `Invalid` naming every fault."""
    faults = validation.Faults()
    validation.refuse_unknown(given, _READERS, faults)
    values = {name: reader(given[name], name, faults) for name, reader in _READERS.items() if name in given}
    faults.raise_if_any()
    return values


# --- Inside ----------------------------------------------------------------------------------------------------------


def _locked(persona: Persona) -> Persona:
    row: Persona = Persona.everywhere.select_for_update().get(pk=persona.pk)
    if row.deleted_at is not None:
        message = _("This persona was deleted; restore it first.")
        raise Conflict.because(code="deleted", message=message, field=None)
    return row


def _write(row: Persona, new: Mapping[str, Any], *, by: str, now: datetime) -> None:
    Persona.everywhere.filter(pk=row.pk).update(**new, version=F("version") + 1, updated_at=now)
    row.refresh_from_db()
    _keep(row, by=by, now=now)


def _keep(row: Persona, *, by: str, now: datetime) -> None:
    PersonaVersion.everywhere.create(
        workspace_id=row.workspace_id,
        persona=row,
        number=row.version,
        content=persona_content(row),
        made_by=by[:200],
        created_at=now,
    )


def _refuse_in_use(row: Persona) -> None:
    if WorkspaceDefaults.everywhere.filter(persona=row).exists():
        message = _(
            "It is the workspace's default persona; choose another one in the content defaults first."
        )
        raise Conflict.because(code="in_use", message=message, field=None)
    used = Source.objects.of(row.workspace_id).filter(persona=row, deleted_at=None)
    names = list(used.order_by("name").values_list("name", flat=True)[:3])
    if names:
        message = _("Sources speak with it: %(names)s. Give them another one first.") % {
            "names": ", ".join(names)
        }
        raise Conflict.because(code="in_use", message=message, field=None)
    series = Series.objects.of(row.workspace_id).filter(persona=row, deleted_at=None)
    names = list(series.order_by("name").values_list("name", flat=True)[:3])
    if names:
        message = _("Series speak with it: %(names)s. Give them another one first.") % {
            "names": ", ".join(names)
        }
        raise Conflict.because(code="in_use", message=message, field=None)


def _note(action: str, row: Persona, by: str, details: Mapping[str, Any]) -> None:
    workspace = Workspace(pk=row.workspace_id)
    audit.note(action, workspace=workspace, actor=by, subject=encode("per", row.pk), details=details)
