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
    "ja": "出典",
    "ko": "출처",
    "nl": "Bron",
    "nb": "Kilde",
    "no": "Kilde",
    "pl": "Źródło",
    "pt": "Fonte",
    "ru": "Источник",
    "sv": "Källa",
    "th": "ที่มา",
    "tr": "Kaynak",
    "uk": "Джерело",
    "zh": "来源",
}


def source_word(language: str) -> str:
    """“Source” in the language of a tag; in English where nobody has told us."""
    return _SOURCE.get(language.lower().replace("_", "-").partition("-")[0], "Source")
