"""Reads sitemaps, in XML or as plain lines, within bounds; in the child process."""

from __future__ import annotations

import zlib
from typing import Any, Final

from pipeline.sources.web_pages.page_values import Record, line_of, moment_of, web_address
from pipeline.text.markup_bounds import is_sitemap_too_much

MAX_LOCATIONS: Final = 50_000
"""Addresses of one sitemap, as sitemaps.org allows them."""
MAX_UNPACKED: Final = 50 * 1024 * 1024
"""Bytes of one sitemap, unpacked, as sitemaps.org allows them."""


def read_sitemap(document: bytes, question: Record) -> Record:
    """Addresses of a sitemap or a sitemap index, in the order of the file; `kind` is `urlset`, `index` or nothing."""
    from lxml import etree  # type: ignore[import-untyped, unused-ignore]  # noqa: PLC0415

    data = _unpack(document)
    if b"<!ENTITY" in data[:100_000].upper():
        return {"problem": "entities"}
    if not data.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<"):
        return _text_sitemap(data, question["url"])
    if is_sitemap_too_much(data):
        return {"problem": "too_complex"}
    parser = etree.XMLPullParser(
        events=("end",),
        # Of other elements Python hears nothing: ten million fit into a file.
        tag=("{*}url", "{*}sitemap"),
        recover=True,
        resolve_entities=False,
        no_network=True,
        huge_tree=False,
        load_dtd=False,
    )
    found: Record = {"kind": "", "locations": [], "is_cut": False}
    for start in range(0, len(data), 65_536):
        parser.feed(data[start : start + 65_536])
        for _, element in parser.read_events():
            _take_element(element, found, question["url"])
            if len(found["locations"]) >= MAX_LOCATIONS:
                return found | {"is_cut": True}
    return found


def _take_element(element: Any, found: Record, url: str) -> None:
    name = _name_of(element)
    if name not in {"url", "sitemap"}:
        return
    found["kind"] = found["kind"] or ("urlset" if name == "url" else "index")
    texts = {_name_of(inner): (inner.text or "").strip() for inner in element.iter() if inner is not element}
    address = web_address(texts.get("loc"), url)
    if address:
        moment = moment_of(texts.get("publication_date")) or moment_of(texts.get("lastmod"))
        record = {"url": address, "at": moment, "text": line_of(texts.get("title"))[:300]}
        found["locations"].append(record)
    # Read elements are dropped, so that a sitemap of 50 MB needs no tree of its size.
    element.clear()
    while element.getprevious() is not None:
        del element.getparent()[0]


def _name_of(element: Any) -> str:
    """The name without its namespace; comments and the like have none."""
    return element.tag.rpartition("}")[2].lower() if isinstance(element.tag, str) else ""


def _text_sitemap(data: bytes, url: str) -> Record:
    """The plain form of sitemaps.org: one address on each line."""
    lines = data.decode("utf-8", errors="replace").split("\n")[: MAX_LOCATIONS + 1]
    addresses = [web_address(line, url) if line.strip().lower().startswith("http") else "" for line in lines]
    locations = [{"url": address, "at": None, "text": ""} for address in addresses if address]
    return {"kind": "urlset" if locations else "", "locations": locations[:MAX_LOCATIONS], "is_cut": False}


class TooLarge(Exception):
    """What a gzip file unpacks to is over the limit."""


def _unpack(document: bytes) -> bytes:
    if not document.startswith(b"\x1f\x8b"):
        return document
    unpacking = zlib.decompressobj(wbits=31)
    data = unpacking.decompress(document, MAX_UNPACKED + 1)
    if len(data) > MAX_UNPACKED:
        raise TooLarge
    return data
