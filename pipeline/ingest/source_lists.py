"""Reads a list of addresses, or a feed reader's OPML file, and registers each as a source."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from django.utils.translation import gettext_lazy
from lxml import etree  # type: ignore[import-untyped, unused-ignore]

from config.core import limits as core_limits
from config.core.errors import AppError, Invalid
from pipeline import limits
from pipeline.ingest import collect
from pipeline.ingest.pasted_url import reading_by_host
from pipeline.models import Source

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime
    from uuid import UUID

    from accounts.models import Workspace

_ADDRESSES: Final = ("xmlurl", "url", "htmlurl")
"""Attributes of an outline that name an address, the best first: OPML 2.0 and what readers write."""
_NAMES: Final = ("title", "text")
NO_FEEDS: Final = gettext_lazy(
    "No feeds found in this file. Choose an OPML file exported from a feed reader."
)


@dataclass(frozen=True)
class ListedAddress:
    """A line of a list; `name` is empty where it has none."""

    address: str
    name: str = ""


@dataclass
class Registered:
    """What became of a list: `refused` has each address with the reason, for the person who gave it."""

    added: list[UUID] = field(default_factory=list)
    known: int = 0
    refused: list[tuple[str, str]] = field(default_factory=list)


def read_opml(data: bytes) -> list[ListedAddress]:
    """The feeds of an OPML file, in their order; raises `Invalid` at `file` where there are none."""
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False, recover=True
    )
    try:
        root = etree.fromstring(data, parser)
    except etree.XMLSyntaxError:
        root = None
    found: dict[str, ListedAddress] = {}
    for outline in root.iter("{*}outline", "outline") if root is not None else ():
        attributes = {name.lower(): text.strip() for name, text in outline.attrib.items()}
        address = _first_of(attributes, _ADDRESSES)
        if address:
            name = _first_of(attributes, _NAMES)
            found.setdefault(address, ListedAddress(address, name[: core_limits.NAME_CHARACTERS]))
    if not found:
        raise Invalid.one("file", "no_feeds", str(NO_FEEDS))
    return list(found.values())


def _first_of(attributes: Mapping[str, str], names: Sequence[str]) -> str:
    """The first of these attributes that says something; empty where none does."""
    return next((attributes[name] for name in names if attributes.get(name)), "")


def register_all(workspace: Workspace, listed: Sequence[ListedAddress], *, now: datetime) -> Registered:
    """Register a source for each address, unless the workspace has it; one that is refused stops no other.

    Nothing is fetched here: what an address leads to is seen at its first poll, which makes items of its newest entries.
    """
    done = Registered()
    rows = Source.objects.of(workspace).live().filter(deleted_at=None, is_push=False)
    known = [(kind, config) for kind, config in rows.values_list("type", "config")]
    for line in listed:
        try:
            reading = reading_by_host(line.address)
            settings = collect.SourceSettings(
                type=reading.type,
                name=line.name,
                config=reading.config,
                first_poll={"newest": limits.FIRST_POLL_NEWEST},
            )
            row = collect.checked(workspace, settings, test=False, now=now)
            if (row.type, row.config) in known:
                done.known += 1
                continue
            collect.add(row, workspace=workspace, now=now)
        except AppError as error:
            done.refused.append(
                (line.address, " ".join(detail.message for detail in error.detail) or str(error))
            )
            continue
        known.append((row.type, row.config))
        done.added.append(row.pk)
    return done
