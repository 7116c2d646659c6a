"""Makes the keys by which a source's entry is recognized, in the same source or in another one."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from pipeline import limits
from pipeline.text.links import canonical_url
from pipeline.text.plain_text import content_hash

if TYPE_CHECKING:
    from datetime import datetime
    from urllib.parse import SplitResult
    from uuid import UUID


def dedup_key(source_id: UUID, *, external_id: str, url: str, body_hash: str) -> str:
    """Return the key of the first identity known: the source's own id, the canonical address, the content."""
    if external_id:
        return f"x:{source_id.hex}:{external_id}"
    if url:
        address = canonical_url(url)
        if len(address) <= limits.EXTERNAL_ID_CHARACTERS:
            return f"u:{address}"
        return f"u:sha256:{content_hash(address, '')}"
    return f"h:{body_hash}"


def id_of_twin(external_id: str, url: str, body_hash: str) -> str:
    """Return the id of an entry whose own id another entry of the same document has too."""
    twin = f"{external_id}|{url or body_hash}"
    if len(twin) <= limits.EXTERNAL_ID_CHARACTERS:
        return twin
    return "sha256:" + hashlib.sha256(twin.encode(errors="surrogatepass")).hexdigest()


def second_key(source_id: UUID, *, url: str, body_hash: str) -> int | None:
    """Return 64 bits that are equal for the same page in any source, or the same content in this one.

    By it an entry is recognized whose own id has changed, or that another source brought: their dedup keys
    differ.

    `None` for the front page of a host: many things have its address.
    """
    if not url:
        return _hash_to_int64(f"h:{source_id.hex}:{body_hash}")
    address = canonical_url(url)
    try:
        parts = urlsplit(address)
    except ValueError:
        return None
    if parts.scheme not in {"http", "https"} or _is_front_page(parts):
        return None
    return _hash_to_int64(f"u:{address}")


def _is_front_page(parts: SplitResult) -> bool:
    """Return whether the address is a host's front page."""
    return parts.path in {"", "/"} and not parts.query and not parts.fragment


def _hash_to_int64(text: str) -> int:
    """Return 64 bits of the text's hash, as the signed number that a database column takes."""
    digest = hashlib.sha256(text.encode(errors="surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big", signed=True)


def have_same_title_words(one: str, other: str) -> bool:
    """Return whether two titles have the same words."""
    return plain_title(one) == plain_title(other)


def plain_title(title: str) -> str:
    """Return a title's words in lower case, without punctuation."""
    return " ".join(
        re.findall(r"\w+", unicodedata.normalize("NFKC", title[: limits.TITLE_CHARACTERS]).lower())
    )


def are_published_close(one: datetime | None, other: datetime | None) -> bool:
    """Return whether both were published within `limits.SAME_WITHIN`; True where a date isn't known."""
    return one is None or other is None or abs(one - other) <= limits.SAME_WITHIN
