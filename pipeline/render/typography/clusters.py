"""What a reader takes for one character, and the font that draws it."""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from typing import Final

from pipeline.plugins import Refused
from pipeline.render.typography import fonts

JOINER: Final = "\u200d"
KEYCAP: Final = "\u20e3"
AS_EMOJI: Final = "\ufe0f"
AS_TEXT: Final = "\ufe0e"
ZERO_SPACE: Final = "\u200b"
SOFT_HYPHEN: Final = "\u00ad"
WORD_JOINER: Final = "\u2060"

# They say how their neighbours are drawn and need no glyph.
_SILENT: Final = frozenset("\u200b\u200c\u200d\u200e\u200f\u061c\u2060\u00ad\ufeff") | {
    chr(code) for code in range(0xFE00, 0xFE10)
}
# In the basic plane, these are emoji without being asked (Emoji_Presentation, Unicode 15.1).
_EMOJI_BY_ITSELF: Final = frozenset(
    "⌚⌛⏩⏪⏫⏬⏰⏳◽◾☔☕♈♉♊♋♌♍♎♏♐♑♒♓♿⚓⚡⚪⚫⚽⚾⛄⛅⛎⛔⛪⛲⛳⛵⛺⛽✅✊✋✨❌❎❓❔❕❗➕➖➗➰➿⬛⬜⭐⭕"
)
# Thai vowels that are written before their consonant, and those after it: no line ends between them.
_THAI_LEADING: Final = frozenset("\u0e40\u0e41\u0e42\u0e43\u0e44")
_THAI_TRAILING: Final = frozenset("\u0e30\u0e32\u0e33\u0e45\u0e46")
_NAMED_AT_MOST: Final = 8
_CODES_AT_MOST: Final = 10
_ONE_EMOJI: Final = "\U0001f600"


class MissingGlyphs(Refused):
    """No font draws these characters; they are named as people see them."""

    def __init__(self, characters: tuple[str, ...]) -> None:
        super().__init__(
            f"The fonts for pictures have no glyphs for {list_characters(characters)}; leave these characters out.",
            code="missing_glyphs",
        )
        self.characters = characters


def list_characters(characters: tuple[str, ...]) -> str:
    """The first of them as they look and by their code points, and how many more there are."""
    shown = ", ".join(_named(character) for character in characters[:_NAMED_AT_MOST])
    more = len(characters) - _NAMED_AT_MOST
    return f"{shown} and {more} more" if more > 0 else shown


def _named(character: str) -> str:
    codes = " ".join(f"U+{ord(sign):04X}" for sign in character[:_CODES_AT_MOST])
    if len(character) > _CODES_AT_MOST:
        return f"{codes} and so on"
    return f"{character} ({codes})" if character.isprintable() else codes


def _is_flag_letter(sign: str) -> bool:
    return "\U0001f1e6" <= sign <= "\U0001f1ff"


def _extends(sign: str) -> bool:
    return (
        unicodedata.category(sign) in {"Mn", "Me", "Mc"}
        or sign in {JOINER, "\u200c"}
        # skin tones
        or "\U0001f3fb" <= sign <= "\U0001f3ff"
        # tags of flags such as Scotland's
        or "\U000e0020" <= sign <= "\U000e007f"
    )


def split_clusters(text: str) -> list[str]:
    """The grapheme clusters of UAX #29, and Thai vowels with their consonant; together they are the text.

    Not joined are consonants of Indic scripts (GB9c), Hangul that isn't composed (GB6 to GB8) and signs that are put
    before a letter (GB9b).
    """
    found: list[str] = []
    for sign in text:
        last = found[-1] if found else ""
        # Emoji and what they are joined with lie above; below, a joiner only shapes letters, as in Arabic and Hindi.
        joins_emoji = last.endswith(JOINER) and (ord(sign) > 0x2000 and not sign.isspace())
        pairs_flag = len(last) == 1 and _is_flag_letter(last) and _is_flag_letter(sign)
        joins_thai = last[-1:] in _THAI_LEADING or sign in _THAI_TRAILING
        if last and not last.isspace() and (_extends(sign) or joins_emoji or pairs_flag or joins_thai):
            found[-1] += sign
        else:
            found.append(sign)
    return found


def is_emoji(cluster: str) -> bool:
    """Whether it is meant as a coloured picture."""
    if AS_EMOJI in cluster or KEYCAP in cluster:
        return True
    first = cluster[0]
    if AS_TEXT in cluster:
        return False
    return first in _EMOJI_BY_ITSELF or (first >= "\U0001f000" and ord(first) in fonts.coverage(fonts.EMOJI))


@lru_cache(maxsize=8192)
def font_of(cluster: str) -> str | None:
    """The first font that draws all of it; None where none does.

    For emoji only the emoji font, and only if it draws the sequence as one.
    """
    needed = {ord(sign) for sign in cluster if sign not in _SILENT}
    if is_emoji(cluster):
        draws_as_one = needed <= fonts.coverage(fonts.EMOJI) and _is_one_emoji(cluster)
        return fonts.EMOJI if draws_as_one else None
    return next((font for font in fonts.in_order() if needed <= fonts.coverage(font)), None)


def _is_one_emoji(cluster: str) -> bool:
    """A sequence that the font doesn't know falls apart into several emoji, or into an emoji and a swatch."""
    emoji = fonts.face(fonts.EMOJI, fonts.STRIKE, 400, fonts.SMALLEST_OPTICAL)
    return emoji.getlength(cluster) == emoji.getlength(_ONE_EMOJI)


def fonts_of(clusters: list[str]) -> list[str]:
    """A font for each cluster; a space stays in the font of the word before. Raises `MissingGlyphs`."""
    chosen: list[str] = []
    undrawable: list[str] = []
    for cluster in clusters:
        font = font_of(cluster)
        if font is None:
            undrawable.append(cluster)
            continue
        if cluster == " " and chosen and chosen[-1] != fonts.EMOJI:
            font = chosen[-1]
        chosen.append(font)
    if undrawable:
        raise MissingGlyphs(tuple(dict.fromkeys(undrawable)))
    return chosen


def undrawable_clusters(text: str) -> tuple[str, ...]:
    """What no font draws, each once, in the order of the text; line ends and tabs count as drawn."""
    normal = unicodedata.normalize("NFC", text)
    clusters = split_clusters(" ".join(normal.split()))
    return tuple(dict.fromkeys(cluster for cluster in clusters if font_of(cluster) is None))
