"""People decide: approve, reject, restore, edit, try again, make another, delete."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from django.db import transaction
from django.db.models import Max

from accounts import credits as credit_account
from config.core import dispatch, states
from config.core.datetimes import as_z
from config.core.errors import Conflict, Detail, Invalid
from config.core.middleware import request_id
from pipeline import generate, plugins, publish
from pipeline.engines.base import ANGLES, Engine
from pipeline.generate import retry_rules
from pipeline.generate.lifecycle import REDRAW
from pipeline.generate.model import account
from pipeline.holds.source_changes import OUT
from pipeline.ingest import collect, push
from pipeline.media import media_folder, pictures
from pipeline.media.files import erase_of_items
from pipeline.models import (
    Asset,
    Attempt,
    FlagReason,
    GeneratedItem,
    GeneratedItemStatus,
    Generation,
    GenerationInput,
    Publication,
    RawBody,
    RawItem,
    RawItemStatus,
    Revision,
    SeriesIssue,
)
from pipeline.plugins import Refused
from pipeline.publish.validation import note_overruled
from pipeline.review import storyboards
from pipeline.review.rerender import draw_again, write, write_revision
from pipeline.review.rerender import locked as _locked
from pipeline.states import EDITABLE, PUBLISHABLE
from pipeline.text.content import Said, in_step, refuse_unless_typed
from pipeline.text.html_text import strip_invisible
from pipeline.text.sentence_edits import collapse
from pipeline.writers.base import NO_HINTS

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from accounts.models import Workspace
    from pipeline.engines.base import Draft

WORDS: Final = frozenset({"title", "body", "content", "overrides"})
"""What makes a new revision when it changes; outlets and alt texts are no words of the item."""

_DRAWN: Final = ("body", "content", "title")
"""What of an item can stand in its pictures."""


def approve(
    item: GeneratedItem, *, by: str, now: datetime, expected_version: int | None = None
) -> GeneratedItem:
    """Approve the newest revision, which also lets go of a hold, and of the flag that its source has changed.

    Raises `Conflict` unless it is editable (`states.EDITABLE`), is held with something of it still to be sent, or is published
    and flagged so; with an `expected_version`, `states.Overtaken` as `edit` does.
    """
    with transaction.atomic():
        row = _locked(item)
        states.refuse_other_version(row.version, expected_version)
        is_flagged = row.flagged == FlagReason.SOURCE_CHANGED
        allowed = PUBLISHABLE if row.held else EDITABLE
        _refuse_unless(row, allowed | OUT if is_flagged else allowed, "approved")
        write(
            row,
            now,
            approved_by=by,
            approved_at=now,
            approved_revision=row.revision,
            held="",
            # That a source took it back is let go only when it lists it again.
            flagged="" if is_flagged else row.flagged,
        )
        note_overruled(row, by=by)
        # What waits for this approval is sent now if it is due.
        publish.wake_scheduled(row)
    return row


def reject(
    item: GeneratedItem, *, reason: str, by: str, now: datetime, expected_version: int | None = None
) -> GeneratedItem:
    """With an `expected_version` it raises `states.Overtaken` as `edit` does."""
    with transaction.atomic():
        row = _locked(item)
        states.refuse_other_version(row.version, expected_version)
        _refuse_deleted(row)
        rejection = {"code": "by_person", "message": reason, "by": by, "at": as_z(now)}
        states.move(row, "rejected", rejection=rejection, updated_at=now)
    return row


def restore(item: GeneratedItem, *, now: datetime, expected_version: int | None = None) -> GeneratedItem:
    """Undo a rejection; with an `expected_version` it raises `states.Overtaken` as `edit` does."""
    with transaction.atomic():
        row = _locked(item)
        states.refuse_other_version(row.version, expected_version)
        _refuse_deleted(row)
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
) -> GeneratedItem:
    """Change words, outlets or alt texts while some of it may still be sent; changed words are a new revision.

    `changes` holds only what was given: title, body, content (what it leaves out stays), overrides, outlets, and
    `alt_texts` by asset id. An approval of an older revision holds the item until somebody approves again. Words that
    are drawn in a picture are drawn again, and the item is generating meanwhile; not while it has publications, for its
    pictures are promised.
    `expected_version` raises `states.Overtaken` as a `version_conflict` where the row has moved on since it was read.
    Raises `Invalid` for words that can't be drawn.
    """
    with transaction.atomic():
        row = _locked(item)
        states.refuse_other_version(row.version, expected_version)
        _refuse_unless(row, EDITABLE, "edited")
        if changes in ({}, {"alt_texts": {}}):
            # Nothing was said, so nothing is written and the version stays.
            return row
        _check_changes(row, changes)
        said = Said(row.body, row.body_format, row.title, row.content, row.language)
        changes = in_step(row.bucket, said, changes)
        values = {name: value for name, value in changes.items() if name in WORDS | {"outlets"}}
        if "body" in values:
            values["excerpt"] = generate.excerpt_of(values["body"], row.body_format)
        is_redrawn = _is_drawn(row) and _changes_drawing(row, values)
        if is_redrawn:
            _refuse_undrawable(row, values)
        if any(getattr(row, name) != values[name] for name in values.keys() & WORDS):
            # A film that stays as it is shows what a person may have written into its storyboard.
            filmed = None if is_redrawn else storyboards.kept(row)
            write_revision(row, now, by=by, board=filmed.board if filmed is not None else None, **values)
        else:
            write(row, now, **values)
        alt_texts = changes.get("alt_texts", {})
        for asset_id, text in alt_texts.items():
            Asset.everywhere.filter(item=row, pk=asset_id).update(alt_text=text)
        if is_redrawn:
            draw_again(row, _by_name(row, alt_texts), now)
    return row


def _is_drawn(row: GeneratedItem) -> bool:
    return (
        bool(push.engine_named(row.engine_output).sizes)
        and Asset.everywhere.filter(item=row, revoked_at=None).exists()
    )


def _changes_drawing(row: GeneratedItem, values: Mapping[str, Any]) -> bool:
    engine = push.engine_named(row.engine_output)
    return engine.drawn(_draft_with(row, values)) != engine.drawn(generate.draft_of(row))


def _draft_with(row: GeneratedItem, values: Mapping[str, Any]) -> Draft:
    return generate.draft_of(row, **{name: values[name] for name in _DRAWN if name in values})


def _refuse_undrawable(row: GeneratedItem, values: Mapping[str, Any]) -> None:
    """Here rather than in the run that draws: who typed the words is told at once, and the item stays as it is."""
    if row.status != GeneratedItemStatus.READY:
        what = "is scheduled" if row.status == GeneratedItemStatus.SCHEDULED else "failed to go out"
        message = f"Its words are drawn in a picture that {what}. Cancel what {what} first, then edit it."
        raise Conflict(Detail(_field_drawn(row, values), "drawn_words", message, {"status": row.status}))
    engine = push.engine_named(row.engine_output)
    draft = _draft_with(row, values)
    persona = generate.persona_card(row.persona_id, row.persona_version)
    try:
        pictures.refuse_undrawable(engine, draft, persona, row.raw_item)
    except Refused as refused:
        field = refused.field or _field_drawn(row, values)
        raise Invalid.one(field=field, code=refused.code, message=refused.message) from refused


def _field_drawn(row: GeneratedItem, values: Mapping[str, Any]) -> str:
    """The first that is drawn of what was changed."""
    return next(name for name in _DRAWN if name in values and _changes_drawing(row, {name: values[name]}))


def _by_name(row: GeneratedItem, alt_texts: Mapping[UUID, str]) -> dict[str, str]:
    """The new files have other ids, and the names of those before them."""
    names = Asset.everywhere.filter(item=row, pk__in=list(alt_texts)).values_list("pk", "name")
    return {name: alt_texts[key] for key, name in names}


def _check_changes(row: GeneratedItem, changes: Mapping[str, Any]) -> None:
    if "outlets" in changes:
        collect.check_outlets(row.workspace, changes["outlets"], test=row.test)
    if "overrides" in changes:
        _check_override_keys(row, changes["overrides"])
    if "content" in changes:
        refuse_unless_typed(row.bucket, changes["content"])


def _check_override_keys(row: GeneratedItem, overrides: Mapping[str, Any]) -> None:
    try:
        collect.check_outlets(row.workspace, list(overrides), test=row.test, field="overrides")
    except Invalid as error:
        # They are named by their key, not by a place in a list.
        keys = list(overrides)
        named = [
            Detail(f"overrides.{keys[int((one.field or '')[10:-1])]}", one.code, one.message)
            for one in error.detail
        ]
        raise Invalid(*named) from error


def retry(
    item: GeneratedItem, *, workspace: Workspace, now: datetime, expected_version: int | None = None
) -> GeneratedItem:
    """Make a failed item again, in a run of its own; one whose words only have to be drawn keeps them.

    Raises `Conflict`, with what would help where trying again can't, `QuotaExceeded`, `states.Overtaken` where it isn't the version that was expected.
    """
    if item.revision and item.status == GeneratedItemStatus.FAILED and _is_drawn(item):
        return _retry_drawing(item, now, expected_version)
    with transaction.atomic():
        raw = _source_of(item)
        row = _locked(item)
        states.refuse_other_version(row.version, expected_version)
        _refuse_deleted(row)
        states.refuse_unless_allowed(row, "queued")
        retry_rules.refuse_final(retry_rules.current_error(workspace, row))
        generation = _another_run(row, raw, workspace, now, answers=generate.cost_so_far(row.generation))
        # A series tells of the digest by its run, and remembers by it what was told.
        SeriesIssue.everywhere.filter(generation_id=row.generation_id).update(generation=generation)
        states.move(
            row,
            "queued",
            generation=generation,
            error=None,
            checks=[],
            checks_revision=None,
            claims=[],
            updated_at=now,
        )
        if raw is not None:
            _requeue_raw(raw, now)
        reserve(workspace, generation, now)
    return row


def _retry_drawing(item: GeneratedItem, now: datetime, expected_version: int | None) -> GeneratedItem:
    """It was drawn before, and drawing it again broke: a full disk must not cost a person's words."""
    with transaction.atomic():
        row = _locked(item)
        states.refuse_other_version(row.version, expected_version)
        _refuse_deleted(row)
        write(row, now, error=None)
        broken = Generation.everywhere.filter(pk=row.generation_id).first()
        said = broken.answers.get(REDRAW, {}) if broken is not None else {}
        draw_again(row, said.get("alt_texts", {}), now, board=said.get("storyboard"))
    return row


def regenerate(item: GeneratedItem, *, workspace: Workspace, now: datetime, hint: str = "") -> GeneratedItem:
    """A further variant of the same group. Raises `Conflict`, `QuotaExceeded`.

    A `hint`, up to 500 characters, is asked of the model with it; `Conflict` on it where none is asked.
    """
    hint = collapse(strip_invisible(hint))
    with transaction.atomic():
        raw = _source_of(item)
        row = _locked(item)
        _refuse_deleted(row)
        if row.status in {GeneratedItemStatus.QUEUED, GeneratedItemStatus.GENERATING}:
            message = f"It is {row.status}; wait until it is made."
            raise Conflict.because(code="not_made_yet", message=message)
        last = GeneratedItem.everywhere.filter(variant_group=row.variant_group).aggregate(
            last=Max("variant_index")
        )
        index = (last["last"] or 0) + 1
        if index >= len(ANGLES):
            message = f"A group has {len(ANGLES)} variants at most; edit one of them."
            raise Conflict.because(code="no_more_variants", message=message)
        if raw is not None:
            push.refuse_unmakeable(raw, row, workspace, index=index)
        generation = _another_run(row, raw, workspace, now)
        _refuse_unfollowed(hint, generation)
        variant = _further(row, raw, generation, now, hint=hint, group=row.variant_group, index=index)
        if raw is not None:
            _requeue_raw(raw, now)
        reserve(workspace, generation, now)
    return variant


def bring_back(item: GeneratedItem, *, workspace: Workspace, index: int, now: datetime) -> GeneratedItem:
    """A fresh variant that stands alone, so that it is decided on by itself; the one before stays as it is.

    In the caller's transaction, who calls `reserve` for its run last. Raises `Conflict`.
    """
    raw = _source_of(item)
    row = _locked(item)
    _refuse_deleted(row)
    generation = _another_run(row, raw, workspace, now)
    if raw is not None:
        _requeue_raw(raw, now)
    return _further(row, raw, generation, now, group=generation.pk, index=index)


def _further(
    row: GeneratedItem,
    raw: RawItem | None,
    generation: Generation,
    now: datetime,
    *,
    group: UUID,
    index: int,
    hint: str = "",
) -> GeneratedItem:
    variant: GeneratedItem = GeneratedItem.everywhere.create(
        workspace=generation.workspace,
        test=row.test,
        generation=generation,
        source_id=row.source_id,
        raw_item=raw,
        raw_items=row.raw_items,
        topic_id=row.topic_id,
        persona_id=row.persona_id,
        parent=row,
        hint=hint,
        bucket=row.bucket,
        engine_output=row.engine_output,
        engine_version=row.engine_version,
        variant_group=group,
        variant_index=index,
        outlets=row.outlets,
        is_sample=row.is_sample,
        approval_required=generation.workspace.requires_approval,
        created_at=now,
        updated_at=now,
    )
    return variant


def erase(item: GeneratedItem, *, now: datetime) -> None:
    """Erase the content and cancel what is scheduled; a tombstone stays for the ledger and the statistics."""
    with transaction.atomic():
        row = _locked(item)
        if row.deleted_at is not None:
            return
        publications = Publication.everywhere.filter(item=row)
        there = set(publications.values_list("status", flat=True))
        if there & {"publishing", "unknown"}:
            message = "A publication of it is under way; wait for its outcome, or reconcile it."
            raise Conflict.because(code="in_flight", message=message)
        if "scheduled" in there:
            row = publish.cancel(row, now=now)
        # The words that one outlet got instead are words of the item too.
        publications.update(overrides={}, step_state={}, details={})
        # And so are the receipts of what was handed over.
        Attempt.everywhere.filter(publication__item=row).update(receipt=None)
        Revision.everywhere.filter(item=row).delete()
        Asset.everywhere.filter(item=row).update(revoked_at=now)
        # A drawing that broke keeps what was said with the words.
        Generation.everywhere.ended().filter(pk=row.generation_id).update(answers={})
        write(
            row,
            now,
            title="",
            body="",
            content={},
            excerpt="",
            claims=[],
            checks=[],
            checks_revision=None,
            overrides={},
            hint="",
            deleted_at=now,
        )
        transaction.on_commit(partial(_erase_files, row.pk), robust=True)


# --- Inside ----------------------------------------------------------------------------------------------------------


def _erase_files(item: UUID) -> None:
    """At once and for good. What a kill leaves, or another database's folder, the sweep finds: nothing serves it."""
    if not media_folder.standing().refusal:
        erase_of_items([item])


def _refuse_unless(row: GeneratedItem, allowed: frozenset[str], verb: str) -> None:
    _refuse_deleted(row)
    if row.status not in allowed:
        *others, last = sorted(allowed)
        names = f"{', '.join(others)} or {last}" if others else last
        message = f"It is {row.status}; it can be {verb} while it is {names}."
        raise Conflict(
            Detail("status", f"not_{verb}", message, {"status": row.status, "allowed": sorted(allowed)})
        )


def _refuse_deleted(row: GeneratedItem) -> None:
    if row.deleted_at is not None:
        raise Conflict.because(code="deleted", message="It was deleted.", field=None)


def _source_of(item: GeneratedItem) -> RawItem | None:
    """The raw item, locked before the items made from it; None where the item speaks of a topic, or of several."""
    if item.raw_item_id is None and (item.topic_id is not None or item.raw_items):
        return None
    raw: RawItem | None = (
        RawItem.everywhere.select_for_update().filter(pk=item.raw_item_id, deleted_at=None).first()
        if item.raw_item_id
        else None
    )
    if raw is None or not RawBody.everywhere.filter(raw_item=raw).exists():
        message = "The raw item that it was made from was deleted."
        raise Conflict.because(code="source_deleted", message=message, field="raw_item")
    return raw


def _another_run(
    row: GeneratedItem,
    raw: RawItem | None,
    workspace: Workspace,
    now: datetime,
    *,
    answers: Mapping[str, Any] | None = None,
) -> Generation:
    engine = push.engine_named(row.engine_output)
    generation: Generation = Generation.everywhere.create(
        workspace=workspace,
        test=row.test,
        engine=engine.kind,
        raw_item=raw,
        raw_version=raw.content_version if raw is not None else None,
        topic_id=row.topic_id if raw is None else None,
        persona_id=row.persona_id,
        variants=1,
        credits_reserved=0 if row.test else engine.credits,
        due_at=now,
        wake_at=now,
        queue=account.queue_of(workspace),
        request_id=request_id(),
        answers=dict(answers or {}),
        created_at=now,
    )
    if raw is None and row.raw_items:
        _tell_again(row, generation)
    elif raw is None and not generate.hand_on(row.generation, generation, now):
        message = "The topic that it speaks of was deleted."
        raise Conflict.because(code="source_deleted", message=message, field="topic")
    dispatch.wake()
    return generation


def why_no_hints(item: GeneratedItem) -> str:
    """The sentence for whoever would ask something of a further variant that nobody can follow; empty where one can."""
    return _why_no_hints(item.generation)


def _why_no_hints(generation: Generation) -> str:
    engine = plugins.get("engines", generation.engine, Engine)
    if engine.draft_schema() is None:
        return f"No model writes a {engine.name}, so that no hint can be followed. Leave the hint out."
    return NO_HINTS if generate.writer_for(generation).offline else ""


def _refuse_unfollowed(hint: str, generation: Generation) -> None:
    """Before anything is spent: who works without a model can't do as asked."""
    why_not = _why_no_hints(generation) if hint else ""
    if why_not:
        raise Conflict(Detail("hint", "needs_ai", why_not))


def _tell_again(row: GeneratedItem, generation: Generation) -> None:
    """The same raw items, as they are now; those whose content was deleted are left out when it is made."""
    versions = dict(RawItem.everywhere.filter(pk__in=row.raw_items).values_list("pk", "content_version"))
    GenerationInput.everywhere.bulk_create(
        GenerationInput(
            workspace_id=row.workspace_id,
            generation=generation,
            raw_item_id=UUID(key),
            raw_version=versions[UUID(key)],
            position=place,
        )
        for place, key in enumerate(row.raw_items)
    )


def _requeue_raw(raw: RawItem, now: datetime) -> None:
    """A raw item of which nothing came waits for this run again."""
    if raw.status == RawItemStatus.FAILED:
        states.move(raw, "queued", reason=None, updated_at=now)


def reserve(workspace: Workspace, generation: Generation, now: datetime) -> None:
    """What the run will cost; the last statement of a transaction, for the balance is locked from here on."""
    if generation.credits_reserved:
        credit_account.reserve(workspace, {generation.pk: generation.credits_reserved}, now=now)
