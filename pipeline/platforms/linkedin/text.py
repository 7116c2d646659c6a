"""LinkedIn's "little text": every sign that could be markup is escaped, else the post ends there without a word.

From MS Learn, "Little Text Format", read on 20 November 2026.
"""

from __future__ import annotations

import re
from typing import Final

from pipeline.text.links import find_links

_RESERVED: Final = re.compile(r"[\\|{}\[\]()<>@#*_~]")
_HASHTAG: Final = re.compile(r"(?<![\w&/#])#(?=\w*[^\W\d_])(\w+)")
# In an address these have a spelling that means the same; the others it takes as they are.
_IN_ADDRESS: Final = {sign: f"%{ord(sign):02X}" for sign in "\\|{}[]()<>*"}


def little_text(text: str) -> str:
    """The text as `commentary` takes it; addresses stay links, hashtags become what people can follow."""
    out, position = [], 0
    for link in find_links(text):
        if link.has_scheme:
            out += [_words(text[position : link.start]), _address(text[link.start : link.end])]
            position = link.end
    return "".join([*out, _words(text[position:])])


def length(text: str) -> int:
    return len(little_text(text))


def _address(url: str) -> str:
    return "".join(_IN_ADDRESS.get(sign, sign) for sign in url)


def _words(text: str) -> str:
    out, position = [], 0
    for match in _HASHTAG.finditer(text):
        out += [_escaped(text[position : match.start()]), rf"{{hashtag|\#|{_escaped(match[1])}}}"]
        position = match.end()
    return "".join([*out, _escaped(text[position:])])


def _escaped(text: str) -> str:
    return _RESERVED.sub(lambda match: f"\\{match[0]}", text)
