"""Ask a source once, with what its kind needs; a permanent redirect is believed when several polls saw it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from django.utils.translation import gettext as _

from config.core.datetimes import as_z, read_moment
from pipeline import limits
from pipeline.ingest.collect.source_validation import kind_of
from pipeline.models import Source
from pipeline.plugins import ConfigInvalid
from pipeline.sources.base import Note
from pipeline.switches.availability import environment_of_source

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from config.core.http_client import Client
    from pipeline.sources.base import Fetch


def fetch(source: Source, state: Mapping[str, Any], *, http: Client, now: datetime) -> Fetch:
    """What its kind reads of it now; `state` is what that remembers of the last poll. Writes nothing.

    Raises a `PluginError`.
    """
    kind = kind_of(source.type)
    return kind.fetch(source.config, state, http=http, now=now, environment=environment_of_source(kind))


def host_of(source: Source) -> str:
    """The host that is mostly asked; empty for a kind that asks nobody."""
    kind = kind_of(source.type)
    return kind.host(source.config, environment_of_source(kind))[:255]


@dataclass(frozen=True)
class Move:
    """What a poll changes of a source: where it was seen to lead, and the new settings when that is believed."""

    moved: Mapping[str, Any] | None
    config: Mapping[str, Any] | None = None
    note: Note | None = None


def follow(source: Source, target: str, *, now: datetime) -> Move:
    """What becomes of the source's address. It follows where enough polls saw it, and no other source is there.

    `target` is where permanent redirects led at this poll, empty where there were none.
    """
    if not target or not _may_follow(source.config.get("url"), target):
        return Move(None)
    before = source.moved if source.moved and source.moved["to"] == target else None
    since = before["since"] if before else as_z(now)
    polls = before["polls"] + 1 if before else 1
    seen = {"to": target, "since": since, "polls": polls}
    if polls < limits.MOVE_POLLS or now - (read_moment(since) or now) < limits.MOVE_AFTER:
        return Move(seen)
    config = _moved_config(source, target)
    if config is None:
        return Move(seen)
    if _is_taken(source, config):
        message = _("It has moved to %(address)s, which is another source of this workspace already.")
        return Move(seen, note=Note("moved_to_known", message % {"address": target}))
    message = _("It has moved: from %(old)s to %(new)s.") % {"old": source.config["url"], "new": target}
    return Move(None, config, Note("moved", message))


def _may_follow(address: Any, target: str) -> bool:
    if not isinstance(address, str) or address == target:
        return False
    # What was fetched safely isn't given up for a line in an answer.
    return not (urlsplit(address).scheme == "https" and urlsplit(target).scheme != "https")


def _moved_config(source: Source, target: str) -> Mapping[str, Any] | None:
    """Its settings with that address; None where its kind doesn't take it."""
    try:
        return kind_of(source.type).clean_config({**source.config, "url": target})
    except ConfigInvalid:
        return None


def _is_taken(source: Source, config: Mapping[str, Any]) -> bool:
    return (
        Source.everywhere.filter(
            workspace_id=source.workspace_id,
            test=source.test,
            type=source.type,
            deleted_at=None,
            config__url=config["url"],
        )
        .exclude(pk=source.pk)
        .exists()
    )
