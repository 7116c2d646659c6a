"""Finds near-duplicates by a SimHash of 64 bits over shingles of three words, and compares short texts.

The SimHash follows Charikar (STOC 2002) and Manku, Jain and Das Sarma (WWW 2007): each shingle is hashed to 64
bits, and each bit of the fingerprint is the one that most of the hashes have. Texts that share most of their
shingles differ in few bits; unrelated texts differ in about 32. Two fingerprints that differ in at most three bits
have one of their four quarters ("bands") in common, so that the database finds them by equality. So do most of
those that differ in four to six.
"""

from __future__ import annotations

import re
from functools import cache
from hashlib import blake2b
from typing import Final, TypeVar

from pipeline.text.links import without_links

BITS: Final = 64
BANDS: Final = 4
SHINGLE_WORDS: Final = 3
MIN_WORDS: Final = 20
"""A shorter text has no fingerprint: it is a headline, and headlines are often alike by chance."""
MAX_WORDS: Final = 2_000
"""The most words of a text that are read."""
NEAR_BITS: Final = 6
"""The most bits in which the fingerprints of near-duplicates differ."""

_WORD: Final = re.compile(r"\w+")


def simhash(text: str) -> int | None:
    """Return the fingerprint of a plain text, as a signed 64-bit number, or `None` if it is too short."""
    words = _words(text)
    if len(words) < MIN_WORDS:
        return None
    shifted = [words[offset:] for offset in range(SHINGLE_WORDS)]
    shingles = {" ".join(run).encode(errors="surrogatepass") for run in zip(*shifted, strict=False)}
    hashes = b"".join([blake2b(shingle, digest_size=8).digest() for shingle in shingles])
    # All hashes as one number: one mask and one count per bit, whatever the number of shingles.
    all_hashes, mask = int.from_bytes(hashes, "big"), _every_64th(len(shingles))
    bits = sum(
        1 << bit for bit in range(BITS) if 2 * ((all_hashes >> bit) & mask).bit_count() > len(shingles)
    )
    return bits - (1 << BITS) if bits >> (BITS - 1) else bits


def bands(bits: int) -> tuple[int, int, int, int]:
    """Return the four quarters of a fingerprint, the lowest first, each below 65,536."""
    first, second, third, fourth = ((bits >> shift) & 0xFFFF for shift in (0, 16, 32, 48))
    return first, second, third, fourth


def distance(first: int, second: int) -> int:
    """Return the number of bits in which two fingerprints differ, at most 64."""
    return ((first ^ second) & ((1 << BITS) - 1)).bit_count()


def score(first: int, second: int) -> float:
    """Return the share of equal bits, rounded to three digits; it is 1 for the same fingerprint."""
    return round(1 - distance(first, second) / BITS, 3)


def is_near(first: int, second: int) -> bool:
    """Return whether two fingerprints are near enough for near-duplicates."""
    return distance(first, second) <= NEAR_BITS


def _words(text: str) -> list[str]:
    # No more of the text than this many words take up.
    return _WORD.findall(text[: MAX_WORDS * 12].lower())[:MAX_WORDS]


@cache
def _every_64th(count: int) -> int:
    """Return a number with every 64th bit set, `count` of them."""
    return sum(1 << (BITS * index) for index in range(count))


# --- Short texts -----------------------------------------------------------------------------------------------------

_RUN_CHARACTERS: Final = 5
"""Characters in one run: near copies of posts share most of their runs of five, paraphrases a tenth."""
OPENING_WORDS: Final = 4
"""The words of a text's opening."""
SAME_IDEA: Final = 0.4
"""Two texts that share this much of their words count as the same idea."""
_MIN_SHARED_WORDS: Final = 0.3
"""Texts that share half of their runs of five characters share more than this of their words."""
_SPACES: Final = re.compile(r"\W+")

Part = TypeVar("Part")


def character_runs(text: str) -> frozenset[str]:
    """Return the text's runs of five characters, without addresses, case and marks; a shorter text is one run."""
    normalized = _normalize(text)
    return frozenset(
        normalized[start : start + _RUN_CHARACTERS]
        for start in range(max(1, len(normalized) - _RUN_CHARACTERS + 1))
        if normalized
    )


def jaccard(first: frozenset[Part], second: frozenset[Part]) -> float:
    """Return the Jaccard index, from 0 for nothing in common, or two empty sets, to 1 for equal sets."""
    union_size = len(first | second)
    return len(first & second) / union_size if union_size else 0.0


def is_same_idea(first: frozenset[Part], second: frozenset[Part], *, share: float = SAME_IDEA) -> bool:
    """Return whether two texts share enough of their words, or runs of words, to say the same.

    A text without words is like none.
    """
    return bool(first) and len(first & second) >= share * len(first | second)


def distinct_words(text: str) -> frozenset[str]:
    """Return the text's words in lower case."""
    return frozenset(_WORD.findall(text.lower()))


def plain_words(text: str) -> frozenset[str]:
    """Return the text's words, without addresses, case and marks."""
    return frozenset(_normalize(text).split())


def may_be_like(first: frozenset[str], second: frozenset[str]) -> bool:
    """Return whether two texts share enough words for a comparison of their runs, which takes longer."""
    if not first or not second:
        return False
    if len(first) == 1 or len(second) == 1:
        # A text in a script without spaces is a single word.
        return True
    return len(first & second) > _MIN_SHARED_WORDS * min(len(first), len(second))


def opening_words(text: str) -> tuple[str, ...]:
    """Return the first `OPENING_WORDS` words, or () for a text with fewer."""
    words = _normalize(text[:200]).split()[:OPENING_WORDS]
    return tuple(words) if len(words) == OPENING_WORDS else ()


def _normalize(text: str) -> str:
    return _SPACES.sub(" ", without_links(text).casefold()).strip()
