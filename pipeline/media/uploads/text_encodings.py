"""Decodes a text file that a person chose, in the encodings of editors and office programs of other systems."""

from __future__ import annotations

import codecs
import re
from typing import Final

_BYTE_ORDER_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_CONTROL_CHARACTERS: Final = re.compile(r"[\x00-\x08\x0b\x0e-\x19\x1b-\x1f\x7f]")
"""Characters that no editor writes; tabs, line ends, form feeds and the end mark of DOS are allowed."""
_LETTERS: Final = re.compile(r"[^\W\d_]")
_MAX_ACCENTED_LETTERS: Final = 8
_MAX_ACCENTED_SHARE: Final = 1 / 3
"""The largest share of accented letters in a Western language; more mean another script in the wrong table."""


def decode(data: bytes) -> str | None:
    """Return the text by its byte-order mark, else as UTF-8, else as Windows-1252, or `None` if none fits.

    A text with control characters must be UTF-8 without a mark, and Windows-1252 fits only a Western language.
    """
    encoding = next((name for mark, name in _BYTE_ORDER_MARKS if data.startswith(mark)), "")
    try:
        if encoding:
            return _text_or_none(data.decode(encoding))
        return data.decode("utf-8")
    except UnicodeDecodeError:
        pass
    if encoding:
        return None
    try:
        text = data.decode("cp1252")
    except UnicodeDecodeError:
        return None
    return _text_or_none(text) if _is_western(text) else None


def _text_or_none(text: str) -> str | None:
    """Return the text, or `None` if it holds control characters, which mean that the file isn't a text."""
    return None if _CONTROL_CHARACTERS.search(text) else text


def _is_western(text: str) -> bool:
    """Return whether few enough letters are accented for a text in a Western language."""
    letters = _LETTERS.findall(text)
    accented = sum(not letter.isascii() for letter in letters)
    return accented <= _MAX_ACCENTED_LETTERS or accented <= len(letters) * _MAX_ACCENTED_SHARE
