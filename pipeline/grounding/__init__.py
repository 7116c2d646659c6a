"""Checks that the numbers, quotations, names, claims and calculations of a draft are in its source.

The functions take texts and return findings; `pipeline.engines.checks.grounded` turns these into checks.
"""

from pipeline.grounding.claim_support import Support, find_in_draft, measure_support, passage_around
from pipeline.grounding.derived_numbers import DerivedResult, recompute_sums
from pipeline.grounding.names import find_unsupported_names
from pipeline.grounding.numbers import (
    UnsupportedNumber,
    find_unsupported_number_texts,
    find_unsupported_numbers,
)
from pipeline.grounding.quotations import (
    MIN_QUOTATION_WIDTH,
    PAIRED_QUOTES,
    Misquotation,
    find_misquotations,
    find_quoted_texts,
    normalize_quotation,
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
    "find_quoted_texts",
    "find_unsupported_names",
    "find_unsupported_number_texts",
    "find_unsupported_numbers",
    "measure_support",
    "normalize_quotation",
    "passage_around",
    "recompute_sums",
]
