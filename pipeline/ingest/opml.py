"""OPML, the list that feed readers exchange: read without trusting it, and written of sources."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from xml.etree import ElementTree as ET

# Its entities are refused where they are declared, so nothing is opened, fetched or multiplied.
from xml.parsers import expat

from django.utils.translation import gettext as _

from config.core import limits as core_limits
from config.core.errors import Invalid

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pipeline.models import Source

_ADDRESSES: Final = ("xmlurl", "url", "htmlurl")
"""Attributes of an outline that name an address, the best first: OPML 2.0 and what readers write."""
_NAMES: Final = ("title", "text")
_YOUTUBE: Final = {
    "handle": "{}",
    "channel": "channel/{}",
    "playlist": "playlist?list={}",
    "video": "watch?v={}",
}


@dataclass(frozen=True)
class ListedAddress:
    """A line of a list; `name` is empty where it has none, `address` where the `line` is none."""

    address: str
    name: str = ""
    line: str = ""

    @property
    def text(self) -> str:
        """The line by which a person reads and changes it."""
        return self.line or f"{self.address} {self.name}".strip()


def read_opml(data: bytes) -> list[ListedAddress]:
    """The outlines with an address, in their order and however deep; raises `Invalid` at `file`, with the line that is broken."""
    found: list[ListedAddress] = []
    tags = 0

    def begin(tag: str, attributes: dict[str, str]) -> None:
        nonlocal tags
        tags += 1
        if tag.rpartition(":")[2].lower() == "outline":
            said = {name.lower(): " ".join(text.split()) for name, text in attributes.items()}
            address = _first_of(said, _ADDRESSES)
            if address:
                found.append(ListedAddress(address, _first_of(said, _NAMES)[: core_limits.NAME_CHARACTERS]))

    def refuse(*declared: Any) -> None:
        del declared
        message = _("The file declares entities, which a list of feeds doesn't need. Export it again.")
        raise Invalid.one("file", "entities", message)

    parser = expat.ParserCreate()
    parser.StartElementHandler = begin
    parser.EntityDeclHandler = refuse
    try:
        parser.Parse(data, True)  # noqa: FBT003  expat takes no keywords
    except (expat.ExpatError, ValueError, LookupError) as error:
        if tags:
            raise Invalid.one("file", "broken", _broken(parser.ErrorLineNumber, error)) from error
    if not found:
        message = _("No feeds found in this file. Choose an OPML file exported from a feed reader.")
        raise Invalid.one("file", "no_feeds", message)
    return found


def _broken(line: int, error: Exception) -> str:
    why = expat.ErrorString(error.code) if isinstance(error, expat.ExpatError) else ""
    said = f"{line} ({why})" if why else str(line)
    return _("The file is broken in line %(line)s. Correct it there, or export it again.") % {"line": said}


def _first_of(attributes: Mapping[str, str], names: Sequence[str]) -> str:
    """The first of these attributes that says something; empty where none does."""
    return next((attributes[name] for name in names if attributes.get(name)), "")


def write_opml(sources: Iterable[Source], title: str) -> bytes:
    """Those that have an address; one of several links has an outline for each."""
    root = ET.Element("opml", version="2.0")
    ET.SubElement(ET.SubElement(root, "head"), "title").text = _printable(title)
    body = ET.SubElement(root, "body")
    for source in sources:
        name = _printable(source.name)
        for address in _addresses_of(source):
            ET.SubElement(body, "outline", type="rss", text=name, title=name, xmlUrl=address)
    ET.indent(root)
    written: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return written


def _printable(text: str) -> str:
    """Without what XML can't hold."""
    return "".join(letter for letter in text if letter.isprintable())


def _addresses_of(source: Source) -> list[str]:
    """What its settings name, as a browser would be given it; none of what is only sent to, or made of topics."""
    config: Mapping[str, Any] = source.config
    if source.type == "youtube":
        return [
            f"https://www.youtube.com/{form.format(config[name])}"
            for name, form in _YOUTUBE.items()
            if name in config
        ]
    if source.type == "tiktok":
        name = config.get("username")
        return [f"https://www.tiktok.com/@{name}"] if name else list(config.get("links") or ())
    address = config.get("url") or config.get("sitemap")
    return [address] if address else []
