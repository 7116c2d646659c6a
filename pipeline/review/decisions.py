"""Carries out people's decisions on an item: approve, reject, restore, edit, delete."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from django.db import transaction

from config.core import states
from config.core.datetimes import format_utc
from config.core.errors import Conflict, Detail, Invalid
from pipeline import generate, mailing, publish
from pipeline.generate import generation_plan, lifecycle, recoverable_failures
from pipeline.holds.source_changes import PUBLISHED_STATUSES
from pipeline.ingest import collect
from pipeline.media import draw_pictures, media_root_id
from pipeline.media.files import erase_files_of_items
from pipeline.models import (
    Asset,
    Attempt,
    FlagReason,
    GeneratedItem,
    GeneratedItemStatus,
    Generation,
    Publication,
    PublicationStatus,
    Revision,
)
from pipeline.models.generated_item import no_words
from pipeline.plugins import Refused
from pipeline.publish.validation import audit_overruled_checks
from pipeline.review import storyboards
from pipeline.review.rerender import (
    draw_again,
    lock_with_workspace,
    refuse_deleted,
    update_locked,
    why_promised,
    write_revision,
)
from pipeline.states import EDITABLE_ITEMS, PUBLICATIONS_IN_FLIGHT, PUBLISHABLE_ITEMS
from pipeline.text.content_schema import ItemWords, refuse_unless_typed, sync_changes

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime
    from uuid import UUID

    from pipeline.engines.base import Draft

WORDS: Final = frozenset({"title", "body", "content", "overrides"})
"""The fields whose change makes a new revision; outlets and alt texts don't."""

_DRAWABLE_FIELDS: Final = ("body", "content", "title")
"""The fields that can appear in an item's pictures."""


def approve(
    item: GeneratedItem, *, by: str, now: datetime, expected_version: int | None = None
) -> GeneratedItem:
    """Approve the newest revision, end a hold, and clear the flag that the source has changed.

    Publications that wait for the approval are woken. Raises `Conflict` if the item was deleted, or is in none of
    these states: editable (`states.EDITABLE_ITEMS`); on hold, with publications still to be sent; published and
    flagged as changed. Raises `states.Overtaken` if the item isn't at the expected version.
    """
    with transaction.atomic():
        row = lock_with_workspace(item)
        states.refuse_other_version(row.version, expected_version)
        refuse_unless(row, _approvable_statuses(row), "approved")
        update_locked(
            row,
            now,
            **row.approval(by, now),
            held="",
            # A flag for a withdrawn source is cleared only when the source lists the entry again.
            flagged="" if row.flagged == FlagReason.SOURCE_CHANGED else row.flagged,
        )
        audit_overruled_checks(row, by=by)
        # Publications that wait for this approval are sent now if they are due.
        publish.wake_scheduled(row)
    return row


def needs_approval(row: GeneratedItem) -> bool:
    """Return whether the item may be approved and an approval would change it.

    It would lift a hold or a flag, or the newest revision isn't approved yet.
    """
    lifts_something = bool(row.held) or row.flagged == FlagReason.SOURCE_CHANGED
    return row.status in _approvable_statuses(row) and (lifts_something or not row.is_approved_as_it_is)


def reject(
    item: GeneratedItem, *, reason: str, by: str, now: datetime, expected_version: int | None = None
) -> GeneratedItem:
    """Reject a ready item for the person's reason.

    Raises `Conflict` if the item was deleted or its status can't be rejected, and `states.Overtaken` if it isn't at
    the expected version.
    """
    with transaction.atomic():
        row = lock_with_workspace(item)
        states.refuse_other_version(row.version, expected_version)
        refuse_deleted(row)
        rejection = {"code": "by_person", "message": reason, "by": by, "at": format_utc(now)}
        states.move(row, "rejected", rejection=rejection, updated_at=now)
    return row


def restore(item: GeneratedItem, *, now: datetime, expected_version: int | None = None) -> GeneratedItem:
    """Move a rejected item back to `ready`.

    Raises `Conflict` if the item was deleted or isn't rejected, and `states.Overtaken` if it isn't at the expected
    version.
    """
    with transaction.atomic():
        row = lock_with_workspace(item)
        states.refuse_other_version(row.version, expected_version)
        refuse_deleted(row)
        if row.status != GeneratedItemStatus.REJECTED:
            message = f"It is {row.status}; only a rejected item is restored."
            detail = Detail(
                "status", "not_rejected", message, {"status": row.status, "allowed": ["rejected"]}
            )
            raise Conflict(detail)
        states.move(row, "ready", rejection=None, updated_at=now)
    return row


def edit(
    item: GeneratedItem,
    changes: Mapping[str, Any],
    *,
    by: str,
    now: datetime,
    expected_version: int | None = None,
    writer_fields: Mapping[str, Any] | None = None,
) -> GeneratedItem:
    """Edit text, outlets or alt texts while the item may still be sent; changed text is a new revision.

    `changes` holds only the fields to change: title, body, content (fields that it leaves out stay), overrides,
    outlets, and `alt_texts` by asset id; without any the item stays as it is. An item with an approved older
    revision is held until it is approved again. If text in a picture changes, the picture is drawn again and the
    item is generating meanwhile. `writer_fields` are written with text by a model: its claims and its generator.

    Raises `Invalid` if an outlet, a value or a drawing isn't possible, `Conflict` if the item was deleted, isn't
    editable, or has publications and its drawn text changes, and `states.Overtaken`, as a `version_conflict`, if
    the item isn't at the expected version.
    """
    with transaction.atomic():
        row = lock_with_workspace(item)
        states.refuse_other_version(row.version, expected_version)
        refuse_unless(row, EDITABLE_ITEMS, "edited")
        if changes in ({}, {"alt_texts": {}}):
            # There is no change, so nothing is written and the version stays.
            return row
        _check_changes(row, changes)
        old_words = ItemWords(row.body, row.body_format, row.title, row.content, row.language)
        changes = sync_changes(row.bucket, old_words, changes)
        values = {name: value for name, value in changes.items() if name in WORDS | {"outlets"}}
        is_redrawn = is_drawn(row) and _changes_drawing(row, values)
        if is_redrawn:
            _refuse_undrawable(row, values)
        if any(getattr(row, name) != values[name] for name in values.keys() & WORDS):
            # A video that isn't rendered again shows text that a person may have written into its storyboard.
            stored = None if is_redrawn else storyboards.stored_storyboard(row)
            board = stored.board if stored is not None else None
            write_revision(row, now, by=by, board=board, **values, **(writer_fields or {}))
        else:
            update_locked(row, now, **values)
        alt_texts = changes.get("alt_texts", {})
        for asset_id, text in alt_texts.items():
            Asset.everywhere.filter(item=row, pk=asset_id).update(alt_text=text)
        if is_redrawn:
            draw_again(row, _alt_texts_by_name(row, alt_texts), now)
    return row


def is_drawn(row: GeneratedItem) -> bool:
    """Return whether the item has pictures or a video that show its text."""
    return (
        bool(generation_plan.engine_named(row.engine_output).sizes)
        and Asset.everywhere.filter(item=row, revoked_at=None).exists()
    )


def _changes_drawing(row: GeneratedItem, values: Mapping[str, Any]) -> bool:
    """Return whether the item would be drawn differently with these values."""
    engine = generation_plan.engine_named(row.engine_output)
    return engine.drawn(_draft_with(row, values)) != engine.drawn(generate.draft_of(row))


def _draft_with(row: GeneratedItem, values: Mapping[str, Any]) -> Draft:
    """Return the item's draft with these values."""
    return generate.draft_of(row, **{name: values[name] for name in _DRAWABLE_FIELDS if name in values})


def _refuse_undrawable(row: GeneratedItem, values: Mapping[str, Any]) -> None:
    """Raise `Conflict` if the item isn't ready, and `Invalid` if the changed text can't be drawn.

    It is checked before the run that draws, so that the person gets the message at once and the item stays as it
    is.
    """
    if row.status != GeneratedItemStatus.READY:
        state, first_step = why_promised(row)
        message = f"Its words are drawn in an image that {state}. {first_step}, then edit it."
        raise Conflict(Detail(_field_drawn(row, values), "drawn_words", message, {"status": row.status}))
    engine = generation_plan.engine_named(row.engine_output)
    draft = _draft_with(row, values)
    persona = generate.persona_card(row.persona_id, row.persona_version)
    try:
        draw_pictures.refuse_undrawable(engine, draft, persona, row.raw_item)
    except Refused as refused:
        field = refused.field or _field_drawn(row, values)
        raise Invalid.one(field=field, code=refused.code, message=refused.message) from refused


def _field_drawn(row: GeneratedItem, values: Mapping[str, Any]) -> str:
    """Return the first changed field that alters the drawing alone, else the first changed one."""
    changed = [name for name in _DRAWABLE_FIELDS if name in values]
    return next((name for name in changed if _changes_drawing(row, {name: values[name]})), changed[0])


def _alt_texts_by_name(row: GeneratedItem, alt_texts: Mapping[UUID, str]) -> dict[str, str]:
    """Return alt texts by file name instead of id, because new files get new ids and the names of the old ones."""
    names = Asset.everywhere.filter(item=row, pk__in=list(alt_texts)).values_list("pk", "name")
    return {name: alt_texts[key] for key, name in names}


def _check_changes(row: GeneratedItem, changes: Mapping[str, Any]) -> None:
    """Raise `Invalid` if outlets are unknown, or content isn't of the bucket's types."""
    if "outlets" in changes:
        collect.check_outlets(row.workspace, changes["outlets"], test=row.test)
    if "overrides" in changes:
        _check_override_keys(row, changes["overrides"])
    if "content" in changes:
        refuse_unless_typed(row.bucket, changes["content"])


def _check_override_keys(row: GeneratedItem, overrides: Mapping[str, Any]) -> None:
    def field_of_key(_index: int, public_id: str) -> str:
        return f"overrides.{public_id}"

    collect.check_outlets(row.workspace, list(overrides), test=row.test, field_of=field_of_key)


def erase(item: GeneratedItem, *, now: datetime, expected_version: int | None = None) -> None:
    """Erase the item's content and files, and cancel its scheduled publications.

    A row without content stays for the ledger and the statistics. An erased item stays as it is. Raises `Conflict`
    if a publication of it is under way, and `states.Overtaken` if it isn't the expected version.
    """
    with transaction.atomic():
        row = lock_with_workspace(item)
        states.refuse_other_version(row.version, expected_version)
        if row.deleted_at is not None:
            return
        publications = Publication.everywhere.filter(item=row)
        statuses = set(publications.values_list("status", flat=True))
        if statuses & PUBLICATIONS_IN_FLIGHT:
            message = "A publication of it is under way; wait for its outcome, or reconcile it."
            raise Conflict.because(code="in_flight", message=message)
        if PublicationStatus.SCHEDULED in statuses:
            row = publish.cancel(row, now=now)
        # Overrides for single outlets are content of the item too.
        publications.update(overrides={}, step_state={}, details={})
        # So are the receipts of attempts, and mailed texts.
        _erase_from_attempts(row)
        mailing.erase_words(row, now=now)
        Revision.everywhere.filter(item=row).delete()
        Asset.everywhere.filter(item=row).update(revoked_at=now, alt_text="")
        others = GeneratedItem.everywhere.filter(generation_id=row.generation_id, deleted_at=None)
        if not others.exclude(pk=row.pk).exists():
            # A failed drawing run keeps alt texts or a storyboard.
            lifecycle.erase_words(Generation.everywhere.filter(pk=row.generation_id))
        lifecycle.erase_words(Generation.everywhere.filter(rewrites=row))
        update_locked(
            row,
            now,
            **no_words(),
            # The author and time of a rejection stay, and a failure's code; a person's text and quotes are erased.
            rejection=None if row.rejection is None else {**row.rejection, "message": ""},
            error=recoverable_failures.without_words(row.error),
            deleted_at=now,
        )
        transaction.on_commit(partial(_erase_files, row.pk), robust=True)


# --- Inside ----------------------------------------------------------------------------------------------------------


def _approvable_statuses(row: GeneratedItem) -> frozenset[str]:
    """Return the statuses in which the item may be approved; a hold or a flag adds some."""
    allowed = PUBLISHABLE_ITEMS if row.held else EDITABLE_ITEMS
    return allowed | PUBLISHED_STATUSES if row.flagged == FlagReason.SOURCE_CHANGED else allowed


def _erase_from_attempts(row: GeneratedItem) -> None:
    """Erase the content from the receipts and late answers of the item's attempts."""
    attempts = Attempt.everywhere.filter(publication__item=row)
    attempts.update(receipt=None)
    for key, answer in attempts.filter(late_answer__isnull=False).values_list("pk", "late_answer"):
        Attempt.everywhere.filter(pk=key).update(late_answer={**answer, "details": {}})


def _erase_files(item: UUID) -> None:
    """Delete the item's files, unless the media folder belongs to another database.

    Files that remain after a kill are no longer served, and the sweep finds them.
    """
    if not media_root_id.compare_folder().refusal:
        erase_files_of_items([item])


def refuse_unless(row: GeneratedItem, allowed: frozenset[str], verb: str) -> None:
    """Raise `Conflict` if the item was erased or is in none of the allowed statuses; `verb` is "approved" etc."""
    refuse_deleted(row)
    if row.status not in allowed:
        *others, last = sorted(allowed)
        names = f"{', '.join(others)} or {last}" if others else last
        message = f"It is {row.status}; it can be {verb} while it is {names}."
        raise Conflict(
            Detail("status", f"not_{verb}", message, {"status": row.status, "allowed": sorted(allowed)})
        )
