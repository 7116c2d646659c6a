"""Measures the proof of a draft.

A proof is the check of all numbers, quotations, names and sums in one draft of the hand-made cases. "First" is the first
draft of a source, which has to be read; "further" is another draft of it, as by other variants and engines.
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
MAX_PROOF_MS: Final = 2.0


def prove(case: dict[str, Any], source: str) -> None:
    """Check the draft of a case against its source."""
    language = case["language"]
    declared = {
        value
        for derivation in case["derived"]
        for outcome in recompute(f"{derivation['written']} = {derivation['sum']}", source, language=language)
        for value in outcome.values
    }
    unsupported_numbers(case["draft"], source, language=language, declared=declared)
    find_misquotations(case["draft"], source)
    unsupported_names(case["draft"], [source], language=language)
    passage_around(source, 10, 90)


def proof_milliseconds(case: dict[str, Any], source: str, rounds: int) -> tuple[float, float]:
    """Return the CPU milliseconds of a source's first draft, and of a further one: the least of all rounds."""
    first, further = [], []
    for _ in range(rounds):
        clear_number_cache()
        names._index_known_texts.cache_clear()  # noqa: SLF001  a draft whose source was never read
        started = thread_time()
        prove(case, source)
        first.append(thread_time() - started)
        other = {**case, "draft": f"{case['draft']} "}
        started = thread_time()
        prove(other, source)
        further.append(thread_time() - started)
    return min(first) * 1000, min(further) * 1000


def measure_proofs(rounds: int, max_cases: int) -> Iterator[Row]:
    """Yield the rows of the cases, and of the English cases whose source is filled up with an article."""
    cases = json.loads(CASES.read_text(encoding="utf-8"))[:max_cases]
    english = [case for case in cases if case["language"] == "en"]
    article = " ".join(dict.fromkeys(case["source"] for case in english))[:7_000]
    kinds = {
        "the cases": [proof_milliseconds(case, case["source"], rounds) for case in cases],
        f"beside an article of {len(article.split())} words": [
            proof_milliseconds(case, f"{case['source']} {article}"[:7_000], rounds) for case in english
        ],
    }
    for name, times in kinds.items():
        for index, draft in enumerate(("first", "further")):
            milliseconds = [pair[index] for pair in times]
            is_bound = draft == "further" or name == "the cases"
            yield Row(
                f"proof of a draft, {name}, {draft}: p95", "ms", [percentile(milliseconds, 0.95)],
                maximum=MAX_PROOF_MS if is_bound else None,
                note=f"median {percentile(milliseconds, 0.5):.2f} ms, longest {max(milliseconds, default=0):.2f} ms",
            )  # fmt: skip
