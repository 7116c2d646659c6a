"""Take a dead row up again by its own stage's function, with a note of who wished it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.db import transaction

from accounts import audit
from config.core.clock import utc_now
from config.core.errors import NotFound
from config.core.ids import decode, encode
from config.operations import queue_stats
from pipeline import publish
from pipeline.ingest import collect, push
from pipeline.models import PublicationStatus
from pipeline.personas import drafts
from pipeline.review import decisions
from webhooks import endpoints

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime

PREFIXES: Final[Mapping[str, str]] = {
    "sources": "src",
    "raw_items": "raw",
    "generated_items": "gen",
    "persona_drafts": "pdr",
    "publications": "pub",
    "deliveries": "dlv",
}


def requeue(name: str, public_id: str, *, actor: str) -> None:
    """Raises what the stage raises where the row can't be taken up, and `NotFound` where it isn't dead any more."""
    pk = decode(PREFIXES[name], public_id)
    found = (
        queue_stats.DEAD[name].rows().select_related("workspace__plan").filter(pk=pk).first() if pk else None
    )
    if found is None:
        raise NotFound
    with transaction.atomic():
        _ACTS[name](found, actor, utc_now())
        audit.note(
            "row.requeued", workspace=found.workspace, actor=actor, subject=public_id, details={"kind": name}
        )


def public_id(name: str, row: Any) -> str:
    return encode(PREFIXES[name], row.pk)


def _publication(row: Any, actor: str, now: datetime) -> None:
    if row.status == PublicationStatus.UNKNOWN:
        # The platform may have it: it is asked, and nothing is sent.
        publish.reconcile_now(row, now=now)
    else:
        publish.retry(row, by=actor, now=now)


_ACTS: Final[Mapping[str, Callable[[Any, str, datetime], object]]] = {
    "sources": lambda row, _, now: collect.change(
        row, {"status": "active"}, workspace=row.workspace, now=now
    ),
    "raw_items": lambda row, _, now: push.retry(row, workspace=row.workspace, now=now),
    "generated_items": lambda row, _, now: decisions.retry(row, workspace=row.workspace, now=now),
    "persona_drafts": lambda row, _, now: drafts.retry(row, now=now),
    "publications": _publication,
    "deliveries": lambda row, actor, now: endpoints.resend(row, actor=actor, now=now),
}
