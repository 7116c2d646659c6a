"""Runs a rewrite: asks a model, stores the answer, and saves the words as a new revision.

The words, their cost and the end of the run are saved in one transaction. A failed rewrite leaves the words as
they are and returns the credits.
"""

from __future__ import annotations

from dataclasses import asdict
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

import structlog
from django.db import transaction
from django.utils.translation import gettext as _

from config.core import states
from config.core.clock import utc_now
from config.core.crash_points import crash_point
from config.core.errors import AppError
from pipeline import generate, limits, plugins
from pipeline.engines.base import Engine
from pipeline.engines.checks.grounded import words_of
from pipeline.generate import multi_source
from pipeline.generate.lifecycle import REWRITE, settle_credits
from pipeline.generate.model.metered_client import LostLease, open_client
from pipeline.generate.model.spending_caps import WAITING_CODES
from pipeline.generate.run_state import as_json, draft_from, store_answer
from pipeline.labels import of_item
from pipeline.models import GeneratedItem, Generation, GenerationStage, GenerationStatus
from pipeline.plugins import NeedsReconnect, Refused, TryLater
from pipeline.review import decisions, rewrites
from pipeline.review.regenerate import lock_source
from pipeline.review.rerender import lock_with_workspace
from pipeline.states import EDITABLE_ITEMS
from pipeline.writers.base import Usage

if TYPE_CHECKING:
    from pipeline.engines.base import Draft
    from pipeline.generate.run_state import RunMaterial

log = structlog.get_logger(__name__)

MODEL_TRIES: Final = 3
"""The most tries; few, because a person waits, is shown a longer outage, and decides."""
_WAIT_COUNT: Final = "waits"
"""Key in `answers`: how often the run has waited for the model."""


def run_rewrite(run: Generation) -> None:
    """Run a claimed rewrite to its end, or until it has to wait for the model.

    A failure ends the rewrite. A run that another task has, or that was changed meanwhile, is left to it.
    """
    crash_point("rewrite.claimed")
    try:
        _rewrite(run)
    except (LostLease, states.Overtaken) as error:
        log.info("overtaken", generation=run.pk.hex, reason=str(error))
    except TryLater as error:
        _wait_or_fail(run, error)
    except (Refused, NeedsReconnect) as error:
        _fail(run, error.code, error.message)
    except AppError as error:
        _fail(run, "not_written", str(error))


def give_up(run: Generation) -> None:
    """Fail a rewrite whose task kept crashing."""
    _fail(run, "gave_up", _("It failed several times; the operator's log has the reason."))


def _rewrite(run: Generation) -> None:
    """Get the draft, from the stored answer or the model, check it, and save its words."""
    item: GeneratedItem = GeneratedItem.everywhere.select_related("workspace", "raw_item", "topic").get(
        pk=run.rewrites_id
    )
    _refuse_overtaken(run, item)
    if run.status == GenerationStatus.QUEUED:
        states.move(run, "running", under_lease=True)
    engine = plugins.get("engines", run.engine, Engine)
    persona = generate.persona_card(item.persona_id, item.persona_version)
    material = generate.material_of(item, engine, persona)
    if "draft" not in run.answers:
        writer = generate.writer_for(run)
        if writer.offline:
            raise Refused(rewrites.why_not_rewritten(item), code="needs_ai")
        if material.brief.without_model or not material.brief.facts:
            message = _("The model found no facts in the source to write from. Edit the words by hand.")
            raise Refused(message, code="no_facts")
        with open_client(run) as client:
            answer = writer.draft(
                engine,
                material.brief,
                persona,
                variants=1,
                seed=run.pk.hex,
                client=client,
                judge=material.judge,
                hint=run.answers[REWRITE]["hint"],
                former=generate.draft_of(item),
            )
        crash_point("rewrite.answered")
        store_answer(run, GenerationStage.WRITE, draft=asdict(answer.drafts[0]), usage=asdict(answer.usage))
        crash_point("rewrite.drafted")
    draft = draft_from(run.answers["draft"])
    _refuse_draft(run, item, draft, material)
    _save_words(run, item, draft, material, engine)
    crash_point("rewrite.committed")


def _save_words(
    run: Generation, item: GeneratedItem, draft: Draft, material: RunMaterial, engine: Engine
) -> None:
    """Save the draft as the item's next revision, end the run and charge its credits, in one transaction."""
    now, usage = utc_now(), Usage(**run.answers["usage"])
    content = as_json(dict(draft.content))
    words: dict[str, Any] = {"title": draft.title[:500], "content": content}
    if "parts" not in content:
        words["body"] = draft.body
    claims = (
        multi_source.split_claims(draft.claims, material.brief)
        if material.brief.stories
        else [asdict(claim) for claim in draft.claims]
    )
    with transaction.atomic():
        lock_source(item)
        row = lock_with_workspace(item)
        _refuse_overtaken(run, row)
        # The run ends first, because the checks of the words ask which revisions a writer wrote.
        rewrite = {**run.answers[REWRITE], **rewrites.state_for_undo(row), "wrote": row.revision + 1}
        states.move(
            run,
            "done",
            under_lease=True,
            wake_at=None,
            attempts=0,
            finished_at=now,
            error=None,
            answers={REWRITE: rewrite},
        )
        writer_fields = {"claims": claims, "generator": _updated_generator(row, usage, run.credits_reserved)}
        decisions.edit(row, words, by=usage.model, now=now, writer_fields=writer_fields)
        settle_credits(run, engine, 1, now)
        crash_point("rewrite.written")


def _updated_generator(row: GeneratedItem, usage: Usage, credit_count: int) -> dict[str, Any]:
    """Return the author of the newest words, with the cost of all revisions together."""
    generator = row.generator
    cost_usd = Decimal(str(generator.get("cost_usd") or 0)) + Decimal(usage.cost_micro_usd) / 1_000_000
    return {
        **generator,
        "provider": usage.provider,
        "model": usage.model,
        "offline": usage.offline,
        "prompt_version": usage.prompt_version,
        "input_tokens": (generator.get("input_tokens") or 0) + usage.input_tokens,
        "output_tokens": (generator.get("output_tokens") or 0) + usage.output_tokens,
        "cost_usd": f"{cost_usd:.6f}",
        "credits": (generator.get("credits") or 0) + credit_count,
    }


def _refuse_overtaken(run: Generation, item: GeneratedItem) -> None:
    """Raise `Refused` if the item was deleted or edited meanwhile, or may not be edited any more."""
    if item.deleted_at is not None:
        raise Refused(_("It was deleted."), code="deleted")
    if item.revision != run.answers[REWRITE]["revision"]:
        message = _("It was edited meanwhile, so the edit stands and the rewrite was dropped.")
        raise Refused(message, code="edited_meanwhile")
    if item.status not in EDITABLE_ITEMS:
        message = _("Its status is now %(status)s, so the rewrite was dropped.")
        raise Refused(message % {"status": of_item(item).label}, code="not_editable")


def _refuse_draft(run: Generation, item: GeneratedItem, draft: Draft, material: RunMaterial) -> None:
    """Raise `Refused` if the words fail a check, are unchanged, or should be shorter and aren't."""
    faults = [check.message for check in material.judge(draft) if check.outcome == "failed"]
    if faults:
        message = _("What the model wrote didn't pass the checks: %(faults)s") % {"faults": " ".join(faults)}
        raise Refused(message, code="checks_failed")
    before, after = _text_of(generate.draft_of(item)), _text_of(draft)
    if after == before:
        raise Refused(_("The model changed nothing."), code="unchanged")
    if run.answers[REWRITE]["wish"] == rewrites.SHORTER and len(after) >= len(before):
        raise Refused(_("What the model wrote is no shorter."), code="not_shorter")


def _text_of(draft: Draft) -> str:
    return "\n".join((draft.title, *words_of(draft)))


def _wait_or_fail(run: Generation, error: TryLater) -> None:
    """Let the run sleep until its next try in a short outage, and fail it in a long one or after `MODEL_TRIES`.

    Caps and stops last long and a person waits at the page, so they fail the rewrite at once.
    """
    wait_count = run.answers.get(_WAIT_COUNT, 0)
    wait = error.after or limits.MODEL_RETRIES[min(wait_count, len(limits.MODEL_RETRIES) - 1)]
    is_long = error.code in WAITING_CODES or wait > limits.PERSONA_DRAFT_PATIENCE
    if is_long or wait_count + 1 >= MODEL_TRIES:
        _fail(run, error.code, error.message)
        return
    waits_for = {"code": error.code, "message": error.message}
    answers = {**run.answers, _WAIT_COUNT: wait_count + 1}
    run.sleep_until(utc_now() + wait, attempts=0, error=waits_for, answers=as_json(answers))


def _fail(run: Generation, code: str, message: str) -> None:
    """Fail the rewrite and return its credits; if the item was deleted, the answers are erased.

    A run that another task has is left to it.
    """
    now = utc_now()
    with transaction.atomic():
        # The row is read again, because `run` still has the values that were rolled back.
        row: Generation | None = run.under_lease().select_related("workspace").first()
        if row is None:
            log.info("overtaken", generation=run.pk.hex)
            return
        item = GeneratedItem.everywhere.filter(rewrites=row, deleted_at=None).values("version").first()
        answers = {} if item is None else {REWRITE: {**row.answers[REWRITE], "version": item["version"]}}
        states.move(
            row,
            "failed",
            under_lease=True,
            wake_at=None,
            attempts=0,
            finished_at=now,
            error={"code": code, "message": message},
            answers=answers,
        )
        settle_credits(row, None, 0, now)
        crash_point("rewrite.written")
