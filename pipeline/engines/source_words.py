"""How films say in each language where something is from."""

from __future__ import annotations

from typing import Final

_SOURCE: Final = {
    "ar": "المصدر",
    "cs": "Zdroj",
    "da": "Kilde",
    "de": "Quelle",
    "es": "Fuente",
    "fi": "Lähde",
    "fr": "Source",
    "he": "מקור",
    "it": "Fonte",
    "nl": "Bron",
    "no": "Kilde",
    "pl": "Źródło",
    "pt": "Fonte",
    "ru": "Источник",
    "sv": "Källa",
    "tr": "Kaynak",
    "uk": "Джерело",
}


def source_word(language: str) -> str:
    """“Source” in the language of a tag; in English where nobody has told us."""
    return _SOURCE.get(language.lower().replace("_", "-").partition("-")[0], "Source")
