"""Mechanical proof that what a draft says stands in its source: numbers, quotations, names, statements, sums.

Nothing here knows a draft or a brief: texts in, findings out. `pipeline.engines.checks.grounded` makes checks of them.
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
