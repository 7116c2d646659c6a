"""Reads single values of pages and sitemaps: lines, addresses, moments. The child process uses it: it needs Python alone."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import urljoin

MAX_URL_CHARS: Final = 2048
MAX_LINE_CHARS: Final = 2000
EARLIEST_YEAR: Final = 1990

Record = dict[str, Any]

ILLEGAL: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]")


def line_of(value: object) -> str:
    return (
        " ".join(ILLEGAL.sub("", value)[: 10 * MAX_LINE_CHARS].split())[:MAX_LINE_CHARS]
        if isinstance(value, str)
        else ""
    )


def web_address(value: object, base: str) -> str:
    """The absolute http(s) address, or nothing."""
    written = "".join(value[: 4 * MAX_URL_CHARS].split()) if isinstance(value, str) else ""
    try:
        address = urljoin(base, written) if written else ""
    except ValueError:
        return ""
    is_web = address.lower().startswith(("http://", "https://")) and len(address) <= MAX_URL_CHARS
    return ILLEGAL.sub("", address) if is_web else ""


def moment_of(written: object) -> int | None:
    """Seconds since 1970 of an ISO date, in UTC where no zone is named."""
    if not isinstance(written, str):
        return None
    try:
        moment = datetime.fromisoformat(written[:64].strip())
        moment = moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return None
    return int(moment.timestamp()) if moment.year >= EARLIEST_YEAR else None
