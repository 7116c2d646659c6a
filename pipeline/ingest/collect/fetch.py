"""Ask a source once, with what its kind needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeline.ingest.collect.validation import kind_of
from pipeline.switches.availability import environment_of_source

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from config.core.http_client import Client
    from pipeline.models import Source
    from pipeline.sources.base import Fetch


def fetch(source: Source, state: Mapping[str, Any], *, http: Client, now: datetime) -> Fetch:
    """Raises a `PluginError`; writes nothing."""
    kind = kind_of(source.type)
    return kind.fetch(source.config, state, http=http, now=now, environment=environment_of_source(kind))


def host_of(source: Source) -> str:
    """The host that is mostly asked; empty for a kind that asks nobody."""
    kind = kind_of(source.type)
    return kind.host(source.config, environment_of_source(kind))[:255]
