"""likeness: the print of a text, and what is near."""

from __future__ import annotations

import hashlib
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.text import similarity

WORDS = [f"word{number}" for number in range(5000)]


def text(seed: int, count: int = 300) -> list[str]:
    return random.Random(seed).choices(WORDS, k=count)


def test_print_is_the_same_everywhere():
    assert similarity.simhash(" ".join(WORDS[:40])) == -1044974140704443712


@given(st.lists(st.sampled_from(WORDS), min_size=20, max_size=60))
def test_print_is_what_the_paper_says(words):
    """Bit by bit, as slowly as it is defined."""
    counts = [0] * 64
    for shingle in {" ".join(words[at : at + 3]) for at in range(len(words) - 2)}:
        number = int.from_bytes(hashlib.blake2b(shingle.encode(), digest_size=8).digest(), "big")
        for bit in range(64):
            counts[bit] += 1 if number >> bit & 1 else -1
    expected = sum(1 << bit for bit, count in enumerate(counts) if count > 0)
    assert similarity.simhash(" ".join(words)) % 2**64 == expected


def test_short_text_has_none():
    assert similarity.simhash("word " * 19) is None
    assert similarity.simhash("word " * 20) is not None


def test_case_punctuation_and_white_space_change_nothing():
    words = text(1)
    assert similarity.simhash(" ".join(words)) == similarity.simhash(",\n ".join(words).upper())


def test_little_edited_text_is_near_and_another_is_not():
    words = text(2, 600)
    edited = [*words]
    edited[300] = "changed"
    one, other, strange = (similarity.simhash(" ".join(each)) for each in (words, edited, text(3, 600)))
    assert similarity.is_near(one, other)
    assert not similarity.is_near(one, strange)
    assert similarity.score(one, one) == 1.0 > similarity.score(one, other) >= 1 - similarity.NEAR_BITS / 64


def test_strangers_are_never_near():
    prints = [similarity.simhash(" ".join(text(seed))) for seed in range(120)]
    assert [
        (one, other)
        for place, one in enumerate(prints)
        for other in prints[place + 1 :]
        if similarity.is_near(one, other)
    ] == []


@given(st.integers(-(2**63), 2**63 - 1), st.sets(st.integers(0, 63), max_size=3))
def test_up_to_three_bits_leave_a_band_whole(bits, flipped):
    other = bits
    for bit in flipped:
        other ^= 1 << bit
    assert similarity.distance(bits, other) == len(flipped)
    assert any(one == two for one, two in zip(similarity.bands(bits), similarity.bands(other), strict=True))


@given(st.text(max_size=400))
def test_any_text_is_printed(anything):
    bits = similarity.simhash(anything)
    assert bits is None or -(2**63) <= bits < 2**63


@pytest.mark.parametrize("bits", [0, -1, 2**63 - 1, -(2**63)])
def test_bands_are_unsigned(bits):
    assert all(0 <= band < 65_536 for band in similarity.bands(bits))
