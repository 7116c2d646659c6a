"""Says of each line of a list what would become of it, and registers the lines as sources."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from django.utils.translation import gettext as _

from config.core.errors import AppError
from pipeline import limits
from pipeline.ingest import collect
from pipeline.ingest.collect.source_validation import past_plan_message, sources_left
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
    """What a line would become: `source` is the row that would be stored; None where there is it already, or a refusal."""

    number: int
    listed: ListedAddress
    source: Source | None = None
    refusal: str = ""


@dataclass
class Registered:
    """What became of a list; `refused` holds the lines that became nothing, with the reason."""

    added: list[UUID] = field(default_factory=list)
    known: int = 0
    refused: list[PlannedSource] = field(default_factory=list)


def plan_all(workspace: Workspace, listed: Sequence[ListedAddress], *, now: datetime) -> list[PlannedSource]:
    """What `register_all` would do with each line. Writes nothing, and fetches nothing."""
    rows = Source.objects.of(workspace).live().filter(deleted_at=None, is_push=False)
    known = {_key(kind, config) for kind, config in rows.values_list("type", "config")}
    left = sources_left(workspace, test=False)
    planned = []
    for number, line in enumerate(listed, start=1):
        row, refusal = _source_of(workspace, line, now=now)
        if row is not None and _key(row.type, row.config) in known:
            row = None
        elif row is not None:
            known.add(_key(row.type, row.config))
            if left == 0:
                row, refusal = None, past_plan_message(workspace)
            elif left is not None:
                left -= 1
        planned.append(PlannedSource(number, line, row, refusal))
    return planned


def _source_of(workspace: Workspace, line: ListedAddress, *, now: datetime) -> tuple[Source | None, str]:
    """A row that isn't stored, or why there is none."""
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
        return collect.checked(workspace, settings, test=False, now=now), ""
    except AppError as error:
        return None, _said(error)


def _said(error: AppError) -> str:
    return " ".join(detail.message for detail in error.detail) or str(error)


def _key(kind: str, config: Mapping[str, Any]) -> str:
    """By which two sources read the same place, however its address is spelt."""
    url = config.get("url")
    same = {**config, "url": canonical_url(url)} if isinstance(url, str) else config
    return f"{kind} {json.dumps(same, sort_keys=True)}"


def register_all(workspace: Workspace, listed: Sequence[ListedAddress], *, now: datetime) -> Registered:
    """Register a source for each address that the workspace doesn't have; a refusal stops no other.

    Nothing is fetched here: an address is first read at the source's first poll, which makes items of its
    newest entries.
    """
    done = Registered()
    for one in plan_all(workspace, listed, now=now):
        if one.source is None:
            done.known += not one.refusal
            done.refused += [one] if one.refusal else []
            continue
        try:
            done.added.append(collect.add(one.source, workspace=workspace, now=now).pk)
        except AppError as error:
            done.refused.append(PlannedSource(one.number, one.listed, None, _said(error)))
    return done
