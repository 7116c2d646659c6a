"""Builds the records of posts as Bluesky stores them: their keys, their content ids, the posts of a thread.

The formats are those of atproto.com/specs/tid, /specs/data-model and ipld.io/specs/codecs/dag-cbor. Limits and
indexes of facets are those of lexicons/app/bsky/richtext/facet.json of bluesky-social/atproto; mentions and
hashtags are found as its packages/api/src/rich-text does (all read 2026-11-20).
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

MAX_TAG_GRAPHEMES: Final = 64
MAX_TAG_BYTES: Final = 640
_MAX_HANDLE_CHARACTERS: Final = 253
_INVISIBLE: Final = r"\u00AD\u2060\u200A\u200B\u200C\u200D\u20e2"
COLLECTION: Final = "app.bsky.feed.post"
MAX_THREAD_POSTS: Final = 200
"""The writes of one call: packages/pds/src/api/com/atproto/repo/applyWrites.ts (read 2026-11-20)."""
_TID_ALPHABET: Final = "234567abcdefghijklmnopqrstuvwxyz"
_CID_TAG: Final = 42
"""The CBOR tag of a link to a content id."""


@dataclass(frozen=True)
class Facet:
    """A span of a text, `text[start:end]`: a link to `value`, a mention of the handle `value`, or the hashtag."""

    start: int
    end: int
    kind: Literal["link", "mention", "tag"]
    value: str


@cache
def _handle_pattern() -> regex.Pattern[str]:
    # Such as @name.bsky.social, at the beginning, after white space or after an opening parenthesis.
    label = r"[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"
    return regex.compile(
        rf"(?:(?<=^|[\s(]))@(?P<handle>(?:{label}\.)+[a-zA-Z](?:[a-zA-Z0-9-]{{0,61}}[a-zA-Z0-9])?)"
    )


@cache
def _tag_pattern() -> regex.Pattern[str]:
    # A hashtag has a character that is neither digit nor punctuation; "#️⃣" is an emoji and no hashtag.
    return regex.compile(
        rf"(?:(?<=^|\s))[#＃](?!\ufe0f)(?P<tag>(?=[^\s{_INVISIBLE}]*[^\d\s\p{{P}}{_INVISIBLE}])[^\s{_INVISIBLE}]+)"
    )


@cache
def _trailing_punctuation_pattern() -> regex.Pattern[str]:
    return regex.compile(r"\p{P}++$")


def find_spans(text: str) -> tuple[Facet, ...]:
    """Return the links, mentions and hashtags of a text in order, without overlaps."""
    spans = [
        Facet(link.start, link.end, "link", link.url if link.has_scheme else f"https://{link.url}")
        for link in find_links(text)
    ]
    for match in _handle_pattern().finditer(text):
        handle = match["handle"].lower()
        if len(handle) <= _MAX_HANDLE_CHARACTERS:
            spans.append(Facet(match.start(), match.end(), "mention", handle))
    for match in _tag_pattern().finditer(text):
        tag = _strip_trailing_punctuation(match["tag"])
        if tag and graphemes(tag) <= MAX_TAG_GRAPHEMES and utf8_bytes(tag) <= MAX_TAG_BYTES:
            spans.append(Facet(match.start(), match.start() + 1 + len(tag), "tag", tag))
    separate: list[Facet] = []
    for span in sorted(spans, key=lambda facet: (facet.start, -facet.end)):
        if not separate or span.start >= separate[-1].end:
            separate.append(span)
    return tuple(separate)


def _strip_trailing_punctuation(tag: str) -> str:
    """Return a hashtag without punctuation at its end."""
    # It goes backwards from the last character, because a search for a run at the end would try each start.
    end = len(tag)
    while end and _trailing_punctuation_pattern().match(tag, end - 1):
        end -= 1
    return tag[:end]


def mentioned_handles(text: str) -> tuple[str, ...]:
    """Return the handles that a text mentions, each once."""
    return tuple(dict.fromkeys(span.value for span in find_spans(text) if span.kind == "mention"))


def facets_of(text: str, dids: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return the record's facets, with indexes in UTF-8 bytes; a mention without a DID in `dids` stays plain text."""
    facets = []
    byte_end, counted_to = 0, 0
    for span in find_spans(text):
        byte_start = byte_end + utf8_bytes(text[counted_to : span.start])
        byte_end = byte_start + utf8_bytes(text[span.start : span.end])
        counted_to = span.end
        feature = _build_feature(span, dids)
        if feature:
            facets.append({"index": {"byteStart": byte_start, "byteEnd": byte_end}, "features": [feature]})
    return facets


def _build_feature(span: Facet, dids: Mapping[str, str]) -> dict[str, str] | None:
    """Return the feature of a facet as the record has it, or `None` for a mention without a DID."""
    kind = f"app.bsky.richtext.facet#{span.kind}"
    if span.kind == "link":
        return {"$type": kind, "uri": span.value}
    if span.kind == "tag":
        return {"$type": kind, "tag": span.value}
    did = dids.get(span.value)
    return {"$type": kind, "did": did} if did else None


def record_key(key: str, part: int) -> str:
    """Return the TID under which a part of a publication is stored, which is the same for each of its tries.

    Its time is when the publication was requested; within that millisecond it depends on the whole key.
    """
    # A TID has 53 bits of microseconds and 10 of a clock id, in 13 letters of 5 bits each. The shift by 80 takes
    # the 48 bits of milliseconds out of a UUID of version 7.
    digest = hashlib.sha256(key.encode()).digest()
    publication_id = ids.decode("pub", key)
    milliseconds = publication_id.int >> 80 if publication_id else int.from_bytes(digest[8:13]) % 2**40
    microseconds = milliseconds * 1000 + int.from_bytes(digest[:4]) % (1000 - MAX_THREAD_POSTS) + part
    number = (microseconds & (2**53 - 1)) << 10 | int.from_bytes(digest[4:8]) & 1023
    return "".join(_TID_ALPHABET[number >> 5 * index & 31] for index in range(12, -1, -1))


def records_of(
    post: Adapted, state: Mapping[str, Any], *, did: str, key: str, now: datetime
) -> list[dict[str, Any]]:
    """Return the records of a prepared post, one for each part, each a reply to the one before it."""
    records: list[dict[str, Any]] = []
    references: list[dict[str, str]] = []
    for part, text in enumerate(post.parts):
        record: dict[str, Any] = {
            "$type": COLLECTION,
            "text": text,
            # Apps sort by this: each part is a little younger than the one that it replies to.
            "createdAt": format_moment(now + timedelta(milliseconds=part)),
        }
        if post.payload.language:
            record["langs"] = [post.payload.language]
        facets = facets_of(text, state.get("mentions", {}))
        if facets:
            record["facets"] = facets
        embed = _images_embed(state) or state.get("card") if part == 0 else None
        if embed:
            record["embed"] = embed
        if references:
            record["reply"] = {"root": references[0], "parent": references[-1]}
        records.append(record)
        references.append({"uri": uri_of(did, key, part), "cid": cid_of(record)})
    return records


def uri_of(did: str, key: str, part: int) -> str:
    """Return the `at://` address of a part."""
    return f"at://{did}/{COLLECTION}/{record_key(key, part)}"


def format_moment(when: datetime) -> str:
    """Return a moment as the lexicon writes it: UTC with milliseconds."""
    return when.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _images_embed(state: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the embed of the uploaded pictures, or `None` without any."""
    blobs = state.get("blobs", [])
    if not blobs:
        return None
    images = []
    for blob in blobs:
        image = {"image": blob["blob"], "alt": blob["alt"]}
        if blob["width"] and blob["height"]:
            image["aspectRatio"] = {"width": blob["width"], "height": blob["height"]}
        images.append(image)
    return {"$type": "app.bsky.embed.images", "images": images}


def cid_of(record: Mapping[str, Any]) -> str:
    """Return the id that the server will give this record.

    It can't be read from the server, because a reply names the id of its parent and both are sent together.
    """
    digest = hashlib.sha256(_encode_dag_cbor(record)).digest()
    # CID version 1, codec DAG-CBOR, hash SHA-256 of 32 bytes.
    raw = b"\x01\x71\x12\x20" + digest
    return "b" + base64.b32encode(raw).decode().lower().rstrip("=")


def _encode_dag_cbor(value: Any) -> bytes:
    """Return a record's value as DAG-CBOR. Raises `TypeError` if a record can't have it, such as a float."""
    if value is None:
        return b"\xf6"
    if isinstance(value, bool):
        return b"\xf5" if value else b"\xf4"
    if isinstance(value, int):
        return _encode_head(0, value) if value >= 0 else _encode_head(1, -1 - value)
    if isinstance(value, str):
        encoded = value.encode()
        return _encode_head(3, len(encoded)) + encoded
    if isinstance(value, list):
        return _encode_head(4, len(value)) + b"".join(map(_encode_dag_cbor, value))
    if isinstance(value, dict):
        link = value.get("$link")
        if len(value) == 1 and isinstance(link, str):
            return _encode_cid_link(link)
        # DAG-CBOR orders keys by their length in bytes, and then by their bytes.
        keys = sorted((name.encode(), name) for name in value)
        keys.sort(key=lambda pair: len(pair[0]))
        return _encode_head(5, len(keys)) + b"".join(
            _encode_dag_cbor(name) + _encode_dag_cbor(value[name]) for _, name in keys
        )
    message = f"A record can't hold a {type(value).__name__}."
    raise TypeError(message)


def _encode_cid_link(cid: str) -> bytes:
    """Return a link to a content id as DAG-CBOR."""
    # CIDs in JSON are always base32, whose prefix is "b".
    padded = cid[1:].upper() + "=" * (-len(cid[1:]) % 8)
    raw = b"\x00" + base64.b32decode(padded)
    return b"\xd8" + bytes([_CID_TAG]) + _encode_head(2, len(raw)) + raw


def _encode_head(kind: int, number: int) -> bytes:
    """Return the head of a CBOR item: its major type and its number or length.

    Raises `TypeError` if the number has more than 64 bits.
    """
    if number < 24:
        return bytes([kind << 5 | number])
    for extra, size in ((24, 1), (25, 2), (26, 4), (27, 8)):
        if number < 1 << 8 * size:
            return bytes([kind << 5 | extra]) + number.to_bytes(size)
    message = "A record can't hold a number of more than 64 bits."
    raise TypeError(message)
