"""Each way in which a platform counts, on the texts where they differ."""

from __future__ import annotations

import pytest

from pipeline.platforms.rules import graphemes, utf8_bytes, utf16_units, with_links_at

FAMILY = "👨‍👩‍👧‍👦"
FLAG = "🇩🇪"
KEYCAP = "1️⃣"
SKIN = "👍🏽"
COMBINED = "e\u0301"
DEVANAGARI = "नि"
HANGUL = "한"


@pytest.mark.parametrize(
    ("text", "as_graphemes", "as_units", "as_bytes"),
    [
        ("", 0, 0, 0),
        ("abc", 3, 3, 3),
        ("é", 1, 1, 2),
        (COMBINED, 1, 2, 3),
        (FAMILY, 1, 11, 25),
        (FLAG, 1, 4, 8),
        (KEYCAP, 1, 3, 7),
        (SKIN, 1, 4, 8),
        (DEVANAGARI, 1, 2, 6),
        (HANGUL, 1, 1, 3),
        ("\r\n", 1, 2, 2),
        ("😀😀", 2, 4, 8),
    ],
)
def test_counts(text: str, as_graphemes: int, as_units: int, as_bytes: int) -> None:
    assert (graphemes(text), utf16_units(text), utf8_bytes(text)) == (as_graphemes, as_units, as_bytes)


def test_links_weigh_the_same_however_long() -> None:
    count = with_links_at(23, graphemes)

    assert count("see https://example.com") == 4 + 23
    assert count("see https://example.com/" + "a" * 200 + " now") == 4 + 23 + 4
    # Without a scheme it is no link there.
    assert count("see example.com") == 15
    assert count(f"{FAMILY} http://a.example {FAMILY}") == 1 + 1 + 23 + 1 + 1
