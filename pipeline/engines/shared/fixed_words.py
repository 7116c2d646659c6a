"""Holds the fixed words of carousels and films, in the language of the post."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pipeline.text.language_detection import value_for_language

if TYPE_CHECKING:
    from collections.abc import Mapping

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
    "hi": "स्रोत",
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


@dataclass(frozen=True)
class FixedWords:
    """The fixed words of one language. `follow` has the placeholder `{}` for the persona's handle."""

    swipe: str
    recap: str
    read_on: str
    follow: str


_ENGLISH: Final = FixedWords("Swipe", "In short", "Read the whole story", "Follow {}")
_BY_LANGUAGE: Final[Mapping[str, FixedWords]] = {
    "en": _ENGLISH,
    "de": FixedWords("Weiter", "Kurz gesagt", "Die ganze Geschichte lesen", "{} folgen"),
    "fr": FixedWords("Suite", "En bref", "Lire tout l\u2019article", "Suivez {}"),
    "es": FixedWords("Desliza", "En resumen", "Lee la historia completa", "Sigue a {}"),
    "it": FixedWords("Scorri", "In breve", "Leggi tutta la storia", "Segui {}"),
    "pt": FixedWords("Deslize", "Em resumo", "Leia a hist\u00f3ria completa", "Siga {}"),
    "nl": FixedWords("Veeg verder", "In het kort", "Lees het hele verhaal", "Volg {}"),
    "pl": FixedWords("Przesu\u0144", "W skr\u00f3cie", "Przeczytaj ca\u0142o\u015b\u0107", "Obserwuj {}"),
    "sv": FixedWords("Svep", "I korthet", "Läs hela artikeln", "Följ {}"),
    "da": FixedWords("Swipe", "Kort sagt", "Læs hele historien", "Følg {}"),
    "nb": FixedWords("Sveip", "Kort sagt", "Les hele saken", "Følg {}"),
    "cs": FixedWords("Dále", "Stručně", "Přečtěte si celý text", "Sledujte {}"),
    "fi": FixedWords("Pyyhkäise", "Lyhyesti", "Lue koko juttu", "Seuraa: {}"),
    "ru": FixedWords("Листайте", "Коротко", "Читать полностью", "Подписывайтесь: {}"),
    "uk": FixedWords("Гортайте", "Коротко", "Читати повністю", "Підписуйтесь: {}"),
    "tr": FixedWords("Kaydır", "Kısaca", "Haberin tamamını oku", "Takip et: {}"),
    "el": FixedWords("Σύρετε", "Με λίγα λόγια", "Διαβάστε όλο το άρθρο", "Ακολουθήστε: {}"),
    "hu": FixedWords("Lapozz", "Röviden", "Olvasd el a teljes cikket", "Kövesd: {}"),
    "ro": FixedWords("Glisați", "Pe scurt", "Citiți tot articolul", "Urmăriți: {}"),
    "ja": FixedWords("スワイプ", "要点", "全文を読む", "{} をフォロー"),
    "zh": FixedWords("滑动", "要点", "阅读全文", "关注 {}"),
    "zh-hant": FixedWords("滑動", "重點", "閱讀全文", "追蹤 {}"),
    "ko": FixedWords("넘기기", "요약", "전문 읽기", "{} 팔로우"),
    "hi": FixedWords("आगे बढ़ें", "संक्षेप में", "पूरी खबर पढ़ें", "फ़ॉलो करें: {}"),
    "th": FixedWords("เลื่อน", "สรุปสั้น ๆ", "อ่านเรื่องเต็ม", "ติดตาม {}"),
    "ar": FixedWords(
        "\u0627\u0633\u062d\u0628",
        "\u0628\u0627\u062e\u062a\u0635\u0627\u0631",
        "\u0627\u0642\u0631\u0623 \u0627\u0644\u0642\u0635\u0629 \u0643\u0627\u0645\u0644\u0629",
        "\u062a\u0627\u0628\u0639\u0648\u0627 {}",
    ),
    "he": FixedWords(
        "\u05d4\u05d7\u05dc\u05d9\u05e7\u05d5",
        "\u05d1\u05e7\u05e6\u05e8\u05d4",
        "\u05dc\u05e1\u05d9\u05e4\u05d5\u05e8 \u05d4\u05de\u05dc\u05d0",
        "\u05e2\u05e7\u05d1\u05d5 \u05d0\u05d7\u05e8\u05d9 {}",
    ),
}


def fixed_words(language: str) -> FixedWords:
    """Return the words of the language, or the English ones if the language isn't known."""
    return known_words(language) or _ENGLISH


def known_words(language: str) -> FixedWords | None:
    """Return the words of the language, or `None` if the language isn't known."""
    return value_for_language(_BY_LANGUAGE, language)


def source_word(language: str) -> str:
    """Return the word “Source” in the language, or in English if the language isn't known."""
    return value_for_language(_SOURCE, language) or "Source"
