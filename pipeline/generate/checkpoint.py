"""What the steps of a run hand on: in memory to the next one, and stored, so that a killed task asks for nothing twice."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from django.db.models import F, Sum

from config.core.database.bulk_update import update_each
from config.core.database.prepared_queries import Prepared
from pipeline import plugins
from pipeline.engines.base import Brief, Claim, Draft, Engine, Fact, SourceText, Story, TopicBrief
from pipeline.generate.checks import run_checks
from pipeline.generate.model.metered_client import LostLease
from pipeline.media import source_media
from pipeline.models import GeneratedItem, Generation, GenerationStage, ModelCall, RawBody, RawItem
from pipeline.plugins import Refused
from pipeline.text.plain_text import bare_title, read_body

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from pipeline.engines.base import PersonaCard
    from pipeline.generate.repetition import OwnWords
    from pipeline.writers.base import Judge, Writer
    from pipeline.writers.model_calls import ModelClient


@dataclass(frozen=True)
class RunMaterial:
    """What the words rest on, and what decides over a draft of them."""

    brief: Brief
    source: SourceText
    judge: Judge


@dataclass(frozen=True)
class Run:
    """A claimed generation with what its steps need. `then` is the stage that the step at work leads to."""

    generation: Generation
    engine: Engine
    writer: Writer
    persona: PersonaCard
    client: ModelClient | None
    own_words: OwnWords | None
    """What the drafts of a raw item are compared with; a topic has a memory of its own."""
    material: RunMaterial | None = None
    """None until a step has found it, or it was read back."""
    then: GenerationStage = GenerationStage.WRITE

    @property
    def rests_on(self) -> RunMaterial:
        assert self.material is not None  # noqa: S101  for the types; it is read before each step that needs it
        return self.material

    def resting_on(self, brief: Brief, source: SourceText) -> RunMaterial:
        """Material with the rules that every draft is held to."""
        return RunMaterial(
            brief,
            source,
            lambda draft: run_checks(
                self.engine, draft, brief, source, self.persona, own_words=self.own_words
            ),
        )


WAITS: Final = "waits"
"""Where a run keeps since when, and how often, it has waited for the model."""
EARLIER: Final = "earlier"
"""Where a run keeps what the runs before it cost that came to nothing: the item is theirs as well."""


def cost_so_far(run: Generation | None) -> dict[str, Any]:
    """What a further run of one of its items begins with: the tokens and money of `run` and of those before it.

    The money of one item, in millionths of a US dollar: a run's items share what it cost. Empty where nothing was paid.
    """
    if run is None:
        return {}
    calls = ModelCall.everywhere.filter(generation=run).aggregate(
        input=Sum(
            F("input_tokens")
            + F("cache_write_5m_tokens")
            + F("cache_write_1h_tokens")
            + F("cache_read_tokens")
        ),
        output=Sum("output_tokens"),
        cost=Sum("cost_micro_usd"),
    )
    before = run.answers.get(EARLIER, {})
    spent = {
        "input_tokens": before.get("input_tokens", 0) + (calls["input"] or 0),
        "output_tokens": before.get("output_tokens", 0) + (calls["output"] or 0),
        "cost_micro_usd": before.get("cost_micro_usd", 0) + (calls["cost"] or 0) // max(run.variants, 1),
    }
    return {EARLIER: spent} if any(spent.values()) else {}


def store_answer(generation: Generation, stage: GenerationStage | str, **answers: Any) -> None:
    """Keep a step's answer under the lease; `stage` is what is to be done next."""
    if not try_to_store_answer(generation, stage, **answers):
        raise LostLease


def try_to_store_answer(generation: Generation, stage: GenerationStage | str, **answers: Any) -> bool:
    """The same; False where the lease is lost, and then nothing was written."""
    generation.answers = {**generation.answers, **answers}
    # What was waited for has come: the next outage is counted from its own beginning.
    generation.answers.pop(WAITS, None)
    generation.stage = stage
    ours = {"pk": generation.pk, "lease_token": generation.lease_token}
    written = {"answers": as_json(generation.answers), "stage": stage}
    return bool(update_each(Generation, [(ours, written)]))


def as_json(value: Any) -> Any:
    """Tuples as lists: what is read back must be what was kept."""
    if isinstance(value, dict):
        return {key: as_json(member) for key, member in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(member) for member in value]
    return value


# --- Reading ---------------------------------------------------------------------------------------------------------


def source_text(generation: Generation) -> SourceText:
    """With its videos and pictures where the engine shows them."""
    source = text_of(generation.raw_item_id, generation.raw_version)
    engine = plugins.get("engines", generation.engine, Engine)
    if "video" not in engine.made_from or generation.raw_item_id is None:
        return source
    raw: RawItem = RawItem.everywhere.get(pk=generation.raw_item_id)
    return replace(source, material=source_media.material_of(raw))


_BODY: Final[Prepared[RawBody]] = Prepared(
    lambda raw_item, number: RawBody.everywhere.select_related("raw_item").filter(
        raw_item_id=raw_item, number=number
    )
)


def text_of(raw_item_id: UUID | None, version: int | None) -> SourceText:
    """A version of a raw item; raises `Refused` where its content was deleted."""
    found = _BODY.ask(raw_item=raw_item_id, number=version) if raw_item_id and version is not None else []
    body = found[0] if found else None
    if body is None:
        message = "The raw item's content was deleted."
        raise Refused(message, code="source_deleted")
    raw: RawItem = body.raw_item
    seen, hidden = read_body(body.body, body.body_format)
    return SourceText(
        title=bare_title(body.title),
        text=seen,
        url=raw.url,
        author=raw.author,
        language=raw.language,
        published_at=raw.published_at,
        hidden=hidden,
    )


def brief_from(kept: Mapping[str, Any]) -> Brief:
    lane, whole = kept.get("lane"), kept.get("whole")
    return Brief(
        **{
            **kept,
            "facts": tuple(Fact(**fact) for fact in kept["facts"]),
            "orders": tuple(kept.get("orders", ())),
            "headings": tuple(Fact(**heading) for heading in kept.get("headings", ())),
            "whole": None if whole is None else Fact(**whole),
            "stories": tuple(Story(**story) for story in kept.get("stories", ())),
            "lane": None if lane is None else TopicBrief(**{**lane, "said": tuple(lane["said"])}),
        }
    )


def draft_from(kept: Mapping[str, Any]) -> Draft:
    return Draft(**{**kept, "claims": tuple(Claim(**claim) for claim in kept["claims"])})


def draft_of(item: GeneratedItem, **changes: Any) -> Draft:
    """The words of an item as its engine drew them, with `changes` laid over them."""
    draft = Draft(
        title=item.title,
        body=item.body,
        body_format=item.body_format,  # type: ignore[arg-type]
        content=item.content,
        claims=(),
        language=item.language,
        angle=item.angle,
    )
    return replace(draft, **changes)
