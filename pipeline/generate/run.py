"""A run as a list of steps: what each does, where it is worked, and what the row says when it is done."""

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
from pipeline.generate import brief, multi_source
from pipeline.generate.checkpoint import WAITS, Run, RunMaterial, as_json, store_answer
from pipeline.generate.lifecycle import REDRAW, fail_run, start_run, wanted_variants
from pipeline.generate.model import batches
from pipeline.generate.model.keys import generation_queue_for, has_key, uses_own_key
from pipeline.generate.model.metered_client import LostLease, open_client
from pipeline.generate.model.spending_caps import WAITING_CODES
from pipeline.generate.persona_cards import persona_card
from pipeline.generate.rendering import draw_variants, queue_of_rendering, redraw, write_redrawn
from pipeline.generate.repetition import OwnWords
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
    """What a run is made of: how its material is asked for, and how it is read back from what was stored.

    `find` returns it where it has it in memory, to spare the reading.
    """

    find: Callable[[Run], RunMaterial | None]
    read: Callable[[Run], RunMaterial]


RAW_ITEM: Final = MaterialSource(brief.find_material, brief.read_material)
RAW_ITEMS: Final = MaterialSource(multi_source.find_material, multi_source.read_material)
TOPIC: Final = MaterialSource(topic_run.find_material, topic_run.read_material)


def _source_of(generation: Generation) -> MaterialSource:
    if generation.raw_item_id is not None:
        return RAW_ITEM
    return TOPIC if generation.topic_id is not None else RAW_ITEMS


# --- The steps -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class RunStep:
    """What is done while the row is at one stage. A task that is killed in it does it again from its start."""

    work: Callable[[Run], Run]
    """Stores what came of it together with `Run.then`, the stage that follows."""
    checkpoint: str
    """The crash point behind it."""
    leads_to: GenerationStage | None
    """None: the run is over."""
    queue: Callable[[Generation], GenerationQueue] | None = None
    """Where it is worked; None: wherever the step before it was."""
    needs_material: bool = True
    is_needed: Callable[[Engine], bool] = lambda _: True


def _find(run: Run) -> Run:
    return replace(run, material=_source_of(run.generation).find(run))


def _draft(run: Run) -> Run:
    variants, hint = wanted_variants(run.generation)
    drafted = run.writer.draft(
        run.engine,
        run.rests_on.brief,
        run.persona,
        variants=variants,
        seed=run.generation.pk.hex,
        client=run.client,
        judge=run.rests_on.judge,
        hint=hint,
    )
    drafts = [asdict(one) for one in drafted.drafts]
    store_answer(run.generation, run.then, drafts=drafts, draft_usage=asdict(drafted.usage))
    # A topic's drafts are compared with what was said before when they are read back.
    return replace(run, material=None) if _source_of(run.generation) is TOPIC else run


def _queue_of_writer(generation: Generation) -> GenerationQueue:
    return generation_queue_for(generation.workspace)


def _queue_of_rendering(generation: Generation) -> GenerationQueue:
    return queue_of_rendering(_engine(generation))


def _engine(generation: Generation) -> Engine:
    return plugins.get("engines", generation.engine, Engine)


STEPS: Final[Mapping[str, RunStep]] = {
    GenerationStage.BRIEF: RunStep(
        work=_find,
        checkpoint="generate.briefed",
        leads_to=GenerationStage.DRAFT,
        queue=_queue_of_writer,
        needs_material=False,
    ),
    GenerationStage.DRAFT: RunStep(
        work=_draft,
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
"""Of a run that asks no writer, because a person has changed the words."""


def _steps_of(generation: Generation) -> Mapping[str, RunStep]:
    return REDRAWING if REDRAW in generation.answers else STEPS


def _then(steps: Mapping[str, RunStep], step: RunStep, engine: Engine) -> GenerationStage:
    """The next stage whose step is needed for what the engine makes; the last one's own, which ends the run."""
    stage = step.leads_to or GenerationStage.WRITE
    return stage if steps[stage].is_needed(engine) else _then(steps, steps[stage], engine)


# --- The loop --------------------------------------------------------------------------------------------------------


def run_generation(generation: Generation, queue: GenerationQueue | None = None) -> None:
    """Work one claimed generation, step by step, up to one that belongs to another queue; None: to its end, here."""
    crash_point("generate.claimed")
    try:
        _work(generation, queue)
    except (LostLease, states.Overtaken) as error:
        log.info("overtaken", generation=generation.pk.hex, reason=str(error))
    except TryLater as error:
        _wait(generation, error)
    except (Refused, NeedsReconnect) as error:
        brief.refuse_brief(generation, error)
        fail_run(generation, error.code, error.message)


def _work(generation: Generation, queue: GenerationQueue | None) -> None:
    if _is_sourceless(generation):
        fail_run(generation, "no_source", "There is neither a raw item nor a topic to make it from.")
        return
    if _is_handed_on(generation, queue):
        return
    start_run(generation)
    with _client(generation) as client:
        run = _run(generation, client)
        steps = _steps_of(generation)
        while not _is_handed_on(generation, queue):
            step = steps[generation.stage]
            if step.needs_material and run.material is None:
                run = replace(run, material=_source_of(generation).read(run))
                # A topic's run may have turned to another topic, and is at its first step again.
                continue
            run = step.work(replace(run, then=_then(steps, step, run.engine)))
            crash_point(step.checkpoint)
            if step.leads_to is None:
                return


def _is_sourceless(generation: Generation) -> bool:
    if REDRAW in generation.answers:
        return False
    has_one = generation.raw_item_id is not None or generation.topic_id is not None
    return not has_one and not multi_source.inputs_of(generation)


def _run(generation: Generation, client: ModelClient | None) -> Run:
    writer = writer_for(generation)
    own_words = None
    if generation.raw_item_id is not None:
        own_words = OwnWords.beside_run(generation, is_verbatim=writer.offline)
    persona = persona_card(generation.persona_id, generation.persona_version)
    return Run(generation, _engine(generation), writer, persona, client, own_words)


@contextmanager
def _client(generation: Generation) -> Iterator[ModelClient | None]:
    with open_client(generation) as live:
        is_own_key = uses_own_key(generation)
        yield batches.client_for(generation, live, is_own_key=is_own_key)


def _is_handed_on(generation: Generation, queue: GenerationQueue | None) -> bool:
    """Given back as due at once, where its next step is of another queue than the one that is worked."""
    step = _steps_of(generation)[generation.stage]
    if queue is None or step.queue is None or step.queue(generation) == queue:
        return False
    if not generation.sleep_until(utc_now(), attempts=0, queue=step.queue(generation)):
        raise LostLease
    crash_point("generate.handed_on")
    return True


def _wait(generation: Generation, error: TryLater) -> None:
    """Sleep until it may be tried again. Waiting is no failed try, but an outage is not waited for for ever."""
    now = utc_now()
    kept = {"code": error.code, "message": error.message, "stage": generation.stage}
    if error.code == batches.AWAITED:
        _await_batch(generation, kept)
        return
    if error.code in WAITING_CODES:
        wait = error.after or limits.MODEL_RETRIES[0]
        if generation.sleep_until(now + wait, error=kept, attempts=0):
            # Nobody was asked: another run finds out for itself what holds it.
            brief.release_brief(generation)
        return
    waited = generation.answers.get(WAITS) or {"since": now.isoformat(), "times": 0}
    if now - datetime.fromisoformat(waited["since"]) >= limits.MODEL_PATIENCE:
        told = f"{error.message} It was tried for a day without success; retry it."
        brief.refuse_brief(generation, Refused(told, code=error.code))
        fail_run(generation, error.code, told)
        return
    wait = error.after or limits.MODEL_RETRIES[min(waited["times"], len(limits.MODEL_RETRIES) - 1)]
    answers = {**generation.answers, WAITS: {**waited, "times": waited["times"] + 1}}
    if generation.sleep_until(now + wait, error=kept, attempts=0, answers=as_json(answers)):
        brief.release_brief(generation, wait)


def _await_batch(generation: Generation, error: dict[str, str]) -> None:
    """Sleep until the batch is answered, which wakes it, or until its time is up."""
    until = generation.batch_until
    if not generation.sleep_until(until, error=error, attempts=0):
        return
    if until is not None:
        brief.hold_for_batch(generation, until)
    if batches.is_decided(generation):
        # It was answered before this run slept, and woke nobody.
        generation.sleep_until(utc_now())


def give_up(generation: Generation) -> None:
    """A run that broke again and again ends as failed, with its credits returned."""
    kept = generation.error or {}
    message = kept.get("message") or "Making it broke several times; the operator's log has the reason."
    try:
        fail_run(generation, kept.get("code") or "gave_up", f"{message} Retry it.")
    except states.Overtaken as error:
        log.info("overtaken", generation=generation.pk.hex, reason=str(error))


def writer_for(generation: Generation) -> Writer:
    """Claude where somebody has a key for it; else the offline one, which takes its sentences from the source."""
    kind = "claude" if has_key(generation) else "extractive"
    return plugins.get("writers", kind, Writer)
