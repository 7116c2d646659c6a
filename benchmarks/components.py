"""Measures the CPU time of parts of generation: the proof of a draft, a picture, a film. Other work hardly changes it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from benchmarks.component_parts.films import FilmSize, measure_films
from benchmarks.component_parts.pictures import TEXTS, measure_pictures
from benchmarks.component_parts.proofs import measure_proofs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.service import Session
    from benchmarks.table import Row

ON: Final = ("sqlite",)
"""SQLite alone, because the parts use no database."""
SIZES: Final = {
    # Rounds of each draft, and the number of cases.
    "proofs": (5, 1),
    "cases": (100_000, 3),
    # Rounds of each picture, and the number of languages.
    "pictures": (40, 1),
    "languages": (4, 1),
    # Rounds of films, and the seconds of each.
    "films": (3, 1),
    "film_seconds": (30.0, 0.4),
    "stills": (5, 1),
}


def measure(session: Session) -> Iterator[Row]:
    size = session.size
    yield from measure_proofs(size.proofs, size.cases)
    yield from measure_pictures(size.pictures, list(TEXTS)[: size.languages], is_smallest=session.is_smallest)
    yield from measure_films(
        size.films, FilmSize(size.film_seconds, size.stills), is_smallest=session.is_smallest
    )
