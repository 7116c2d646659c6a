"""How films say in each language where something is from."""

from __future__ import annotations

from typing import Final

from pipeline.text.language import said_in

_SOURCE: Final = {
    "ar": "المصدر",
    "cs": "Zdroj",
    "da": "Kilde",
    "de": "Quelle",
    "el": "Πηγή",
    "es": "Fuente",
    "fi": "Lähde",
    "fr": "Source",
    "he": "מקור",
    "hu": "Forrás",
    "it": "Fonte",
    "ja": "出典",
    "ko": "출처",
    "nl": "Bron",
    "nb": "Kilde",
    "pl": "Źródło",
    "pt": "Fonte",
    "ro": "Sursa",
    "ru": "Источник",
    "sv": "Källa",
    "th": "ที่มา",
    "tr": "Kaynak",
    "uk": "Джерело",
    "zh": "来源",
    "zh-hant": "來源",
}


def source_word(language: str) -> str:
    """“Source” in the language of a tag; in English where nobody has told us."""
    return said_in(_SOURCE, language) or "Source"
