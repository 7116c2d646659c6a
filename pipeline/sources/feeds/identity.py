"""Gives entries identities that last from poll to poll: by guid, else by address, else by content.

Guids repeat within a document, and some change with every answer. So an address keeps its first identity as
long as its guid stays the same, or guids mean nothing in this feed.
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
"""The most addresses remembered; a document has at most 200 entries, and some go and come back."""
MAX_SHARED: Final = 200
"""The most guids remembered that stood for several entries."""
MAX_ID_CHARACTERS: Final = 512
MIN_COMMON_ENTRIES: Final = 2
"""A single entry that changes its guid under its address may be a new entry."""


@dataclass(frozen=True)
class KnownIdentities:
    """The identities from earlier polls.

    `places` gives for the hash of an address the identity and the hash of the guid. `shared` are hashes of
    guids that stood for several entries once; `is_volatile` says that guids mean nothing in this feed.
    """

    places: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    shared: frozenset[str] = frozenset()
    is_volatile: bool = False

    @classmethod
    def of(cls, state: object) -> KnownIdentities:
        """Return the identities in stored JSON, without malformed parts."""
        if not isinstance(state, dict):
            return cls()
        places, shared = state.get("places"), state.get("shared")
        valid_places = {
            address_hash: (pair[0], pair[1])
            for address_hash, pair in (places.items() if isinstance(places, dict) else ())
            if isinstance(pair, list) and len(pair) == 2 and all(isinstance(each, str) for each in pair)
        }
        shared_guids = shared if isinstance(shared, list) else []
        valid_shared = frozenset(guid for guid in shared_guids if isinstance(guid, str))
        return cls(valid_places, valid_shared, state.get("is_volatile") is True)

    def as_state(self) -> dict[str, Any]:
        """Return the identities as JSON to store."""
        return {
            "places": {address_hash: list(pair) for address_hash, pair in self.places.items()},
            "shared": sorted(self.shared),
            "is_volatile": self.is_volatile,
        }


def identify(records: Sequence[EntryRecord], known: KnownIdentities) -> tuple[list[str], KnownIdentities]:
    """Return an identity for each record in order, and the known identities for the next poll.

    An identity is empty if the entry has no guid and no shared address; then the caller uses address or
    content. If a guid stands for several entries, now or earlier, the address is added to it, and the title
    too if the address repeats: for each of these entries, so that their order changes nothing. If all guids
    differ from the last poll's while the addresses are the same, guids mean nothing: a known address keeps
    its identity, and a new address is the identity of its entry.
    """
    addresses = Counter(record["url"] for record in records if record["url"])
    bases = [_base_of(record, addresses) for record in records]
    bearers = Counter(base for base in bases if base)
    shared = {_short_hash(base) for base, count in bearers.items() if count > 1} | known.shared
    address_hashes = [_hash_address(record, addresses) for record in records]
    is_volatile = _has_volatile_guids(records, address_hashes, known)
    identities = []
    remembered: dict[str, tuple[str, str]] = {}
    for record, base, address_hash in zip(records, bases, address_hashes, strict=True):
        guid = _short_hash(record["id"])
        known_identity, known_guid = known.places.get(address_hash, ("", ""))
        if known_identity and record["id"] and (is_volatile or guid == known_guid):
            identity = known_identity
        elif is_volatile and record["id"] and addresses[record["url"]] == 1:
            identity = record["url"]
        elif base and _short_hash(base) in shared:
            identity = _distinct_identity(base, record, has_own_address=addresses[record["url"]] <= 1)
        else:
            identity = record["id"]
        identity = _shorten_identity(identity)
        identities.append(identity)
        remembered[address_hash] = (identity, guid)
    older = [(key, pair) for key, pair in known.places.items() if key not in remembered]
    places = {**remembered, **dict(older[: max(0, MAX_REMEMBERED - len(remembered))])}
    return identities, KnownIdentities(places, frozenset(sorted(shared)[:MAX_SHARED]), is_volatile)


def _base_of(record: EntryRecord, addresses: Counter[str]) -> str:
    """Return the base of the identity: the guid, else an address that several entries share, else ""."""
    if record["id"]:
        return record["id"]
    return record["url"] if addresses[record["url"]] > 1 else ""


def _hash_address(record: EntryRecord, addresses: Counter[str]) -> str:
    """Return a hash of the entry's address, with guid and title if several entries have that address."""
    if addresses[record["url"]] == 1:
        return _short_hash(record["url"])
    return _short_hash("\n".join((record["id"], record["url"], record["title"])))


def _has_volatile_guids(
    records: Sequence[EntryRecord], address_hashes: Sequence[str], known: KnownIdentities
) -> bool:
    """Return whether guids change from poll to poll, so that they identify nothing."""
    pairs = [
        (_short_hash(record["id"]), known.places[address_hash][1])
        for record, address_hash in zip(records, address_hashes, strict=True)
        if record["id"] and address_hash in known.places
    ]
    if len(pairs) < MIN_COMMON_ENTRIES:
        return known.is_volatile
    known_guids = {guid for _, guid in known.places.values()}
    if not any(_short_hash(record["id"]) in known_guids for record in records):
        return True
    return known.is_volatile and not all(guid == known_guid for guid, known_guid in pairs)


def _distinct_identity(base: str, record: EntryRecord, *, has_own_address: bool) -> str:
    """Return the identity of an entry whose guid stands for several entries."""
    return f"{base}|{record['url']}" if has_own_address else f"{base}|{record['url']}|{record['title']}"


def _shorten_identity(identity: str) -> str:
    """Return the identity, or its hash if it is too long."""
    if len(identity) <= MAX_ID_CHARACTERS:
        return identity
    return "sha256:" + hashlib.sha256(identity.encode()).hexdigest()


def _short_hash(text: str) -> str:
    """Return 64 bits of the text's hash as hexadecimal digits."""
    return hashlib.blake2b(text.encode("utf-8", errors="replace"), digest_size=8).hexdigest()
