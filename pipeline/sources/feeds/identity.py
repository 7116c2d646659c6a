"""Which entry is which, from poll to poll: by guid, else by address, else by content.

Guids repeat within a document, and some change with every answer. So an address that was seen once keeps the
identity that it was given then, as long as the document doesn't say otherwise.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipeline.sources.feeds.read_feed import EntryRecord

MAX_REMEMBERED: Final = 400
"""Places; a document has at most 200 entries, and some go and come back."""
MAX_SHARED: Final = 200
MAX_ID_CHARS: Final = 512
LEAST_IN_COMMON: Final = 2
"""One entry that changes its guid under its address may be a new one."""


@dataclass(frozen=True)
class KnownIdentities:
    """What earlier polls left: for each place (a hash of the address) the identity given and a hash of the guid.

    `shared` are hashes of guids that stood for several entries once; `is_volatile` says that guids mean nothing here.
    """

    places: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    shared: frozenset[str] = frozenset()
    is_volatile: bool = False

    @classmethod
    def of(cls, state: object) -> KnownIdentities:
        """From stored JSON; what makes no sense is forgotten."""
        if not isinstance(state, dict):
            return cls()
        places, shared = state.get("places"), state.get("shared")
        read = {
            place: (pair[0], pair[1])
            for place, pair in (places.items() if isinstance(places, dict) else ())
            if isinstance(pair, list) and len(pair) == 2 and all(isinstance(each, str) for each in pair)
        }
        return cls(
            read,
            frozenset(one for one in shared if isinstance(one, str))
            if isinstance(shared, list)
            else frozenset(),
            state.get("is_volatile") is True,
        )

    def as_state(self) -> dict[str, Any]:
        return {
            "places": {place: list(pair) for place, pair in self.places.items()},
            "shared": sorted(self.shared),
            "is_volatile": self.is_volatile,
        }


def identify(records: Sequence[EntryRecord], known: KnownIdentities) -> tuple[list[str], KnownIdentities]:
    """An identity for each record in order, empty where address or content have to do; and what to remember.

    A guid that stands for several entries, now or earlier, is told apart by address, and where that repeats too, by
    title: for every bearer, so that their order changes nothing. Where all guids differ from the last poll's while
    the addresses are the same, guids mean nothing: a known address keeps its identity, a new one is its own.
    """
    addresses = Counter(record["url"] for record in records if record["url"])
    bases = [_base_of(record, addresses) for record in records]
    bearers = Counter(base for base in bases if base)
    shared = {_short(base) for base, count in bearers.items() if count > 1} | known.shared
    places = [_place_of(record, addresses) for record in records]
    is_volatile = _is_volatile(records, places, known)
    identities = []
    remembered: dict[str, tuple[str, str]] = {}
    for record, base, place in zip(records, bases, places, strict=True):
        guid = _short(record["id"])
        given, guid_then = known.places.get(place, ("", ""))
        if given and record["id"] and (is_volatile or guid == guid_then):
            identity = given
        elif is_volatile and record["id"] and addresses[record["url"]] == 1:
            identity = record["url"]
        elif base and _short(base) in shared:
            identity = _told_apart(base, record, alone=addresses[record["url"]] <= 1)
        else:
            identity = record["id"]
        identity = _fitting(identity)
        identities.append(identity)
        remembered[place] = (identity, guid)
    room = MAX_REMEMBERED - len(remembered)
    older = [(place, pair) for place, pair in known.places.items() if place not in remembered][: max(0, room)]
    return identities, KnownIdentities(
        {**remembered, **dict(older)}, frozenset(sorted(shared)[:MAX_SHARED]), is_volatile
    )


def _base_of(record: EntryRecord, addresses: Counter[str]) -> str:
    """What the identity starts from: the guid, or the address of several entries without one."""
    if record["id"]:
        return record["id"]
    return record["url"] if addresses[record["url"]] > 1 else ""


def _place_of(record: EntryRecord, addresses: Counter[str]) -> str:
    if addresses[record["url"]] == 1:
        return _short(record["url"])
    return _short("\n".join((record["id"], record["url"], record["title"])))


def _is_volatile(records: Sequence[EntryRecord], places: Sequence[str], known: KnownIdentities) -> bool:
    pairs = [
        (_short(record["id"]), known.places[place][1])
        for record, place in zip(records, places, strict=True)
        if record["id"] and place in known.places
    ]
    if len(pairs) < LEAST_IN_COMMON:
        return known.is_volatile
    before = {guid for _, guid in known.places.values()}
    if not any(_short(record["id"]) in before for record in records):
        return True
    return known.is_volatile and not all(now == then for now, then in pairs)


def _told_apart(base: str, record: EntryRecord, *, alone: bool) -> str:
    return f"{base}|{record['url']}" if alone else f"{base}|{record['url']}|{record['title']}"


def _fitting(identity: str) -> str:
    if len(identity) <= MAX_ID_CHARS:
        return identity
    return "sha256:" + hashlib.sha256(identity.encode()).hexdigest()


def _short(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", errors="replace"), digest_size=8).hexdigest()
