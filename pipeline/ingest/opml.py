"""Reads OPML, the list that feed readers exchange, without trusting the file, and writes sources as OPML."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from xml.etree import ElementTree as ET

# `read_opml` refuses declarations of entities, so nothing is opened, fetched or multiplied.
from xml.parsers import expat

from django.utils.translation import gettext as _

from config.core import limits as core_limits
from config.core.errors import Invalid

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pipeline.models import Source

_ADDRESS_ATTRIBUTES: Final = ("xmlurl", "url", "htmlurl")
"""Attributes of an outline that hold an address, best first: those of OPML 2.0, and those that readers write."""
_NAME_ATTRIBUTES: Final = ("title", "text")
"""Attributes that hold an outline's name, best first."""
# The path of an address at YouTube, by the key in the source's config.
_YOUTUBE_PATHS: Final = {
    "handle": "{}",
    "channel": "channel/{}",
    "playlist": "playlist?list={}",
    "video": "watch?v={}",
}


@dataclass(frozen=True)
class ListedAddress:
    """A line of a list; `name` is empty if it has none, `address` if the text in `line` holds none."""

    address: str
    name: str = ""
    line: str = ""

    @property
    def text(self) -> str:
        """The line as a person reads and changes it."""
        return self.line or f"{self.address} {self.name}".strip()


def read_opml(data: bytes) -> list[ListedAddress]:
    """Return the outlines that have an address, in their order and at any depth.

    Raises `Invalid` at `file` if the file is broken (with the line), declares entities or has no address.
    """
    listed_addresses: list[ListedAddress] = []
    tag_count = 0

    def begin(tag: str, attributes: dict[str, str]) -> None:
        nonlocal tag_count
        tag_count += 1
        if tag.rpartition(":")[2].lower() == "outline":
            cleaned_attributes = {name.lower(): " ".join(text.split()) for name, text in attributes.items()}
            address = _first_attribute(cleaned_attributes, _ADDRESS_ATTRIBUTES)
            name = _first_attribute(cleaned_attributes, _NAME_ATTRIBUTES)
            if address:
                listed_addresses.append(ListedAddress(address, name[: core_limits.NAME_CHARACTERS]))

    def refuse(*declaration: Any) -> None:
        del declaration
        message = _("The file declares entities, which a list of feeds doesn't need. Export it again.")
        raise Invalid.one("file", "entities", message)

    parser = expat.ParserCreate()
    parser.StartElementHandler = begin
    parser.EntityDeclHandler = refuse
    try:
        parser.Parse(data, True)  # noqa: FBT003  expat takes no keywords
    except (expat.ExpatError, ValueError, LookupError) as error:
        # A file without a single tag isn't XML at all, so it is refused as one without feeds.
        if tag_count:
            raise Invalid.one("file", "broken", _broken_message(parser.ErrorLineNumber, error)) from error
    if not listed_addresses:
        message = _("No feeds found in this file. Choose an OPML file exported from a feed reader.")
        raise Invalid.one("file", "no_feeds", message)
    return listed_addresses


def _broken_message(line: int, error: Exception) -> str:
    reason = expat.ErrorString(error.code) if isinstance(error, expat.ExpatError) else ""
    line_text = f"{line} ({reason})" if reason else str(line)
    return _("The file is broken in line %(line)s. Correct it there, or export it again.") % {
        "line": line_text
    }


def _first_attribute(attributes: Mapping[str, str], names: Sequence[str]) -> str:
    """Return the first of these attributes that isn't empty, or an empty string if all are."""
    return next((attributes[name] for name in names if attributes.get(name)), "")


def write_opml(sources: Iterable[Source], title: str) -> bytes:
    """Return OPML with an outline for each address of the sources, some of which have several or none."""
    root = ET.Element("opml", version="2.0")
    ET.SubElement(ET.SubElement(root, "head"), "title").text = _strip_unprintable(title)
    body = ET.SubElement(root, "body")
    for source in sources:
        name = _strip_unprintable(source.name)
        for address in _addresses_of(source):
            ET.SubElement(body, "outline", type="rss", text=name, title=name, xmlUrl=address)
    ET.indent(root)
    written: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return written


def _strip_unprintable(text: str) -> str:
    """Return the text without unprintable characters, some of which XML can't hold."""
    return "".join(character for character in text if character.isprintable())


def _addresses_of(source: Source) -> list[str]:
    """Return the addresses in a source's settings as a browser takes them, without hashtags and old names."""
    config: Mapping[str, Any] = source.config
    if source.type == "youtube":
        return [
            f"https://www.youtube.com/{path_template.format(config[name])}"
            for name, path_template in _YOUTUBE_PATHS.items()
            if name in config
        ]
    if source.type == "tiktok":
        name = config.get("username")
        return [f"https://www.tiktok.com/@{name}"] if name else list(config.get("links") or ())
    address = config.get("url") or config.get("sitemap")
    return [address] if address else []
