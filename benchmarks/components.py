"""Parts of generation by themselves: the proof of a draft, a picture, a film. CPU time, which other work hardly changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from benchmarks.component_parts.films import Film, films
from benchmarks.component_parts.pictures import TEXTS, pictures
from benchmarks.component_parts.proofs import proofs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.service import Session
    from benchmarks.table import Row

ON: Final = ("sqlite",)
"""They ask no database."""
SIZES: Final = {
    # Of each draft, and how many of the cases.
    "proofs": (5, 1),
    "cases": (100_000, 3),
    # Of each picture; languages of its words.
    "pictures": (40, 1),
    "languages": (4, 1),
    # Films, and seconds of each.
    "films": (3, 1),
    "film_seconds": (30.0, 0.4),
    "stills": (5, 1),
}


def measure(session: Session) -> Iterator[Row]:
    size = session.size
    yield from proofs(size.proofs, size.cases)
    yield from pictures(size.pictures, list(TEXTS)[: size.languages], is_smallest=session.is_smallest)
    yield from films(size.films, Film(size.film_seconds, size.stills), is_smallest=session.is_smallest)
