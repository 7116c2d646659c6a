"""Plans a source for each line of a list of addresses, and registers the planned sources."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext as _

from config.core.errors import AppError
from pipeline import limits
from pipeline.ingest import collect
from pipeline.ingest.collect.source_validation import count_sources_left, past_plan_message
from pipeline.ingest.pasted_url import reading_by_host
from pipeline.models import Source
from pipeline.text.links import canonical_url

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime
    from uuid import UUID

    from accounts.models import Workspace
    from pipeline.ingest.opml import ListedAddress


@dataclass(frozen=True)
class PlannedSource:
    """The plan for a line.

    `source` is the row that would be stored, or `None` if the workspace has that source already, or the line is
    refused for the reason in `refusal`. `number` counts the lines from 1.
    """

    number: int
    listed: ListedAddress
    source: Source | None = None
    refusal: str = ""


@dataclass
class Registered:
    """The result for a list: `known` counts sources that existed, `refused` holds lines with the reason."""

    added: list[UUID] = field(default_factory=list)
    known: int = 0
    refused: list[PlannedSource] = field(default_factory=list)


def plan_all(workspace: Workspace, listed: Sequence[ListedAddress], *, now: datetime) -> list[PlannedSource]:
    """Return the plan of `register_all` for each line. Writes nothing, and fetches nothing."""
    rows = Source.objects.of(workspace).live().filter(deleted_at=None, is_push=False)
    known_keys = {_identity_key(kind, config) for kind, config in rows.values_list("type", "config")}
    remaining = count_sources_left(workspace, test=False)
    planned = []
    for number, line in enumerate(listed, start=1):
        source, refusal = _unsaved_source(workspace, line, now=now)
        if source is not None and _identity_key(source.type, source.config) in known_keys:
            source = None
        elif source is not None:
            known_keys.add(_identity_key(source.type, source.config))
            if remaining == 0:
                source, refusal = None, past_plan_message(workspace)
            elif remaining is not None:
                remaining -= 1
        planned.append(PlannedSource(number, line, source, refusal))
    return planned


def _unsaved_source(workspace: Workspace, line: ListedAddress, *, now: datetime) -> tuple[Source | None, str]:
    """Return an unsaved source for the line, or `None` and the reason why there can be none."""
    if not line.address:
        return None, _("No address. Enter one such as https://example.org/news.")
    try:
        reading = reading_by_host(line.address)
        settings = collect.SourceSettings(
            type=reading.type,
            name=line.name,
            config=reading.config,
            first_poll={"newest": limits.FIRST_POLL_NEWEST},
        )
        return collect.validate_source(workspace, settings, test=False, now=now), ""
    except AppError as error:
        return None, _error_text(error)


def _error_text(error: AppError) -> str:
    """Return an error's messages as one text."""
    return " ".join(detail.message for detail in error.detail) or str(error)


def _identity_key(kind: str, config: Mapping[str, Any]) -> str:
    """Return a key that is equal for two sources that read the same address, however it is spelt."""
    url = config.get("url")
    normalized_config = {**config, "url": canonical_url(url)} if isinstance(url, str) else config
    return f"{kind} {json.dumps(normalized_config, sort_keys=True)}"


def register_all(workspace: Workspace, listed: Sequence[ListedAddress], *, now: datetime) -> Registered:
    """Register a source for each address that the workspace doesn't have; a refused line stops no other.

    Nothing is fetched here, because an address is first read at the source's first poll, which makes items of
    its newest entries.
    """
    registered = Registered()
    for planned in plan_all(workspace, listed, now=now):
        if planned.source is None:
            registered.known += not planned.refusal
            registered.refused += [planned] if planned.refusal else []
            continue
        try:
            registered.added.append(collect.add(planned.source, workspace=workspace, now=now).pk)
        except AppError as error:
            registered.refused.append(PlannedSource(planned.number, planned.listed, None, _error_text(error)))
    return registered
