"""Encodes the JSON of answers, errors and events, without Django."""

from __future__ import annotations

import json
from typing import Any, Final

import orjson

# Moments and dataclasses have forms of our own, so that one of them in the data is a mistake.
_OPTIONS: Final = orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_DATACLASS


def dump(data: Any) -> bytes:
    """Return the data as compact UTF-8 JSON.

    A UUID is its text, a member of an enumeration its value, and NaN null. Raises `TypeError` for other values that
    JSON has no form for, and `ValueError` for half of a surrogate pair.
    """
    try:
        return orjson.dumps(data, option=_OPTIONS)
    except orjson.JSONEncodeError:
        # orjson takes no whole number beyond 64 bits and no nesting beyond 254, which metadata may have.
        return json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()
