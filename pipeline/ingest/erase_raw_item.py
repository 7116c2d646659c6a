"""Erase the content of a raw item; a tombstone stays.

The timed job that deletes old rows is `config/operations/retention.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import transaction

from pipeline.generate import lifecycle, retry_rules
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
    RawItemStatus,
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
        lifecycle.erase_words(Generation.everywhere.filter(raw_item=row))
        lifecycle.erase_words(Generation.everywhere.filter(rewrites__raw_item=row))
        SharedBrief.everywhere.filter(raw_item=row).delete()
        batches.forget_calls(Generation.everywhere.filter(raw_item=row).values("pk"))
        # Who sleeps until the model has answered learns at once that nothing will come of it.
        asleep = Generation.everywhere.filter(raw_item=row)
        batches.wake_runs(asleep, codes=(batches.AWAITED, BRIEF_AWAITED))
        SourceEntry.everywhere.filter(raw_item=row).update(title="", url="", message="")
        clear_fingerprint(row)
        uploads.let_go(raw_item=row, now=now)
        RawItem.everywhere.filter(pk=row.pk).update(
            title="",
            url="",
            author="",
            media=[],
            metadata={},
            # That of a failure is its last run's; what is skipped says so in words of ours.
            reason=retry_rules.without_words(row.reason)
            if row.status == RawItemStatus.FAILED
            else row.reason,
            deleted_at=now,
            wake_at=None,
            version=row.version + 1,
            lease_token=row.lease_token + 1,
            updated_at=now,
        )
        hold_what_was_made(row, "source_withdrawn", now)
        _erase_from_unmade(row)


def _erase_from_unmade(row: RawItem) -> None:
    """What could not be made has no words of its own, only the title of this, and failures that quote it."""
    unmade = GeneratedItem.everywhere.filter(raw_item=row, revision=0, deleted_at=None)
    unmade.exclude(title="").update(title="")
    for key, error in unmade.filter(error__isnull=False).values_list("pk", "error"):
        GeneratedItem.everywhere.filter(pk=key).update(
            error=retry_rules.without_words(error), checks=[], checks_revision=None
        )
