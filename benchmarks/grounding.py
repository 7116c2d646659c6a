"""How long a draft's proof takes: `python -m benchmarks grounding` prints a table over the hand-made cases.

A check is all that proves one draft: numbers, quotations, names and sums. "First" is the first draft of a source, which
has to be read; "further" is every other draft of it, as variants and engines ask for them. CPU time of the thread, so
that a machine that others use too doesn't count. The bound is 2 ms.
"""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from time import thread_time
from typing import Any

from pipeline.grounding import misquoted, recompute, strange_names, strange_numbers
from pipeline.grounding.claims import passage_around
from pipeline.grounding.names import forget as forget_names
from pipeline.grounding.quantities import forget as forget_numbers

CASES = Path(__file__).parents[1] / "tests" / "grounding" / "cases" / "blind.json"
LONGEST_MS = 2.0
ROUNDS = 5


def prove(case: dict[str, Any], source: str) -> None:
    language = case["language"]
    declared = {
        value
        for one in case["derived"]
        for outcome in recompute(f"{one['written']} = {one['sum']}", source, language=language)
        for value in outcome.values
    }
    strange_numbers(case["draft"], source, language=language, declared=declared)
    misquoted(case["draft"], source)
    strange_names(case["draft"], [source], language=language)
    passage_around(source, 10, 90)


def milliseconds(case: dict[str, Any], source: str) -> tuple[float, float]:
    """Of the first draft of a source, and of a further one: the least of some rounds."""
    first, further = [], []
    for _ in range(ROUNDS):
        forget_numbers()
        forget_names()
        begun = thread_time()
        prove(case, source)
        first.append(thread_time() - begun)
        other = {**case, "draft": f"{case['draft']} "}
        begun = thread_time()
        prove(other, source)
        further.append(thread_time() - begun)
    return min(first) * 1000, min(further) * 1000


def main() -> int:
    cases = json.loads(CASES.read_text(encoding="utf-8"))
    good = [case["source"] for case in cases if case["language"] == "en"]
    article = " ".join(dict.fromkeys(good))[:7_000]
    rows = {
        "the cases": [milliseconds(case, case["source"]) for case in cases],
        f"beside an article of {len(article.split())} words": [
            milliseconds(case, f"{case['source']} {article}"[:7_000])
            for case in cases
            if case["language"] == "en"
        ],
    }
    is_good = True
    for name, times in rows.items():
        for place, which in enumerate(("first", "further")):
            taken = sorted(one[place] for one in times)
            middle, late = statistics.median(taken), taken[int(len(taken) * 0.95)]
            is_bound = which == "further" or name == "the cases"
            verdict = ("ok" if late <= LONGEST_MS else "MISSED") if is_bound else "told"
            is_good &= verdict != "MISSED"
            print(
                f"{name}, {which}: median {middle:.2f} ms, 95 % within {late:.2f} ms, longest {taken[-1]:.2f} ms: {verdict}"
            )
    return 0 if is_good else 1
