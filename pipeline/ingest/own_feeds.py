"""The workspace's own feed as a source: refused, because items of its own posts would be made and charged."""

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
_PATH: Final = re.compile(r"/feeds/([A-Za-z0-9_-]{22})\.(?:atom|rss|json)/?$")


def refuse(workspace_id: UUID, addresses: Mapping[str, Any]) -> None:
    """Raises `Invalid` where one of the addresses is the workspace's own feed; each stands under its field."""
    own = _own_of(workspace_id, (one for one in addresses.values() if isinstance(one, str)))
    faults = [Detail(field, CODE, _message()) for field, address in addresses.items() if address in own]
    if faults:
        raise Invalid(*faults)


def leave_out_own(workspace_id: UUID, fetched: Fetch) -> Fetch:
    """What was fetched without the workspace's own posts, which another feed may list too.

    Raises `Refused` where there is nothing else: a redirect, or a page that names its feed, led to the own feed.
    """
    own = _own_of(workspace_id, (entry.url for entry in fetched.entries))
    if not own:
        return fetched
    if all(entry.url in own or entry.withdrawn for entry in fetched.entries):
        raise Refused(_message(), code=CODE, field="config.url")
    note = Note(CODE, _("It is a post of this workspace."))
    entries = tuple(
        replace(entry, left_out=note) if entry.url in own and not entry.withdrawn else entry
        for entry in fetched.entries
    )
    return replace(fetched, entries=entries)


def _own_of(workspace_id: UUID, addresses: Iterable[str]) -> frozenset[str]:
    """Those that lead into a feed of this workspace, under whatever name the instance was called.

    Nobody but the workspace is given the secret in the path, so the host needs not be known.
    """
    led_to: dict[str, set[str]] = {}
    for address in addresses:
        led_to.setdefault(_secret_in(address), set()).add(address)
    led_to.pop("", None)
    if not led_to:
        return frozenset()
    rows = Outlet.everywhere.filter(workspace_id=workspace_id, secret__in=list(led_to))
    return frozenset(address for found in rows.values_list("secret", flat=True) for address in led_to[found])


def _secret_in(address: str) -> str:
    try:
        found = _PATH.search(unquote(urlsplit(address.strip()).path))
    except ValueError:
        return ""
    return found[1] if found else ""


def _message() -> str:
    return _(
        "This is the workspace's own feed: items would be made of its own posts. Give the address of another feed."
    )
