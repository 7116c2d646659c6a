"""Plans the items that would be made of a raw item and estimates their cost; stores nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from config.core.errors import Conflict
from pipeline.generate.generation_plan import Acceptance, GenerationPlan, plan_by_rules
from pipeline.ingest.raw_content import RawContent, body_of, build_rows, source_text
from pipeline.switches import availability

if TYPE_CHECKING:
    from collections.abc import Container
    from datetime import datetime

    from accounts.models import Workspace
    from pipeline.models import (
        GeneratedItem,
        RawBody,
        RawItem,
        Source,
        WorkspaceDefaults,
    )


def plan_for(
    row: RawItem, body: RawBody, workspace: Workspace, *, tried: Container[str] | None = None
) -> GenerationPlan:
    """Return the engines that can use the raw item, with numbers of variants, and the reasons why others can't.

    `tried` is as in `Acceptance.plan`.
    """
    text = source_text(row, body)
    return Acceptance(workspace).plan(row.engines, row.variants, text, persona_id=row.persona_id, tried=tried)


def refuse_unmakeable(raw: RawItem, item: GeneratedItem, workspace: Workspace, *, index: int) -> None:
    """Raise `Conflict`, with code and message of the skip, if a push would skip variant `index` of `item` now."""
    text = source_text(raw, body_of(raw))
    plan = Acceptance(workspace).plan([item.engine_output], index + 1, text, persona_id=item.persona_id)
    for skipped in plan.skipped:
        if skipped.variant == index:
            raise Conflict.because(code=skipped.code, message=skipped.message)


def estimate(
    workspace: Workspace,
    source: Source,
    content: RawContent,
    *,
    defaults: WorkspaceDefaults,
    now: datetime,
    tried: Container[str] | None = None,
) -> GenerationPlan:
    """Return the plan and cost of pushing this content. Stores and spends nothing.

    `tried` is as in `Acceptance.plan`.

    Raises `EngineUnavailable` if an engine that the content names can't run here.
    """
    availability.refuse_engines(content.engines or ())
    row, body = build_rows(workspace, source, content, defaults, now)
    return plan_for(row, body, workspace, tried=tried)


def estimate_any(
    workspace: Workspace, source: Source, content: RawContent, *, defaults: WorkspaceDefaults, now: datetime
) -> GenerationPlan:
    """Return the plan and cost of content that every text engine can use. Stores nothing, refuses no engine."""
    row, body = build_rows(workspace, source, content, defaults, now)
    return plan_by_rules(row.engines, row.variants, source_text(row, body))
