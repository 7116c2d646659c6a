"""Excerpts around the words of a search: where they are cut and what is marked."""

from __future__ import annotations

import pytest

from config.core.database.search_excerpts import excerpt_around


def shown(text, query, length=60):
    """Return the excerpt with its matches in brackets."""
    return "".join(
        f"[{part.text}]" if part.is_match else part.text
        for part in excerpt_around(text, query, length=length)
    )


LONG = "The council met for nine hours on Monday and at last agreed to buy a seventh crane for the harbour of Kiel"


@pytest.mark.parametrize(
    ("text", "query", "excerpt"),
    [
        ("A seventh crane", "crane", "A seventh [crane]"),
        ("A seventh crane", "", "A seventh crane"),
        ("A seventh crane", "zeppelin", "A seventh crane"),
        # The last word may be a beginning, the others are whole words.
        ("The cranes of the harbour", "the harb", "[The] cranes of [the] [harbour]"),
        # Case, accents and the letters that stand for two.
        ("Cafe\u0301 Stra\u00dfe", "cafe strasse", "[Caf\u00e9] [Stra\u00dfe]"),
        ("\u00c9cole", "ecole", "[\u00c9cole]"),
        # Scripts without spaces are found by pairs of letters.
        ("\u6771\u4eac\u306e\u5929\u6c17", "\u5929\u6c17", "\u6771\u4eac\u306e[\u5929\u6c17]"),
        # PostgreSQL finds inflected forms.
        ("The harbours were closed", "harbour closed", "The [harbours] were [closed]"),
        ("Closing times", "closed times", "[Closing] [times]"),
        # Signs of patterns and of markup are text.
        ("a <b> & (c", "(c", "a <b> & ([c]"),
    ],
)
def test_the_words_are_marked(text, query, excerpt):
    assert shown(text, query) == excerpt


def test_a_long_text_is_cut_around_the_first_match():
    assert shown(LONG, "") == "The council met for nine hours on Monday and at last agreed…"
    assert shown(LONG, "nine") == "The council met for [nine] hours on Monday and at last agreed…"
    assert shown(LONG, "crane kiel") == "…agreed to buy a seventh [crane] for the harbour of [Kiel]"
    assert shown(LONG, "agreed") == "…hours on Monday and at last [agreed] to buy a seventh crane…"


def test_a_text_without_spaces_is_cut_with_its_match():
    text = "\u3042" * 300 + "\u5929\u6c17" + "\u3042" * 300
    excerpt = shown(text, "\u5929\u6c17")
    assert "[\u5929\u6c17]" in excerpt
    assert len(excerpt) < 80


def test_lines_become_one_line():
    assert shown("One\n\n  two\tthree", "two") == "One [two] three"
