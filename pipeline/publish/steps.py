"""Chooses what a task does with a claimed publication by status and step, and follows up public posts."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

import structlog
from django.db.models import Count, OuterRef, Subquery
from django.db.models.functions import Coalesce

from config.core import ids, limits, states
from config.core.clock import utc_now
from config.core.crash_points import crash_point
from config.core.database.prepared_queries import Prepared
from pipeline.models import Attempt, Publication, PublicationStatus, PublicationStep
from pipeline.outlets.outlet_client import connect
from pipeline.outlets.renewal import fresh_credentials
from pipeline.platforms.base import Sent
from pipeline.plugins import OutcomeUnknown, PluginError, Refused
from pipeline.publish.blockers import IS_ON_HOLD
from pipeline.publish.payload import key_of, post_for
from pipeline.publish.reconciliation import look_up, schedule_next_lookup
from pipeline.publish.record_outcome import LEASE, record_failure, record_unknown
from pipeline.publish.removal import give_up_removal, remove_post
from pipeline.publish.send import send
from pipeline.publish.validation import why_closed
from pipeline.switches import kill_switch

if TYPE_CHECKING:
    from collections.abc import Callable

FINISH_TRIES: Final = 4
"""The number of tries of the follow-up work on a public post."""
FINISH_RETRY_WAIT: Final = timedelta(minutes=5)
log = structlog.get_logger(__name__)

INTERRUPTED_MESSAGE: Final = "The call was interrupted. The platform is asked whether it has the item."
_ATTEMPTS_BEFORE: Final = Coalesce(
    Subquery(
        Attempt.everywhere.filter(publication_id=OuterRef("pk"))
        .order_by()
        .values("publication_id")
        .annotate(count=Count("pk"))
        .values("count")
    ),
    0,
)

PUBLICATION: Final[Prepared[Publication]] = Prepared(
    lambda pk: (
        Publication.everywhere.select_related("item", "outlet", "workspace", "queue")
        .annotate(is_on_hold=IS_ON_HOLD, attempts_before=_ATTEMPTS_BEFORE)
        .filter(pk=pk)
    )
)
"""The query for a publication and everything that its task needs, by `pk`."""


def finish_post(row: Publication, now: datetime) -> None:
    """Run the follow-up work on a public post, and store what the platform says of it.

    The work is left out if the item or outlet was deleted or the post's id isn't known, put off while
    publishing is stopped or the outlet closed, and given up after `FINISH_TRIES` failures.
    """
    is_gone = row.outlet.deleted_at is not None or row.item.deleted_at is not None
    if is_gone or not row.external_id:
        # There is nothing left to add to, or a person only said that it was sent, so the post isn't known.
        row.sleep_until(None, attempts=0, step="done")
        return
    stop_switch = kill_switch.stopped("publishing", platform=row.platform, workspace_id=row.workspace_id)
    if stop_switch is not None or why_closed(row.outlet) is not None:
        row.sleep_until(now + FINISH_RETRY_WAIT, attempts=0)
        return
    sent = Sent(external_id=row.external_id, url=row.url, details=row.details)
    tries = int(row.step_state.get("finish_tries", 0)) + 1
    try:
        connection = connect(fresh_credentials(row.outlet, now=now))
        row.renew_lease(LEASE)
        details = connection.platform.finish(
            connection.account, post_for(row, connection), sent, http=connection.http, now=now
        )
    except PluginError as error:
        log.info("finish_failed", publication=key_of(row), code=error.code, tries=tries)
        is_over = tries >= FINISH_TRIES
        row.sleep_until(
            None if is_over else now + FINISH_RETRY_WAIT,
            attempts=0,
            step="done" if is_over else "finish",
            step_state={**row.step_state, "finish_tries": tries},
        )
        return
    crash_point("publish.finished")
    merged_details = {**row.details, **(details or {})}
    url = str(merged_details.pop("url", "") or row.url)[: limits.URL_CHARACTERS]
    row.sleep_until(None, attempts=0, step="done", details=merged_details, url=url)


@dataclass(frozen=True, kw_only=True)
class StatusStep:
    """The work for a publication in a status, and in a step if the status has several."""

    status: PublicationStatus
    step: PublicationStep | None = None
    work: Callable[[Publication, datetime], None]
    """Does the work and writes the row's next step."""
    give_up: Callable[[Publication, datetime], None] | None = None
    """Called after the tasks kept crashing; `None` leaves the publication as it is."""


def _give_up_sending(row: Publication, now: datetime) -> None:
    """Record a final failure, as the tasks that were to send it kept crashing."""
    message = "Publishing failed several times; the operator's log has the reason. Retry it."
    record_failure(row, Refused(message, code="gave_up"), now, attempt=None, tries=row.attempt_count)


STEPS: Final = (
    StatusStep(status=PublicationStatus.SCHEDULED, work=send, give_up=_give_up_sending),
    StatusStep(status=PublicationStatus.UNKNOWN, work=look_up, give_up=schedule_next_lookup),
    StatusStep(status=PublicationStatus.PUBLISHED, step=PublicationStep.FINISH, work=finish_post),
    StatusStep(
        status=PublicationStatus.PUBLISHED,
        step=PublicationStep.REMOVE,
        work=remove_post,
        give_up=lambda row, _now: give_up_removal(row),
    ),
)
"""`PUBLISHING` has no entry: `_run_step` first records the outcome of an interrupted call as unknown."""


def advance_publication(publication: Publication) -> None:
    """Run the step that a claimed publication is at; nothing is written if another writer has taken it over."""
    crash_point("publish.claimed")
    try:
        # The task queue has loaded the publication with `PUBLICATION` already; other callers haven't.
        is_loaded = "attempts_before" in vars(publication)
        _run_step(publication if is_loaded else _reload_keeping_lease(publication), utc_now())
    except states.Overtaken:
        # Another worker or a person has taken it over: nothing of this task was written.
        log.info("overtaken", publication=ids.encode("pub", publication.pk))


def _run_step(row: Publication, now: datetime) -> None:
    """Run the step of a publication; put it to sleep if no step matches or a person has it."""
    if row.is_handed_over:
        row.sleep_until(None)
        return
    if row.status == PublicationStatus.PUBLISHING:
        # The worker that made the call was killed before it wrote the outcome: the call isn't repeated blindly.
        record_unknown(row, OutcomeUnknown(INTERRUPTED_MESSAGE), now)
        row = _reload_keeping_lease(row)
    step = _step_of(row)
    if step is not None:
        step.work(row, now)
    else:
        row.sleep_until(None)


def give_up(publication: Publication) -> None:
    """Record a failure or unknown outcome of a publication whose tasks kept crashing, so that people see it."""
    row = _reload_keeping_lease(publication)
    now = utc_now()
    if row.status == PublicationStatus.PUBLISHING and not row.is_handed_over:
        record_unknown(row, OutcomeUnknown(INTERRUPTED_MESSAGE), now)
        return
    step = _step_of(row)
    if step is not None and step.give_up is not None:
        step.give_up(row, now)
    else:
        row.sleep_until(None)


def _step_of(row: Publication) -> StatusStep | None:
    """Return the step that the publication is at, or `None` if there is nothing to do."""
    return next((step for step in STEPS if row.status == step.status and step.step in {None, row.step}), None)


def _reload_keeping_lease(publication: Publication) -> Publication:
    """Load the publication and everything that its task needs, but keep the lease token of the caller's row.

    Raises `Publication.DoesNotExist` if it was deleted.
    """
    rows = PUBLICATION.ask(pk=publication.pk)
    if not rows:
        raise Publication.DoesNotExist
    row = rows[0]
    # Later writes must name the token that this task claimed with, not one that overtook it.
    row.lease_token = publication.lease_token
    return row
