"""Erases the content of a raw item and leaves a tombstone.

The timed job that deletes old rows is `config/operations/retention.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import transaction

from config.core import states
from pipeline.generate import lifecycle, recoverable_failures
from pipeline.generate.model import batches
from pipeline.generate.model.spending_caps import BRIEF_AWAITED
from pipeline.holds.source_changes import hold_derived_items
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


def erase(raw_item: RawItem, *, now: datetime, expected_version: int | None = None) -> None:
    """Erase the content once; the row stays as a tombstone, so that the entry isn't taken in again.

    Raises `states.Overtaken` if it isn't the expected version.
    """
    with transaction.atomic():
        # The sent body is content too. It is erased before the raw item is locked: deliveries lock in this order.
        InboundDelivery.everywhere.filter(raw_item=raw_item).update(body=None, made=None)
        row = RawItem.everywhere.select_for_update().get(pk=raw_item.pk)
        states.refuse_other_version(row.version, expected_version)
        if row.deleted_at is not None:
            return
        RawBody.everywhere.filter(raw_item=row).delete()
        # Briefs and findings that a writer made of it are content too.
        lifecycle.erase_words(Generation.everywhere.filter(raw_item=row))
        lifecycle.erase_words(Generation.everywhere.filter(rewrites__raw_item=row))
        SharedBrief.everywhere.filter(raw_item=row).delete()
        batches.forget_calls(Generation.everywhere.filter(raw_item=row).values("pk"))
        # Runs that sleep until the model has answered wake and learn that nothing will come of it.
        sleeping_runs = Generation.everywhere.filter(raw_item=row)
        batches.wake_runs(sleeping_runs, codes=(batches.AWAITED, BRIEF_AWAITED))
        SourceEntry.everywhere.filter(raw_item=row).update(title="", url="", message="")
        clear_fingerprint(row)
        uploads.release(raw_item=row, now=now)
        # A failure's reason may quote the content; the reason of a skip is our own text.
        is_failed = row.status == RawItemStatus.FAILED
        reason = recoverable_failures.without_words(row.reason) if is_failed else row.reason
        RawItem.everywhere.filter(pk=row.pk).update(
            title="",
            url="",
            author="",
            media=[],
            metadata={},
            reason=reason,
            deleted_at=now,
            wake_at=None,
            version=row.version + 1,
            lease_token=row.lease_token + 1,
            updated_at=now,
        )
        hold_derived_items(row, "source_withdrawn", now)
        _erase_from_unmade_items(row)


def _erase_from_unmade_items(row: RawItem) -> None:
    """Erase the raw item's title, and failures that quote it, from items that could not be made."""
    unmade = GeneratedItem.everywhere.filter(raw_item=row, revision=0, deleted_at=None)
    unmade.exclude(title="").update(title="")
    for pk, error in unmade.filter(error__isnull=False).values_list("pk", "error"):
        GeneratedItem.everywhere.filter(pk=pk).update(
            error=recoverable_failures.without_words(error), checks=[], checks_revision=None
        )
