"""How much a heavy test does: little in each run of the suite, much where `make prove-…` asks for proof."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

Case = TypeVar("Case")

IS_PROOF: Final = os.environ.get("PROOF") == "1"


def size(in_suite: int, in_proof: int) -> int:
    """A count of cases, kills or rounds."""
    return in_proof if IS_PROOF else in_suite


def first_of_each(cases: Iterable[Case], kind: Callable[[Case], object]) -> list[Case]:
    """In the suite the first case of each kind, in a proof all."""
    return (
        list(cases) if IS_PROOF else list({kind(case): case for case in reversed(list(cases))}.values())[::-1]
    )
