"""What a run is made of: the source's words, and what was stored of it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from config.ground.prepared import Prepared
from pipeline import plugins
from pipeline.canonical import read_body
from pipeline.engines.base import Brief, Claim, Draft, Engine, Fact, Lane, SourceText, Story
from pipeline.models import GeneratedItem, Generation, RawBody, RawItem
from pipeline.plugins import Refused
from pipeline.stages import footage

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

_BODY: Final[Prepared[RawBody]] = Prepared(
    lambda raw_item, number: RawBody.everywhere.select_related("raw_item").filter(
        raw_item_id=raw_item, number=number
    )
)


def source_text(generation: Generation) -> SourceText:
    """With its videos and pictures where the engine shows them."""
    source = text_of(generation.raw_item_id, generation.raw_version)
    engine = plugins.get("engines", generation.engine, Engine)
    if "video" not in engine.made_from:
        return source
    raw: RawItem = RawItem.everywhere.get(pk=generation.raw_item_id)
    return replace(source, material=footage.material_of(raw))


def text_of(raw_item_id: UUID | None, version: int | None) -> SourceText:
    """A version of a raw item; raises `Refused` where its content was deleted."""
    bodies = _BODY.ask(raw_item=raw_item_id, number=version)
    if not bodies:
        message = "The raw item's content was deleted."
        raise Refused(message, code="source_deleted")
    (body,) = bodies
    raw: RawItem = body.raw_item
    seen, hidden = read_body(body.body, body.body_format)
    return SourceText(
        title=body.title,
        text=seen,
        url=raw.url,
        author=raw.author,
        language=raw.language,
        published_at=raw.published_at,
        hidden=hidden,
    )


def brief_from(kept: Mapping[str, Any]) -> Brief:
    lane = kept.get("lane")
    return Brief(
        **{
            **kept,
            "facts": tuple(Fact(**fact) for fact in kept["facts"]),
            "orders": tuple(kept.get("orders", ())),
            "headings": tuple(Fact(**heading) for heading in kept.get("headings", ())),
            "stories": tuple(Story(**story) for story in kept.get("stories", ())),
            "lane": None if lane is None else Lane(**{**lane, "said": tuple(lane["said"])}),
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
