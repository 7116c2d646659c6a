"""Decodes a document's bytes to text, without the characters and references at which parsers break off."""

from __future__ import annotations

import codecs
import re
import sys
from typing import Final

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
"""Characters that XML 1.0 doesn't allow, and lone surrogates, which can't be stored."""
_ILLEGAL_NAME: Final = re.compile(r"(?:(?<=<)|(?<=</))" + ILLEGAL_CHARACTERS.pattern + "+")
_CHARACTER_REFERENCE: Final = re.compile(r"&#(?:([0-9]+)|[xX]([0-9a-fA-F]+));?")
_MAX_DIGITS: Final = 7
"""Seven digits suffice for every character in either notation; Python refuses to read very long numbers."""


def decode(document: bytes, content_type: str) -> str:
    """Return the text of a document.

    The encoding is that of a byte order mark, else UTF-8 if the document is valid in it, else the labelled
    one, else the one that breaks the least. Illegal characters and impossible character references are
    removed or replaced by U+FFFD.
    """
    text = _decode_by_mark(document) or _decode_without_mark(document, content_type)
    if ILLEGAL_CHARACTERS.search(text):
        # After a "<" the character is replaced, because removing it would make a tag where there was none.
        text = ILLEGAL_CHARACTERS.sub("", _ILLEGAL_NAME.sub("\ufffd", text))
    return _CHARACTER_REFERENCE.sub(_replace_impossible_reference, text) if "&#" in text else text


def _replace_impossible_reference(reference: re.Match[str]) -> str:
    """Return the reference, or U+FFFD for one beyond U+10FFFF, at which feedparser breaks off."""
    digits = (reference[1] or reference[2]).lstrip("0")
    if len(digits) > _MAX_DIGITS or int(digits or "0", 10 if reference[1] else 16) > sys.maxunicode:
        return "\ufffd"
    return reference[0]


def _decode_by_mark(document: bytes) -> str:
    """Return the text decoded by its byte order mark or the NULs of UTF-16, or "" if it has neither."""
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


def _decode_without_mark(document: bytes, content_type: str) -> str:
    """Return the text as UTF-8 if valid, else as labelled, else in the encoding that breaks the least."""
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
    # No label fits. One wrong byte must not turn a whole UTF-8 document into mojibake, so it is UTF-8 if more than
    # twice as many characters are intact as broken. Each character beyond ASCII begins with a byte from 0xC0 on.
    lenient = document.decode("utf-8", errors="replace")
    broken = lenient.count("\ufffd")
    intact = sum(1 for byte in document if byte >= 0xC0) - broken
    return lenient if intact > 2 * broken else document.decode("cp1252", errors="replace")
