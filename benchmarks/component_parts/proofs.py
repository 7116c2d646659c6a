"""What the proof of a draft costs.

All that proves one draft of the hand-made cases: numbers, quotations, names and sums. "First" is the first draft of a
source, which has to be read; "further" is every other draft of it, as variants and engines ask for them.
"""

from __future__ import annotations

import json
from pathlib import Path
from time import thread_time
from typing import TYPE_CHECKING, Any, Final

from benchmarks.table import Row, percentile
from pipeline.grounding import find_misquotations, names, recompute, unsupported_names, unsupported_numbers
from pipeline.grounding.claim_support import passage_around
from pipeline.grounding.quantities import clear_cache as clear_number_cache

if TYPE_CHECKING:
    from collections.abc import Iterator

CASES: Final = Path(__file__).parents[2] / "tests" / "grounding" / "cases" / "blind.json"
PROOF_MOST_MS: Final = 2.0


def prove(case: dict[str, Any], source: str) -> None:
    language = case["language"]
    declared = {
        value
        for one in case["derived"]
        for outcome in recompute(f"{one['written']} = {one['sum']}", source, language=language)
        for value in outcome.values
    }
    unsupported_numbers(case["draft"], source, language=language, declared=declared)
    find_misquotations(case["draft"], source)
    unsupported_names(case["draft"], [source], language=language)
    passage_around(source, 10, 90)


def milliseconds(case: dict[str, Any], source: str, rounds: int) -> tuple[float, float]:
    """Of the first draft of a source, and of a further one: the least of some rounds."""
    first, further = [], []
    for _ in range(rounds):
        clear_number_cache()
        names._index_known_texts.cache_clear()  # noqa: SLF001  a draft whose source was never read
        begun = thread_time()
        prove(case, source)
        first.append(thread_time() - begun)
        other = {**case, "draft": f"{case['draft']} "}
        begun = thread_time()
        prove(other, source)
        further.append(thread_time() - begun)
    return min(first) * 1000, min(further) * 1000


def proofs(rounds: int, most: int) -> Iterator[Row]:
    cases = json.loads(CASES.read_text(encoding="utf-8"))[:most]
    english = [case for case in cases if case["language"] == "en"]
    article = " ".join(dict.fromkeys(case["source"] for case in english))[:7_000]
    kinds = {
        "the cases": [milliseconds(case, case["source"], rounds) for case in cases],
        f"beside an article of {len(article.split())} words": [
            milliseconds(case, f"{case['source']} {article}"[:7_000], rounds) for case in english
        ],
    }
    for name, times in kinds.items():
        for place, which in enumerate(("first", "further")):
            taken = [one[place] for one in times]
            is_bound = which == "further" or name == "the cases"
            yield Row(
                f"proof of a draft, {name}, {which}: p95", "ms", [percentile(taken, 0.95)],
                most=PROOF_MOST_MS if is_bound else None,
                note=f"median {percentile(taken, 0.5):.2f} ms, longest {max(taken, default=0):.2f} ms",
            )  # fmt: skip
