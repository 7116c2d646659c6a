"""Finds near-duplicates by a SimHash of each raw item, its fingerprint, and notes them on the newer one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.db import connection

from config.core.database.raw_sql import adapt_datetime, adapt_id, as_uuid
from config.core.ids import encode
from pipeline.limits import NEAR_WITHIN
from pipeline.models import RawItem, RawPrint
from pipeline.text import similarity

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime
    from uuid import UUID

_MAX_CANDIDATES: Final = 500
"""The most rows of one query: if more items share a band, they come of one template, and any will do."""


def fingerprint_of(row: RawItem, text: str, second_key: int | None) -> RawPrint:
    """Return the fingerprint of an item that isn't stored yet; `text` is its plain text."""
    fingerprint = RawPrint(
        id=row.pk,
        workspace_id=row.workspace_id,
        test=row.test,
        second_key=second_key,
        created_at=row.created_at,
    )
    for name, value in _columns(f"{row.title} {text}").items():
        setattr(fingerprint, name, value)
    return fingerprint


def update_fingerprint(row: RawItem, text: str) -> None:
    """Recompute the stored fingerprint of a raw item whose content has changed; `text` is its plain text."""
    RawPrint.everywhere.filter(pk=row.pk).update(**_columns(f"{row.title} {text}"))


def clear_fingerprint(row: RawItem) -> None:
    """Erase the part of a fingerprint that comes from the content; its `second_key` still identifies it."""
    RawPrint.everywhere.filter(pk=row.pk).update(
        bits=None, band_0=None, band_1=None, band_2=None, band_3=None
    )


def note_near_duplicates(new: Sequence[tuple[RawItem, RawPrint]], now: datetime) -> None:
    """Note on each new item, before it is stored, the nearest near-duplicate within `limits.NEAR_WITHIN`.

    One statement loads all candidates. Each item is also compared with those before it in `new`. The note is
    for people and holds nothing up.
    """
    known = list(_load_candidates([fingerprint for _, fingerprint in new], now))
    for row, fingerprint in new:
        bits = fingerprint.bits
        if bits is None:
            continue
        nearest = min(known, key=lambda item: similarity.distance(item[1], bits), default=None)
        if nearest is not None and similarity.is_near(nearest[1], bits):
            row.near_duplicate = {
                "raw_item": encode("raw", nearest[0]),
                "score": similarity.score(nearest[1], bits),
            }
        known.append((row.pk, bits))


def _load_candidates(fingerprints: Iterable[RawPrint], now: datetime) -> Sequence[tuple[UUID, int]]:
    """Return ids and bits of items that share a band with one of these, so that they may be near it."""
    with_bits = [fingerprint for fingerprint in fingerprints if fingerprint.bits is not None]
    if not with_bits:
        return []
    columns = [f"band_{number}" for number in range(similarity.BANDS)]
    values_by_column = {
        column: sorted({getattr(fingerprint, column) for fingerprint in with_bits}) for column in columns
    }
    condition = " OR ".join(
        f"{column} IN ({', '.join(['%s'] * len(values_by_column[column]))})" for column in columns
    )
    # Raw SQL, because Django takes longer to build the query than the database to answer it.
    sql = f"""SELECT id, bits FROM raw_print WHERE workspace_id = %s AND test = %s AND created_at >= %s
              AND ({condition}) LIMIT {_MAX_CANDIDATES}"""  # noqa: S608
    workspace_id = with_bits[0].workspace_id
    parameters = [
        adapt_id(workspace_id),
        with_bits[0].test,
        adapt_datetime(now - NEAR_WITHIN),
        *(value for column in columns for value in values_by_column[column]),
    ]
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        return [(as_uuid(pk), bits) for pk, bits in cursor.fetchall()]


def _columns(text: str) -> dict[str, int | None]:
    """Return the fingerprint columns of a text, which are all `None` if it is too short for a SimHash."""
    bits = similarity.simhash(text)
    bands = (None,) * similarity.BANDS if bits is None else similarity.bands(bits)
    return {"bits": bits, **{f"band_{number}": band for number, band in enumerate(bands)}}
