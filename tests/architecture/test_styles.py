"""The style sheet of the pages: what scrolls holds its own words."""

from __future__ import annotations

import re

from tests.documents.text import ROOT

RULE = re.compile(r"([^{}]+)\{([^{}]*)\}")
SCROLLS = re.compile(r"overflow(?:-[xy])?: *(?:auto|scroll)")
PLACED = re.compile(r"position: *(?:relative|absolute|fixed|sticky)")
WITHOUT_WORDS = re.compile(r"\b(?:pre|code)\b|^dialog$")
"""What holds code alone, and what the browser places by itself."""


def rules():
    text = re.sub(r"/\*.*?\*/", "", (ROOT / "static" / "css" / "app.css").read_text(), flags=re.DOTALL)
    for names, values in RULE.findall(text):
        for name in names.split(","):
            yield name.strip(), values


def test_what_scrolls_is_placed():
    """Words for screen readers are placed absolutely: where nothing around them is placed, they widen the page."""
    placed = {name for name, values in rules() if PLACED.search(values)}
    scrolling = {
        name for name, values in rules() if SCROLLS.search(values) and not WITHOUT_WORDS.search(name)
    }
    # `.scroll.tall` is placed as `.scroll` is.
    loose = {name for name in scrolling if not {name, re.sub(r"(?<=\w)\.\w+$", "", name)} & placed}
    assert loose == set()
