"""The encoding of a text file that a person chose: what editors and office programs of other systems save."""

from __future__ import annotations

import codecs
import re
from typing import Final

_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
# What no editor writes into a text; tabulators, line ends, form feeds and the end mark of DOS stay.
_CONTROLS: Final = re.compile(r"[\x00-\x08\x0b\x0e-\x19\x1b-\x1f\x7f]")
_LETTERS: Final = re.compile(r"[^\W\d_]")
_FEW: Final = 8
_MOST_ACCENTED: Final = 1 / 3
"""Of the letters of a text in a Western language; more are those of another script, read by the wrong table."""


def decode(data: bytes) -> str | None:
    """The text: by its byte-order mark, else UTF-8, else Windows-1252; None where it is none of them."""
    encoding = next((name for mark, name in _MARKS if data.startswith(mark)), "")
    try:
        if encoding:
            return _unless_binary(data.decode(encoding))
        return data.decode("utf-8")
    except UnicodeDecodeError:
        pass
    if encoding:
        return None
    try:
        text = data.decode("cp1252")
    except UnicodeDecodeError:
        return None
    return _unless_binary(text) if _is_western(text) else None


def _unless_binary(text: str) -> str | None:
    return None if _CONTROLS.search(text) else text


def _is_western(text: str) -> bool:
    letters = _LETTERS.findall(text)
    accented = sum(not letter.isascii() for letter in letters)
    return accented <= _FEW or accented <= len(letters) * _MOST_ACCENTED
