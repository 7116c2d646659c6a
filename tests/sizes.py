"""How much a heavy test does: little in each run of the suite, much where `make prove-…` asks for proof."""

from __future__ import annotations

import os
from typing import Final

IS_PROOF: Final = os.environ.get("PROOF") == "1"


def size(in_suite: int, in_proof: int) -> int:
    """A count of cases, kills or rounds."""
    return in_proof if IS_PROOF else in_suite
