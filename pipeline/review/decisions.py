"""People's decisions on an item: approve, reject, restore, edit, delete."""

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
from pipeline.text.content_schema import ItemWords, in_step, refuse_unless_typed

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
    """Approve the newest revision, which also ends a hold, and clears the flag that its source has changed.

    Raises `Conflict` unless the item
    - is editable (`states.EDITABLE_ITEMS`),
    - is on hold, with something of it still to be sent,
    - or is published and flagged so.

    With an `expected_version` it raises `states.Overtaken` as `edit` does.
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
            # The flag that its source withdrew it is cleared only when the source lists it again.
            flagged="" if row.flagged == FlagReason.SOURCE_CHANGED else row.flagged,
        )
        audit_overruled_checks(row, by=by)
        # Publications that wait for this approval are sent now if they are due.
        publish.wake_scheduled(row)
    return row


def needs_approval(row: GeneratedItem) -> bool:
    """Return whether the item may be approved, and that changes anything.

    An approval lifts a hold or a flag, or the newest revision isn't approved yet.
    """
    lifts_something = bool(row.held) or row.flagged == FlagReason.SOURCE_CHANGED
    return row.status in _approvable_statuses(row) and (lifts_something or not row.is_approved_as_it_is)


def reject(
    item: GeneratedItem, *, reason: str, by: str, now: datetime, expected_version: int | None = None
) -> GeneratedItem:
    """Reject a ready item for the person's reason.

    Raises `Conflict` if it can't be rejected, and with an `expected_version` `states.Overtaken` as `edit`
    does.
    """
    with transaction.atomic():
        row = lock_with_workspace(item)
        states.refuse_other_version(row.version, expected_version)
        refuse_deleted(row)
        rejection = {"code": "by_person", "message": reason, "by": by, "at": format_utc(now)}
        states.move(row, "rejected", rejection=rejection, updated_at=now)
    return row


def restore(item: GeneratedItem, *, now: datetime, expected_version: int | None = None) -> GeneratedItem:
    """Undo a rejection. Raises `Conflict` for an item that isn't rejected.

    With an `expected_version` it raises `states.Overtaken` as `edit` does.
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
    beside: Mapping[str, Any] | None = None,
) -> GeneratedItem:
    """Edit text, outlets or alt texts while some of it may still be sent; changed text is a new revision.

    `changes` holds only what was given: title, body, content (what it leaves out stays), overrides, outlets,
    and `alt_texts` by asset id. An approval of an older revision holds the item until somebody approves
    again. If text in a picture changes, the picture is drawn again and the item is generating meanwhile; that
    isn't possible while it has publications, which were scheduled with these pictures. `beside` is what a
    writer who wrote the text says of it: its claims, and the writer's name.

    With an `expected_version` it raises `states.Overtaken` as a `version_conflict` if the row has changed
    since it was read. Raises `Invalid` for text that can't be drawn, and `Conflict` if the item isn't
    editable, or drawn text changes while it is scheduled.
    """
    with transaction.atomic():
        row = lock_with_workspace(item)
        states.refuse_other_version(row.version, expected_version)
        refuse_unless(row, EDITABLE_ITEMS, "edited")
        if changes in ({}, {"alt_texts": {}}):
            # Nothing was given, so nothing is written and the version stays.
            return row
        _check_changes(row, changes)
        old_words = ItemWords(row.body, row.body_format, row.title, row.content, row.language)
        changes = in_step(row.bucket, old_words, changes)
        values = {name: value for name, value in changes.items() if name in WORDS | {"outlets"}}
        is_redrawn = is_drawn(row) and _changes_drawing(row, values)
        if is_redrawn:
            _refuse_undrawable(row, values)
        if any(getattr(row, name) != values[name] for name in values.keys() & WORDS):
            # A video that isn't rendered again shows text that a person may have written into its storyboard.
            stored = None if is_redrawn else storyboards.stored_storyboard(row)
            board = stored.board if stored is not None else None
            write_revision(row, now, by=by, board=board, **values, **(beside or {}))
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
    """Raise `Conflict` or `Invalid` if the changed text can't be drawn.

    Checked here rather than in the run that draws, so that the person gets the message at once and the item
    stays as it is.
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
    """Return the first changed field that alters the drawing; if only several together do, the first of them."""
    changed = [name for name in _DRAWABLE_FIELDS if name in values]
    return next((name for name in changed if _changes_drawing(row, {name: values[name]})), changed[0])


def _alt_texts_by_name(row: GeneratedItem, alt_texts: Mapping[UUID, str]) -> dict[str, str]:
    """Return alt texts by file name instead of id: the new files get new ids, and the names of the old ones."""
    names = Asset.everywhere.filter(item=row, pk__in=list(alt_texts)).values_list("pk", "name")
    return {name: alt_texts[key] for key, name in names}


def _check_changes(row: GeneratedItem, changes: Mapping[str, Any]) -> None:
    """Raise `Invalid` for unknown outlets or content of the wrong type."""
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


def erase(item: GeneratedItem, *, now: datetime) -> None:
    """Erase the content and cancel what is scheduled; a tombstone stays for the ledger and the statistics.

    Raises `Conflict` while a publication of it is under way.
    """
    with transaction.atomic():
        row = lock_with_workspace(item)
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
        # And so are the receipts of what was sent, and what was mailed.
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
            # Who rejected it and when stays, as does a failure's code; a person's text, or quoted content, is erased.
            rejection=None if row.rejection is None else {**row.rejection, "message": ""},
            error=recoverable_failures.without_words(row.error),
            deleted_at=now,
        )
        transaction.on_commit(partial(_erase_files, row.pk), robust=True)


# --- Inside ----------------------------------------------------------------------------------------------------------


def _approvable_statuses(row: GeneratedItem) -> frozenset[str]:
    """Return the statuses in which the item may be approved, which a hold or a flag of its widens."""
    allowed = PUBLISHABLE_ITEMS if row.held else EDITABLE_ITEMS
    return allowed | PUBLISHED_STATUSES if row.flagged == FlagReason.SOURCE_CHANGED else allowed


def _erase_from_attempts(row: GeneratedItem) -> None:
    """Erase the content from the receipts and late answers of the item's attempts."""
    attempts = Attempt.everywhere.filter(publication__item=row)
    attempts.update(receipt=None)
    for key, answer in attempts.filter(late_answer__isnull=False).values_list("pk", "late_answer"):
        Attempt.everywhere.filter(pk=key).update(late_answer={**answer, "details": {}})


def _erase_files(item: UUID) -> None:
    """Delete the item's files at once. What a kill leaves is no longer served, and the sweep finds it.

    In a media folder of another database nothing is deleted.
    """
    if not media_root_id.compare_folder().refusal:
        erase_files_of_items([item])


def refuse_unless(row: GeneratedItem, allowed: frozenset[str], verb: str) -> None:
    """Raise `Conflict` for an erased item, or one in none of the allowed statuses; `verb` as in "approved"."""
    refuse_deleted(row)
    if row.status not in allowed:
        *others, last = sorted(allowed)
        names = f"{', '.join(others)} or {last}" if others else last
        message = f"It is {row.status}; it can be {verb} while it is {names}."
        raise Conflict(
            Detail("status", f"not_{verb}", message, {"status": row.status, "allowed": sorted(allowed)})
        )
