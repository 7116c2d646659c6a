"""Plans which items can be made of a raw item when it is pushed.

The engines' own rules decide, and for a workspace without a model also the writer that needs none.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import structlog

from config.core.api.nearest import hint
from config.core.errors import Invalid
from pipeline import plugins
from pipeline.engines.base import Engine
from pipeline.generate.model.keys import workspace_has_key
from pipeline.generate.persona_cards import persona_card
from pipeline.plugins import Refused
from pipeline.switches import availability
from pipeline.writers.base import screen_source
from pipeline.writers.extractive import blocking_rule, brief_of, draft_without_model

if TYPE_CHECKING:
    from collections.abc import Container, Sequence
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
    """Return the engine with that display name (`Short Post`).

    Raises `Invalid` with the known names if there is none.
    """
    engines = plugins.every("engines", Engine)
    for engine in engines:
        if engine.name == name:
            return engine
    message = f"There is no engine output {name!r}. {hint(name, [engine.name for engine in engines])}"
    raise Invalid.one(field="engines", code="unknown_engine", message=message)


@dataclass(frozen=True)
class Skipped:
    """A variant that was asked for and can't be made, with the reason."""

    engine_output: str
    """The engine's display name."""
    variant: int
    """The variant's index, from 0."""
    code: str
    message: str

    def as_json(self) -> dict[str, Any]:
        """Return the form in which the raw item stores it."""
        return {
            "engine_output": self.engine_output,
            "variant": self.variant,
            "code": self.code,
            "message": self.message,
        }


@dataclass(frozen=True)
class Share:
    """An engine and how many variants it makes; these are the first ones, from index 0."""

    engine: Engine
    variants: int


@dataclass(frozen=True)
class GenerationPlan:
    """The drafts to make of a raw item, and their price in credits.

    Each variant asked for is in a share or skipped.
    """

    shares: tuple[Share, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    variants: int = 1
    """How many variants of each engine were asked for."""

    @property
    def engines(self) -> tuple[Engine, ...]:
        return tuple(share.engine for share in self.shares)

    @property
    def price(self) -> int:
        return sum(share.engine.credits * share.variants for share in self.shares)

    @property
    def refusals(self) -> dict[str, str]:
        """The reason of each engine of which nothing can be made, by the engine's display name."""
        possible = {engine.name for engine in self.engines}
        reasons: dict[str, str] = {}
        for skipped in self.skipped:
            if skipped.engine_output not in possible:
                reasons.setdefault(skipped.engine_output, skipped.message)
        return reasons

    def narrowed_to(self, names: Container[str]) -> GenerationPlan:
        """Return the plan of these engines alone, which are named by display name."""
        return GenerationPlan(
            tuple(share for share in self.shares if share.engine.name in names),
            tuple(skipped for skipped in self.skipped if skipped.engine_output in names),
            self.variants,
        )

    @property
    def why_not(self) -> tuple[str, ...]:
        """One sentence for each engine that makes nothing, or fewer variants than asked for."""
        variant_counts = {share.engine.name: share.variants for share in self.shares}
        messages: dict[str, str] = {}
        for skipped in self.skipped:
            count = variant_counts.get(skipped.engine_output)
            name = f"{skipped.engine_output}, variant {count + 1}" if count else skipped.engine_output
            messages.setdefault(skipped.engine_output, f"{name}: {skipped.message}")
        return tuple(messages.values())


class Acceptance:
    """Plans raw items of one workspace; whether it has a model, and each persona, is read once.

    Without a model the words are the same each time, so the writer itself is tried, and the variants that it
    refuses are skipped. A model can also write from text that this writer can't use, so for a model only the
    engines' own rules hold.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._has_model = workspace_has_key(workspace)
        self._cards: dict[UUID | None, PersonaCard] = {}

    def plan(
        self,
        engines: Sequence[str],
        variants: int,
        source: SourceText,
        *,
        persona_id: UUID | None,
        tried: Container[str] | None = None,
    ) -> GenerationPlan:
        """Return the plan for the engines with these display names, in their order, with `variants` of each.

        If `tried` is given, the writer is tried for these engines alone, and the others' own rules decide.
        Raises `Invalid` if there is no engine of one of the names.
        """
        trial = None if self._has_model else _Trial(source, self._card(persona_id), variants)
        return _plan(engines, variants, source, trial, tried)

    def _card(self, persona_id: UUID | None) -> PersonaCard:
        if persona_id not in self._cards:
            self._cards[persona_id] = persona_card(persona_id, None)
        return self._cards[persona_id]


def _plan(
    engines: Sequence[str],
    variants: int,
    source: SourceText,
    trial: _Trial | None,
    tried: Container[str] | None = None,
) -> GenerationPlan:
    """Return the variants that each engine makes, and the reason of each one that it doesn't make."""
    shares: list[Share] = []
    skipped: list[Skipped] = []
    # Engines judge the text as the writer gets it, without sentences that give orders to a machine.
    screened_source, _ = screen_source(source)
    has_gaps = (screened_source.text, screened_source.title) != (source.text, source.title)
    for engine in map(engine_named, engines):
        refusal = refusal_by_rules(engine, screened_source)
        possible_variants = 0 if refusal is not None else variants
        if trial is not None and refusal is None and (tried is None or engine.name in tried):
            possible_variants, refusal = trial.ask(engine)
        if possible_variants:
            shares.append(Share(engine, possible_variants))
        if refusal is not None:
            is_about_text = refusal.code != ENGINE_UNAVAILABLE
            message = f"{refusal.message} {LEFT_OUT}" if has_gaps and is_about_text else refusal.message
            skipped += [
                Skipped(engine.name, number, refusal.code, message)
                for number in range(possible_variants, variants)
            ]
    return GenerationPlan(tuple(shares), tuple(skipped), variants)


def refusal_by_rules(engine: Engine, screened_source: SourceText) -> Refused | None:
    """Return the refusal that holds for every writer, or `None`.

    The engine is unavailable, or its own rules forbid the source.
    """
    unavailability = availability.of_engine(engine)
    if unavailability is not None:
        return Refused(unavailability.sentence, code=ENGINE_UNAVAILABLE)
    reason = engine.why_not(screened_source) or engine.unshown(screened_source)
    return None if reason is None else Refused(reason, code=NOTHING_TO_MAKE)


def plan_by_rules(engines: Sequence[str], variants: int, source: SourceText) -> GenerationPlan:
    """Plan by the engines' own rules alone, whichever writer will be used."""
    return _plan(engines, variants, source, None)


class _Trial:
    """Tries the writer without a model on one source; one brief serves all engines."""

    def __init__(self, source: SourceText, persona: PersonaCard, variants: int) -> None:
        self._source, self._persona, self._variants = source, persona, variants

    @cached_property
    def _brief(self) -> Brief:
        return brief_of(self._source)

    def ask(self, engine: Engine) -> tuple[int, Refused | None]:
        """Return the number of variants that can be made, and the refusal of the next one, or `None` if all can.

        After an unexpected error all count as possible.
        """
        try:
            return ask_writer(engine, self._source, self._brief, self._persona, variants=self._variants)
        # A bug in an engine must not keep a text out: the run fails instead, and reports the reason.
        except Exception:
            log.exception("acceptance_broke", engine=engine.kind)
            return self._variants, None


def ask_writer(
    engine: Engine, source: SourceText, brief: Brief, persona: PersonaCard, *, variants: int
) -> tuple[int, Refused | None]:
    """Return how many variants the writer without a model makes, and the refusal of the next one.

    The refusal is `None` if the writer makes all of them. The drafts are really written, and not stored.
    """
    try:
        engine_brief = engine.told(brief, source)
        drafts = draft_without_model(engine, engine_brief, persona, variants=variants, seed="")
    except Refused as refusal:
        return 0, refusal
    if len(drafts) >= variants:
        return variants, None
    blocking_reason = blocking_rule(engine, engine_brief, persona, variants=len(drafts) + 1, seed="")
    message = NO_MORE_SENTENCES
    if blocking_reason is not None:
        message = f"No further sentence of the source keeps the persona's rules: {blocking_reason}"
    return len(drafts), Refused(message, code=NO_MORE_VARIANTS)
