"""Fetches a source once, and follows a permanent redirect after several polls have seen it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from django.utils.translation import gettext as _

from config.core.datetimes import format_utc, read_moment
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
    """Return the fetch of the source by its kind. Writes nothing.

    `state` is the kind's state of the last poll. Raises a `PluginError` if the source can't be fetched.
    """
    kind = kind_of(source.type)
    return kind.fetch(source.config, state, http=http, now=now, environment=environment_of_source(kind))


def host_of(source: Source) -> str:
    """Return the host that gets most of the requests, or an empty string for a kind that makes none."""
    kind = kind_of(source.type)
    return kind.host(source.config, environment_of_source(kind))[:255]


@dataclass(frozen=True)
class Move:
    """The changes that a redirect makes to a source.

    `moved` records where the redirects lead, since when and in how many polls; `config` holds the new settings
    if the source's address is to change.
    """

    moved: Mapping[str, Any] | None
    config: Mapping[str, Any] | None = None
    note: Note | None = None


def follow(source: Source, target: str, *, now: datetime) -> Move:
    """Decide whether the source's address follows a permanent redirect. Writes nothing.

    It follows if enough polls in enough time saw the same `target`, unless that downgrades https, the kind
    rejects the address, or another source of the workspace has it. `target` is the address to which permanent
    redirects led at this poll, or an empty string if there were none.
    """
    if not target or not _may_follow(source.config.get("url"), target):
        return Move(None)
    previous = source.moved if source.moved and source.moved["to"] == target else None
    since = previous["since"] if previous else format_utc(now)
    polls = previous["polls"] + 1 if previous else 1
    move_state = {"to": target, "since": since, "polls": polls}
    if polls < limits.MOVE_POLLS or now - (read_moment(since) or now) < limits.MOVE_AFTER:
        return Move(move_state)
    config = _moved_config(source, target)
    if config is None:
        return Move(move_state)
    if _is_taken(source, config):
        message = _("It has moved to %(address)s, which is another source of this workspace already.")
        return Move(move_state, note=Note("moved_to_known", message % {"address": target}))
    message = _("It has moved: from %(old)s to %(new)s.") % {"old": source.config["url"], "new": target}
    return Move(None, config, Note("moved", message))


def _may_follow(address: Any, target: str) -> bool:
    """Return whether `target` is another address that may replace this one."""
    if not isinstance(address, str) or address == target:
        return False
    # A redirect must not downgrade https to http.
    return not (urlsplit(address).scheme == "https" and urlsplit(target).scheme != "https")


def _moved_config(source: Source, target: str) -> Mapping[str, Any] | None:
    """Return the source's settings with that address, or `None` if its kind rejects it."""
    try:
        return kind_of(source.type).clean_config({**source.config, "url": target})
    except ConfigInvalid:
        return None


def _is_taken(source: Source, config: Mapping[str, Any]) -> bool:
    """Return whether another live source of the workspace has that type and address."""
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
