"""What a description says in words."""

from __future__ import annotations

import pytest

from pipeline.sources.youtube.video import prose_of


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("#bread #oven", ""),
        (" #bread#oven  #flour ", ""),
        ("#bread from the oven", "#bread from the oven"),
        ("# bread", "# bread"),
        ("##", "##"),
        # Trying every way to cut these into hashtags takes longer than the sun lasts.
        ("#a" * 60 + " x", "#a" * 60 + " x"),
        ("#" * 4000, "#" * 4000),
        ("#a " * 1500 + "x", "#a " * 1500 + "x"),
    ],
)
def test_lines_of_hashtags_alone_are_left_out(line, told):
    assert prose_of(line) == told
