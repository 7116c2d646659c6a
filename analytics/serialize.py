"""Serializes rows of an answer for the API and its CSV, with the reason for each missing metric."""

from __future__ import annotations

import csv
import io
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from analytics.aggregate import FIRST_PARTY, METRICS, NULLABLE, Figures
from config.core.ids import encode, encode_or_none

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from analytics import queries


def figures(source: Figures) -> dict[str, Any]:
    """Return the figures as JSON."""
    return {
        "metrics": {metric: source.metrics[metric] for metric in METRICS},
        "availability": {
            metric: source.availability[metric] for metric in NULLABLE if metric in source.availability
        },
        "coverage": source.coverage,
        "first_party": {name: source.first_party[name] for name in FIRST_PARTY},
    }


def _outlet_json(outlet: queries.OutletName | None) -> dict[str, Any] | None:
    if outlet is None:
        return None
    return {"id": encode("out", outlet.id), "platform": outlet.platform, "name": outlet.name}


_SERIALIZERS: Final[Mapping[str, Any]] = {
    "outlet": _outlet_json,
    "source": partial(encode_or_none, "src"),
    "persona": partial(encode_or_none, "per"),
}


def serialize_row(row: queries.AnalyticsRow, dimensions: tuple[str, ...]) -> dict[str, Any]:
    """Return the row's values of the dimensions and its figures as JSON."""
    values: dict[str, Any] = {}
    for name in dimensions:
        value = getattr(row.dimensions, name)
        values[name] = _SERIALIZERS[name](value) if name in _SERIALIZERS else value
    return {**values, **figures(row.figures)}


# --- As CSV ----------------------------------------------------------------------------------------------------------

# A spreadsheet treats a cell that starts with these as a formula; it skips a leading tab or return.
_FORMULA_STARTS: Final = ("=", "+", "-", "@", "\t", "\r")
_OUTLET_COLUMNS: Final = ("id", "platform", "name")


def as_csv(rows: Iterable[Mapping[str, Any]], dimensions: tuple[str, ...]) -> str:
    """Return the rows of `serialize_row` as CSV (RFC 4180), with an empty cell for `None`."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(_header(dimensions))
    writer.writerows(list(_cells(row, dimensions)) for row in rows)
    return text.getvalue()


def _header(dimensions: tuple[str, ...]) -> list[str]:
    columns: list[str] = []
    for name in dimensions:
        columns += [f"outlet_{part}" for part in _OUTLET_COLUMNS] if name == "outlet" else [name]
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
            yield from (_safe(row["outlet"][part]) for part in _OUTLET_COLUMNS)
        else:
            yield _safe(row[name])
    yield from (row["metrics"][metric] for metric in METRICS)
    yield row["coverage"]
    yield from (row["availability"].get(metric) for metric in NULLABLE)
    yield from (row["first_party"][name] for name in FIRST_PARTY)


def _safe(text: str | None) -> str | None:
    """Return the text with an apostrophe before it if a spreadsheet could take it for a formula."""
    return f"'{text}" if text is not None and text.startswith(_FORMULA_STARTS) else text
