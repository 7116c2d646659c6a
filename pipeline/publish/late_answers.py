"""Writes what a platform answers after a task has lost its publication, or after the attempt was closed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog
from django.db import transaction
from django.db.models import F

from config.core import limits as core_limits
from config.core.clock import utc_now
from config.core.datetimes import format_utc
from config.core.ids import encode
from pipeline.models import Attempt, AttemptStatus, GeneratedItem, Publication, PublicationStatus
from pipeline.outlets.outlet_client import platform_of
from pipeline.publish.item_status_and_events import lock_item, notify_of_late_answer, refresh_item
from pipeline.publish.record_outcome import (
    clean_for_storage,
    posted_after_all_error,
    posted_twice_error,
    record_late_success,
    record_success,
)
from pipeline.states import PUBLICATIONS_IN_FLIGHT

if TYPE_CHECKING:
    from datetime import datetime

    from pipeline.platforms.base import Sent

log = structlog.get_logger(__name__)


def record_despite_lost_lease(row: Publication, sent: Sent, attempt: Attempt) -> None:
    """Record a success whose lease was lost while the platform took the post.

    The platform's own answer is better evidence than any look-up.
    """
    with transaction.atomic():
        item = lock_item(row.item)
        locked_row: Publication = (
            Publication.everywhere.select_for_update(of=("self",))
            .select_related("item", "outlet", "workspace")
            .get(pk=row.pk)
        )
        stored_attempt = Attempt.everywhere.get(pk=attempt.pk)
        if locked_row.status in PUBLICATIONS_IN_FLIGHT and stored_attempt.status in {
            AttemptStatus.STARTED,
            AttemptStatus.UNKNOWN,
        }:
            _take_lease(locked_row)
            record_success(locked_row, sent, utc_now(), attempt=stored_attempt)
        else:
            keep_late_answer(locked_row, item, stored_attempt, sent, utc_now())


def keep_late_answer(
    row: Publication, item: GeneratedItem, attempt: Attempt, sent: Sent, now: datetime
) -> None:
    """Keep a platform's answer that came after the attempt was closed; the platform has the post.

    It is used if nothing was sent since, else it is reported. The caller has locked item and row.
    """
    # Our own ledger is the mailing here, so the answer isn't a platform's.
    if platform_of(row.platform).mails_subscribers:
        return
    external_id = clean_for_storage(sent.external_id)[:300]
    if (
        row.status in {PublicationStatus.PUBLISHED, PublicationStatus.REMOVED}
        and row.external_id == external_id
    ):
        # A look-up has found this same post meanwhile.
        return
    if (
        row.status == PublicationStatus.PUBLISHED
        and not row.external_id
        and attempt.status == AttemptStatus.SUCCEEDED
    ):
        # A person said that it was sent, but couldn't name the id.
        Publication.everywhere.filter(pk=row.pk).update(
            external_id=external_id,
            url=row.url or clean_for_storage(sent.url)[: core_limits.URL_CHARACTERS],
            details=clean_for_storage(dict(sent.details)),
            version=F("version") + 1,
            updated_at=now,
        )
        refresh_item(item, now=now)
        return
    attempt.late_answer = {
        "external_id": external_id,
        "url": clean_for_storage(sent.url)[: core_limits.URL_CHARACTERS],
        "details": clean_for_storage(dict(sent.details)),
        "at": format_utc(now),
    }
    Attempt.everywhere.filter(pk=attempt.pk).update(late_answer=attempt.late_answer)
    log.error(
        "late_answer",
        publication=encode("pub", row.pk),
        attempt=attempt.number,
        status=row.status,
        external_id=external_id,
    )
    if row.status in {PublicationStatus.SCHEDULED, PublicationStatus.FAILED} and item.deleted_at is None:
        _take_lease(row)
        record_late_success(attempt, row, now)
    elif row.status not in PUBLICATIONS_IN_FLIGHT:
        is_published = row.status == PublicationStatus.PUBLISHED
        new_error = (
            posted_twice_error(row.external_id, attempt) if is_published else posted_after_all_error(attempt)
        )
        Publication.everywhere.filter(pk=row.pk).update(
            error=new_error, version=F("version") + 1, updated_at=now
        )
        row.refresh_from_db(fields=["error", "version", "updated_at"])
        refresh_item(item, now=now)
        notify_of_late_answer(row, item, now)
    # If it is being sent again just now, its outcome is reported together with this answer.


def _take_lease(row: Publication) -> None:
    """Take the lease from whoever holds it. The caller has locked the row."""
    row.lease_token += 1
    Publication.everywhere.filter(pk=row.pk).update(lease_token=row.lease_token)
