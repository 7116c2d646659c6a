"""Work a claimed publication: hold it back, prepare it, arm the attempt, make the call once."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import structlog
from django.db import transaction
from django.utils import timezone

from config.ground import ids, states
from config.ground.crash import crash_point
from pipeline.connection import Connection, connect
from pipeline.models import Attempt, Publication
from pipeline.platforms.base import Payload, Pending
from pipeline.plugins import NeedsReconnect, OutcomeUnknown, Refused, TryLater
from pipeline.stages import stopping
from pipeline.stages.publish.item_status import locked, refresh_item
from pipeline.stages.publish.judging import why_closed
from pipeline.stages.publish.looking_up import look_again, look_up
from pipeline.stages.publish.payload import key_of, payload_for
from pipeline.stages.publish.recording import (
    overtaken,
    put_off,
    record_failure,
    record_success,
    record_unknown,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

log = structlog.get_logger(__name__)

HELD_WAIT: Final = timedelta(seconds=30)
"""How often a publication that something holds is looked at again; letting go of the hold wakes it at once."""


def work(publication: Publication) -> None:
    """Work one claimed publication: send it, or look up what an earlier call came to."""
    crash_point("publish.claimed")
    try:
        _work(_read(publication), timezone.now())
    except states.Overtaken:
        # Another hand, or a person, has taken it over: nothing of this one was written.
        log.info("overtaken", publication=ids.encode("pub", publication.pk))


def _work(row: Publication, now: datetime) -> None:
    if row.status == "publishing":
        # The hand that made the call was killed before it wrote the outcome down: nobody knows, so nobody repeats.
        record_unknown(row, "The call was interrupted; the platform is asked whether it has the item.", now)
        row = _read(row)
    if row.status == "unknown":
        look_up(row, now)
    elif row.status == "scheduled":
        _send(row, now)
    else:
        row.sleep_until(None)


def give_up(publication: Publication) -> None:
    """A publication whose hands broke again and again ends where a person sees it."""
    row = _read(publication)
    now = timezone.now()
    if row.status == "publishing":
        record_unknown(row, "The call was interrupted; the platform is asked whether it has the item.", now)
        return
    message = "Publishing broke several times; the operator's log has the reason. Retry it."
    if row.status == "unknown":
        look_again(row, now)
    elif row.status == "scheduled":
        record_failure(row, Refused(message, code="gave_up"), now, attempt=None, tries=row.attempt_count)
    else:
        row.sleep_until(None)


def _read(publication: Publication) -> Publication:
    row: Publication = Publication.everywhere.select_related("item", "outlet", "workspace").get(
        pk=publication.pk
    )
    # Later writes must name the token that this hand claimed with, not one that overtook it.
    row.lease_token = publication.lease_token
    return row


def blocker(row: Publication, now: datetime) -> tuple[str, str] | None:
    """What keeps a due publication from being sent, as code and sentence; None where nothing does."""
    if row.workspace.deletes_at is not None:
        return "workspace_hold", "The workspace is going to be deleted; an owner can undo that."
    if not row.workspace.is_whitelisted:
        return "workspace_hold", "The workspace is not whitelisted; the operator can change that."
    switch = stopping.stopped("publishing", platform=row.platform, workspace_id=row.workspace_id)
    if switch is not None:
        return "publishing_stopped", f"The operator has stopped publishing: {switch.reason}"
    if row.item.held:
        return row.item.held, "The item is held; approve it to send it as it is."
    if row.late_policy == "hold" and row.max_lateness_minutes is not None and row.due_at is not None:
        latest = row.due_at + timedelta(minutes=row.max_lateness_minutes)
        if now > latest:
            return "too_late", "It is later than its late policy allows; re-time it or cancel it."
    return None


def _send(row: Publication, now: datetime) -> None:
    moment = row.next_attempt_at or row.due_at
    if moment is not None and moment > now:
        put_off(row, moment, now)
        return
    if blocker(row, now) is not None:
        put_off(row, now + HELD_WAIT, now)
        return
    closed = why_closed(row.outlet)
    if closed is not None:
        record_failure(row, closed, now, attempt=None)
        return
    if row.revision != row.item.revision:
        # What was prepared with former words must not be sent as the new ones.
        _step(row, "prepare", {}, revision=row.item.revision)
    connection = connect(row.outlet)
    payload = payload_for(row)
    key = key_of(row)
    try:
        if row.step == "prepare":
            state = connection.platform.prepare(
                connection.account, payload, row.step_state, http=connection.http, key=key
            )
            _step(row, "poll", state)
        if row.step == "poll":
            progress = connection.platform.poll(
                connection.account, payload, row.step_state, http=connection.http
            )
            if isinstance(progress, Pending):
                put_off(row, now + progress.after, now)
                return
            _step(row, "commit", row.step_state)
    except (TryLater, Refused, NeedsReconnect) as error:
        record_failure(row, error, timezone.now(), attempt=None)
        return
    attempt = _arm(row, now)
    if attempt is None:
        return
    crash_point("publish.armed")
    _commit(row, connection, payload, key, attempt)


def _step(row: Publication, step: str, state: Mapping[str, Any], **changes: Any) -> None:
    values = {"step": step, "step_state": dict(state), **changes}
    if not row.under_lease().update(**values):
        raise overtaken()
    for name, value in values.items():
        setattr(row, name, value)


def _arm(row: Publication, now: datetime) -> Attempt | None:
    """Commit the attempt before the call, naming the revision; None where the item was held or edited meanwhile."""
    with transaction.atomic():
        item = locked(row.item)
        if item.held or item.revision != row.revision:
            row.sleep_until(now, attempts=0, step="prepare", step_state={})
            return None
        states.move(
            row,
            "publishing",
            under_lease=True,
            attempt_count=row.attempt_count + 1,
            revision=item.revision,
            next_attempt_at=None,
            updated_at=now,
        )
        attempt: Attempt = Attempt.everywhere.create(
            workspace_id=row.workspace_id,
            publication=row,
            number=Attempt.everywhere.filter(publication=row).count() + 1,
            revision=item.revision,
            started_at=now,
        )
        refresh_item(item, now=now)
    return attempt


def _commit(row: Publication, connection: Connection, payload: Payload, key: str, attempt: Attempt) -> None:
    now = timezone.now()
    try:
        sent = connection.platform.commit(
            connection.account, payload, row.step_state, http=connection.http, key=key, now=now
        )
    except (TryLater, Refused, NeedsReconnect) as error:
        crash_point("publish.sent")
        record_failure(row, error, timezone.now(), attempt=attempt)
    except OutcomeUnknown as error:
        crash_point("publish.sent")
        record_unknown(row, error.message, timezone.now(), platform_status=error.platform_status)
    # Our own bug after the request may have left: the platform may have the item, so it is not sent again blindly.
    except Exception:
        log.exception("commit_broke", publication=key)
        record_unknown(row, "Our own fault interrupted the call; the platform is asked.", timezone.now())
    else:
        crash_point("publish.sent")
        record_success(row, sent, timezone.now(), attempt=attempt)
