"""Creates personas, changes them as versions, restores earlier versions, deletes and restores personas."""

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


def create(workspace: Workspace, fields: Mapping[str, Any], *, by: str, now: datetime) -> Persona:
    """Create a persona with its first version.

    `fields` holds names of `VERSIONED_FIELDS`, of which only `name` is needed. Raises `Invalid` with all faults
    if there are any, and `Conflict` if the workspace has `limits.PERSONAS` already.
    """
    values = clean({"name": "", **fields})
    with transaction.atomic():
        # Two requests at once must not both take the last place.
        Workspace.everywhere.select_for_update(no_key=True).get(pk=workspace.pk)
        if Persona.objects.of(workspace).filter(deleted_at=None).count() >= limits.PERSONAS:
            message = _("A workspace has %(most)d personas at most; delete one first.") % {
                "most": limits.PERSONAS
            }
            raise Conflict.because(code="too_many", message=message, field=None)
        persona: Persona = Persona.everywhere.create(
            workspace=workspace, created_at=now, updated_at=now, **values
        )
        _store_version(persona, by=by, now=now)
        _audit("persona.created", persona, by, {"name": persona.name})
    return persona


def change(
    persona: Persona,
    changes: Mapping[str, Any],
    *,
    by: str,
    now: datetime,
    expected_version: int | None = None,
) -> Persona:
    """Write the changes as the next version, or nothing if no value differs.

    `changes` holds names of `VERSIONED_FIELDS`. Runs in progress keep the version that they began with. Raises
    `Invalid` with all faults if there are any, `Conflict` for a deleted persona, and `states.Overtaken` as a
    `version_conflict` if it doesn't have `expected_version` any more.
    """
    values = clean(changes)
    with transaction.atomic():
        row = _lock(persona)
        states.refuse_other_version(row.version, expected_version)
        new = {name: value for name, value in values.items() if getattr(row, name) != value}
        if not new:
            return row
        _write_version(row, new, by=by, now=now)
        _audit("persona.changed", row, by, {"version": row.version, "changed": sorted(new)})
    return row


def versions(persona: Persona) -> list[PersonaVersion]:
    """Return all stored versions, newest first; the first one is the current version."""
    return list(PersonaVersion.objects.of(persona.workspace_id).filter(persona=persona).order_by("-number"))


def restore_version(
    persona: Persona, number: int, *, by: str, now: datetime, expected_version: int | None = None
) -> Persona:
    """Write the content of an earlier version as the next version, so that this can be undone too.

    Nothing is written if no value differs. Raises `NotFound` for a version that isn't stored, `Conflict` for a
    deleted persona, and `states.Overtaken` if it doesn't have `expected_version` any more.
    """
    with transaction.atomic():
        row = _lock(persona)
        states.refuse_other_version(row.version, expected_version)
        version = PersonaVersion.everywhere.filter(persona=row, number=number).first()
        if version is None:
            raise NotFound
        new = {
            name: version.content[name]
            for name in VERSIONED_FIELDS
            if getattr(row, name) != version.content[name]
        }
        if not new:
            return row
        _write_version(row, new, by=by, now=now)
        _audit("persona.restored", row, by, {"version": row.version, "as": number})
    return row


def delete(persona: Persona, *, by: str, now: datetime, expected_version: int | None = None) -> None:
    """Mark the persona as deleted.

    Items made with it stay, and topics that only it may use rest. Raises `Conflict` if it is in use, or was
    deleted before, and `states.Overtaken` if it isn't the expected version.
    """
    with transaction.atomic():
        row = _lock(persona)
        states.refuse_other_version(row.version, expected_version)
        _refuse_in_use(row)
        Persona.everywhere.filter(pk=row.pk).update(deleted_at=now, updated_at=now)
        _audit("persona.deleted", row, by, {"name": row.name})


def restore(persona: Persona, *, by: str, now: datetime) -> Persona:
    """Undo a deletion, so that the persona's topics are active again too."""
    with transaction.atomic():
        row: Persona = Persona.everywhere.select_for_update().get(pk=persona.pk)
        if row.deleted_at is not None:
            Persona.everywhere.filter(pk=row.pk).update(deleted_at=None, updated_at=now)
            row.deleted_at = None
            _audit("persona.undeleted", row, by, {"name": row.name})
    return row


def clean(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the given fields as they are stored. Raises `Invalid` with all faults if there are any."""
    faults = validation.Faults()
    validation.refuse_unknown(fields, _READERS, faults)
    values = {name: reader(fields[name], name, faults) for name, reader in _READERS.items() if name in fields}
    faults.raise_if_any()
    return values


# --- Inside ----------------------------------------------------------------------------------------------------------


def _lock(persona: Persona) -> Persona:
    """Lock and return the persona. Raises `Conflict` if it was deleted."""
    row: Persona = Persona.everywhere.select_for_update().get(pk=persona.pk)
    if row.deleted_at is not None:
        message = _("This persona was deleted; restore it first.")
        raise Conflict.because(code="deleted", message=message, field=None)
    return row


def _write_version(row: Persona, new: Mapping[str, Any], *, by: str, now: datetime) -> None:
    Persona.everywhere.filter(pk=row.pk).update(**new, version=F("version") + 1, updated_at=now)
    row.refresh_from_db()
    _store_version(row, by=by, now=now)


def _store_version(row: Persona, *, by: str, now: datetime) -> None:
    PersonaVersion.everywhere.create(
        workspace_id=row.workspace_id,
        persona=row,
        number=row.version,
        content=persona_content(row),
        made_by=by[:200],
        created_at=now,
    )


def _refuse_in_use(row: Persona) -> None:
    """Raise `Conflict` if the persona is the workspace's default, or a source or series uses it."""
    if WorkspaceDefaults.everywhere.filter(persona=row).exists():
        message = _(
            "It is the workspace's default persona; choose another one in the content defaults first."
        )
        raise Conflict.because(code="in_use", message=message, field=None)
    sources = Source.objects.of(row.workspace_id).filter(persona=row, deleted_at=None)
    names = list(sources.order_by("name").values_list("name", flat=True)[:3])
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


def _audit(action: str, row: Persona, by: str, details: Mapping[str, Any]) -> None:
    workspace = Workspace(pk=row.workspace_id)
    audit.note(action, workspace=workspace, actor=by, subject=encode("per", row.pk), details=details)
