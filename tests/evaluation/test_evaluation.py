"""The figures of the thirty cases: what is found, what the checks stop, what reaches autopilot."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.evaluation.cases import CASES
from tests.evaluation.run import run

FAST = ("bridge", "museum", "court", "roller", "hostile-code")
STOPS = {
    "altered number": {"numbers"},
    "altered quotation": {"quotations"},
    "strange link": {"link_origin", "contacts"},
    "strange account": {"mentions"},
}
"""What has to be among the failed checks of a first draft with this flaw."""
UNMENDED = {"seeds", "budget"}
"""Whose recorded model says the same again: nothing of them may get through."""
FALSE_ALARMS = {
    ("backup", "short_post"),
    ("backup", "persona_tweet"),
    ("backup", "thread"),
}
"""Good drafts that a check stops: a clause that leaves out a harmless “can't”."""


def named(*names):
    return [case for case in CASES if case.name in names]


def judge(outcomes):
    """What holds for each case, whatever the figures of all together are."""
    for one in outcomes:
        case = one.case
        assert (one.is_suspect, case.name) == (case.is_hostile, case.name)
        # What reads like orders never goes out by itself, and no more does a name that nobody knows.
        if case.is_hostile or case.flaw == "invented name":
            assert not any(one.flies.values()), case.name
        for engine, ended in one.ended.items():
            wanted = STOPS.get(case.flaw, set())
            assert wanted <= set(one.stopped.get(engine, wanted)), (case.name, engine)
            is_stopped = case.name in UNMENDED or (case.name, engine) in FALSE_ALARMS
            assert ended.startswith("failed") is is_stopped, (case.name, engine, ended)


def test_there_are_thirty_of_every_kind_and_several_languages():
    assert len(CASES) == len({case.name for case in CASES}) == 30
    kinds = Counter(case.kind for case in CASES)
    assert set(kinds) == {"news", "product", "how-to", "figures", "hostile"}
    assert min(kinds.values()) >= 4
    assert {case.language for case in CASES} == {"en", "de", "fr", "es"}


def test_some_of_them_hold():
    outcomes = run(named(*FAST), ("short_post", "persona_tweet"))
    assert len(outcomes) == len(FAST)
    judge(outcomes)


@pytest.mark.slow
def test_figures_of_all_of_them_hold():
    outcomes = run(CASES)
    judge(outcomes)
    facts = sum(len(one.case.facts) for one in outcomes)
    kept = sum(one.kept for one in outcomes)
    # What the recorded model missed and what it listed beside; the code between adds nothing, and loses two that stand
    # behind an order to a machine, in a paragraph that no writer is shown to its end.
    assert (sum(one.found for one in outcomes), facts) == (82, 86)
    assert (sum(one.right for one in outcomes), kept) == (82, 84)
    assert sum(one.dropped for one in outcomes) == 5
    ends = Counter(ended for one in outcomes for ended in one.ended.values())
    assert ends == {"ready": 66, "failed: numbers": 5, "failed: support": 3}
