"""Opens fonts at a weight and a size, and tells which characters each can draw. All but one are bundled."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Final

from PIL import ImageFont

FOLDER: Final = Path(__file__).parent / "fonts"

INTER: Final = "Inter"
HEBREW: Final = "NotoSansHebrew"
ARABIC: Final = "NotoSansArabic"
DEVANAGARI: Final = "NotoSansDevanagari"
THAI: Final = "NotoSansThai"
EMOJI: Final = "NotoColorEmoji"

CJK: Final = "NotoSansCJK"
"""The font for Chinese, Japanese and Korean: with 40 MB it isn't bundled, but used if it is installed."""
SYSTEM_FOLDER: Final = Path("/usr/share/fonts/opentype/noto")
"""The folder into which Debian's package fonts-noto-cjk installs that font."""

BUNDLED: Final = (INTER, HEBREW, ARABIC, DEVANAGARI, THAI, EMOJI)
"""The bundled fonts, in the order of `search_order`."""
TWO_WEIGHT_FONTS: Final = frozenset({DEVANAGARI, THAI, CJK})
"""Fonts with a file for each of two weights, `-Regular` and `-Bold`."""

EMOJI_PIXELS: Final = 109
"""The one size in pixels in which the emoji exist; other sizes are scaled from it."""


@dataclass(frozen=True)
class _Axes:
    """The weights of a variable font, and whether it also has optical size, which comes first in the file."""

    lightest: int
    heaviest: int
    has_optical_size: bool


_AXES: Final = {
    INTER: _Axes(100, 900, has_optical_size=True),
    HEBREW: _Axes(100, 900, has_optical_size=False),
    ARABIC: _Axes(100, 900, has_optical_size=False),
}
_MIN_BOLD_WEIGHT: Final = 550
"""The weight from which a font with two weights uses the heavier one."""
MIN_OPTICAL_SIZE: Final = 14
MAX_OPTICAL_SIZE: Final = 32


@cache
def search_order() -> tuple[str, ...]:
    """Return the fonts in the order in which they are tried for a character."""
    has_cjk = all(_font_path(CJK, weight).is_file() for weight in (400, 700))
    return (*BUNDLED, CJK) if has_cjk else BUNDLED


def _font_path(font: str, weight: int) -> Path:
    name = (
        f"{font}-{'Bold' if weight >= _MIN_BOLD_WEIGHT else 'Regular'}" if font in TWO_WEIGHT_FONTS else font
    )
    return SYSTEM_FOLDER / f"{name}.ttc" if font == CJK else FOLDER / f"{name}.ttf"


@cache
def coverage(font: str) -> frozenset[int]:
    """Return the code points for which the font's table has a glyph, without private-use ones."""
    data = _font_path(font, 400).read_bytes()
    start = _table_offset(data, b"cmap")
    (count,) = struct.unpack_from(">H", data, start + 2)
    covered: set[int] = set()
    for index in range(count):
        platform, encoding, offset = struct.unpack_from(">HHL", data, start + 4 + 8 * index)
        if (platform, encoding) not in _UNICODE_ENCODINGS:
            continue
        (table_format,) = struct.unpack_from(">H", data, start + offset)
        if table_format == 4:
            covered |= _segment_codes(data, start + offset)
        elif table_format == 12:
            covered |= _group_codes(data, start + offset)
    return frozenset(code for code in covered if not _is_private_use(code))


def _is_private_use(code: int) -> bool:
    return 0xE000 <= code <= 0xF8FF or code >= 0xF0000


# (platform, encoding) of a character map in Unicode.
_UNICODE_ENCODINGS: Final = {(0, 3), (0, 4), (0, 6), (3, 1), (3, 10)}


def _table_offset(data: bytes, tag: bytes) -> int:
    """Return the offset of a table, in a collection that of its first font. Raises `ValueError` without it."""
    first = int.from_bytes(data[12:16], "big") if data[:4] == b"ttcf" else 0
    (count,) = struct.unpack_from(">H", data, first + 4)
    for index in range(count):
        name, _, offset, _ = struct.unpack_from(">4sLLL", data, first + 12 + 16 * index)
        if name == tag:
            return int(offset)
    message = f"The font has no table {tag!r}."
    raise ValueError(message)


def _segment_codes(data: bytes, start: int) -> set[int]:
    """Return the code points of a character map in format 4, which goes up to U+FFFF."""
    (doubled_count,) = struct.unpack_from(">H", data, start + 6)
    count = doubled_count // 2
    ends = struct.unpack_from(f">{count}H", data, start + 14)
    firsts = struct.unpack_from(f">{count}H", data, start + 16 + doubled_count)
    deltas = struct.unpack_from(f">{count}H", data, start + 16 + 2 * doubled_count)
    ranges_at = start + 16 + 3 * doubled_count
    offsets = struct.unpack_from(f">{count}H", data, ranges_at)
    covered: set[int] = set()
    for index, (first, end, delta, offset) in enumerate(zip(firsts, ends, deltas, offsets, strict=True)):
        for code in range(first, end + 1):
            glyph = code + delta
            if offset:
                (glyph,) = struct.unpack_from(">H", data, ranges_at + 2 * index + offset + 2 * (code - first))
                glyph += delta if glyph else 0
            # Glyph 0 stands for a missing one.
            if glyph & 0xFFFF and code != 0xFFFF:
                covered.add(code)
    return covered


def _group_codes(data: bytes, start: int) -> set[int]:
    """Return the code points of a character map in format 12, which covers all of Unicode."""
    (count,) = struct.unpack_from(">L", data, start + 12)
    covered: set[int] = set()
    for index in range(count):
        first, end, glyph = struct.unpack_from(">LLL", data, start + 16 + 12 * index)
        covered.update(range(first if glyph else first + 1, end + 1))
    return covered


@lru_cache(maxsize=256)
def face(font: str, size: int, weight: int, optical: int) -> ImageFont.FreeTypeFont:
    """Return a face for drawing, cached for the process. Emoji have their one size, whatever `size` is.

    A collection's face is that of its first font, which has Japanese forms, and other languages' forms by language.
    """
    axes = _AXES.get(font)
    opened = ImageFont.truetype(
        _font_path(font, weight), EMOJI_PIXELS if font == EMOJI else size, layout_engine=ImageFont.Layout.RAQM
    )
    if axes is not None:
        position: list[float] = [min(max(weight, axes.lightest), axes.heaviest)]
        if axes.has_optical_size:
            position.insert(0, min(max(optical, MIN_OPTICAL_SIZE), MAX_OPTICAL_SIZE))
        opened.set_variation_by_axes(position)
    return opened
