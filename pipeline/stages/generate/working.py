"""The work of one hand: a claimed run through its stages."""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from datetime import datetime
from typing import TYPE_CHECKING

import structlog

from config.ground import limits, states
from config.ground.clock import utc_now
from config.ground.crash import crash_point
from pipeline import plugins
from pipeline.engines.base import Brief, Engine, PersonaCard, SourceText
from pipeline.plugins import NeedsReconnect, Refused, TryLater
from pipeline.render.video.job import Busy, NoRoom
from pipeline.stages import batches, model_account
from pipeline.stages.generate import briefing, gathering, lane
from pipeline.stages.generate.drafting import draft
from pipeline.stages.generate.drawing import BrokenFilm, draw, redraw
from pipeline.stages.generate.finishing import fail
from pipeline.stages.generate.judging import judge
from pipeline.stages.generate.reading import brief_from, source_text
from pipeline.stages.generate.repeating import OwnWords
from pipeline.stages.generate.starting import start
from pipeline.stages.generate.storing import WAITS, as_json
from pipeline.stages.generate.turns import turn
from pipeline.stages.generate.voicing import NotSpokenYet
from pipeline.stages.generate.writing import write
from pipeline.stages.model_account import LostLease
from pipeline.stages.persona_cards import persona_card
from pipeline.writers.base import Writer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager

    from pipeline.models import Generation
    from pipeline.writers.asking import ModelClient

log = structlog.get_logger(__name__)


def work(generation: Generation) -> None:
    """Work one claimed generation through its stages; each stage's answer is stored before the next begins."""
    crash_point("generate.claimed")
    try:
        if generation.stage == "render":
            # Whoever only waits for its turn learns so first: nothing is loaded or judged for it.
            with turn(generation):
                _work(generation, nullcontext())
        else:
            _work(generation, turn(generation))
    except (LostLease, states.Overtaken) as error:
        log.info("overtaken", generation=generation.pk.hex, reason=str(error))
    except Busy:
        # Waiting for one's turn is no failed try.
        generation.sleep_until(utc_now() + limits.RENDER_TURN, attempts=0)
    except (NoRoom, BrokenFilm, NotSpokenYet) as error:
        _wait(generation, error)


def _work(generation: Generation, place: AbstractContextManager[None]) -> None:
    """`place` is entered to draw in it."""
    if "redraw" in generation.answers:
        redraw(generation)
        return
    if _is_sourceless(generation):
        fail(generation, "no_source", "There is neither a raw item nor a topic to make it from.")
        return
    start(generation)
    engine = plugins.get("engines", generation.engine, Engine)
    persona = persona_card(generation.persona_id, generation.persona_version)
    writer = writer_for(generation)
    own_words = None
    if generation.raw_item_id is not None:
        own_words = OwnWords.beside_run(generation, is_verbatim=writer.offline)
    try:
        brief, source = _ask(generation, writer, engine, persona, own_words)
    except TryLater as error:
        _wait(generation, error)
        return
    except (Refused, NeedsReconnect) as error:
        briefing.refuse(generation, error)
        fail(generation, error.code, error.message)
        return
    if generation.stage == "render":
        with place:
            draw(generation, engine, brief, source, persona, own_words=own_words)
        crash_point("generate.rendered")
    write(generation, engine, brief, source, persona, own_words=own_words)
    crash_point("generate.committed")


def _is_sourceless(generation: Generation) -> bool:
    has_one = generation.raw_item_id is not None or generation.topic_id is not None
    return not has_one and not gathering.inputs_of(generation)


def _ask(
    generation: Generation,
    writer: Writer,
    engine: Engine,
    persona: PersonaCard,
    own_words: OwnWords | None,
) -> tuple[Brief, SourceText]:
    """Brief and drafts, each asked for once and stored before the next; returns what the drafts rest on."""
    if generation.raw_item_id is None and generation.topic_id is None:
        with _client(generation) as client:
            return gathering.ask(generation, writer, engine, persona, client)
    if generation.raw_item_id is None:
        with _client(generation) as client:
            return lane.ask(generation, writer, engine, persona, client)
    source = source_text(generation)
    with _client(generation) as client:
        if generation.stage == "brief":
            briefing.obtain(generation, writer, source, client)
            crash_point("generate.briefed")
        brief = engine.told(brief_from(generation.answers["brief"]), source)
        if generation.stage == "draft":
            draft(
                generation,
                writer,
                engine,
                brief,
                persona,
                client=client,
                judge=lambda written: judge(engine, written, brief, source, persona, own_words=own_words),
            )
    return brief, source


@contextmanager
def _client(generation: Generation) -> Iterator[ModelClient | None]:
    with model_account.open_client(generation) as live:
        is_own_key = model_account.is_own_key(generation)
        yield batches.client_for(generation, live, is_own_key=is_own_key)


def _wait(generation: Generation, error: TryLater) -> None:
    """Sleep until the model may be asked again. Waiting is no failed try, but an outage is not waited for for ever."""
    now = utc_now()
    kept = {"code": error.code, "message": error.message, "stage": generation.stage}
    if error.code == batches.AWAITED:
        _await_batch(generation, kept)
        return
    if error.code in model_account.WAITING_CODES:
        wait = error.after or limits.MODEL_RETRIES[0]
        if generation.sleep_until(now + wait, error=kept, attempts=0):
            # Nobody was asked: another run finds out for itself what holds it.
            briefing.give_back(generation)
        return
    waited = generation.answers.get(WAITS) or {"since": now.isoformat(), "times": 0}
    if now - datetime.fromisoformat(waited["since"]) >= limits.MODEL_PATIENCE:
        told = f"{error.message} It was tried for a day without success; retry it."
        briefing.refuse(generation, Refused(told, code=error.code))
        fail(generation, error.code, told)
        return
    wait = error.after or limits.MODEL_RETRIES[min(waited["times"], len(limits.MODEL_RETRIES) - 1)]
    answers = {**generation.answers, WAITS: {**waited, "times": waited["times"] + 1}}
    if generation.sleep_until(now + wait, error=kept, attempts=0, answers=as_json(answers)):
        briefing.give_back(generation, wait)


def _await_batch(generation: Generation, error: dict[str, str]) -> None:
    """Sleep until the batch is answered, which wakes it, or until its time is up."""
    until = generation.batch_until
    if not generation.sleep_until(until, error=error, attempts=0):
        return
    if until is not None:
        briefing.hold(generation, until)
    if batches.is_decided(generation):
        # It was answered before this run slept, and woke nobody.
        generation.sleep_until(utc_now())


def give_up(generation: Generation) -> None:
    """A run that broke again and again ends as failed, with its credits returned."""
    kept = generation.error or {}
    message = kept.get("message") or "Making it broke several times; the operator's log has the reason."
    try:
        fail(generation, kept.get("code") or "gave_up", f"{message} Retry it.")
    except states.Overtaken as error:
        log.info("overtaken", generation=generation.pk.hex, reason=str(error))


def writer_for(generation: Generation) -> Writer:
    """Claude where somebody has a key for it; else the offline one, which takes its sentences from the source."""
    kind = "claude" if model_account.has_key(generation) else "extractive"
    return plugins.get("writers", kind, Writer)
