"""Near-duplicates are found by a SimHash of each raw item, its fingerprint, and noted on the newer one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from uuid import UUID

from django.db import connection

from config.core.ids import encode
from pipeline.limits import NEAR_WITHIN
from pipeline.models import RawItem, RawPrint
from pipeline.text import similarity

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

_MOST_CANDIDATES: Final = 500
"""Of one look; where more share a band, they are of one template, and any of them will do."""


def fingerprint_of(row: RawItem, text: str, second_key: int | None) -> RawPrint:
    """The fingerprint of an item that isn't stored yet; `text` is its plain text."""
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
    """Make the fingerprint anew after the content has changed."""
    RawPrint.everywhere.filter(pk=row.pk).update(**_columns(f"{row.title} {text}"))


def clear_fingerprint(row: RawItem) -> None:
    """Forget what was made of an erased item's content; by its address (`second_key`) it is still known."""
    RawPrint.everywhere.filter(pk=row.pk).update(
        bits=None, band_0=None, band_1=None, band_2=None, band_3=None
    )


def note_near_duplicates(new: Sequence[tuple[RawItem, RawPrint]], now: datetime) -> None:
    """Note on each new item, before it is stored, the nearest of those since `limits.NEAR_WITHIN`, in one statement.

    The order is theirs: one may be near another that comes before it. It is a note for people and holds nothing up.
    """
    known = list(_candidates([fingerprint for _, fingerprint in new], now))
    for row, fingerprint in new:
        bits = fingerprint.bits
        if bits is None:
            continue
        nearest = min(known, key=lambda one: similarity.distance(one[1], bits), default=None)
        if nearest is not None and similarity.is_near(nearest[1], bits):
            row.near_duplicate = {
                "raw_item": encode("raw", nearest[0]),
                "score": similarity.score(nearest[1], bits),
            }
        known.append((row.pk, bits))


def _candidates(fingerprints: Iterable[RawPrint], now: datetime) -> Sequence[tuple[UUID, int]]:
    """Ids and bits of the items that share a band with one of these, so that they may be near it."""
    printed = [fingerprint for fingerprint in fingerprints if fingerprint.bits is not None]
    if not printed:
        return []
    columns = [f"band_{number}" for number in range(similarity.BANDS)]
    wanted = {column: sorted({getattr(fingerprint, column) for fingerprint in printed}) for column in columns}
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
