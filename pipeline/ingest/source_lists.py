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

_ADDRESS_ATTRIBUTES: Final = ("xmlurl", "url", "htmlurl")
"""Attributes of an outline that name an address, the best first: OPML 2.0's and other readers'."""
_NAME_ATTRIBUTES: Final = ("title", "text")
NO_FEEDS: Final = gettext_lazy(
    "No feeds found in this file. Choose an OPML file exported from a feed reader."
)


@dataclass(frozen=True)
class ListedAddress:
    """A line of a list of addresses; `name` is empty where it has none."""

    address: str
    name: str = ""


@dataclass
class Registered:
    """The result of a list.

    `refused` has each refused address with the reason, for the person who gave the list.
    """

    added: list[UUID] = field(default_factory=list)
    known: int = 0
    refused: list[tuple[str, str]] = field(default_factory=list)


def read_opml(data: bytes) -> list[ListedAddress]:
    """Return the feeds of an OPML file in order. Raises `Invalid` at `file` where there are none."""
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False, recover=True
    )
    try:
        root = etree.fromstring(data, parser)
    except etree.XMLSyntaxError:
        root = None
    by_address: dict[str, ListedAddress] = {}
    for outline in root.iter("{*}outline", "outline") if root is not None else ():
        attributes = {name.lower(): text.strip() for name, text in outline.attrib.items()}
        address = _first_attribute(attributes, _ADDRESS_ATTRIBUTES)
        if address:
            name = _first_attribute(attributes, _NAME_ATTRIBUTES)
            by_address.setdefault(address, ListedAddress(address, name[: core_limits.NAME_CHARACTERS]))
    if not by_address:
        raise Invalid.one("file", "no_feeds", str(NO_FEEDS))
    return list(by_address.values())


def _first_attribute(attributes: Mapping[str, str], names: Sequence[str]) -> str:
    """Return the first of these attributes that isn't empty; "" where all are."""
    return next((attributes[name] for name in names if attributes.get(name)), "")


def register_all(workspace: Workspace, listed: Sequence[ListedAddress], *, now: datetime) -> Registered:
    """Register a source for each address that the workspace doesn't have; a refusal stops no other.

    Nothing is fetched here: an address is first read at the source's first poll, which makes items of its
    newest entries.
    """
    result = Registered()
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
            source = collect.checked(workspace, settings, test=False, now=now)
            if (source.type, source.config) in known:
                result.known += 1
                continue
            collect.add(source, workspace=workspace, now=now)
        except AppError as error:
            result.refused.append(
                (line.address, " ".join(detail.message for detail in error.detail) or str(error))
            )
            continue
        known.append((source.type, source.config))
        result.added.append(source.pk)
    return result
