"""The rows of an answer as CSV (RFC 4180), for `Accept: text/csv`."""

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
        return as_csv(data["data"], (renderer_context or {})["view"].dimensions).encode()
