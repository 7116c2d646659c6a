"""A person's word for what became of a publication that its platform can't be asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.db import transaction

from accounts import audit
from config.ground import ids
from config.ground.errors import Conflict
from pipeline.models import Publication
from pipeline.platforms.base import Sent
from pipeline.stages.publish.item_status import locked
from pipeline.stages.publish.looking_up import note_absent
from pipeline.stages.publish.recording import record_success

if TYPE_CHECKING:
    from datetime import datetime


def settle(publication: Publication, *, was_sent: bool, url: str = "", by: str, now: datetime) -> Publication:
    """Published, or sent again as the platform's own "it isn't there" would have it; raises `Conflict` unless unknown."""
    with transaction.atomic():
        locked(publication.item)
        row: Publication = (
            Publication.everywhere.select_for_update(of=("self",))
            .select_related("item", "outlet", "workspace")
            .get(pk=publication.pk)
        )
        if row.status != "unknown":
            message = f"It is {row.status}; only an unknown outcome can be settled."
            raise Conflict.because(code="not_unknown", message=message)
        if was_sent:
            record_success(row, Sent(external_id="", url=url), now, attempt=None)
        else:
            note_absent(row, now)
        details = {"was_sent": was_sent, "url": url}
        name = ids.encode("pub", row.pk)
        audit.note("publication.settled", workspace=row.workspace, actor=by, subject=name, details=details)
    return row
