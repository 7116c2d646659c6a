"""Refuses the workspace's own feed as a source: items of its own posts would be made and charged."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, urlsplit

from django.utils.translation import gettext as _

from config.core.errors import Detail, Invalid
from pipeline.models import Outlet
from pipeline.plugins import Refused
from pipeline.sources.base import Note

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from uuid import UUID

    from pipeline.sources.base import Fetch

CODE: Final = "own_feed"
_FEED_PATH: Final = re.compile(r"/feeds/([A-Za-z0-9_-]{22})\.(?:atom|rss|json)/?$")


def refuse(workspace_id: UUID, addresses: Mapping[str, Any]) -> None:
    """Raise `Invalid` if an address is the workspace's own feed; `addresses` are keyed by field."""
    texts = (value for value in addresses.values() if isinstance(value, str))
    own_addresses = _find_own_addresses(workspace_id, texts)
    faults = [
        Detail(field, CODE, _own_feed_message())
        for field, address in addresses.items()
        if address in own_addresses
    ]
    if faults:
        raise Invalid(*faults)


def leave_out_own(workspace_id: UUID, fetched: Fetch) -> Fetch:
    """Return the fetch with the workspace's own posts left out; another feed may list them too.

    Raises `Refused` if there are no other entries, because a redirect, or a page that names its feed, led to
    the workspace's own feed.
    """
    own_addresses = _find_own_addresses(workspace_id, (entry.url for entry in fetched.entries))
    if not own_addresses:
        return fetched
    if all(entry.url in own_addresses or entry.withdrawn for entry in fetched.entries):
        raise Refused(_own_feed_message(), code=CODE, field="config.url")
    note = Note(CODE, _("It is a post of this workspace."))
    entries = tuple(
        replace(entry, left_out=note) if entry.url in own_addresses and not entry.withdrawn else entry
        for entry in fetched.entries
    )
    return replace(fetched, entries=entries)


def _find_own_addresses(workspace_id: UUID, addresses: Iterable[str]) -> frozenset[str]:
    """Return the addresses that lead to a feed of this workspace, on any host name.

    The secret in the path tells the workspace, so the host needn't be known.
    """
    by_secret: dict[str, set[str]] = {}
    for address in addresses:
        by_secret.setdefault(_secret_in(address), set()).add(address)
    by_secret.pop("", None)
    if not by_secret:
        return frozenset()
    rows = Outlet.everywhere.filter(workspace_id=workspace_id, secret__in=list(by_secret))
    return frozenset(
        address for secret in rows.values_list("secret", flat=True) for address in by_secret[secret]
    )


def _secret_in(address: str) -> str:
    """Return the secret in the path of a feed's address, or an empty string if there is none."""
    try:
        match = _FEED_PATH.search(unquote(urlsplit(address.strip()).path))
    except ValueError:
        return ""
    return match[1] if match else ""


def _own_feed_message() -> str:
    """Return the sentence that refuses the workspace's own feed."""
    return _(
        "This is the workspace's own feed: items would be made of its own posts. Give the address of another feed."
    )
