"""Records of posts as Bluesky stores them: their keys, their content ids, the posts of a thread.

Formats: atproto.com/specs/tid, /specs/data-model and ipld.io/specs/codecs/dag-cbor (read 2026-11-20).

Limits and places: lexicons/app/bsky/richtext/facet.json of bluesky-social/atproto; what counts as a mention and as a
hashtag: its packages/api/src/rich-text (read 2026-11-20).
"""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from datetime import UTC, timedelta
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Literal

import regex

from config.core import ids
from pipeline.platforms.rules import graphemes, utf8_bytes
from pipeline.text.links import find_links

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from pipeline.platforms.payload_types import Adapted

TAG_GRAPHEMES: Final = 64
TAG_BYTES: Final = 640
_HANDLE_CHARACTERS: Final = 253
_INVISIBLE: Final = r"\u00AD\u2060\u200A\u200B\u200C\u200D\u20e2"
COLLECTION: Final = "app.bsky.feed.post"
MOST_PARTS: Final = 200
"""Writes of one applyWrites: packages/pds/src/api/com/atproto/repo/applyWrites.ts (read 2026-11-20)."""
_SIGNS: Final = "234567abcdefghijklmnopqrstuvwxyz"
_CID_LINK: Final = 42


@dataclass(frozen=True)
class Facet:
    """`text[start:end]` is a link to `value`, a mention of the handle `value`, or the hashtag `value`."""

    start: int
    end: int
    kind: Literal["link", "mention", "tag"]
    value: str


@cache
def _handle() -> regex.Pattern[str]:
    label = r"[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"
    return regex.compile(
        rf"(?:(?<=^|[\s(]))@(?P<handle>(?:{label}\.)+[a-zA-Z](?:[a-zA-Z0-9-]{{0,61}}[a-zA-Z0-9])?)"
    )


@cache
def _tag() -> regex.Pattern[str]:
    # Something in it has to be neither a digit nor punctuation; "#️⃣" is an emoji and no hashtag.
    return regex.compile(
        rf"(?:(?<=^|\s))[#＃](?!\ufe0f)(?P<tag>(?=[^\s{_INVISIBLE}]*[^\d\s\p{{P}}{_INVISIBLE}])[^\s{_INVISIBLE}]+)"
    )


@cache
def _punctuation_at_the_end() -> regex.Pattern[str]:
    return regex.compile(r"\p{P}++$")


def find_spans(text: str) -> tuple[Facet, ...]:
    """In the order in which they stand; none lies over another."""
    found = [
        Facet(link.start, link.end, "link", link.url if link.has_scheme else f"https://{link.url}")
        for link in find_links(text)
    ]
    for match in _handle().finditer(text):
        handle = match["handle"].lower()
        if len(handle) <= _HANDLE_CHARACTERS:
            found.append(Facet(match.start(), match.end(), "mention", handle))
    for match in _tag().finditer(text):
        tag = _without_punctuation(match["tag"])
        if tag and graphemes(tag) <= TAG_GRAPHEMES and utf8_bytes(tag) <= TAG_BYTES:
            found.append(Facet(match.start(), match.start() + 1 + len(tag), "tag", tag))
    apart: list[Facet] = []
    for span in sorted(found, key=lambda one: (one.start, -one.end)):
        if not apart or span.start >= apart[-1].end:
            apart.append(span)
    return tuple(apart)


def _without_punctuation(tag: str) -> str:
    # From the last sign backwards: a search for a run at the end would try each of its signs as the first.
    end = len(tag)
    while end and _punctuation_at_the_end().match(tag, end - 1):
        end -= 1
    return tag[:end]


def mentioned_handles(text: str) -> tuple[str, ...]:
    """The handles that a text names, each once."""
    return tuple(dict.fromkeys(span.value for span in find_spans(text) if span.kind == "mention"))


def facets_of(text: str, dids: Mapping[str, str]) -> list[dict[str, Any]]:
    """What the record says of its links; a mention of whom `dids` doesn't know stays plain words."""
    facets = []
    size, position = 0, 0
    for span in find_spans(text):
        start = size + utf8_bytes(text[position : span.start])
        size = start + utf8_bytes(text[span.start : span.end])
        position = span.end
        feature = _feature(span, dids)
        if feature:
            facets.append({"index": {"byteStart": start, "byteEnd": size}, "features": [feature]})
    return facets


def _feature(span: Facet, dids: Mapping[str, str]) -> dict[str, str] | None:
    kind = f"app.bsky.richtext.facet#{span.kind}"
    if span.kind == "link":
        return {"$type": kind, "uri": span.value}
    if span.kind == "tag":
        return {"$type": kind, "tag": span.value}
    did = dids.get(span.value)
    return {"$type": kind, "did": did} if did else None


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
            "createdAt": format_moment(now + timedelta(milliseconds=part)),
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


def format_moment(when: datetime) -> str:
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
