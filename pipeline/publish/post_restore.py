"""Publications of which a restored instance can't know whether they were sent after its backup."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.db import transaction

from config.core import states, work_queue
from pipeline.models import Attempt, Publication, PublicationStatus
from pipeline.outlets.outlet_client import platform_of
from pipeline.plugins import OutcomeUnknown
from pipeline.publish.item_status import locked, refresh_item
from pipeline.publish.results import as_shown

if TYPE_CHECKING:
    from datetime import datetime

CODE: Final = "restored"
"""The `error.code` of a publication that is in doubt for this reason."""
ASKED: Final = "The service was restored from a backup. The platform is asked whether it has this already; then it goes on."
NOT_ASKED: Final = (
    "The service was restored from a backup, and this platform can't be asked whether it has this already. "
    "Look there; then the operator says what is so with manage.py settle_publication."
)
NOT_KNOWN: Final = (
    "The service was restored from a backup, and nobody knows whether this was mailed since. "
    "Ask a subscriber; then the operator says what is so with manage.py settle_publication."
)


def doubt_promised(*, now: datetime) -> int:
    """Have everything that was still to be sent looked up first; returns how many publications that are.

    All of it, not only what was due since: a person may have published it earlier. What a platform shows out of our own
    database (the workspace's feed) isn't in doubt, nor what a person posts: whoever is handed it sees it there. What is
    mailed is, also where its call had begun.
    """
    doubted = 0
    with transaction.atomic():
        promised = Publication.everywhere.unsent()
        for key in list(promised.order_by("item_id", "id").values_list("pk", flat=True)):
            row = Publication.everywhere.select_related("item").get(pk=key)
            platform = platform_of(row.platform)
            is_ours = platform.posts_are_ours or row.status == PublicationStatus.PUBLISHING
            if platform.is_by_hand or (is_ours and not platform.mails_subscribers):
                continue
            # One by one and in this order: item, then publication, as everywhere.
            item = locked(row.item)
            message = ASKED if platform.can_reconcile else NOT_ASKED
            message = NOT_KNOWN if platform.mails_subscribers else message
            shown = as_shown(OutcomeUnknown(message, code=CODE), is_retried=False)
            states.move(
                row,
                "unknown",
                error=shown,
                unknown_since=now,
                unknown_told_at=None,
                lookups=0,
                next_attempt_at=now,
                wake_at=now,
                updated_at=now,
                **work_queue.overtake(),
            )
            refresh_item(item, now=now)
            doubted += 1
    return doubted


def is_in_doubt(row: Publication) -> bool:
    """Of a restore: our own ledger can't say what was mailed since its backup."""
    return bool(row.error and row.error.get("code") == CODE)


def was_never_called(row: Publication) -> bool:
    """In doubt only because of a restore: no call of it is open that we know of."""
    return is_in_doubt(row) and not (Attempt.everywhere.open().filter(publication=row).exists())
