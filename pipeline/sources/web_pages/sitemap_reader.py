"""Reads sitemaps in XML or as plain lines, within bounds. The child process uses it."""

from __future__ import annotations

import zlib
from typing import Any, Final

from pipeline.sources.web_pages.page_values import Record, line_of, timestamp_of, web_address
from pipeline.text.markup_bounds import is_sitemap_too_much

MAX_LOCATIONS: Final = 50_000
"""The most addresses of one sitemap that sitemaps.org allows."""
MAX_UNPACKED_BYTES: Final = 50 * 1024 * 1024
"""The largest sitemap, unpacked, that sitemaps.org allows."""


def read_sitemap(document: bytes, question: Record) -> Record:
    """Return the addresses of a sitemap or index in order, or a record with the `problem`.

    `kind` is `urlset`, `index`, or empty for another document; `is_cut` is `True` at `MAX_LOCATIONS`. Raises
    `TooLarge` for a gzip file that unpacks to too much.
    """
    from lxml import etree  # type: ignore[import-untyped, unused-ignore]  # noqa: PLC0415

    data = _unpack(document)
    if b"<!ENTITY" in data[:100_000].upper():
        return {"problem": "entities"}
    if not data.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<"):
        return _read_text_sitemap(data, question["url"])
    if is_sitemap_too_much(data):
        return {"problem": "too_complex"}
    parser = etree.XMLPullParser(
        events=("end",),
        # Events for these elements only: ten million others fit into a file.
        tag=("{*}url", "{*}sitemap"),
        recover=True,
        resolve_entities=False,
        no_network=True,
        huge_tree=False,
        load_dtd=False,
    )
    result: Record = {"kind": "", "locations": [], "is_cut": False}
    for start in range(0, len(data), 65_536):
        parser.feed(data[start : start + 65_536])
        for _, element in parser.read_events():
            _add_location(element, result, question["url"])
            if len(result["locations"]) >= MAX_LOCATIONS:
                return result | {"is_cut": True}
    return result


def _add_location(element: Any, result: Record, url: str) -> None:
    """Add the address of an element to the result, and drop the element from its tree."""
    name = _name_of(element)
    if name not in {"url", "sitemap"}:
        return
    result["kind"] = result["kind"] or ("urlset" if name == "url" else "index")
    texts = {_name_of(inner): (inner.text or "").strip() for inner in element.iter() if inner is not element}
    address = web_address(texts.get("loc"), url)
    if address:
        timestamp = timestamp_of(texts.get("publication_date")) or timestamp_of(texts.get("lastmod"))
        record = {"url": address, "at": timestamp, "text": line_of(texts.get("title"))[:300]}
        result["locations"].append(record)
    # Read elements are dropped, so that a sitemap of 50 MB needs no tree of its size.
    element.clear()
    while element.getprevious() is not None:
        del element.getparent()[0]


def _name_of(element: Any) -> str:
    """Return the element's name without its namespace, or an empty string for a comment and the like."""
    return element.tag.rpartition("}")[2].lower() if isinstance(element.tag, str) else ""


def _read_text_sitemap(data: bytes, url: str) -> Record:
    """Read the plain form of sitemaps.org: one address on each line."""
    lines = data.decode("utf-8", errors="replace").split("\n")[: MAX_LOCATIONS + 1]
    addresses = [web_address(line, url) if line.strip().lower().startswith("http") else "" for line in lines]
    locations = [{"url": address, "at": None, "text": ""} for address in addresses if address]
    return {"kind": "urlset" if locations else "", "locations": locations[:MAX_LOCATIONS], "is_cut": False}


class TooLarge(Exception):
    """Raised if a gzip file unpacks to more than `MAX_UNPACKED_BYTES`."""


def _unpack(document: bytes) -> bytes:
    """Return the document, unpacked if it is a gzip file. Raises `TooLarge` if it becomes too large."""
    if not document.startswith(b"\x1f\x8b"):
        return document
    decompressor = zlib.decompressobj(wbits=31)
    data = decompressor.decompress(document, MAX_UNPACKED_BYTES + 1)
    if len(data) > MAX_UNPACKED_BYTES:
        raise TooLarge
    return data
