"""Mechanical proof that what a draft says stands in its source: numbers, quotations, names, statements, sums.

Nothing here knows a draft or a brief: texts in, findings out. `pipeline.engines.checks.grounded` makes checks of them.
"""

from pipeline.grounding.claim_support import Support, passage_around, place_in, support
from pipeline.grounding.derived_numbers import DerivedResult, recompute
from pipeline.grounding.names import strange_names
from pipeline.grounding.numbers import Strange, strange_numbers, ungrounded_numbers
from pipeline.grounding.quotations import (
    PAIRED,
    QUOTATION_LEAST,
    Misquoted,
    fold,
    misquoted,
    quotations,
)

__all__ = [
    "PAIRED",
    "QUOTATION_LEAST",
    "DerivedResult",
    "Misquoted",
    "Strange",
    "Support",
    "fold",
    "misquoted",
    "passage_around",
    "place_in",
    "quotations",
    "recompute",
    "strange_names",
    "strange_numbers",
    "support",
    "ungrounded_numbers",
]
