"""Puts a feed's entries in order: newest first, each once, as many as are kept.

It runs in the child process that parses hostile input, so it imports nothing that the child doesn't need.
"""

from __future__ import annotations

import hashlib
from typing import Any, Final

MAX_ENTRIES: Final = 200
MAX_ID_CHARACTERS: Final = 512

Record = dict[str, Any]


def arrange(feed: Record) -> Record:
    """Sort the newest entries first, without copies; `is_window` says whether none is missing between them.

    That is so where the document can be read in full and in order of time: then an entry missing between two
    others was taken back. A list by popularity, or with an old entry pinned on top, proves nothing.
    """
    entries = _without_copies(feed["entries"])
    dates = [entry["at"] for entry in entries]
    is_dated = bool(dates) and None not in dates
    feed["is_window"] = bool(
        feed.pop("is_whole") and is_dated and dates in (sorted(dates), sorted(dates, reverse=True))
    )
    for entry in entries:
        if len(entry["id"]) > MAX_ID_CHARACTERS:
            entry["id"] = "sha256:" + hashlib.sha256(entry["id"].encode()).hexdigest()
    feed["entries"] = _sort_newest_first(entries)
    feed["left_out"] = len(entries) - len(feed["entries"])
    return feed


def _without_copies(entries: list[Record]) -> list[Record]:
    """Return the entries; those that agree in id, address and title are one."""
    seen = set()
    unique = []
    for entry in entries:
        key = (entry["id"], entry["url"], entry["title"])
        if entry["id"] and key in seen:
            continue
        seen.add(key)
        unique.append(entry)
    return unique


def _sort_newest_first(entries: list[Record]) -> list[Record]:
    """Return the newest entries first; one without a date stays beside the one listed before it."""
    dates = [entry["at"] for entry in entries if entry["at"] is not None]
    date = dates[0] if dates else 0
    dated = []
    for entry in entries:
        date = date if entry["at"] is None else entry["at"]
        dated.append((-date, entry))
    dated.sort(key=lambda pair: pair[0])
    return [entry for _, entry in dated][:MAX_ENTRIES]
