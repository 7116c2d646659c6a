"""Typography that writers leave out: quotation marks, apostrophes, dashes and dots as a printer sets them."""

from __future__ import annotations

import re
from typing import Final

_PAIRS: Final = {
    "de": ("„", "“"),
    "cs": ("„", "“"),
    "sk": ("„", "“"),
    "pl": ("„", "”"),
    "hu": ("„", "”"),
    "ro": ("„", "”"),
    "bg": ("„", "“"),
    "da": ("»", "«"),
    "no": ("«", "»"),
    "nb": ("«", "»"),
    "nn": ("«", "»"),
    "el": ("«", "»"),
    "nl": ("“", "”"),
    "sv": ("”", "”"),
    "fi": ("”", "”"),
    "fr": ("«\u202f", "\u202f»"),
    "es": ("«", "»"),
    "it": ("«", "»"),
    "ru": ("«", "»"),
    "uk": ("«", "»"),
    "ar": ("«", "»"),
    "ja": ("「", "」"),
}
_ENGLISH: Final = ("“", "”")
_STRAIGHT: Final = re.compile(r"(?<![\w\d])\"(?=\S)([^\"\n]*?\S)\"(?!\w)")
_APOSTROPHE: Final = re.compile(r"(?<=[^\W\d_])'(?=[^\W\d_])")
_DASH: Final = re.compile(r"(?<=\S) (?:--?|\u2014) (?=\S)")
_DOTS: Final = re.compile(r"(?<!\.)\.\.\.(?!\.)")
_KEPT_AS_TYPED: Final = frozenset({"ar", "fa", "he", "ur", "yi", "ps"})


def marks_of(language: str) -> tuple[str, str]:
    """The quotation marks around somebody's words; French ones with the narrow no-break spaces within them."""
    return _PAIRS.get(language.lower().replace("_", "-").partition("-")[0], _ENGLISH)


def typeset(text: str, language: str) -> str:
    """For drawing only: the words themselves are stored and quoted as they are."""
    tag = language.lower().replace("_", "-").partition("-")[0]
    if tag in _KEPT_AS_TYPED:
        return text
    opening, closing = _PAIRS.get(tag, _ENGLISH)
    marked = _STRAIGHT.sub(lambda match: f"{opening}{match[1]}{closing}", text)
    return _DOTS.sub("…", _DASH.sub(" \u2013 ", _APOSTROPHE.sub("’", marked)))
