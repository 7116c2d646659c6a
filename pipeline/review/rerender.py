"""Writes changed text to an item as a new revision and, if it is drawn, creates a run that only draws.

The lock, the write and the refusals that all changes of an item share stand here too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from config.core import dispatcher, states
from config.core.errors import Conflict
from config.core.middleware import request_id
from pipeline import generate, publish
from pipeline.generate import generation_plan
from pipeline.generate.lifecycle import REDRAW
from pipeline.models import GeneratedItem, GeneratedItemStatus, Generation, GenerationStage, Revision

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from pipeline.render.video.storyboard import Storyboard


def lock_with_workspace(item: GeneratedItem) -> GeneratedItem:
    """Lock the item until the transaction ends, and return its current row with its workspace."""
    row: GeneratedItem = (
        GeneratedItem.everywhere.select_for_update(of=("self",)).select_related("workspace").get(pk=item.pk)
    )
    return row


def refuse_deleted(row: GeneratedItem) -> None:
    """Raise `Conflict` if the item was erased."""
    if row.deleted_at is not None:
        raise Conflict.because(code="deleted", message="It was deleted.", field=None)


def why_promised(row: GeneratedItem) -> tuple[str, str]:
    """Return the state in which an editable item's files must stay, and the step to take first.

    Both are parts of a sentence: `("is scheduled", "Unschedule it first")`.
    """
    if row.status == GeneratedItemStatus.SCHEDULED:
        return "is scheduled", "Unschedule it first"
    return "couldn't be published", "Cancel the failed posts first"


def update_locked(row: GeneratedItem, now: datetime, **values: Any) -> None:
    """Write to a locked row and increment its version."""
    GeneratedItem.everywhere.filter(pk=row.pk).update(**values, version=row.version + 1, updated_at=now)
    row.version += 1
    row.updated_at = now
    for name, value in values.items():
        setattr(row, name, value)


def write_revision(
    row: GeneratedItem, now: datetime, *, by: str, board: Storyboard | None = None, **words: Any
) -> None:
    """Write changed content to a locked row, as a new revision with its own checks.

    Every change of content goes through here, in the caller's transaction. Columns that follow from a changed body
    are written with it. An approval of an earlier revision holds the item, and scheduled publications are prepared
    again. `board` is the storyboard that is rendered if it isn't the one that the engine lays out.
    """
    words["revision"] = row.revision + 1
    if "body" in words:
        words |= generate.derived_words(words["body"], row.body_format)
    if row.is_approved:
        words["held"] = row.held or "approval_stale"
    for name, value in words.items():
        setattr(row, name, value)
    checks = generate.recheck(row, board=board)
    update_locked(row, now, **words, checks=checks, checks_revision=row.revision)
    Revision.everywhere.create(
        workspace_id=row.workspace_id,
        item=row,
        number=row.revision,
        title=row.title,
        body=row.body,
        body_format=row.body_format,
        content=row.content,
        overrides=row.overrides,
        made_by=by,
        created_at=now,
    )
    publish.renew_scheduled(row, now=now)


def draw_again(
    row: GeneratedItem,
    alt_texts: Mapping[str, str],
    now: datetime,
    *,
    board: Mapping[str, Any] | None = None,
) -> None:
    """Create a run that only draws, and move the item to `generating`.

    `alt_texts` are for the new files, by name. With a `board`, a storyboard as JSON, the video is rendered from
    that; else its engine lays it out again.
    """
    engine = generation_plan.engine_named(row.engine_output)
    drawing_input = {"alt_texts": dict(alt_texts)} | ({} if board is None else {"storyboard": dict(board)})
    run: Generation = Generation.everywhere.create(
        workspace_id=row.workspace_id,
        test=row.test,
        engine=engine.kind,
        persona_id=row.persona_id,
        persona_version=row.persona_version,
        stage=GenerationStage.RENDER,
        queue=generate.queue_of_rendering(engine),
        answers={REDRAW: drawing_input},
        due_at=now,
        wake_at=now,
        request_id=request_id(),
        created_at=now,
    )
    states.move(row, "generating", generation=run, updated_at=now)
    dispatcher.wake()
