"""Formats costs, which are stored in micro-dollars (millionths of a US dollar)."""

from __future__ import annotations

from typing import Final

MICRO: Final = 1_000_000
"""Micro-dollars in a US dollar."""
_FOUR_DECIMALS_BELOW: Final = MICRO // 10
"""Micro-dollars below which an amount has four decimals."""


def as_usd(micro_usd: int) -> str:
    """Return the amount with two decimals, or with four if it is positive and below ten cents."""
    dollars = micro_usd / MICRO
    return f"${dollars:,.4f}" if 0 < micro_usd < _FOUR_DECIMALS_BELOW else f"${dollars:,.2f}"
