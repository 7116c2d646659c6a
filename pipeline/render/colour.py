"""Parses colours, mixes them, and makes them readable on one another; a colour is a text such as `#1a2b3c`."""

from __future__ import annotations

import re
from typing import Final

MIN_TEXT_CONTRAST: Final = 4.5
"""The minimum contrast of text, by WCAG 2.2, 1.4.3 (read on 20 November 2026)."""

WHITE: Final = "#ffffff"
BLACK: Final = "#000000"

_HEX: Final = re.compile(r"#?(?:([0-9a-fA-F]{3})|([0-9a-fA-F]{6}))")
_SHADE_STEPS: Final = 40
Rgb = tuple[int, int, int]


def parse(value: object) -> str | None:
    """Return the colour as `#rrggbb`, or `None` if the value isn't a colour."""
    match = _HEX.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None:
        return None
    digits = match[2] or "".join(digit * 2 for digit in match[1])
    return f"#{digits.lower()}"


def rgb(colour: str) -> Rgb:
    """Return red, green and blue, each 0 to 255."""
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def mix(base: str, other: str, share: float) -> str:
    """Return `base` with a share of `other` in it, 0 to 1."""
    parts = zip(rgb(base), rgb(other), strict=True)
    red, green, blue = (round(first + (second - first) * share) for first, second in parts)
    return f"#{red:02x}{green:02x}{blue:02x}"


def luminance(colour: str) -> float:
    """Return the relative luminance by WCAG, 0 for black to 1 for white."""
    red, green, blue = (_linear(channel / 255) for channel in rgb(colour))
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _linear(channel: float) -> float:
    """Return the channel without its gamma: both are 0 to 1, by WCAG's formula for sRGB."""
    return channel / 12.92 if channel <= 0.04045 else float(((channel + 0.055) / 1.055) ** 2.4)


def contrast(first: str, second: str) -> float:
    """Return the contrast ratio by WCAG, 1 for none to 21 for black on white."""
    lighter, darker = sorted((luminance(first), luminance(second)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def readable(colour: str, on: str, min_contrast: float = MIN_TEXT_CONTRAST) -> str:
    """Return the nearest darker or lighter shade of the colour that is readable on `on`, at worst black or white."""
    if contrast(colour, on) >= min_contrast:
        return colour
    extreme = max((BLACK, WHITE), key=lambda end: contrast(end, on))
    shades = (mix(colour, extreme, step / _SHADE_STEPS) for step in range(1, _SHADE_STEPS + 1))
    return next((shade for shade in shades if contrast(shade, on) >= min_contrast), extreme)
