"""Runs a generation as a list of steps: the work of each one, its queue, and the stage that follows it."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Final

import structlog

from config.core import states
from config.core.clock import utc_now
from config.core.crash_points import crash_point
from pipeline import limits, plugins
from pipeline.engines.base import Engine
from pipeline.generate import multi_source, run_state, shared_brief
from pipeline.generate.lifecycle import REDRAW, fail_run, read_wanted_variants, start_run
from pipeline.generate.model import batches
from pipeline.generate.model.keys import generation_queue_for, has_key, uses_own_key
from pipeline.generate.model.metered_client import LostLease, open_client
from pipeline.generate.model.spending_caps import WAITING_CODES
from pipeline.generate.persona_cards import persona_card
from pipeline.generate.rendering import draw_variants, queue_of_rendering, redraw, write_redrawn
from pipeline.generate.repetition import OwnWords
from pipeline.generate.run_state import WAITS, Run, RunMaterial, as_json, store_answer
from pipeline.generate.save import save_run
from pipeline.generate.topics import topic_run
from pipeline.models import Generation, GenerationQueue, GenerationStage
from pipeline.plugins import NeedsReconnect, Refused, TryLater
from pipeline.writers.base import Writer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pipeline.writers.model_calls import ModelClient

log = structlog.get_logger(__name__)


@dataclass(frozen=True)
class MaterialSource:
    """Finds and stores the material of runs of one kind, and reads it back from the stored answers.

    `find` returns the material, or `None` if it has to be read back.
    """

    find: Callable[[Run], RunMaterial | None]
    read: Callable[[Run], RunMaterial]


RAW_ITEM: Final = MaterialSource(run_state.find_material, run_state.read_material)
RAW_ITEMS: Final = MaterialSource(multi_source.find_material, multi_source.read_material)
TOPIC: Final = MaterialSource(topic_run.find_material, topic_run.read_material)


def _source_of(generation: Generation) -> MaterialSource:
    if generation.raw_item_id is not None:
        return RAW_ITEM
    return TOPIC if generation.topic_id is not None else RAW_ITEMS


# --- The steps -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class RunStep:
    """One step of a run, which is the work at one stage.

    If its task is killed, the step starts again from its beginning.
    """

    work: Callable[[Run], Run]
    """Does the work and stores the result together with `Run.next_stage`."""
    checkpoint: str
    """Name of the crash point after the step, which tests use."""
    leads_to: GenerationStage | None
    """The stage that follows, or `None` if the step ends the run."""
    queue: Callable[[Generation], GenerationQueue] | None = None
    """Returns the queue that runs the step; without it that is the queue of the step before."""
    needs_material: bool = True
    """Whether the run's material is read before the step."""
    is_needed: Callable[[Engine], bool] = lambda _: True
    """Returns whether items of this engine need the step; other runs skip it."""


def _store_brief(run: Run) -> Run:
    return replace(run, material=_source_of(run.generation).find(run))


def _write_drafts(run: Run) -> Run:
    """Let the writer draft the variants, and store them with their usage."""
    variants, hint = read_wanted_variants(run.generation)
    answer = run.writer.draft(
        run.engine,
        run.required_material.brief,
        run.persona,
        variants=variants,
        seed=run.generation.pk.hex,
        client=run.client,
        judge=run.required_material.judge,
        hint=hint,
    )
    drafts = [asdict(draft) for draft in answer.drafts]
    store_answer(run.generation, run.next_stage, drafts=drafts, draft_usage=asdict(answer.usage))
    # Reading a topic's material back compares its drafts with the persona's earlier items.
    return replace(run, material=None) if _source_of(run.generation) is TOPIC else run


def _queue_of_writer(generation: Generation) -> GenerationQueue:
    return generation_queue_for(generation.workspace)


def _queue_of_rendering(generation: Generation) -> GenerationQueue:
    return queue_of_rendering(_engine(generation))


def _engine(generation: Generation) -> Engine:
    return plugins.get("engines", generation.engine, Engine)


STEPS: Final[Mapping[str, RunStep]] = {
    GenerationStage.BRIEF: RunStep(
        work=_store_brief,
        checkpoint="generate.briefed",
        leads_to=GenerationStage.DRAFT,
        queue=_queue_of_writer,
        needs_material=False,
    ),
    GenerationStage.DRAFT: RunStep(
        work=_write_drafts,
        checkpoint="generate.drafted",
        leads_to=GenerationStage.RENDER,
        queue=_queue_of_writer,
    ),
    GenerationStage.RENDER: RunStep(
        work=draw_variants,
        checkpoint="generate.rendered",
        leads_to=GenerationStage.WRITE,
        queue=_queue_of_rendering,
        is_needed=lambda engine: bool(engine.sizes),
    ),
    GenerationStage.WRITE: RunStep(work=save_run, checkpoint="generate.committed", leads_to=None),
}
REDRAWING: Final[Mapping[str, RunStep]] = {
    GenerationStage.RENDER: RunStep(
        work=redraw,
        checkpoint="generate.rendered",
        leads_to=GenerationStage.WRITE,
        queue=_queue_of_rendering,
        needs_material=False,
    ),
    GenerationStage.WRITE: RunStep(
        work=write_redrawn, checkpoint="generate.committed", leads_to=None, needs_material=False
    ),
}
"""Steps of a run that only draws, because a person has changed the words."""


def _steps_of(generation: Generation) -> Mapping[str, RunStep]:
    return REDRAWING if REDRAW in generation.answers else STEPS


def _next_stage(steps: Mapping[str, RunStep], step: RunStep, engine: Engine) -> GenerationStage:
    """Return the next stage that the engine needs.

    After the last step it is that step's own stage, which is never stored because the run has ended.
    """
    stage = step.leads_to or GenerationStage.WRITE
    return stage if steps[stage].is_needed(engine) else _next_stage(steps, steps[stage], engine)


# --- The loop --------------------------------------------------------------------------------------------------------


def run_generation(generation: Generation, queue: GenerationQueue | None = None) -> None:
    """Run a claimed generation until its next step belongs to another queue; to its end without a `queue`.

    A failure ends the run or lets it sleep until its next try. A run that another task has taken over, or that
    was changed meanwhile, is left to it.
    """
    crash_point("generate.claimed")
    try:
        _run_steps(generation, queue)
    except (LostLease, states.Overtaken) as error:
        log.info("overtaken", generation=generation.pk.hex, reason=str(error))
    except TryLater as error:
        _sleep_or_fail(generation, error)
    except (Refused, NeedsReconnect) as error:
        shared_brief.refuse_brief(generation, error)
        fail_run(generation, error.code, error.message)


def _run_steps(generation: Generation, queue: GenerationQueue | None) -> None:
    """Take the steps from the run's stage on, until the last one or until another queue takes the run."""
    if _is_sourceless(generation):
        fail_run(generation, "no_source", "There is neither a raw item nor a topic to make it from.")
        return
    if _hand_to_other_queue(generation, queue):
        return
    start_run(generation)
    with _open_run_client(generation) as client:
        run = _build_run(generation, client)
        steps = _steps_of(generation)
        while not _hand_to_other_queue(generation, queue):
            step = steps[generation.stage]
            if step.needs_material and run.material is None:
                run = replace(run, material=_source_of(generation).read(run))
                # A topic's run may have changed to another topic, and is at its first stage again.
                continue
            run = step.work(replace(run, next_stage=_next_stage(steps, step, run.engine)))
            crash_point(step.checkpoint)
            if step.leads_to is None:
                return


def _is_sourceless(generation: Generation) -> bool:
    if REDRAW in generation.answers:
        return False
    has_source = generation.raw_item_id is not None or generation.topic_id is not None
    return not has_source and not multi_source.inputs_of(generation)


def _build_run(generation: Generation, client: ModelClient | None) -> Run:
    writer = writer_for(generation)
    own_words = None
    if generation.raw_item_id is not None:
        own_words = OwnWords.for_run(generation, is_verbatim=writer.offline)
    persona = persona_card(generation.persona_id, generation.persona_version)
    return Run(generation, _engine(generation), writer, persona, client, own_words)


@contextmanager
def _open_run_client(generation: Generation) -> Iterator[ModelClient | None]:
    """Yield the run's model client, or `None` without a key; it asks through a batch if the run may wait."""
    if not has_key(generation):
        yield None
        return
    with open_client(generation) as live_client:
        is_own_key = uses_own_key(generation)
        yield batches.client_for(generation, live_client, is_own_key=is_own_key)


def _hand_to_other_queue(generation: Generation, queue: GenerationQueue | None) -> bool:
    """Make the run due for the queue of its next step, and return True, if that isn't `queue`.

    Return False, with nothing written, if the next step belongs to `queue` or no queue is named. Raises
    `LostLease` if the run is no longer this task's.
    """
    step = _steps_of(generation)[generation.stage]
    if queue is None or step.queue is None or step.queue(generation) == queue:
        return False
    if not generation.sleep_until(utc_now(), attempts=0, queue=step.queue(generation)):
        raise LostLease
    crash_point("generate.handed_on")
    return True


def _sleep_or_fail(generation: Generation, error: TryLater) -> None:
    """Let the run sleep until its next try, or fail it after a day of outage (`MODEL_PATIENCE`).

    No wait counts as a failed try. A wait for a batch, or for one of `WAITING_CODES`, isn't an outage.
    """
    now = utc_now()
    stored_error = {"code": error.code, "message": error.message, "stage": generation.stage}
    if error.code == batches.AWAITED:
        _await_batch(generation, stored_error)
        return
    if error.code in WAITING_CODES:
        wait = error.after or limits.MODEL_RETRIES[0]
        if generation.sleep_until(now + wait, error=stored_error, attempts=0):
            # No model was asked: another run may try, and meets the cap or switch that holds it back.
            shared_brief.release_brief(generation)
        return
    wait_state = generation.answers.get(WAITS) or {"since": now.isoformat(), "times": 0}
    if now - datetime.fromisoformat(wait_state["since"]) >= limits.MODEL_PATIENCE:
        failure_message = f"{error.message} It was tried for a day without success; retry it."
        shared_brief.refuse_brief(generation, Refused(failure_message, code=error.code))
        fail_run(generation, error.code, failure_message)
        return
    wait = error.after or limits.MODEL_RETRIES[min(wait_state["times"], len(limits.MODEL_RETRIES) - 1)]
    answers = {**generation.answers, WAITS: {**wait_state, "times": wait_state["times"] + 1}}
    if generation.sleep_until(now + wait, error=stored_error, attempts=0, answers=as_json(answers)):
        shared_brief.release_brief(generation, wait)


def _await_batch(generation: Generation, error: dict[str, str]) -> None:
    """Let the run sleep until its batch's answer wakes it, or until its time for waiting is up."""
    until = generation.batch_until
    if not generation.sleep_until(until, error=error, attempts=0):
        return
    if until is not None:
        shared_brief.hold_for_batch(generation, until)
    if batches.is_decided(generation):
        # It was answered before this run slept, so nothing would wake it.
        generation.sleep_until(utc_now())


def give_up(generation: Generation) -> None:
    """Fail a run whose task kept crashing, with its last error, and return its credits.

    A run that was changed meanwhile is left as it is.
    """
    last_error = generation.error or {}
    message = (
        last_error.get("message") or "Generating it failed several times; the operator's log has the reason."
    )
    try:
        fail_run(generation, last_error.get("code") or "gave_up", f"{message} Retry it.")
    except states.Overtaken as error:
        log.info("overtaken", generation=generation.pk.hex, reason=str(error))


def writer_for(generation: Generation) -> Writer:
    """Return the Claude writer if the run has a key, else the one that takes sentences from the source."""
    kind = "claude" if has_key(generation) else "extractive"
    return plugins.get("writers", kind, Writer)
