"""What can be made of a raw item, known when it is pushed: the engines' rules, and the writer's without a model."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import structlog

from config.core.api.nearest import hint
from config.core.errors import Invalid
from pipeline import plugins
from pipeline.engines.base import Engine
from pipeline.engines.shared.offline_drafts import blocking_rule, draft_without_model
from pipeline.generate.model.keys import workspace_has_key
from pipeline.generate.persona_cards import persona_card
from pipeline.plugins import Refused
from pipeline.switches import availability
from pipeline.writers.extractive import brief_of
from pipeline.writers.strip_injections import screened

if TYPE_CHECKING:
    from uuid import UUID

    from accounts.models import Workspace
    from pipeline.engines.base import Brief, PersonaCard, SourceText

log = structlog.get_logger(__name__)

NOTHING_TO_MAKE: Final = "nothing_to_make"
ENGINE_UNAVAILABLE: Final = "engine_unavailable"
NO_MORE_VARIANTS: Final = "no_more_variants"
NO_MORE_SENTENCES: Final = "The source holds no further sentence of its own."
LEFT_OUT: Final = "Sentences of it that speak to a machine are left out and don't count."


def engine_named(name: str) -> Engine:
    """The engine of that name (`Short Post`); raises `Invalid` naming those there are."""
    engines = plugins.every("engines", Engine)
    for engine in engines:
        if engine.name == name:
            return engine
    message = f"There is no engine output {name!r}. {hint(name, [engine.name for engine in engines])}"
    raise Invalid.one(field="engines", code="unknown_engine", message=message)


@dataclass(frozen=True)
class Skipped:
    """One variant that was asked for and can't be made, and why."""

    engine_output: str
    variant: int
    code: str
    message: str

    def as_json(self) -> dict[str, Any]:
        """As the raw item keeps it."""
        return {
            "engine_output": self.engine_output,
            "variant": self.variant,
            "code": self.code,
            "message": self.message,
        }


@dataclass(frozen=True)
class Share:
    """An engine, and how many variants it makes: the first ones."""

    engine: Engine
    variants: int


@dataclass(frozen=True)
class GenerationPlan:
    """What a raw item will be made into, and what that costs: of all that was asked for, each is made or skipped."""

    shares: tuple[Share, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    variants: int = 1
    """How many of each were asked for."""

    @property
    def engines(self) -> tuple[Engine, ...]:
        return tuple(share.engine for share in self.shares)

    @property
    def price(self) -> int:
        return sum(share.engine.credits * share.variants for share in self.shares)

    @property
    def why_not(self) -> tuple[str, ...]:
        """A sentence for each engine that makes nothing, or less than was asked."""
        made = {share.engine.name: share.variants for share in self.shares}
        told: dict[str, str] = {}
        for one in self.skipped:
            number = made.get(one.engine_output)
            name = f"{one.engine_output}, variant {number + 1}" if number else one.engine_output
            told.setdefault(one.engine_output, f"{name}: {one.message}")
        return tuple(told.values())


class Acceptance:
    """Plans raw items of one workspace; who writes, and each persona, is read once.

    Without a model the words are the same each time, so the writer itself is asked: what it refuses is skipped. A
    model writes from what that writer can't use, so that only the engines' own rules hold for it.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._has_model = workspace_has_key(workspace)
        self._cards: dict[UUID | None, PersonaCard] = {}

    def plan(
        self, engines: list[Engine], variants: int, source: SourceText, *, persona_id: UUID | None
    ) -> GenerationPlan:
        """`engines` in the order asked for, `variants` of each."""
        trial = None if self._has_model else _Trial(source, self._card(persona_id), variants)
        return _plan(engines, variants, source, trial)

    def _card(self, persona_id: UUID | None) -> PersonaCard:
        if persona_id not in self._cards:
            self._cards[persona_id] = persona_card(persona_id, None)
        return self._cards[persona_id]


def _plan(engines: list[Engine], variants: int, source: SourceText, trial: _Trial | None) -> GenerationPlan:
    shares: list[Share] = []
    skipped: list[Skipped] = []
    # As a writer is shown it.
    shown, _ = screened(source)
    has_gaps = (shown.text, shown.title) != (source.text, source.title)
    for engine in engines:
        refusal = refusal_by_rules(engine, shown)
        able = 0 if refusal is not None else variants
        if trial is not None and refusal is None:
            able, refusal = trial.ask(engine)
        if able:
            shares.append(Share(engine, able))
        if refusal is not None:
            is_of_words = refusal.code != ENGINE_UNAVAILABLE
            message = f"{refusal.message} {LEFT_OUT}" if has_gaps and is_of_words else refusal.message
            skipped += [
                Skipped(engine.name, number, refusal.code, message) for number in range(able, variants)
            ]
    return GenerationPlan(tuple(shares), tuple(skipped), variants)


def refusal_by_rules(engine: Engine, shown: SourceText) -> Refused | None:
    """Why nothing can be made whoever writes: the engine isn't there, or its own rules don't allow it."""
    taken_out = availability.of_engine(engine)
    if taken_out is not None:
        return Refused(taken_out.sentence, code=ENGINE_UNAVAILABLE)
    reason = engine.why_not(shown) or engine.unshown(shown)
    return None if reason is None else Refused(reason, code=NOTHING_TO_MAKE)


def plan_by_rules(engines: list[Engine], variants: int, source: SourceText) -> GenerationPlan:
    """The same by the engines' own rules alone, whoever will write."""
    return _plan(engines, variants, source, None)


class _Trial:
    """What the writer without a model makes of one source; its brief serves all engines."""

    def __init__(self, source: SourceText, persona: PersonaCard, variants: int) -> None:
        self._source, self._persona, self._variants = source, persona, variants

    @cached_property
    def _brief(self) -> Brief:
        return brief_of(self._source)

    def ask(self, engine: Engine) -> tuple[int, Refused | None]:
        """How many variants come of it, and why no more do."""
        try:
            return ask_writer(engine, self._source, self._brief, self._persona, variants=self._variants)
        # An engine of ours that breaks over a text must not keep it out: its run fails, and says so.
        except Exception:
            log.exception("acceptance_broke", engine=engine.kind)
            return self._variants, None


def ask_writer(
    engine: Engine, source: SourceText, brief: Brief, persona: PersonaCard, *, variants: int
) -> tuple[int, Refused | None]:
    """How many variants the writer without a model makes of what it found, and why no more; None where it makes all."""
    try:
        told = engine.told(brief, source)
        drafts = draft_without_model(engine, told, persona, variants=variants, seed="")
    except Refused as refusal:
        return 0, refusal
    if len(drafts) >= variants:
        return variants, None
    kept_out = blocking_rule(engine, told, persona, variants=len(drafts) + 1, seed="")
    message = (
        NO_MORE_SENTENCES
        if kept_out is None
        else f"No further sentence of the source keeps the persona's rules: {kept_out}"
    )
    return len(drafts), Refused(message, code=NO_MORE_VARIANTS)
