"""Which numbers of a sentence may stand large, and with which words."""

from __future__ import annotations

import pytest

from pipeline.render.figures import figures_in


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("The work costs €18.4 million.", [("€18.4", "million")]),
        ("The office counted 412 calls about engines.", [("412", "calls about engines")]),
        ("They took 11 per cent of all the oxides.", [("11", "per cent")]),
        ("The board voted 7 to 2 on Thursday.", [("7 to 2", "")]),
        ("It lasts 94 minutes at the quay.", [("94", "minutes")]),
        ("Sales fell by 38% in a year.", [("38%", "")]),
        ("It made 1,100 loaves and 44 rolls.", [("1,100", "loaves"), ("44", "rolls")]),
        ("Es kostet 12 Millionen Kronen.", [("12", "Millionen Kronen")]),
        ("It opened in 2021 and closes on 12 October.", []),
        ("Call 020-7946 or use B12 at 10:30.", []),
        ("There are 3.", []),
        ("Nobody counts.", []),
    ],
)
def test_figures_are_as_they_are_written(said, shown):
    found = figures_in(said)

    assert [(one.value, one.of) for one in found] == shown
    assert all(said[one.start :].startswith(one.value) for one in found)
