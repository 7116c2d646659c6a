"""Runs the child process that reads pages and sitemaps: questions on stdin, answers on stdout, hard limits.

It is run by its path, isolated from the environment, and imports nothing of the project that needs more than
Python. Each question is a line of JSON with the `length` in bytes of the document that follows it; each
answer is a line of JSON.
"""

from __future__ import annotations

import codecs
import json
import re
import resource
import sys
from pathlib import Path
from typing import Any, Final

# It runs without the project's folder on the path, and without `site`, to start faster.
sys.path.append(str(Path(__file__).resolve().parents[3]))

from pipeline.sources.web_pages.page_values import (
    ILLEGAL_CHARACTERS,
    Record,
    line_of,
    timestamp_of,
    web_address,
)
from pipeline.sources.web_pages.sitemap_reader import TooLarge, read_sitemap
from pipeline.text.markup_bounds import is_page_too_much

CPU_SECONDS: Final = 8
"""The limit for one document: articles of 5 MiB take under 1 s, hostile pages may take for ever."""
MEMORY_BYTES: Final = 768 * 1024 * 1024
"""A page takes 50 MB with the libraries, a sitemap of 50,000 addresses 80 MB."""
MAX_LINKS: Final = 3000

_BOMS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# Browsers read these labels as their supersets, too (encoding.spec.whatwg.org).
_SUPERSETS: Final = {
    "us-ascii": "cp1252",
    "ascii": "cp1252",
    "iso-8859-1": "cp1252",
    "latin1": "cp1252",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "euc-kr": "cp949",
}
_META_CHARSET: Final = re.compile(
    rb"""<meta[^>]{0,300}?charset\s*=\s*["']?([A-Za-z0-9._:-]{1,40})""", re.IGNORECASE
)


def decode(document: bytes, content_type: str) -> str:
    """Return the text by its byte order mark, else as UTF-8 if valid, else as labelled, else as cp1252."""
    for mark, encoding in _BOMS:
        if document.startswith(mark):
            return document[len(mark) :].decode(encoding, errors="replace")
    try:
        return document.decode("utf-8")
    except UnicodeDecodeError:
        pass
    in_header = re.search(r"charset\s*=\s*[\"']?([A-Za-z0-9._:-]{1,40})", content_type, re.IGNORECASE)
    in_page = _META_CHARSET.search(document[:4096])
    labels = [in_header[1]] if in_header else []
    labels += [in_page[1].decode("ascii")] if in_page else []
    for label in labels:
        try:
            return document.decode(_SUPERSETS.get(label.lower(), label), errors="strict")
        except (LookupError, ValueError):
            # An unknown label, or one that doesn't fit the bytes.
            continue
    return document.decode("cp1252", errors="replace")


# --- Pages ---


def read_page(document: bytes, question: Record) -> Record:
    """Return text, metadata and links of one page in plain JSON types, or a record with its `problem`."""
    # Imported here, so that the limits apply to it and the parent never pays for it.
    from lxml import html  # type: ignore[import-untyped, unused-ignore]  # noqa: PLC0415

    text = ILLEGAL_CHARACTERS.sub("", decode(document, question["content_type"]))
    if not text.strip():
        return {"problem": "empty"}
    if is_page_too_much(text):
        return {"problem": "too_complex"}
    # `lxml` refuses a `str` that declares an encoding of its own, so it gets bytes.
    tree = html.document_fromstring(text.encode("utf-8"), parser=html.HTMLParser(encoding="utf-8"))
    url = question["url"]
    base = web_address(next(iter(tree.xpath("//base/@href")), ""), url) or url
    head = _HeadValues(tree)
    record = {
        "canonical": web_address(head.link("canonical"), base),
        "robots": head.named(("robots", question["robot"])),
        "tdm": head.first("tdm-reservation"),
        "licence": _licence_of(tree, base),
        "og_type": head.first("og:type").lower(),
        "has_password": bool(tree.xpath("//input[@type='password']")),
        "scripts": int(tree.xpath("count(//script)")),
        "is_app": bool(
            tree.xpath("//*[@id='root' or @id='app' or @id='__next' or @id='__nuxt' or @ng-version]")
        ),
        "wants_scripts": bool(
            re.search(r"(?i)javascript", " ".join(tree.xpath("//noscript//text()"))[:2000])
        ),
        "links": _links(tree, base),
        "matches": _matches(tree, base, question.get("xpath") or ""),
        "site": head.first("og:site_name")[:200],
        "image": web_address(head.first("og:image") or head.first("twitter:image"), base),
        "language": (tree.get("lang") or head.first("og:locale").replace("_", "-"))[:35],
    }
    record |= _read_json_ld(tree, base)
    record |= _extract_article(tree, url)
    stated, guessed = record.pop("stated_at"), record.pop("guessed_at")
    record["at"] = stated or timestamp_of(head.first("article:published_time")) or guessed
    record["author"] = record["author"] or record.pop("stated_author", "")
    return record


class _HeadValues:
    """The values of `meta` and `link` elements by name."""

    def __init__(self, tree: Any) -> None:
        self._metas: dict[str, list[str]] = {}
        for meta in tree.xpath("//meta[@content]")[:500]:
            name = (meta.get("name") or meta.get("property") or "").strip().lower()
            self._metas.setdefault(name, []).append(line_of(meta.get("content")))
        self._links = [
            (link.get("rel", "").lower().split(), link.get("href", ""))
            for link in tree.xpath("//link[@href]")[:500]
        ]

    def first(self, name: str) -> str:
        """Return the first value of a name, or an empty string if there is none."""
        return next(iter(self._metas.get(name, ())), "")

    def named(self, names: tuple[str, ...]) -> list[str]:
        """Return the first 20 values of these names."""
        return [text for name in names for text in self._metas.get(name, ())][:20]

    def link(self, rel: str) -> str:
        """Return the address of the first link with that relation, or an empty string if there is none."""
        return next((href for rels, href in self._links if rel in rels), "")


def _licence_of(tree: Any, base: str) -> str:
    """Return the address of the first `rel=license` link, or an empty string if there is none."""
    for element in tree.xpath("//*[(self::a or self::link or self::area) and @rel and @href]")[:2000]:
        if "license" in element.get("rel", "").lower().split():
            return web_address(element.get("href"), base)
    return ""


def _links(tree: Any, base: str) -> list[Record]:
    """Return the first `MAX_LINKS` links of the page; `place` is `nav`, `heading`, `article` or empty."""
    by_url: dict[str, Record] = {}
    for anchor in tree.iter("a"):
        address = web_address(anchor.get("href"), base).partition("#")[0]
        if not address:
            continue
        record = {"url": address, "text": line_of(anchor.text_content())[:300], "place": _place_of(anchor)}
        known = by_url.get(address)
        if known is None:
            if len(by_url) == MAX_LINKS:
                break
            by_url[address] = record
        elif len(record["text"]) > len(known["text"]) or record["place"] == "heading":
            # A picture and a headline often link to the same article, so their texts and places are merged.
            known["text"] = max(known["text"], record["text"], key=len)
            known["place"] = record["place"] if record["place"] in {"heading", "article"} else known["place"]
    return list(by_url.values())


def _place_of(anchor: Any) -> str:
    """Return the part of the page that a link stands in: `nav`, `heading`, `article` or empty."""
    page_part = "heading" if next(anchor.iter("h1", "h2", "h3", "h4"), None) is not None else ""
    for depth, ancestor in enumerate(anchor.iterancestors()):
        if depth == 30:
            break
        if ancestor.tag in {"nav", "header", "footer", "aside"} and not page_part:
            return "nav"
        if ancestor.tag in {"h1", "h2", "h3", "h4"}:
            page_part = "heading"
        elif ancestor.tag in {"article", "main"}:
            page_part = page_part or "article"
    return page_part


def _matches(tree: Any, base: str, xpath: str) -> list[Record]:
    """Return a link for each element that the selector matches, with an empty address if it has none.

    An element may be a link, lie in one, or hold some, of which the first counts, preferably in a heading.
    """
    matches = []
    for element in tree.getroottree().xpath(xpath)[:MAX_LINKS] if xpath else ():
        in_heading = element.xpath(
            "(.//*[self::h1 or self::h2 or self::h3 or self::h4]//a[@href] | self::a[@href])[1]"
        )
        anchor = next(
            iter(in_heading or element.xpath(".//a[@href]") or element.xpath("ancestor::a[@href]")), None
        )
        address = web_address(anchor.get("href"), base).partition("#")[0] if anchor is not None else ""
        matches.append({"url": address, "text": line_of(element.text_content())[:300], "place": "selected"})
    return matches


def _split_words(text: str) -> frozenset[str]:
    """Return the words of a text as a set."""
    return frozenset(text.split())


_ARTICLE_TYPES: Final = _split_words(
    "article newsarticle blogposting reportagenewsarticle opinionnewsarticle analysisnewsarticle reviewnewsarticle "
    "backgroundnewsarticle scholarlyarticle techarticle liveblogposting socialmediaposting report recipe"
)


def _read_json_ld(tree: Any, base: str) -> Record:
    """Return date, author and access of the first article in the page's JSON-LD, and the first licence."""
    record: Record = {"is_article": False, "stated_at": None, "is_free": True}
    for script in tree.xpath("//script[@type='application/ld+json']")[:20]:
        try:
            nodes = _flatten(json.loads((script.text or "")[:500_000]))
        except (ValueError, RecursionError):
            continue
        for node in nodes:
            kinds = node.get("@type")
            names = {str(kind).lower() for kind in (kinds if isinstance(kinds, list) else [kinds])}
            licence = node.get("license")
            address = licence.get("url") or licence.get("@id") if isinstance(licence, dict) else licence
            if (
                isinstance(address, str)
                and (names & _ARTICLE_TYPES or "webpage" in names)
                and "stated_licence" not in record
            ):
                record["stated_licence"] = web_address(address, base) or line_of(address)[:200]
            if names & _ARTICLE_TYPES and not record["is_article"]:
                record |= {
                    "is_article": True,
                    "stated_at": timestamp_of(node.get("datePublished")),
                    "stated_author": _author_of(node.get("author")),
                    "is_free": str(node.get("isAccessibleForFree", True)).lower() != "false",
                }
    return record


def _author_of(value: Any) -> str:
    """Return the names of at most ten authors, separated by commas."""
    people = value if isinstance(value, list) else [value]
    names = [person.get("name") if isinstance(person, dict) else person for person in people[:10]]
    return ", ".join(line_of(name)[:100] for name in names if isinstance(name, str))


def _flatten(value: Any) -> list[Record]:
    """Return the objects in JSON-LD, also those in `@graph`, at most 200 of each list."""
    nodes = value if isinstance(value, list) else [value]
    flat = []
    for node in nodes[:200]:
        if isinstance(node, dict):
            flat.append(node)
            graph = node.get("@graph")
            inner_nodes = graph[:200] if isinstance(graph, list) else []
            flat += [inner for inner in inner_nodes if isinstance(inner, dict)]
    return flat


def _extract_article(tree: Any, url: str) -> Record:
    """Return title, author, date, description and Markdown by trafilatura, after hidden elements are removed."""
    from trafilatura import bare_extraction  # noqa: PLC0415
    from trafilatura.xml import xmltotxt  # noqa: PLC0415

    _drop_hidden(tree)
    document: Any = bare_extraction(
        tree,
        url=url,
        output_format="markdown",
        with_metadata=True,
        include_comments=False,
        include_formatting=True,
        include_links=True,
        # Only dates in the page's markup: a date in its text is as often one of something else.
        date_extraction_params={"extensive_search": False, "original_date": True},
    )
    empty = {
        "title": line_of(tree.findtext(".//title")),
        "author": "",
        "guessed_at": None,
        "body": "",
        "description": "",
    }
    if document is None:
        return empty
    title = line_of(document.title) or empty["title"]
    body = ILLEGAL_CHARACTERS.sub("", xmltotxt(document.body, include_formatting=True)).strip()
    first, _, rest = body.partition("\n")
    return {
        "title": title,
        "author": line_of(document.author)[:300],
        "guessed_at": timestamp_of(document.date),
        # A first line that repeats the title as headline is dropped.
        "body": rest.strip() if line_of(first.lstrip("# ")) == title and first.startswith("#") else body,
        "description": line_of(document.description)[:500],
    }


# Opacity and position don't count: pages fade and slide their articles in by script.
_HIDING_STYLE: Final = re.compile(
    r"display\s*:\s*none|visibility\s*:\s*(?:hidden|collapse)|font-size\s*:\s*(?:0(?![0-9]*[.]?[0-9]*?[1-9])|1px)"
    r"|text-indent\s*:\s*-[0-9]{3}"
)


def _drop_hidden(tree: Any) -> None:
    """Remove comments, and the elements that the page hides."""
    for comment in tree.xpath("//comment()"):
        if comment.getparent() is not None:
            comment.drop_tree()
    for element in tree.xpath("//body//*[@hidden or @aria-hidden='true' or @style]"):
        style = element.get("style", "").lower()
        is_hidden = element.get("hidden") is not None or element.get("aria-hidden") == "true"
        if (is_hidden or _HIDING_STYLE.search(style)) and element.getparent() is not None:
            element.drop_tree()


# --- The process ---


def _set_limit(resource_kind: int, maximum: int) -> None:
    """Set a limit of this process, unless the system refuses it."""
    try:
        _, hard = resource.getrlimit(resource_kind)
        resource.setrlimit(resource_kind, (maximum, hard))
    except (ValueError, OSError):
        # Some systems don't know RLIMIT_AS, or have a lower one; the parent's time limit holds anyway.
        return


def _answer(question: Record, document: bytes) -> Record:
    """Return the answer to one question: the page or sitemap, or the problem with the document."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    # The system counts the CPU time of the whole process, so the limit is raised for each question.
    _set_limit(resource.RLIMIT_CPU, int(used.ru_utime + used.ru_stime) + 1 + CPU_SECONDS)
    try:
        read = read_sitemap if question["task"] == "sitemap" else read_page
        return read(document, question)
    except (MemoryError, TooLarge):
        return {"problem": "too_complex"}
    except Exception as error:  # noqa: BLE001  lxml and trafilatura fail in many ways, and each means the same to the parent
        return {"problem": "broken", "error": type(error).__name__}


def main(library_folder: str) -> None:
    """Set the limits and answer questions until stdin ends."""
    _set_limit(resource.RLIMIT_AS, MEMORY_BYTES)
    _set_limit(resource.RLIMIT_CORE, 0)
    # Python runs without `site` to start faster, so it doesn't know the library folder itself.
    sys.path.append(library_folder)
    while line := sys.stdin.buffer.readline():
        question = json.loads(line)
        answer = _answer(question, sys.stdin.buffer.read(question["length"]))
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1])
