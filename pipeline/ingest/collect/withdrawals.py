"""Entries that a list left out though it still has older ones: taken back, when two polls in a row say so.

Pure functions. A list says no more than its newest entries, so one that is missing at its end has only been crowded
out. One that stood above an entry that is still there, and isn't newer than it by chance of the order, was removed.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime


@dataclass(frozen=True)
class Seen:
    """What a poll listed: `state` is kept with the source, `gone` are the names of what was taken back."""

    state: dict[str, Any]
    gone: frozenset[str] = frozenset()


def name_of(key: str) -> str:
    """A key as it is kept in the state: short, for there are hundreds."""
    return hashlib.sha256(key.encode(errors="surrogatepass")).hexdigest()[:16]


def compare(previous: Mapping[str, Any] | None, listed: Sequence[tuple[str, datetime | None]]) -> Seen:
    """`listed` holds each entry's key and date, in the order of the document, newest first."""
    now: list[list[Any]] = [[name_of(key), int(at.timestamp()) if at else None] for key, at in listed]
    if previous is None:
        return Seen({"listed": now, "missing": []})
    before: list[list[Any]] = previous["listed"]
    was_missing = set(previous["missing"])
    here = {name for name, _ in now}
    dates: dict[str, int | None] = {str(name): at for name, at in now}
    order, missing, gone = [*now], [], set()
    for place, (name, at) in enumerate(before):
        if name in here:
            continue
        witness = _witness(before[place + 1 :], dates, at)
        if witness is None:
            continue
        if name in was_missing:
            gone.add(name)
        else:
            missing.append(name)
            # It keeps its place, so that the next poll can tell.
            spot = next(number for number, (other, _) in enumerate(order) if other == witness)
            order.insert(spot, [name, at])
    return Seen({"listed": order, "missing": missing}, frozenset(gone))


def confirm(previous: Mapping[str, Any] | None) -> Seen | None:
    """After a poll that found the same document again; None where nothing was missing."""
    if not previous or not previous["missing"]:
        return None
    gone = frozenset(previous["missing"])
    listed = [one for one in previous["listed"] if one[0] not in gone]
    return Seen({"listed": listed, "missing": []}, gone)


def _witness(after: Sequence[Sequence[Any]], dates: Mapping[str, int | None], at: int | None) -> str | None:
    """One that stood further down, is still there, and isn't newer by its date."""
    for name, _ in after:
        if name not in dates:
            continue
        date = dates[name]
        if at is None or date is None or date <= at:
            return str(name)
    return None
