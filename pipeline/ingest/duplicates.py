"""By what a raw item is recognised: its keys, its print, and the mark on one that nearly is another."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit
from uuid import UUID

from django.db import connection

from config.core.ids import encode
from pipeline import limits
from pipeline.limits import NEAR_WITHIN
from pipeline.models import RawItem, RawPrint
from pipeline.text import similarity
from pipeline.text.links import canonical_url
from pipeline.text.plain_text import content_hash

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

_LONGEST_TWIN: Final = limits.EXTERNAL_ID_CHARACTERS
_MOST_CANDIDATES: Final = 500
"""Of one look; where more share a band, they are of one template, and any of them will do."""


def key_of(source_id: UUID, *, external_id: str, url: str, body_hash: str) -> str:
    """The first identity that is known: the source's own id, else the canonical address, else the content."""
    if external_id:
        return f"x:{source_id.hex}:{external_id}"
    if url:
        address = canonical_url(url)
        if len(address) <= limits.EXTERNAL_ID_CHARACTERS:
            return f"u:{address}"
        return f"u:sha256:{content_hash(address, '')}"
    return f"h:{body_hash}"


def twin_of(external_id: str, url: str, body_hash: str) -> str:
    """The identity of an entry whose id another one in the same document has too."""
    twin = f"{external_id}|{url or body_hash}"
    if len(twin) <= _LONGEST_TWIN:
        return twin
    return "sha256:" + hashlib.sha256(twin.encode(errors="surrogatepass")).hexdigest()


def second_key(source_id: UUID, *, url: str, body_hash: str) -> int | None:
    """64 bits that are the same for the same page in any source, or for the same content in this one.

    None for the front page of a host: many things have its address.
    """
    if not url:
        return _number(f"h:{source_id.hex}:{body_hash}")
    address = canonical_url(url)
    try:
        parts = urlsplit(address)
    except ValueError:
        return None
    if parts.scheme not in {"http", "https"} or (parts.path in {"", "/"} and not parts.query):
        return None
    return _number(f"u:{address}")


def _number(text: str) -> int:
    digest = hashlib.sha256(text.encode(errors="surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big", signed=True)


def is_same_title(one: str, other: str) -> bool:
    return plain_title(one) == plain_title(other)


def plain_title(title: str) -> str:
    return " ".join(
        re.findall(r"\w+", unicodedata.normalize("NFKC", title[: limits.TITLE_CHARACTERS]).lower())
    )


def are_close(one: datetime | None, other: datetime | None) -> bool:
    """Published within 48 hours of each other, as far as is known."""
    return one is None or other is None or abs(one - other) <= limits.SAME_WITHIN


def print_of(row: RawItem, text: str, second_key: int | None) -> RawPrint:
    """Of an item that isn't stored yet; `text` is its plain text."""
    mark = RawPrint(
        id=row.pk,
        workspace_id=row.workspace_id,
        test=row.test,
        second_key=second_key,
        created_at=row.created_at,
    )
    for name, value in _columns(f"{row.title} {text}").items():
        setattr(mark, name, value)
    return mark


def print_again(row: RawItem, text: str) -> None:
    """After its content has changed."""
    RawPrint.everywhere.filter(pk=row.pk).update(**_columns(f"{row.title} {text}"))


def forget_print(row: RawItem) -> None:
    """Of an erased item nothing of the content stays, but by its address it is still known."""
    RawPrint.everywhere.filter(pk=row.pk).update(
        bits=None, band_0=None, band_1=None, band_2=None, band_3=None
    )


def mark_near(new: Sequence[tuple[RawItem, RawPrint]], now: datetime) -> None:
    """Note on each new item, before it is stored, the nearest of the last 90 days; one statement for all of them.

    The order is theirs: one may be near another that comes before it. It is a mark for people and holds nothing up.
    """
    known = list(_candidates([mark for _, mark in new], now))
    for row, mark in new:
        if mark.bits is None:
            continue
        nearest = min(known, key=lambda one: similarity.distance(one[1], mark.bits or 0), default=None)
        if nearest is not None and similarity.is_near(nearest[1], mark.bits):
            row.near_duplicate = {
                "raw_item": encode("raw", nearest[0]),
                "score": similarity.score(nearest[1], mark.bits),
            }
        known.append((row.pk, mark.bits))


def _candidates(marks: Iterable[RawPrint], now: datetime) -> Sequence[tuple[UUID, int]]:
    printed = [mark for mark in marks if mark.bits is not None]
    if not printed:
        return []
    columns = [f"band_{number}" for number in range(similarity.BANDS)]
    wanted = {column: sorted({getattr(mark, column) for mark in printed}) for column in columns}
    alike = " OR ".join(f"{column} IN ({', '.join(['%s'] * len(wanted[column]))})" for column in columns)
    # Written out, because building it costs Django more than the database needs for it.
    sql = f"""SELECT id, bits FROM raw_print WHERE workspace_id = %s AND test = %s AND created_at >= %s
              AND ({alike}) LIMIT {_MOST_CANDIDATES}"""  # noqa: S608
    workspace_id = printed[0].workspace_id
    has_uuids = connection.features.has_native_uuid_field
    parameters = [
        workspace_id if has_uuids else workspace_id.hex,
        printed[0].test,
        connection.ops.adapt_datetimefield_value(now - NEAR_WITHIN),
        *(part for column in columns for part in wanted[column]),
    ]
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        return [(pk if has_uuids else UUID(pk), bits) for pk, bits in cursor.fetchall()]


def _columns(text: str) -> dict[str, int | None]:
    bits = similarity.simhash(text)
    parts = (None,) * similarity.BANDS if bits is None else similarity.bands(bits)
    return {"bits": bits, **{f"band_{number}": part for number, part in enumerate(parts)}}
