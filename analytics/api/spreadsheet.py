"""The rows of an answer as CSV (RFC 4180), for `Accept: text/csv`."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Any, Final

from rest_framework.renderers import BaseRenderer

from analytics.folding import METRICS, NULLABLE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# A spreadsheet takes a cell that starts so for a formula; tab and return are skipped before it looks.
_FORMULA_STARTS: Final = ("=", "+", "-", "@", "\t", "\r")
_OUTLET: Final = ("id", "platform", "name")


class CsvRenderer(BaseRenderer):
    """Columns are those of the dimensions asked for, then every metric; null is an empty cell."""

    media_type = "text/csv"
    format = "csv"
    charset = "utf-8"

    def render(
        self,
        data: Any,
        accepted_media_type: str | None = None,
        renderer_context: Mapping[str, Any] | None = None,
    ) -> bytes:
        del accepted_media_type
        # Not modified: there is no body.
        if data is None:
            return b""
        text = io.StringIO()
        writer = csv.writer(text)
        dimensions: tuple[str, ...] = (renderer_context or {})["view"].dimensions
        writer.writerow(_head(dimensions))
        writer.writerows(list(_cells(row, dimensions)) for row in data["data"])
        return text.getvalue().encode()


def _head(dimensions: tuple[str, ...]) -> list[str]:
    columns: list[str] = []
    for name in dimensions:
        columns += [f"outlet_{part}" for part in _OUTLET] if name == "outlet" else [name]
    return [*columns, *METRICS, "coverage", *(f"{metric}_availability" for metric in NULLABLE)]


def _cells(row: Mapping[str, Any], dimensions: tuple[str, ...]) -> Iterator[Any]:
    for name in dimensions:
        if name == "outlet":
            yield from (_safe(row["outlet"][part]) for part in _OUTLET)
        else:
            yield _safe(row[name])
    yield from (row["metrics"][metric] for metric in METRICS)
    yield row["coverage"]
    yield from (row["availability"].get(metric) for metric in NULLABLE)


def _safe(text: str | None) -> str | None:
    return f"'{text}" if text is not None and text.startswith(_FORMULA_STARTS) else text
