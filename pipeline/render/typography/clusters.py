"""Splits text into what readers take for single characters, and finds the font that draws each."""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from typing import Final

from pipeline.plugins import Refused
from pipeline.render.typography import fonts

ZERO_WIDTH_JOINER: Final = "\u200d"
KEYCAP: Final = "\u20e3"
EMOJI_SELECTOR: Final = "\ufe0f"
TEXT_SELECTOR: Final = "\ufe0e"
ZERO_WIDTH_SPACE: Final = "\u200b"
SOFT_HYPHEN: Final = "\u00ad"
WORD_JOINER: Final = "\u2060"

# These change how their neighbours are drawn and need no glyph.
_WITHOUT_GLYPH: Final = frozenset("\u200b\u200c\u200d\u200e\u200f\u061c\u2060\u00ad\ufeff") | {
    chr(code) for code in range(0xFE00, 0xFE10)
}
# Characters of the basic plane that are emoji by default (Emoji_Presentation, Unicode 15.1).
_DEFAULT_EMOJI: Final = frozenset(
    "⌚⌛⏩⏪⏫⏬⏰⏳◽◾☔☕♈♉♊♋♌♍♎♏♐♑♒♓♿⚓⚡⚪⚫⚽⚾⛄⛅⛎⛔⛪⛲⛳⛵⛺⛽✅✊✋✨❌❎❓❔❕❗➕➖➗➰➿⬛⬜⭐⭕"
)
# Thai vowels written before their consonant, and those written after it: no line ends between vowel and consonant.
_THAI_LEADING: Final = frozenset("\u0e40\u0e41\u0e42\u0e43\u0e44")
_THAI_TRAILING: Final = frozenset("\u0e30\u0e32\u0e33\u0e45\u0e46")
_MAX_CHARACTERS_NAMED: Final = 8
_MAX_CODE_POINTS_NAMED: Final = 10
_SAMPLE_EMOJI: Final = "\U0001f600"


class MissingGlyphs(Refused):
    """No font draws these characters, which the message names."""

    def __init__(self, characters: tuple[str, ...]) -> None:
        super().__init__(
            f"The fonts for pictures have no glyphs for {list_characters(characters)}; leave these characters out.",
            code="missing_glyphs",
        )
        self.characters = characters


def list_characters(characters: tuple[str, ...]) -> str:
    """Return the first characters as they look and by their code points, and the number of the others."""
    named = ", ".join(_name_character(character) for character in characters[:_MAX_CHARACTERS_NAMED])
    more = len(characters) - _MAX_CHARACTERS_NAMED
    return f"{named} and {more} more" if more > 0 else named


def _name_character(character: str) -> str:
    codes = " ".join(f"U+{ord(code_point):04X}" for code_point in character[:_MAX_CODE_POINTS_NAMED])
    if len(character) > _MAX_CODE_POINTS_NAMED:
        return f"{codes} and so on"
    return f"{character} ({codes})" if character.isprintable() else codes


def _is_flag_letter(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"


def _extends_cluster(character: str) -> bool:
    return (
        unicodedata.category(character) in {"Mn", "Me", "Mc"}
        or character in {ZERO_WIDTH_JOINER, "\u200c"}
        # skin tones
        or "\U0001f3fb" <= character <= "\U0001f3ff"
        # tags of flags such as Scotland's
        or "\U000e0020" <= character <= "\U000e007f"
    )


def split_clusters(text: str) -> list[str]:
    """Return the grapheme clusters of UAX #29, with Thai vowels joined to their consonant; joined they are the text.

    Left separate are consonants of Indic scripts (GB9c), Hangul that isn't composed (GB6 to GB8) and characters that
    are prepended to a letter (GB9b).
    """
    clusters: list[str] = []
    for character in text:
        last = clusters[-1] if clusters else ""
        # Emoji and what they are joined with lie above; below, a joiner only shapes letters, as in Arabic and Hindi.
        joins_emoji = last.endswith(ZERO_WIDTH_JOINER) and (
            ord(character) > 0x2000 and not character.isspace()
        )
        completes_flag = len(last) == 1 and _is_flag_letter(last) and _is_flag_letter(character)
        joins_thai = last[-1:] in _THAI_LEADING or character in _THAI_TRAILING
        if (
            last
            and not last.isspace()
            and (_extends_cluster(character) or joins_emoji or completes_flag or joins_thai)
        ):
            clusters[-1] += character
        else:
            clusters.append(character)
    return clusters


def is_emoji(cluster: str) -> bool:
    """Return whether the cluster is meant as a coloured picture."""
    if EMOJI_SELECTOR in cluster or KEYCAP in cluster:
        return True
    first = cluster[0]
    if TEXT_SELECTOR in cluster:
        return False
    return first in _DEFAULT_EMOJI or (first >= "\U0001f000" and ord(first) in fonts.coverage(fonts.EMOJI))


@lru_cache(maxsize=8192)
def font_of(cluster: str) -> str | None:
    """Return the first font that draws the whole cluster, or `None` if there is none.

    An emoji has the emoji font, if that draws the sequence as one emoji, or no font.
    """
    code_points = {ord(character) for character in cluster if character not in _WITHOUT_GLYPH}
    if is_emoji(cluster):
        draws_as_one = code_points <= fonts.coverage(fonts.EMOJI) and _is_one_emoji(cluster)
        return fonts.EMOJI if draws_as_one else None
    return next((font for font in fonts.search_order() if code_points <= fonts.coverage(font)), None)


def _is_one_emoji(cluster: str) -> bool:
    """Return whether the cluster is as wide as one emoji: an unknown sequence falls apart into several."""
    face = fonts.face(fonts.EMOJI, fonts.EMOJI_PIXELS, 400, fonts.MIN_OPTICAL_SIZE)
    return face.getlength(cluster) == face.getlength(_SAMPLE_EMOJI)


def fonts_of(clusters: list[str]) -> list[str]:
    """Return a font for each cluster; a space keeps that of the word before. Raises `MissingGlyphs` without one."""
    chosen_fonts: list[str] = []
    undrawable: list[str] = []
    for cluster in clusters:
        font = font_of(cluster)
        if font is None:
            undrawable.append(cluster)
            continue
        if cluster == " " and chosen_fonts and chosen_fonts[-1] != fonts.EMOJI:
            font = chosen_fonts[-1]
        chosen_fonts.append(font)
    if undrawable:
        raise MissingGlyphs(tuple(dict.fromkeys(undrawable)))
    return chosen_fonts


def undrawable_clusters(text: str) -> tuple[str, ...]:
    """Return the clusters that no font draws, each once, in the text's order; line ends and tabs count as drawn."""
    normalized = unicodedata.normalize("NFC", text)
    clusters = split_clusters(" ".join(normalized.split()))
    return tuple(dict.fromkeys(cluster for cluster in clusters if font_of(cluster) is None))
