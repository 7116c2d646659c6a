"""Rows of an answer as the API and its CSV say them: public ids, names, every metric, and why one is missing."""

from __future__ import annotations

import csv
import io
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from analytics.aggregate import FIRST_PARTY, METRICS, NULLABLE, Figures
from config.core.ids import encode

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from uuid import UUID

    from analytics import queries


def figures(given: Figures) -> dict[str, Any]:
    return {
        "metrics": {metric: given.metrics[metric] for metric in METRICS},
        "availability": {
            metric: given.availability[metric] for metric in NULLABLE if metric in given.availability
        },
        "coverage": given.coverage,
        "first_party": {name: given.first_party[name] for name in FIRST_PARTY},
    }


def _outlet(outlet: queries.OutletName | None) -> dict[str, Any] | None:
    if outlet is None:
        return None
    return {"id": encode("out", outlet.id), "platform": outlet.platform, "name": outlet.name}


def _id(prefix: str, value: UUID | None) -> str | None:
    return None if value is None else encode(prefix, value)


_TOLD: Final[Mapping[str, Any]] = {
    "outlet": _outlet,
    "source": partial(_id, "src"),
    "persona": partial(_id, "per"),
}


def serialize_row(row: queries.AnalyticsRow, dimensions: tuple[str, ...]) -> dict[str, Any]:
    said: dict[str, Any] = {}
    for name in dimensions:
        value = getattr(row.dimensions, name)
        said[name] = _TOLD[name](value) if name in _TOLD else value
    return {**said, **figures(row.figures)}


# --- As CSV ----------------------------------------------------------------------------------------------------------

# A spreadsheet takes a cell that starts so for a formula; tab and return are skipped before it looks.
_FORMULA_STARTS: Final = ("=", "+", "-", "@", "\t", "\r")
_OUTLET: Final = ("id", "platform", "name")


def as_csv(rows: Iterable[Mapping[str, Any]], dimensions: tuple[str, ...]) -> str:
    """RFC 4180. Columns are those of the dimensions, then every metric; null is an empty cell."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(_head(dimensions))
    writer.writerows(list(_cells(row, dimensions)) for row in rows)
    return text.getvalue()


def _head(dimensions: tuple[str, ...]) -> list[str]:
    columns: list[str] = []
    for name in dimensions:
        columns += [f"outlet_{part}" for part in _OUTLET] if name == "outlet" else [name]
    return [
        *columns,
        *METRICS,
        "coverage",
        *(f"{metric}_availability" for metric in NULLABLE),
        *(f"first_party_{name}" for name in FIRST_PARTY),
    ]


def _cells(row: Mapping[str, Any], dimensions: tuple[str, ...]) -> Iterator[Any]:
    for name in dimensions:
        if name == "outlet":
            yield from (_safe(row["outlet"][part]) for part in _OUTLET)
        else:
            yield _safe(row[name])
    yield from (row["metrics"][metric] for metric in METRICS)
    yield row["coverage"]
    yield from (row["availability"].get(metric) for metric in NULLABLE)
    yield from (row["first_party"][name] for name in FIRST_PARTY)


def _safe(text: str | None) -> str | None:
    return f"'{text}" if text is not None and text.startswith(_FORMULA_STARTS) else text
