"""Near-duplicates: a SimHash of 64 bits over shingles of three words.

After Charikar (STOC 2002) and Manku, Jain and Das Sarma (WWW 2007): each shingle is hashed to 64 bits, and each bit of
the print is what most of the shingles have there. Texts that share most of their shingles differ in few bits; two that
have nothing to do with each other differ in about 32. Two prints that differ in at most three bits share one of their
four quarters ("bands") whole, so that the database finds them by equality; of those with four to six, most.
"""

from __future__ import annotations

import re
from functools import cache
from hashlib import blake2b
from typing import Final

from pipeline.text.links import without_links

BITS: Final = 64
BANDS: Final = 4
SHINGLE_WORDS: Final = 3
LEAST_WORDS: Final = 20
"""A shorter text is a headline; two of those are alike for no reason."""
MOST_WORDS: Final = 2_000
NEAR_BITS: Final = 6
"""Prints that differ in more bits are of different texts."""

_WORD: Final = re.compile(r"\w+")


def simhash(text: str) -> int | None:
    """The print of a plain text, as a signed 64-bit number; None where it is too short to say anything."""
    words = _words(text)
    if len(words) < LEAST_WORDS:
        return None
    following = [words[at:] for at in range(SHINGLE_WORDS)]
    shingles = {" ".join(one).encode(errors="surrogatepass") for one in zip(*following, strict=False)}
    hashes = b"".join([blake2b(shingle, digest_size=8).digest() for shingle in shingles])
    # All hashes as one number: one mask and one count for each bit, whatever the number of shingles.
    together, mask = int.from_bytes(hashes, "big"), _every_64th(len(shingles))
    bits = sum(1 << bit for bit in range(BITS) if 2 * ((together >> bit) & mask).bit_count() > len(shingles))
    return bits - (1 << BITS) if bits >> (BITS - 1) else bits


def bands(bits: int) -> tuple[int, int, int, int]:
    """The four quarters of a print, each below 65,536."""
    first, second, third, fourth = ((bits >> shift) & 0xFFFF for shift in (0, 16, 32, 48))
    return first, second, third, fourth


def distance(one: int, other: int) -> int:
    """In how many of 64 bits two prints differ."""
    return ((one ^ other) & ((1 << BITS) - 1)).bit_count()


def score(one: int, other: int) -> float:
    """1 for the same print; the share of bits that are equal."""
    return round(1 - distance(one, other) / BITS, 3)


def is_near(one: int, other: int) -> bool:
    return distance(one, other) <= NEAR_BITS


def _words(text: str) -> list[str]:
    # No more of the text than the words that count can take up.
    return _WORD.findall(text[: MOST_WORDS * 12].lower())[:MOST_WORDS]


@cache
def _every_64th(count: int) -> int:
    return sum(1 << (BITS * place) for place in range(count))


# --- Short texts -----------------------------------------------------------------------------------------------------

GRAM: Final = 5
"""Characters: near copies of posts share most of their runs of five, paraphrases a tenth."""
OPENING_WORDS: Final = 4
_LEAST_SHARED: Final = 0.3
"""Two texts that share half of their runs of five characters share more than this of their words."""
_SPACES: Final = re.compile(r"\W+")


def grams(text: str) -> frozenset[str]:
    """The runs of five characters of the words, without addresses, case and marks."""
    folded = _folded(text)
    return frozenset(
        folded[place : place + GRAM] for place in range(max(1, len(folded) - GRAM + 1)) if folded
    )


def jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    """What both have, of what either has: 1 for the same, 0 for nothing in common."""
    together = len(one | other)
    return len(one & other) / together if together else 0.0


def plain_words(text: str) -> frozenset[str]:
    return frozenset(_folded(text).split())


def may_be_like(one: frozenset[str], other: frozenset[str]) -> bool:
    """Whether a look at the runs of characters is worth its time."""
    if not one or not other:
        return False
    if len(one) == 1 or len(other) == 1:
        # Scripts that write without spaces.
        return True
    return len(one & other) > _LEAST_SHARED * min(len(one), len(other))


def opening(text: str) -> tuple[str, ...]:
    """The first words; none of a text with fewer."""
    words = _folded(text[:200]).split()[:OPENING_WORDS]
    return tuple(words) if len(words) == OPENING_WORDS else ()


def _folded(text: str) -> str:
    return _SPACES.sub(" ", without_links(text).casefold()).strip()
