"""A document's bytes to text, and the signs in a text that decide how it is read."""

from __future__ import annotations

import codecs
import re
import sys
from typing import Final
from urllib.parse import urljoin

_BOMS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# What servers label so is nearly always the superset, as browsers assume too (encoding.spec.whatwg.org).
_SUPERSETS: Final = {
    "us-ascii": "cp1252",
    "ascii": "cp1252",
    "iso-8859-1": "cp1252",
    "latin1": "cp1252",
    "latin-1": "cp1252",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "euc-kr": "cp949",
}
_DECLARATION: Final = re.compile(rb"""^\s*<\?xml[^>]{0,200}?encoding\s*=\s*["']([A-Za-z0-9._:-]{1,40})["']""")
ILLEGAL: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]")
_ILLEGAL_NAME: Final = re.compile(r"(?:(?<=<)|(?<=</))" + ILLEGAL.pattern + "+")
_REFERENCE: Final = re.compile(r"&#(?:([0-9]+)|[xX]([0-9a-fA-F]+));?")
# Seven digits hold every character in either notation, and more make numbers that Python refuses to read.
_MAX_DIGITS: Final = 7


def decode(document: bytes, content_type: str) -> str:
    """By byte order mark, else as UTF-8 if it is valid, else as labelled, else as what is left least broken."""
    text = _decode_marked(document) or _decode_by_label(document, content_type)
    if ILLEGAL.search(text):
        # Taken out behind a "<", it would leave a tag where there was none.
        text = ILLEGAL.sub("", _ILLEGAL_NAME.sub("\ufffd", text))
    return _REFERENCE.sub(_possible, text) if "&#" in text else text


def _possible(reference: re.Match[str]) -> str:
    """The reference as it is, or the replacement character: feedparser breaks off at one beyond U+10FFFF."""
    digits = (reference[1] or reference[2]).lstrip("0")
    if len(digits) > _MAX_DIGITS or int(digits or "0", 10 if reference[1] else 16) > sys.maxunicode:
        return "\ufffd"
    return reference[0]


def _decode_marked(document: bytes) -> str:
    for mark, encoding in _BOMS:
        if document.startswith(mark):
            return document[len(mark) :].decode(encoding, errors="replace")
    # UTF-16 without a mark is valid UTF-8 as well, full of NULs; a single one went astray.
    start = document[:40]
    if start[1::2].count(0) > len(start) // 4 > start[::2].count(0):
        return document.decode("utf-16-le", errors="replace")
    if start[::2].count(0) > len(start) // 4 > start[1::2].count(0):
        return document.decode("utf-16-be", errors="replace")
    return ""


def _decode_by_label(document: bytes, content_type: str) -> str:
    try:
        return document.decode("utf-8")
    except UnicodeDecodeError:
        pass
    in_header = re.search(r"charset\s*=\s*[\"']?([A-Za-z0-9._:-]{1,40})", content_type, re.IGNORECASE)
    in_document = _DECLARATION.match(document[:1000])
    labels = [in_header[1]] if in_header else []
    labels += [in_document[1].decode("ascii")] if in_document else []
    for label in labels:
        encoding = _SUPERSETS.get(label.lower(), label)
        try:
            return document.decode(encoding, errors="replace" if encoding == "cp1252" else "strict")
        except (LookupError, ValueError):
            # An unknown label, or one that the bytes belie.
            continue
    # One byte that went astray must not turn a whole UTF-8 document into mojibake.
    lenient = document.decode("utf-8", errors="replace")
    broken = lenient.count("\ufffd")
    intact = sum(1 for byte in document if byte >= 0xC0) - broken
    return lenient if intact > 2 * broken else document.decode("cp1252", errors="replace")


_SPAN: Final = re.compile(r"<!--|<!\[CDATA\[|<\?|<!ENTITY", re.IGNORECASE)
_SPAN_ENDS: Final = {"<!--": "-->", "<![cdata[": "]]>", "<?": "?>"}


def declares_entities(text: str) -> bool:
    """Whether a DTD in it declares entities; what comments and CDATA sections say about XML doesn't count."""
    at = 0
    while (span := _SPAN.search(text, at)) is not None:
        end = _SPAN_ENDS.get(span[0].lower())
        if end is None:
            return True
        closing = text.find(end, span.end())
        if closing == -1:
            return False
        at = closing + len(end)
    return False


_TAG: Final = re.compile(r"<[a-z][^<>]{1,8000}>", re.IGNORECASE)
_RELATIVE: Final = re.compile(
    r"""(\s(?:href|src|cite|action|background|longdesc|poster|data)\s*=\s*)"""
    r"""(?:"((?![a-z][a-z0-9+.-]*:)[^"]+)"|'((?![a-z][a-z0-9+.-]*:)[^']+)'|((?![a-z][a-z0-9+.-]*:)[^\s"'>]+))""",
    re.IGNORECASE,
)


def with_absolute_links(html: str, base: str) -> str:
    """HTML whose addresses no longer depend on where it stands; everything else is as it was."""

    def resolved(attribute: re.Match[str]) -> str:
        written = attribute[2] or attribute[3] or attribute[4]
        try:
            address = urljoin(base, written.strip())
        except ValueError:
            return attribute[0]
        quote = "'" if attribute[3] else '"'
        return f"{attribute[1]}{quote}{address}{quote}"

    return _TAG.sub(lambda tag: _RELATIVE.sub(resolved, tag[0]), html) if "=" in html else html
