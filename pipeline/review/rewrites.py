"""Requests, cancels and undoes rewrites of an item by a model, and reports the state of the newest one.

A rewrite becomes the item's next revision.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from django.db import transaction
from django.utils.translation import gettext as _

from config.core import dispatcher, states, work_queue
from config.core.errors import Conflict, Invalid
from config.core.middleware import request_id
from pipeline.generate import generation_plan
from pipeline.generate.lifecycle import REWRITE, settle_credits
from pipeline.generate.model.keys import workspace_has_key
from pipeline.models import (
    GeneratedItem,
    GeneratedItemStatus,
    Generation,
    GenerationQueue,
    GenerationStage,
    GenerationStatus,
    HoldReason,
)
from pipeline.review import bulk_review, undo
from pipeline.review.decisions import is_drawn, refuse_unless
from pipeline.review.regenerate import lock_source, reserve
from pipeline.review.rerender import lock_with_workspace, update_locked, why_promised
from pipeline.states import EDITABLE_ITEMS, OPEN_RUNS
from pipeline.text.html_text import strip_invisible
from pipeline.text.prose.verbatim_edits import collapse

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from accounts.models import Workspace

SHORTER, PLAINER, OWN = "shorter", "plainer", "own"
HINTS: Final[Mapping[str, str]] = {
    SHORTER: "Make it clearly shorter: keep the point, and leave out what matters least.",
    PLAINER: "Say it in plainer words and shorter sentences, for readers who don't know the subject.",
}
"""The model's instructions for the ready-made wishes; the editor's own hint is passed on as it is."""
CANCELLED: Final = "cancelled"


@dataclass(frozen=True)
class RewriteStanding:
    """The state of an item's newest rewrite, as long as it concerns the present words."""

    is_working: bool = False
    is_current: bool = False
    """Whether the rewrite's words are the item's newest ones."""
    is_undoable: bool = False
    message: str = ""
    """The reason why the rewrite waits or failed; the words are as before then."""


def why_not_rewritten(item: GeneratedItem) -> str:
    """Return the reason why the item can't be rewritten, with the alternative, or "" if it can."""
    engine = generation_plan.engine_named(item.engine_output)
    if engine.bucket == "video":
        return _("A film isn't rewritten in place. Edit its scenes, or create a variant.")
    if engine.draft_schema() is None:
        return _("No model writes a %(format)s. Edit it by hand.") % {"format": engine.name}
    return "" if has_model(item) else _("Rewriting needs an AI model, and this workspace has no key for one.")


def has_model(item: GeneratedItem) -> bool:
    """Return whether the item's workspace has a key for a model, or may use the operator's."""
    return workspace_has_key(item.workspace)


def request(
    item: GeneratedItem,
    wish: str,
    *,
    hint: str = "",
    workspace: Workspace,
    by: str,
    now: datetime,
    expected_version: int | None = None,
) -> Generation:
    """Queue a rewrite by `wish` and `hint`, or by the hint alone for the wish `OWN`, and reserve its credits.

    Raises `Invalid` if there is no instruction, `Conflict` if the source was deleted or the item can't be rewritten
    or is being rewritten, `QuotaExceeded` if the credits don't suffice, and `states.Overtaken` if the item isn't at
    the expected version.
    """
    instruction = " ".join(filter(None, (HINTS.get(wish, ""), collapse(strip_invisible(hint)))))
    if not instruction:
        raise Invalid.one(field="hint", code="required", message=_("Write what should change."))
    with transaction.atomic():
        lock_source(item)
        row = lock_with_workspace(item)
        states.refuse_other_version(row.version, expected_version)
        _refuse_if_not_rewritable(row)
        engine = generation_plan.engine_named(row.engine_output)
        run: Generation = Generation.everywhere.create(
            workspace=workspace,
            test=row.test,
            engine=engine.kind,
            persona_id=row.persona_id,
            persona_version=row.persona_version,
            rewrites=row,
            stage=GenerationStage.DRAFT,
            queue=GenerationQueue.REWRITE,
            credits_reserved=0 if row.test else engine.credits,
            answers={REWRITE: {"wish": wish, "hint": instruction, "by": by, "revision": row.revision}},
            due_at=now,
            wake_at=now,
            request_id=request_id(),
            created_at=now,
        )
        dispatcher.wake()
        reserve(workspace, run, now)
    return run


def cancel(item: GeneratedItem, *, now: datetime) -> None:
    """Cancel the open rewrite and return its credits; the words stay.

    An answer that the model gives later is dropped. Raises `Conflict` if no rewrite is open.
    """
    with transaction.atomic():
        runs = Generation.everywhere.filter(rewrites=item).open()
        run: Generation | None = runs.select_for_update(of=("self",)).first()
        if run is None:
            raise Conflict.because(code="not_rewriting", message=_("No rewrite is under way any more."))
        error = {"code": CANCELLED, "message": _("Cancelled.")}
        states.move(
            run, "failed", error=error, answers={}, wake_at=None, finished_at=now, **work_queue.overtake()
        )
        settle_credits(run, None, 0, now)


def undo_rewrite(
    item: GeneratedItem, *, by: str, now: datetime, expected_version: int | None = None
) -> GeneratedItem:
    """Restore the words before the rewrite as the newest revision, with their claims and their approval.

    Raises `Conflict` if the newest words aren't the rewrite's or were decided on since, and `states.Overtaken` if
    the item isn't at the expected version.
    """
    with transaction.atomic():
        row = lock_with_workspace(item)
        states.refuse_other_version(row.version, expected_version)
        run = _newest_rewrite(row)
        if run is None or not _is_undoable(row, run):
            message = _("Something was done with it since. Restore the version in its history.")
            raise Conflict.because(code="decided_meanwhile", message=message)
        rewrite = run.answers[REWRITE]
        # The claims come first, because the restored words are checked against them.
        update_locked(row, now, claims=rewrite["claims"], generator={**row.generator, **rewrite["writer"]})
        former_state = {
            "act": bulk_review.EDIT,
            "version": row.version,
            "revision": rewrite["revision"],
            "alt_texts": {},
            "order": None,
            **rewrite["approval"],
        }
        return undo.undo(row, former_state, by=by, now=now)


def standing_of(item: GeneratedItem) -> RewriteStanding | None:
    """Return the state of the newest rewrite, or `None` without one that concerns the present words.

    The item must have been loaded `with_newest_rewrite`.
    """
    run = Generation.everywhere.filter(pk=item.newest_rewrite_id).first() if item.newest_rewrite_id else None
    if run is None:
        return None
    message = str((run.error or {}).get("message", ""))
    if run.status in OPEN_RUNS:
        return RewriteStanding(is_working=True, message=message)
    rewrite = run.answers.get(REWRITE, {})
    if run.status == GenerationStatus.DONE:
        if rewrite.get("wrote") != item.revision:
            return None
        return RewriteStanding(is_current=True, is_undoable=_is_undoable(item, run))
    # A failure is shown until something else is done with the item.
    return RewriteStanding(message=message) if rewrite.get("version") == item.version else None


def state_for_undo(row: GeneratedItem) -> dict[str, Any]:
    """Return the claims, author and approval of the item before a rewrite, which `undo_rewrite` restores."""
    writer = {
        name: row.generator.get(name, "") for name in ("provider", "model", "offline", "prompt_version")
    }
    return {"claims": row.claims, "writer": writer, "approval": bulk_review.approval_of(row)}


# --- Inside ----------------------------------------------------------------------------------------------------------


def _refuse_if_not_rewritable(row: GeneratedItem) -> None:
    """Raise `Conflict` if the item can't be rewritten now, or is being rewritten."""
    refuse_unless(row, EDITABLE_ITEMS, "rewritten")
    why_not = why_not_rewritten(row)
    if why_not:
        raise Conflict.because(code="needs_ai", message=why_not)
    if is_drawn(row) and row.status != GeneratedItemStatus.READY:
        promise, remedy = why_promised(row)
        message = f"Its words are drawn in an image that {promise}. {remedy}, then rewrite it."
        raise Conflict.because(code="drawn_words", message=message)
    if Generation.everywhere.filter(rewrites=row).open().exists():
        raise Conflict.because(code="rewriting", message=_("It is being rewritten already."))


def _newest_rewrite(item: GeneratedItem) -> Generation | None:
    run: Generation | None = Generation.everywhere.filter(rewrites=item).order_by("-id").first()
    return run


def _is_undoable(row: GeneratedItem, run: Generation) -> bool:
    """Return whether the words are those that the rewrite wrote, and nobody has decided on them since."""
    rewrite = run.answers.get(REWRITE, {})
    if rewrite.get("wrote") != row.revision or row.status not in EDITABLE_ITEMS:
        return False
    approval = rewrite["approval"]
    if approval["approved_at"] is not None:
        approval = {**approval, "held": approval["held"] or HoldReason.APPROVAL_STALE.value}
    return bool(bulk_review.approval_of(row) == approval)
