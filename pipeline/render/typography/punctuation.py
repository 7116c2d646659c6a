"""Sets the typography that writers leave out: a printer's quotation marks, apostrophes, dashes and ellipses."""

from __future__ import annotations

import re
from typing import Final

_QUOTATION_MARKS: Final = {
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
_ENGLISH_MARKS: Final = ("“", "”")
_STRAIGHT_QUOTES: Final = re.compile(r"(?<![\w\d])\"(?=\S)([^\"\n]*?\S)\"(?!\w)")
_APOSTROPHE: Final = re.compile(r"(?<=[^\W\d_])'(?=[^\W\d_])")
_DASH: Final = re.compile(r"(?<=\S) (?:--?|\u2014) (?=\S)")
_THREE_DOTS: Final = re.compile(r"(?<!\.)\.\.\.(?!\.)")
_UNCHANGED_LANGUAGES: Final = frozenset({"ar", "fa", "he", "ur", "yi", "ps"})


def quotation_marks(language: str) -> tuple[str, str]:
    """Return the quotation marks of a language, or of English; French ones have narrow no-break spaces."""
    return _QUOTATION_MARKS.get(language.lower().replace("_", "-").partition("-")[0], _ENGLISH_MARKS)


def typeset(text: str, language: str) -> str:
    """Return the text with a printer's punctuation, for drawing only: stored and quoted text stays unchanged."""
    tag = language.lower().replace("_", "-").partition("-")[0]
    if tag in _UNCHANGED_LANGUAGES:
        return text
    opening, closing = _QUOTATION_MARKS.get(tag, _ENGLISH_MARKS)
    with_marks = _STRAIGHT_QUOTES.sub(lambda match: f"{opening}{match[1]}{closing}", text)
    return _THREE_DOTS.sub("…", _DASH.sub(" \u2013 ", _APOSTROPHE.sub("’", with_marks)))
