"""A person's word for what became of a publication that its platform can't be asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.db import transaction

from accounts import audit
from config.core import ids
from config.core.errors import Conflict
from pipeline.models import Publication, PublicationStatus
from pipeline.platforms.base import Sent
from pipeline.plugins import Refused
from pipeline.publish.item_status import locked
from pipeline.publish.manual_publish import is_handed_over
from pipeline.publish.reconciliation import note_absent
from pipeline.publish.results import record_failure, record_success

if TYPE_CHECKING:
    from datetime import datetime

NOT_POSTED: Final = "Whoever was to post it said that it wasn't posted."
AGAIN: Final = "Retry it to have it handed over again, or leave it."


def settle(publication: Publication, *, was_sent: bool, url: str = "", by: str, now: datetime) -> Publication:
    """A person's word: published, or not.

    What has an unknown outcome and isn't there is sent again; what was handed over and not posted has failed, and can
    be retried. Raises `Conflict` of anything else.
    """
    with transaction.atomic():
        locked(publication.item)
        row: Publication = (
            Publication.everywhere.select_for_update(of=("self",))
            .select_related("item", "outlet", "workspace")
            .get(pk=publication.pk)
        )
        by_hand = is_handed_over(row)
        if row.status != PublicationStatus.UNKNOWN and not by_hand:
            message = f"It is {row.status}; only an unknown outcome can be settled, or what was handed over."
            raise Conflict.because(code="not_unknown", message=message)
        if was_sent:
            record_success(row, Sent(external_id="", url=url), now, attempt=None)
        elif by_hand:
            record_failure(
                row, Refused(NOT_POSTED, code="not_posted", action=AGAIN), now, attempt=None, tries=1
            )
        else:
            note_absent(row, now)
        details = {"was_sent": was_sent, "url": url}
        name = ids.encode("pub", row.pk)
        audit.note("publication.settled", workspace=row.workspace, actor=by, subject=name, details=details)
    return row
