"""Records of posts as Bluesky stores them: their keys, their content ids, the posts of a thread.

Formats: atproto.com/specs/tid, /specs/data-model and ipld.io/specs/codecs/dag-cbor (read 2026-11-20).
"""

from __future__ import annotations

import base64
import hashlib
from datetime import UTC, timedelta
from typing import TYPE_CHECKING, Any, Final

from config.core import ids
from pipeline.platforms.bluesky.facets import facets_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from pipeline.platforms.base import Adapted

COLLECTION: Final = "app.bsky.feed.post"
MOST_PARTS: Final = 200
"""Writes of one applyWrites: packages/pds/src/api/com/atproto/repo/applyWrites.ts (read 2026-11-20)."""
_SIGNS: Final = "234567abcdefghijklmnopqrstuvwxyz"
_CID_LINK: Final = 42


def record_key(key: str, part: int) -> str:
    """The TID under which a part of a publication is stored: the same for each of its tries.

    Its moment is when the publication was asked for; within that millisecond it depends on the whole key.
    """
    digest = hashlib.sha256(key.encode()).digest()
    made = ids.decode("pub", key)
    milliseconds = made.int >> 80 if made else int.from_bytes(digest[8:13]) % 2**40
    microseconds = milliseconds * 1000 + int.from_bytes(digest[:4]) % (1000 - MOST_PARTS) + part
    number = (microseconds & (2**53 - 1)) << 10 | int.from_bytes(digest[4:8]) & 1023
    return "".join(_SIGNS[number >> 5 * place & 31] for place in range(12, -1, -1))


def records_of(
    post: Adapted, state: Mapping[str, Any], *, did: str, key: str, now: datetime
) -> list[dict[str, Any]]:
    """The records of a prepared post, one for each part, each answering the one before it."""
    records: list[dict[str, Any]] = []
    references: list[dict[str, str]] = []
    for part, text in enumerate(post.parts):
        record: dict[str, Any] = {
            "$type": COLLECTION,
            "text": text,
            # Apps sort by it: each part is a little younger than the one that it answers.
            "createdAt": moment(now + timedelta(milliseconds=part)),
        }
        if post.payload.language:
            record["langs"] = [post.payload.language]
        facets = facets_of(text, state.get("mentions", {}))
        if facets:
            record["facets"] = facets
        embed = _images(state) or state.get("card") if part == 0 else None
        if embed:
            record["embed"] = embed
        if references:
            record["reply"] = {"root": references[0], "parent": references[-1]}
        records.append(record)
        references.append({"uri": uri_of(did, key, part), "cid": cid_of(record)})
    return records


def uri_of(did: str, key: str, part: int) -> str:
    return f"at://{did}/{COLLECTION}/{record_key(key, part)}"


def moment(when: datetime) -> str:
    return when.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _images(state: Mapping[str, Any]) -> dict[str, Any] | None:
    blobs = state.get("blobs", [])
    if not blobs:
        return None
    images = []
    for one in blobs:
        image = {"image": one["blob"], "alt": one["alt"]}
        if one["width"] and one["height"]:
            image["aspectRatio"] = {"width": one["width"], "height": one["height"]}
        images.append(image)
    return {"$type": "app.bsky.embed.images", "images": images}


def cid_of(record: Mapping[str, Any]) -> str:
    """The id that the server will give this record: a reply names it, and is sent together with what it answers."""
    digest = hashlib.sha256(_cbor(record)).digest()
    # Version 1, DAG-CBOR, SHA-256 of 32 bytes.
    raw = b"\x01\x71\x12\x20" + digest
    return "b" + base64.b32encode(raw).decode().lower().rstrip("=")


def _cbor(value: Any) -> bytes:
    """DAG-CBOR of what stands in a record; raises `TypeError` for what can't stand there, such as a float."""
    if value is None:
        return b"\xf6"
    if isinstance(value, bool):
        return b"\xf5" if value else b"\xf4"
    if isinstance(value, int):
        return _head(0, value) if value >= 0 else _head(1, -1 - value)
    if isinstance(value, str):
        encoded = value.encode()
        return _head(3, len(encoded)) + encoded
    if isinstance(value, list):
        return _head(4, len(value)) + b"".join(map(_cbor, value))
    if isinstance(value, dict):
        link = value.get("$link")
        if len(value) == 1 and isinstance(link, str):
            return _link(link)
        keys = sorted((name.encode(), name) for name in value)
        keys.sort(key=lambda pair: len(pair[0]))
        return _head(5, len(keys)) + b"".join(_cbor(name) + _cbor(value[name]) for _, name in keys)
    message = f"A record can't hold a {type(value).__name__}."
    raise TypeError(message)


def _link(cid: str) -> bytes:
    # Only base32 ("b") is written in JSON.
    padded = cid[1:].upper() + "=" * (-len(cid[1:]) % 8)
    raw = b"\x00" + base64.b32decode(padded)
    return b"\xd8" + bytes([_CID_LINK]) + _head(2, len(raw)) + raw


def _head(kind: int, number: int) -> bytes:
    if number < 24:
        return bytes([kind << 5 | number])
    for extra, size in ((24, 1), (25, 2), (26, 4), (27, 8)):
        if number < 1 << 8 * size:
            return bytes([kind << 5 | extra]) + number.to_bytes(size)
    message = "A record can't hold a number of more than 64 bits."
    raise TypeError(message)
