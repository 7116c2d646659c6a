"""Proves mechanically that a draft's statements stand in its source: numbers, quotations, names, statements,
sums.

These functions take texts and return findings, and know neither drafts nor briefs;
`pipeline.engines.checks.grounded` turns the findings into checks.
"""

from pipeline.grounding.claim_support import Support, find_in_draft, measure_support, passage_around
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
    "find_in_draft",
    "find_misquotations",
    "fold",
    "measure_support",
    "passage_around",
    "quotations",
    "recompute",
    "ungrounded_numbers",
    "unsupported_names",
    "unsupported_numbers",
]
