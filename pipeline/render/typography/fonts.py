"""The fonts: what each can draw, and ready faces at a weight and a size. All but one are bundled."""

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
"""Chinese, Japanese and Korean: 40 MB, so it isn't bundled; it draws where it is installed."""
SYSTEM_FOLDER: Final = Path("/usr/share/fonts/opentype/noto")
"""Where Debian's package fonts-noto-cjk has it."""

BUNDLED: Final = (INTER, HEBREW, ARABIC, DEVANAGARI, THAI, EMOJI)
"""In the order of `in_order`."""
TWO_WEIGHTS: Final = frozenset({DEVANAGARI, THAI, CJK})
"""Those with a file for each of two weights, `-Regular` and `-Bold`."""

STRIKE: Final = 109
"""The one size in pixels that the emoji exist in; other sizes are scaled from it."""


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
_BOLD_FROM: Final = 550
"""Where a font has two weights: from here on the heavier one."""
SMALLEST_OPTICAL: Final = 14
LARGEST_OPTICAL: Final = 32


@cache
def in_order() -> tuple[str, ...]:
    """The fonts in the order in which a character is looked for."""
    has_cjk = all(_path(CJK, weight).is_file() for weight in (400, 700))
    return (*BUNDLED, CJK) if has_cjk else BUNDLED


def _path(font: str, weight: int) -> Path:
    name = f"{font}-{'Bold' if weight >= _BOLD_FROM else 'Regular'}" if font in TWO_WEIGHTS else font
    return SYSTEM_FOLDER / f"{name}.ttc" if font == CJK else FOLDER / f"{name}.ttf"


@cache
def coverage(font: str) -> frozenset[int]:
    """The code points that the font has a glyph for, by its own table, without private-use ones."""
    data = _path(font, 400).read_bytes()
    start = _table(data, b"cmap")
    (count,) = struct.unpack_from(">H", data, start + 2)
    covered: set[int] = set()
    for place in range(count):
        platform, encoding, offset = struct.unpack_from(">HHL", data, start + 4 + 8 * place)
        if (platform, encoding) not in _UNICODE:
            continue
        (form,) = struct.unpack_from(">H", data, start + offset)
        if form == 4:
            covered |= _segments(data, start + offset)
        elif form == 12:
            covered |= _groups(data, start + offset)
    return frozenset(code for code in covered if not _is_private(code))


def _is_private(code: int) -> bool:
    return 0xE000 <= code <= 0xF8FF or code >= 0xF0000


# (platform, encoding) of a character map in Unicode.
_UNICODE: Final = {(0, 3), (0, 4), (0, 6), (3, 1), (3, 10)}


def _table(data: bytes, tag: bytes) -> int:
    """Where a table begins; of a collection, that of its first font."""
    first = int.from_bytes(data[12:16], "big") if data[:4] == b"ttcf" else 0
    (count,) = struct.unpack_from(">H", data, first + 4)
    for place in range(count):
        name, _, offset, _ = struct.unpack_from(">4sLLL", data, first + 12 + 16 * place)
        if name == tag:
            return int(offset)
    message = f"The font has no table {tag!r}."
    raise ValueError(message)


def _segments(data: bytes, start: int) -> set[int]:
    """Format 4 of a character map: up to U+FFFF."""
    (doubled,) = struct.unpack_from(">H", data, start + 6)
    count = doubled // 2
    ends = struct.unpack_from(f">{count}H", data, start + 14)
    firsts = struct.unpack_from(f">{count}H", data, start + 16 + doubled)
    deltas = struct.unpack_from(f">{count}H", data, start + 16 + 2 * doubled)
    ranges_at = start + 16 + 3 * doubled
    offsets = struct.unpack_from(f">{count}H", data, ranges_at)
    covered: set[int] = set()
    for place, (first, end, delta, offset) in enumerate(zip(firsts, ends, deltas, offsets, strict=True)):
        for code in range(first, end + 1):
            glyph = code + delta
            if offset:
                (glyph,) = struct.unpack_from(">H", data, ranges_at + 2 * place + offset + 2 * (code - first))
                glyph += delta if glyph else 0
            # Glyph 0 is the sign for a missing one.
            if glyph & 0xFFFF and code != 0xFFFF:
                covered.add(code)
    return covered


def _groups(data: bytes, start: int) -> set[int]:
    """Format 12 of a character map: all of Unicode."""
    (count,) = struct.unpack_from(">L", data, start + 12)
    covered: set[int] = set()
    for place in range(count):
        first, end, glyph = struct.unpack_from(">LLL", data, start + 16 + 12 * place)
        covered.update(range(first if glyph else first + 1, end + 1))
    return covered


@lru_cache(maxsize=256)
def face(font: str, size: int, weight: int, optical: int) -> ImageFont.FreeTypeFont:
    """A face for drawing, kept for the process. Emoji come in their one size, whatever is asked for.

    Of a collection it is the first font, whose forms are Japanese; those of other languages it takes by the language.
    """
    axes = _AXES.get(font)
    opened = ImageFont.truetype(
        _path(font, weight),
        STRIKE if font == EMOJI else size,
        layout_engine=ImageFont.Layout.RAQM,
    )
    if axes is not None:
        position: list[float] = [min(max(weight, axes.lightest), axes.heaviest)]
        if axes.has_optical_size:
            position.insert(0, min(max(optical, SMALLEST_OPTICAL), LARGEST_OPTICAL))
        opened.set_variation_by_axes(position)
    return opened
