"""Creates, changes, deletes and restores topics of the pool, and keeps a source's own list in sync with it."""

from __future__ import annotations

import re
from datetime import date
from functools import partial
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from django.db import transaction
from django.db.models import F
from django.utils.translation import gettext as _

from accounts.models import Workspace
from config.core import states
from config.core.errors import Conflict
from pipeline import limits
from pipeline.models import Persona, Source, Topic
from pipeline.personas import validation
from pipeline.sources.brand import topics_in

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

_DAY: Final = re.compile(r"(\d\d)-(\d\d)")
_LEAP_YEAR: Final = 2028
"""A year that has every day of a year, 29 February too."""
_MAX_PER_MONTH: Final = 31


def create(workspace: Workspace, fields: Mapping[str, Any], *, test: bool = False, now: datetime) -> Topic:
    """Create a topic of the pool. `fields` holds `title` and any other setting of `change`.

    Raises `Invalid` with all faults if there are any, and `Conflict` if the pool has `limits.TOPICS` already.
    """
    values = _clean(workspace, {"title": "", **fields})
    with transaction.atomic():
        # Two requests at once must not both take the last place.
        Workspace.everywhere.select_for_update(no_key=True).get(pk=workspace.pk)
        if _count_pool(workspace, test=test) >= limits.TOPICS:
            message = _("A workspace has %(most)d topics at most; delete one first.") % {
                "most": limits.TOPICS
            }
            raise Conflict.because(code="too_many", message=message, field=None)
        topic: Topic = Topic.everywhere.create(
            workspace=workspace, test=test, created_at=now, updated_at=now, **values
        )
    return topic


def change(
    topic: Topic, changes: Mapping[str, Any], *, now: datetime, expected_version: int | None = None
) -> Topic:
    """Change a topic and return it; without a real change nothing is written.

    Settings are `title`, `notes`, `angles`, `evidence` (`{"url", "text"}` each), `weight`, `cooldown_days`,
    `max_per_month` (or `None`), `season` (`{"from": "MM-DD", "to": "MM-DD"}` or `None`), `is_active`, `persona_id`
    (or `None`). Raises `Invalid` with all faults if there are any, `Conflict` for a deleted topic, or for the title
    or listed notes of a topic in a source's own list, and `states.Overtaken` if it doesn't have `expected_version`
    any more.
    """
    values = _clean(topic.workspace_id, changes)
    with transaction.atomic():
        row = _lock(topic)
        states.refuse_other_version(row.version, expected_version)
        new = {name: value for name, value in values.items() if getattr(row, name) != value}
        if not new:
            return row
        if row.source is not None:
            is_listed = topics_in(row.source.config).get(row.title) is not None
            if "title" in new:
                _refuse_listed_topic("title")
            if "notes" in new and is_listed:
                _refuse_listed_topic("notes")
        Topic.everywhere.filter(pk=row.pk).update(**new, version=F("version") + 1, updated_at=now)
        row.refresh_from_db()
    return row


def delete(topic: Topic, *, now: datetime, expected_version: int | None = None) -> None:
    """Mark a topic as deleted; its items stay.

    Raises `Conflict` if it is in a source's list or deleted, and `states.Overtaken` if it isn't the expected
    version.
    """
    with transaction.atomic():
        row = _lock(topic)
        states.refuse_other_version(row.version, expected_version)
        if row.source_id is not None:
            _refuse_listed_topic(None)
        Topic.everywhere.filter(pk=row.pk).update(deleted_at=now, version=F("version") + 1, updated_at=now)


def restore(topic: Topic, *, now: datetime) -> Topic:
    """Undo a deletion; a topic that isn't deleted stays the same."""
    with transaction.atomic():
        row: Topic = Topic.everywhere.select_for_update().get(pk=topic.pk)
        if row.deleted_at is not None:
            Topic.everywhere.filter(pk=row.pk).update(
                deleted_at=None, version=F("version") + 1, updated_at=now
            )
            row.refresh_from_db()
    return row


def sync_listed_topics(source: Source, *, now: datetime) -> None:
    """Make rows of the topics in a source's own list (`config.topics`), so that they rest and count as others do.

    A topic no longer in the list is marked as deleted, and returns with its settings when it is listed again.
    Notes in the list replace those of the topic.
    """
    notes_by_title = topics_in(source.config)
    rows_by_title = {row.title: row for row in Topic.everywhere.filter(source=source)}
    new_topics = [
        Topic(
            workspace_id=source.workspace_id,
            test=source.test,
            source=source,
            title=title,
            notes=notes or "",
            created_at=now,
        )
        for title, notes in notes_by_title.items()
        if title not in rows_by_title
    ]
    if new_topics:
        Topic.everywhere.bulk_create(new_topics, ignore_conflicts=True)
    restored_ids = [
        row.pk
        for title, row in rows_by_title.items()
        if title in notes_by_title and row.deleted_at is not None
    ]
    removed_ids = [
        row.pk
        for title, row in rows_by_title.items()
        if title not in notes_by_title and row.deleted_at is None
    ]
    for title, notes in notes_by_title.items():
        if notes is not None and title in rows_by_title and rows_by_title[title].notes != notes:
            Topic.everywhere.filter(pk=rows_by_title[title].pk).update(
                notes=notes, version=F("version") + 1, updated_at=now
            )
    for topic_ids, deleted_at in ((restored_ids, None), (removed_ids, now)):
        if topic_ids:
            Topic.everywhere.filter(pk__in=topic_ids).update(
                deleted_at=deleted_at, version=F("version") + 1, updated_at=now
            )


# --- Inside ----------------------------------------------------------------------------------------------------------


def _read_evidence(value: Any, field: str, faults: validation.Faults) -> list[dict[str, str]]:
    """Return the evidence of a topic, each with an address, a text or both. Adds to `faults`."""
    if not isinstance(value, list | tuple):
        faults.add(field, "invalid_type", "Give a list.")
        return []
    if len(value) > limits.TOPIC_EVIDENCE:
        faults.add(field, "too_many", f"Give at most {limits.TOPIC_EVIDENCE} of them.")
        return []
    evidence = []
    for index, entry in enumerate(value):
        path = f"{field}[{index}]"
        if not isinstance(entry, dict) or set(entry) - {"url", "text"}:
            faults.add(path, "invalid", "Give an object with url, text or both.")
            continue
        cleaned = {
            "url": validation.read_address(entry.get("url") or "", f"{path}.url", faults),
            "text": validation.read_text(
                entry.get("text") or "", f"{path}.text", faults, most=limits.EVIDENCE_CHARACTERS
            ),
        }
        if any(cleaned.values()):
            evidence.append(cleaned)
        else:
            faults.add(path, "required", "Give an address, a text or both.")
    return evidence


def _read_flag(value: Any, field: str, faults: validation.Faults) -> bool:
    if not isinstance(value, bool):
        faults.add(field, "invalid_type", "Give true or false.")
    return value is True


def _read_max_per_month(value: Any, field: str, faults: validation.Faults) -> int | None:
    if value is None:
        return None
    return validation.read_whole_number(value, field, faults, least=1, most=_MAX_PER_MONTH)


_READERS: Final[Mapping[str, Any]] = {
    "title": partial(validation.read_line, most=limits.TOPIC_TITLE_CHARACTERS, is_needed=True),
    "notes": partial(validation.read_text, most=limits.TOPIC_NOTES_CHARACTERS),
    "angles": partial(validation.read_lines, most=limits.TOPIC_ANGLES, characters=limits.ANGLE_CHARACTERS),
    "evidence": _read_evidence,
    "weight": partial(validation.read_whole_number, least=1, most=limits.TOPIC_WEIGHT),
    "cooldown_days": partial(validation.read_whole_number, least=0, most=limits.TOPIC_COOLDOWN_DAYS),
    "max_per_month": _read_max_per_month,
    "is_active": _read_flag,
}


def _clean(workspace: Workspace | UUID, fields: Mapping[str, Any]) -> dict[str, Any]:
    faults = validation.Faults()
    validation.refuse_unknown(fields, {*_READERS, "season", "persona_id"}, faults)
    values = {name: reader(fields[name], name, faults) for name, reader in _READERS.items() if name in fields}
    if "season" in fields:
        values |= _read_season(fields["season"], faults)
    if "persona_id" in fields:
        values["persona_id"] = _read_persona_id(workspace, fields["persona_id"], faults)
    faults.raise_if_any()
    return values


def _read_season(value: Any, faults: validation.Faults) -> dict[str, str]:
    if value is None:
        return {"season_from": "", "season_to": ""}
    if not isinstance(value, dict) or set(value) != {"from", "to"}:
        faults.add("season", "invalid", "Give an object with from and to, or null for the whole year.")
        return {}
    for name in ("from", "to"):
        if not _is_day_of_year(value[name]):
            faults.add(f"season.{name}", "invalid", "Give a day of the year as MM-DD, such as 12-01.")
    return {"season_from": str(value["from"]), "season_to": str(value["to"])}


def _is_day_of_year(value: Any) -> bool:
    match = _DAY.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        return False
    try:
        date(_LEAP_YEAR, int(match[1]), int(match[2]))
    except ValueError:
        return False
    return True


def _read_persona_id(workspace: Workspace | UUID, value: Any, faults: validation.Faults) -> UUID | None:
    if value is None:
        return None
    is_known = isinstance(value, UUID) and (
        Persona.objects.of(workspace).filter(pk=value, deleted_at=None).exists()
    )
    if not is_known:
        message = "This workspace has no such persona; GET /v1/personas lists them."
        faults.add("persona", "unknown_persona", message)
        return None
    persona_id: UUID = value
    return persona_id


def _count_pool(workspace: Workspace, *, test: bool) -> int:
    return Topic.objects.of(workspace).filter(test=test, source=None, deleted_at=None).count()


def _lock(topic: Topic) -> Topic:
    row: Topic = Topic.everywhere.select_for_update().get(pk=topic.pk)
    if row.deleted_at is not None:
        raise Conflict.because(code="deleted", message=_("This topic was deleted."), field=None)
    return row


def _refuse_listed_topic(field: str | None) -> None:
    message = _("It stands in a source's own list; change config.topics of that source.")
    raise Conflict.because(code="of_a_source", message=message, field=field)
