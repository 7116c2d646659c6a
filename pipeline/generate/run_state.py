"""Holds and stores the data that the steps of a run pass on, and finds a raw item's text and brief.

A task that is killed asks no model twice, because the next one reads the stored answers.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from django.db.models import F, Sum

from config.core.database.bulk_update import update_each
from config.core.database.prepared_queries import Prepared
from pipeline import plugins
from pipeline.engines.base import Brief, Claim, Draft, Engine, Fact, SourceText, Story, TopicBrief
from pipeline.generate.checks import run_checks
from pipeline.generate.model.metered_client import LostLease
from pipeline.generate.shared_brief import share_brief
from pipeline.media import source_media
from pipeline.models import GeneratedItem, Generation, GenerationStage, ModelCall, RawBody, RawItem
from pipeline.plugins import Refused
from pipeline.text.plain_text import bare_title, read_body

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from uuid import UUID

    from pipeline.engines.base import PersonaCard
    from pipeline.generate.repetition import OwnWords
    from pipeline.writers.base import Judge, Writer
    from pipeline.writers.model_calls import ModelClient


@dataclass(frozen=True)
class RunMaterial:
    """The material of a run: the brief and source of its words, and the function that checks its drafts."""

    brief: Brief
    source: SourceText
    judge: Judge


@dataclass(frozen=True)
class Run:
    """A claimed generation with the data that its steps need."""

    generation: Generation
    engine: Engine
    writer: Writer
    persona: PersonaCard
    client: ModelClient | None
    own_words: OwnWords | None
    """Earlier items to compare a raw item's drafts with; a topic's run uses `PersonaHistory` instead."""
    material: RunMaterial | None = None
    """`None` until a step has found it, or it was read back from the stored answers."""
    next_stage: GenerationStage = GenerationStage.WRITE
    """The stage that follows the current step."""

    @property
    def required_material(self) -> RunMaterial:
        """The material; use it only in a step with `needs_material`."""
        assert self.material is not None  # noqa: S101  for the types; it is read before each step that needs it
        return self.material

    def build_material(self, brief: Brief, source: SourceText) -> RunMaterial:
        """Return the material for this brief and source, with the checks that every draft must pass."""
        return RunMaterial(
            brief,
            source,
            lambda draft: run_checks(
                self.engine, draft, brief, source, self.persona, own_words=self.own_words
            ),
        )


WAITS: Final = "waits"
"""Key in `answers`: since when, and how often, the run has waited for the model."""
EARLIER: Final = "earlier"
"""Key in `answers`: the cost of earlier runs for the same items that made nothing."""


def cost_so_far(run: Generation | None) -> dict[str, Any]:
    """Return the `EARLIER` answer for a further run of the same items, or `{}` if nothing was paid.

    It is the cost of `run` and of the runs before it. Tokens are the run's; money is for one item, in millionths
    of a US dollar, because a run's items share its cost.
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
    earlier = run.answers.get(EARLIER, {})
    cost = {
        "input_tokens": earlier.get("input_tokens", 0) + (calls["input"] or 0),
        "output_tokens": earlier.get("output_tokens", 0) + (calls["output"] or 0),
        "cost_micro_usd": earlier.get("cost_micro_usd", 0) + (calls["cost"] or 0) // max(run.variants, 1),
    }
    return {EARLIER: cost} if any(cost.values()) else {}


def store_answer(generation: Generation, stage: GenerationStage | str, **answers: Any) -> None:
    """Store a step's answers with the next stage, and end a wait for the model.

    Raises `LostLease` if the run is no longer this task's.
    """
    if not try_to_store_answer(generation, stage, **answers):
        raise LostLease


def try_to_store_answer(generation: Generation, stage: GenerationStage | str, **answers: Any) -> bool:
    """Store a step's answers as `store_answer` does.

    Return False, with nothing written, if the lease is lost.
    """
    generation.answers = {**generation.answers, **answers}
    # The wait is over: the next outage is timed from its own start.
    generation.answers.pop(WAITS, None)
    generation.stage = stage
    lookup = {"pk": generation.pk, "lease_token": generation.lease_token}
    changes = {"answers": as_json(generation.answers), "stage": stage}
    return bool(update_each(Generation, [(lookup, changes)]))


def as_json(value: Any) -> Any:
    """Return the value with tuples as lists, so that it equals what is read back from JSON."""
    if isinstance(value, dict):
        return {key: as_json(member) for key, member in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(member) for member in value]
    return value


# --- The material of a raw item --------------------------------------------------------------------------------------


def find_material(run: Run) -> RunMaterial:
    """Find the raw item's brief, or ask for it, and store it with the run.

    Raises `TryLater` while another run asks for it, `Refused` if the content was deleted or the writer refuses
    it, and `LostLease` if the run is no longer this task's. A model's writer may raise `NeedsReconnect` too.
    """
    generation = run.generation
    assert generation.raw_item_id is not None  # noqa: S101  for the types; it is a run of a raw item
    source = source_text(generation)

    def store_brief(brief: Any, usage: Mapping[str, Any]) -> bool:
        return try_to_store_answer(generation, run.next_stage, brief=brief, brief_usage=usage)

    find_brief(
        generation, run.writer, source, run.client, raw_item_id=generation.raw_item_id, keep=store_brief
    )
    return _material(run, source)


def read_material(run: Run) -> RunMaterial:
    """Return the run's material from its stored brief. Raises `Refused` if the content was deleted."""
    return _material(run, source_text(run.generation))


def _material(run: Run, source: SourceText) -> RunMaterial:
    brief = run.engine.told(brief_from(run.generation.answers["brief"]), source)
    return run.build_material(brief, source)


def find_brief(
    generation: Generation,
    writer: Writer,
    source: SourceText,
    client: Any,
    *,
    raw_item_id: UUID,
    keep: Callable[[Any, Mapping[str, Any]], bool],
) -> None:
    """Pass the brief of one raw item and its usage to `keep`, in the transaction that stores a new shared brief.

    Raises `LostLease` if `keep` returns False, which says that the lease is lost, and `TryLater` while another
    run asks for the brief. The writer's `Refused` and `NeedsReconnect` get through.
    """
    if not writer.offline:
        share_brief(generation, writer, source, client, raw_item_id=raw_item_id, keep=keep)
        return
    # It costs nothing and gives the same answer each time, so there is nothing to share.
    answer = writer.brief(source, client=client)
    if not keep(asdict(answer.brief), asdict(answer.usage)):
        raise LostLease


def source_text(generation: Generation) -> SourceText:
    """Return the text of the run's raw item, with its uploaded media if the engine films videos.

    Raises `Refused` if the content was deleted.
    """
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
    """Return a version of a raw item's text. Raises `Refused` if it isn't stored, or was deleted."""
    bodies = _BODY.ask(raw_item=raw_item_id, number=version) if raw_item_id and version is not None else []
    body = bodies[0] if bodies else None
    if body is None:
        message = "The raw item's content was deleted."
        raise Refused(message, code="source_deleted")
    raw: RawItem = body.raw_item
    visible_text, hidden_text = read_body(body.body, body.body_format)
    return SourceText(
        title=bare_title(body.title),
        text=visible_text,
        url=raw.url,
        author=raw.author,
        language=raw.language,
        published_at=raw.published_at,
        hidden=hidden_text,
    )


# --- Stored answers read back ----------------------------------------------------------------------------------------


def brief_from(stored: Mapping[str, Any]) -> Brief:
    """Return the brief from its stored form."""
    topic_brief, whole_text = stored.get("lane"), stored.get("whole")
    return Brief(
        **{
            **stored,
            "facts": tuple(Fact(**fact) for fact in stored["facts"]),
            "orders": tuple(stored.get("orders", ())),
            "headings": tuple(Fact(**heading) for heading in stored.get("headings", ())),
            "whole": None if whole_text is None else Fact(**whole_text),
            "stories": tuple(Story(**story) for story in stored.get("stories", ())),
            "lane": None
            if topic_brief is None
            else TopicBrief(**{**topic_brief, "said": tuple(topic_brief["said"])}),
        }
    )


def draft_from(stored: Mapping[str, Any]) -> Draft:
    """Return the draft from its stored form."""
    return Draft(**{**stored, "claims": tuple(Claim(**claim) for claim in stored["claims"])})


def draft_of(item: GeneratedItem, **changes: Any) -> Draft:
    """Return the item's words as a draft without claims, with `changes` applied."""
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
