"""Millionths of a US dollar, which is how costs are kept, as people read them."""

from __future__ import annotations

from typing import Final

MICRO: Final = 1_000_000
"""Of a US dollar."""
_SMALL: Final = MICRO // 10


def as_usd(micro_usd: int) -> str:
    """Two places; four where two would say next to nothing of it."""
    dollars = micro_usd / MICRO
    return f"${dollars:,.4f}" if 0 < micro_usd < _SMALL else f"${dollars:,.2f}"
