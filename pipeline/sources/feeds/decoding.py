"""Decodes a document's bytes, and finds what in a text decides how it is parsed."""

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
# Documents with these labels are nearly always in the superset; browsers assume so (encoding.spec.whatwg.org).
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
_XML_DECLARATION: Final = re.compile(
    rb"""^\s*<\?xml[^>]{0,200}?encoding\s*=\s*["']([A-Za-z0-9._:-]{1,40})["']"""
)
ILLEGAL_CHARACTERS: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]")
_ILLEGAL_NAME: Final = re.compile(r"(?:(?<=<)|(?<=</))" + ILLEGAL_CHARACTERS.pattern + "+")
_CHARACTER_REFERENCE: Final = re.compile(r"&#(?:([0-9]+)|[xX]([0-9a-fA-F]+));?")
# Seven digits suffice for every character in either notation; Python refuses to read very long numbers.
_MAX_DIGITS: Final = 7


def decode(document: bytes, content_type: str) -> str:
    """Return the text of a document.

    The encoding is that of a byte order mark, else UTF-8 if it is valid, else the label's, else the one that
    breaks the least.
    """
    text = _decode_by_mark(document) or _decode_by_label(document, content_type)
    if ILLEGAL_CHARACTERS.search(text):
        # Behind a "<" the character is replaced, because removing it would make a tag where there was none.
        text = ILLEGAL_CHARACTERS.sub("", _ILLEGAL_NAME.sub("\ufffd", text))
    return _CHARACTER_REFERENCE.sub(_bound_reference, text) if "&#" in text else text


def _bound_reference(reference: re.Match[str]) -> str:
    """Return the reference, or U+FFFD for one beyond U+10FFFF, at which feedparser breaks off."""
    digits = (reference[1] or reference[2]).lstrip("0")
    if len(digits) > _MAX_DIGITS or int(digits or "0", 10 if reference[1] else 16) > sys.maxunicode:
        return "\ufffd"
    return reference[0]


def _decode_by_mark(document: bytes) -> str:
    """Return the text by its byte order mark, or by the NULs of UTF-16; empty where it has neither."""
    for mark, encoding in _BOMS:
        if document.startswith(mark):
            return document[len(mark) :].decode(encoding, errors="replace")
    # UTF-16 without a mark is valid UTF-8 as well, but full of NULs; single NULs prove nothing.
    start = document[:40]
    if start[1::2].count(0) > len(start) // 4 > start[::2].count(0):
        return document.decode("utf-16-le", errors="replace")
    if start[::2].count(0) > len(start) // 4 > start[1::2].count(0):
        return document.decode("utf-16-be", errors="replace")
    return ""


def _decode_by_label(document: bytes, content_type: str) -> str:
    """Return the text as UTF-8 if it is valid, else by its labels, else by what breaks the least."""
    try:
        return document.decode("utf-8")
    except UnicodeDecodeError:
        pass
    in_header = re.search(r"charset\s*=\s*[\"']?([A-Za-z0-9._:-]{1,40})", content_type, re.IGNORECASE)
    in_document = _XML_DECLARATION.match(document[:1000])
    labels = [in_header[1]] if in_header else []
    labels += [in_document[1].decode("ascii")] if in_document else []
    for label in labels:
        encoding = _SUPERSETS.get(label.lower(), label)
        try:
            return document.decode(encoding, errors="replace" if encoding == "cp1252" else "strict")
        except (LookupError, ValueError):
            # An unknown label, or one that doesn't fit the bytes.
            continue
    # One wrong byte must not turn a whole UTF-8 document into mojibake.
    lenient = document.decode("utf-8", errors="replace")
    broken = lenient.count("\ufffd")
    intact = sum(1 for byte in document if byte >= 0xC0) - broken
    return lenient if intact > 2 * broken else document.decode("cp1252", errors="replace")


_SPAN_START: Final = re.compile(r"<!--|<!\[CDATA\[|<\?|<!ENTITY", re.IGNORECASE)
_SPAN_ENDS: Final = {"<!--": "-->", "<![cdata[": "]]>", "<?": "?>"}


def declares_entities(text: str) -> bool:
    """Return whether a DTD in the text declares entities; comments and CDATA sections don't count."""
    position = 0
    while (span := _SPAN_START.search(text, position)) is not None:
        end = _SPAN_ENDS.get(span[0].lower())
        if end is None:
            return True
        closing = text.find(end, span.end())
        if closing == -1:
            return False
        position = closing + len(end)
    return False


_START_TAG: Final = re.compile(r"<[a-z][^<>]{1,8000}>", re.IGNORECASE)
_RELATIVE_ADDRESS: Final = re.compile(
    r"""(\s(?:href|src|cite|action|background|longdesc|poster|data)\s*=\s*)"""
    r"""(?:"((?![a-z][a-z0-9+.-]*:)[^"]+)"|'((?![a-z][a-z0-9+.-]*:)[^']+)'|((?![a-z][a-z0-9+.-]*:)[^\s"'>]+))""",
    re.IGNORECASE,
)


def with_absolute_links(html: str, base: str) -> str:
    """Return the HTML with absolute addresses; everything else stays as it was."""

    def resolve_attribute(attribute: re.Match[str]) -> str:
        value = attribute[2] or attribute[3] or attribute[4]
        try:
            address = urljoin(base, value.strip())
        except ValueError:
            return attribute[0]
        quote = "'" if attribute[3] else '"'
        return f"{attribute[1]}{quote}{address}{quote}"

    return (
        _START_TAG.sub(lambda tag: _RELATIVE_ADDRESS.sub(resolve_attribute, tag[0]), html)
        if "=" in html
        else html
    )
