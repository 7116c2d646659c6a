"""Colours as hexadecimal texts: read, mixed, and made readable on one another."""

from __future__ import annotations

import re
from typing import Final

READABLE: Final = 4.5
"""The least contrast of text, by WCAG 2.2, 1.4.3 (read on 20 November 2026)."""

WHITE: Final = "#ffffff"
BLACK: Final = "#000000"

_HEX: Final = re.compile(r"#?(?:([0-9a-fA-F]{3})|([0-9a-fA-F]{6}))")
_STEPS: Final = 40
Rgb = tuple[int, int, int]


def parse(value: object) -> str | None:
    """The colour as `#rrggbb`; None where it isn't one."""
    match = _HEX.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None:
        return None
    digits = match[2] or "".join(digit * 2 for digit in match[1])
    return f"#{digits.lower()}"


def rgb(colour: str) -> Rgb:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def mix(one: str, other: str, share: float) -> str:
    """`share` of the other colour in the one, 0 to 1."""
    parts = zip(rgb(one), rgb(other), strict=True)
    red, green, blue = (round(first + (second - first) * share) for first, second in parts)
    return f"#{red:02x}{green:02x}{blue:02x}"


def luminance(colour: str) -> float:
    """Relative luminance by WCAG, 0 for black to 1 for white."""
    red, green, blue = (_linear(part / 255) for part in rgb(colour))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _linear(part: float) -> float:
    return part / 12.92 if part <= 0.04045 else float(((part + 0.055) / 1.055) ** 2.4)


def contrast(one: str, other: str) -> float:
    """1 for none to 21 for black on white."""
    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def readable(colour: str, on: str, least: float = READABLE) -> str:
    """The nearest shade of the colour that can be read on the other: darker or lighter, as far as need be."""
    if contrast(colour, on) >= least:
        return colour
    towards = max((BLACK, WHITE), key=lambda end: contrast(end, on))
    shades = (mix(colour, towards, step / _STEPS) for step in range(1, _STEPS + 1))
    return next((shade for shade in shades if contrast(shade, on) >= least), towards)
