"""Renders the rows of an answer as CSV (RFC 4180), for `Accept: text/csv`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rest_framework.renderers import BaseRenderer

from analytics.serialize import as_csv

if TYPE_CHECKING:
    from collections.abc import Mapping


class CsvRenderer(BaseRenderer):
    media_type = "text/csv"
    format = "csv"
    charset = "utf-8"

    def render(  # type: ignore[override]  # DRF always gives the context, and only its view knows the columns
        self, data: Any, accepted_media_type: str | None, renderer_context: Mapping[str, Any]
    ) -> bytes:
        """Return the rows of `data["data"]` in UTF-8, with columns for the `dimensions` of the context's `view`."""
        del accepted_media_type
        # A 304 has no body.
        if data is None:
            return b""
        return as_csv(data["data"], renderer_context["view"].dimensions).encode()
