"""Excerpts around the words of a search: where they are cut and what is marked."""

from __future__ import annotations

import pytest

from config.core.database import search_excerpts
from config.core.database.search_excerpts import excerpt_around, label_and_excerpt


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


def both(label, text, query):
    parts = label_and_excerpt(label, text, query, label_length=60, length=60)
    return tuple("".join(f"[{one.text}]" if one.is_match else one.text for one in group) for group in parts)


@pytest.mark.parametrize(
    ("label", "text", "query", "excerpts"),
    [
        # A word that stands in the text as it was typed isn't looked for in other forms in the label.
        ("Cartoons return", "A cart in Paris", "cart paris", ("Cartoons return", "A [cart] in [Paris]")),
        ("Harbours closed", "All is still", "harbour closed", ("[Harbours] [closed]", "")),
        # The label leaves out a word that the text has.
        (
            "A crane came",
            "The crane stands in Kiel",
            "crane kiel",
            ("A [crane] came", "The [crane] stands in [Kiel]"),
        ),
        ("A crane in Kiel", "The crane stands in Kiel", "crane kiel", ("A [crane] in [Kiel]", "")),
        # Neither says the same twice, nor is there an excerpt without a word.
        ("A crane came.", "A crane came.", "crane kiel", ("A [crane] came.", "")),
        ("A crane came", "Fog", "crane kiel", ("A [crane] came", "")),
    ],
)
def test_an_excerpt_stands_beside_its_label(label, text, query, excerpts):
    assert both(label, text, query) == excerpts


def test_characters_of_a_long_text_are_folded_once_each(monkeypatch):
    folded = []
    monkeypatch.setattr(
        search_excerpts, "_fold_character", lambda letter: folded.append(letter) or letter.lower()
    )
    assert shown("\u0416\u0443\u043a " * 10_000 + "\u0434\u043e\u043c", "\u0434\u043e\u043c").endswith(
        "[\u0434\u043e\u043c]"
    )
    assert len(folded) == len(set(folded))
