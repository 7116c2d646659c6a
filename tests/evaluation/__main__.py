"""`make eval`: the thirty cases with their recorded replies, case by case, and the figures of all together."""

from __future__ import annotations

import os
import sys
from collections import Counter

import django

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    os.environ["ENV_FILE"] = "tests/settings.env"
    os.environ.setdefault("LOG_LEVEL", "ERROR")
    django.setup()

from tests.evaluation.cases import CASES
from tests.evaluation.run import run


def main() -> int:
    outcomes = run(CASES)
    for one in outcomes:
        ends = "; ".join(f"{engine} {ended}" for engine, ended in one.ended.items())
        flaw = f" [{one.case.flaw}]" if one.case.flaw else ""
        print(
            f"{one.case.name:16} {one.case.kind:8} {one.found}/{len(one.case.facts)} facts, {one.dropped} dropped, "
            f"{one.calls} calls, ${one.cost / 1e6:.5f}{flaw}: {ends}"
        )
    facts = sum(len(one.case.facts) for one in outcomes)
    kept = sum(one.kept for one in outcomes)
    ended = Counter(ended for one in outcomes for ended in one.ended.values())
    stopped = Counter(code for one in outcomes for codes in one.stopped.values() for code in codes)
    print(f"Recall of expected facts: {sum(one.found for one in outcomes) / facts:.1%} of {facts}")
    print(f"Precision of what was kept: {sum(one.right for one in outcomes) / kept:.1%} of {kept}")
    print(f"Quotes that the source doesn't hold, thrown away: {sum(one.dropped for one in outcomes)}")
    print(f"First drafts that a check stopped: {dict(stopped.most_common())}")
    print(f"How drafts ended: {dict(ended.most_common())}")
    print(
        f"In all {sum(one.calls for one in outcomes)} calls, ${sum(one.cost for one in outcomes) / 1e6:.4f}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
