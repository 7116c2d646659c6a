"""Builds the items of a new run, which wait for its words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeline.models import GeneratedItem

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from pipeline.engines.base import Engine
    from pipeline.models import Generation


def new_item(
    generation: Generation,
    engine: Engine,
    *,
    outlets: Sequence[str],
    is_sample: bool,
    now: datetime,
    index: int = 0,
    **columns: Any,
) -> GeneratedItem:
    """Return an unsaved item of the run, its variant `index`.

    It belongs to the run's workspace, raw item, topic and persona, and to a group with the run's other items.
    `columns` are those that the run doesn't know, such as the source, or others than the run's.
    """
    values: dict[str, Any] = {
        "workspace": generation.workspace,
        "test": generation.test,
        "generation": generation,
        "raw_item": generation.raw_item,
        "topic_id": generation.topic_id,
        "persona_id": generation.persona_id,
        "bucket": engine.bucket,
        "engine_output": engine.name,
        "engine_version": engine.version,
        "variant_group": generation.pk,
        "variant_index": index,
        "outlets": outlets,
        "is_sample": is_sample,
        "approval_required": generation.workspace.requires_approval,
        "created_at": now,
        "updated_at": now,
    }
    return GeneratedItem(**values | columns)
