"""Encodes UUIDv7 as public ids: `gen_` and 26 characters, as TypeID does (github.com/jetify-com/typeid)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from uuid import UUID

from uuid_utils import compat

from config.core import clock

if TYPE_CHECKING:
    from datetime import datetime

_ALPHABET: Final = "0123456789abcdefghjkmnpqrstvwxyz"
_VALUES: Final = {letter: value for value, letter in enumerate(_ALPHABET)}
# Encoding two letters at a time is faster: a list encodes hundreds of ids.
_PAIRS: Final = tuple(first + second for first in _ALPHABET for second in _ALPHABET)
_LENGTH: Final = 26
"""Characters after the prefix: 25 of five bits each, and a first one of three."""

PREFIXES: Final = {
    "workspace": "ws",
    "source": "src",
    "raw_item": "raw",
    "source_entry": "ent",
    "generated_item": "gen",
    "outlet": "out",
    "publication": "pub",
    "persona": "per",
    "event": "evt",
    "token": "tok",
    "endpoint": "whe",
    "upload": "upl",
    "topic": "top",
    "asset": "ast",
    "delivery": "dlv",
    "generation": "gnr",
    "ledger_entry": "led",
    "user": "usr",
    "attempt": "att",
    "invitation": "inv",
    "inbound_delivery": "ind",
    "brand_slot": "slt",
    "persona_draft": "pdr",
    "publish_queue": "que",
    "subscriber": "sub",
    "mailing": "mlg",
    "series": "ser",
    "series_issue": "iss",
    "week_plan": "pln",
    "recurrence": "rec",
    "recurrence_turn": "rct",
    "saved_view": "viw",
}
_NAMES: Final = {"api_token": "token", "user_account": "user", "draft": "persona_draft"}
"""The name of a table's rows, by the table's name, if the two differ."""


def uuid7() -> UUID:
    """Return a new id; its time is the one that `clock.frozen_at()` sets, else the present."""
    moment = clock.frozen_moment()
    return compat.uuid7() if moment is None else compat.uuid7(nanoseconds=int(moment.timestamp() * 10**9))


def lowest_id_at(moment: datetime) -> UUID:
    """Return a lower bound: no UUIDv7 made at that millisecond or later is less."""
    # The time, the version 7 and the variant 2; all random bits are zero.
    return UUID(int=int(moment.timestamp() * 1000) << 80 | 7 << 76 | 2 << 62)


def name_of_table(table: str) -> str:
    """Return the name of a database table's rows; `PREFIXES` has it if they have public ids."""
    return _NAMES.get(table, table)


def encode(prefix: str, value: UUID) -> str:
    """Return the public id of a UUID."""
    # Two letters stand for ten bits.
    number = value.int
    pairs = _PAIRS
    return (
        f"{prefix}_"
        f"{pairs[number >> 120]}{pairs[number >> 110 & 1023]}{pairs[number >> 100 & 1023]}"
        f"{pairs[number >> 90 & 1023]}{pairs[number >> 80 & 1023]}{pairs[number >> 70 & 1023]}"
        f"{pairs[number >> 60 & 1023]}{pairs[number >> 50 & 1023]}{pairs[number >> 40 & 1023]}"
        f"{pairs[number >> 30 & 1023]}{pairs[number >> 20 & 1023]}{pairs[number >> 10 & 1023]}"
        f"{pairs[number & 1023]}"
    )


def encode_or_none(prefix: str, value: UUID | None) -> str | None:
    """Return the public id of a UUID, or `None` for `None`."""
    return None if value is None else encode(prefix, value)


def decode(prefix: str, text: str) -> UUID | None:
    """Return the UUID of a public id, or `None` if the text isn't exactly an id of this prefix."""
    # 26 letters hold 130 bits; a first letter above 7 would set one of the upper two.
    head, _, tail = text.rpartition("_")
    if head != prefix or len(tail) != _LENGTH or tail[0] > "7":
        return None
    number = 0
    for letter in tail:
        value = _VALUES.get(letter)
        if value is None:
            return None
        number = number << 5 | value
    return UUID(int=number)
