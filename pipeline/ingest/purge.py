"""Erase the content of a raw item; a tombstone stays."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import transaction

from pipeline.generate.model import batches
from pipeline.generate.model.spending_caps import BRIEF_AWAITED
from pipeline.holds.source_changes import hold_what_was_made
from pipeline.ingest.near_duplicates import clear_fingerprint
from pipeline.media import uploads
from pipeline.models import (
    GeneratedItem,
    Generation,
    InboundDelivery,
    RawBody,
    RawItem,
    SharedBrief,
    SourceEntry,
)

if TYPE_CHECKING:
    from datetime import datetime


def erase(raw_item: RawItem, *, now: datetime) -> None:
    """Erase the content; the row stays as a tombstone, so that the same thing isn't taken in again."""
    with transaction.atomic():
        # What was sent is its content too. Before the raw item is locked, as a delivery on its way does it.
        InboundDelivery.everywhere.filter(raw_item=raw_item).update(body=None, made=None)
        row = RawItem.everywhere.select_for_update().get(pk=raw_item.pk)
        if row.deleted_at is not None:
            return
        RawBody.everywhere.filter(raw_item=row).delete()
        # What a writer found in it is content too.
        Generation.everywhere.ended().filter(raw_item=row).update(answers={})
        SharedBrief.everywhere.filter(raw_item=row).delete()
        batches.let_go(Generation.everywhere.filter(raw_item=row).values("pk"))
        # Who sleeps until the model has answered learns at once that nothing will come of it.
        asleep = Generation.everywhere.filter(raw_item=row)
        batches.wake(asleep, codes=(batches.AWAITED, BRIEF_AWAITED))
        SourceEntry.everywhere.filter(raw_item=row).update(title="", url="", message="")
        clear_fingerprint(row)
        uploads.let_go(raw_item=row, now=now)
        RawItem.everywhere.filter(pk=row.pk).update(
            title="",
            url="",
            author="",
            media=[],
            metadata={},
            deleted_at=now,
            wake_at=None,
            version=row.version + 1,
            lease_token=row.lease_token + 1,
            updated_at=now,
        )
        hold_what_was_made(row, "source_withdrawn", now)
        # What could not be made has no words of its own, only the title of this.
        GeneratedItem.everywhere.filter(raw_item=row, revision=0).exclude(title="").update(title="")
