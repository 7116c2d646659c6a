"""Proves mechanically that a draft's statements stand in its source: numbers, quotations, names, statements,
sums.

These functions take texts and return findings, and know neither drafts nor briefs;
`pipeline.engines.checks.grounded` turns the findings into checks.
"""

from pipeline.grounding.claim_support import Support, passage_around, place_in, support
from pipeline.grounding.derived_numbers import DerivedResult, recompute
from pipeline.grounding.names import unsupported_names
from pipeline.grounding.numbers import UnsupportedNumber, ungrounded_numbers, unsupported_numbers
from pipeline.grounding.quotations import (
    MIN_QUOTATION_WIDTH,
    PAIRED_QUOTES,
    Misquotation,
    find_misquotations,
    fold,
    quotations,
)

__all__ = [
    "MIN_QUOTATION_WIDTH",
    "PAIRED_QUOTES",
    "DerivedResult",
    "Misquotation",
    "Support",
    "UnsupportedNumber",
    "find_misquotations",
    "fold",
    "passage_around",
    "place_in",
    "quotations",
    "recompute",
    "support",
    "ungrounded_numbers",
    "unsupported_names",
    "unsupported_numbers",
]
