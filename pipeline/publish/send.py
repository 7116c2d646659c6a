"""Send a publication: hold it back, prepare it, arm the attempt, make the call once."""

from __future__ import annotations

import hashlib
import json
from datetime import datetime, timedelta
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

import structlog
from django.db import transaction

from config.core import states, work_queue
from config.core.clock import utc_now
from config.core.crash_points import crash_point
from config.core.database.insert import insert
from config.core.database.prepared_queries import Prepared
from config.core.datetimes import as_z
from pipeline import limits
from pipeline.models import Attempt, AttemptStatus, Outlet, Publication, PublicationStatus, PublicationStep
from pipeline.outlets.check_account import BeingRenewed
from pipeline.outlets.outlet_client import OutletConnection, connect
from pipeline.outlets.renewal import fresh_credentials
from pipeline.platforms.base import Pending, Platform, Sent
from pipeline.plugins import NeedsReconnect, OutcomeUnknown, Refused, TryLater
from pipeline.publish.blockers import IS_ON_HOLD, find_blockers
from pipeline.publish.item_status import lock_item, refresh_item
from pipeline.publish.manual_publish import request_manual_post
from pipeline.publish.payload import keep_short_links, key_of, post_for, receipt_of
from pipeline.publish.publish_http_client import LONGEST, OneCall
from pipeline.publish.results import (
    LEASE,
    keep_late_answer,
    overtaken_error,
    put_off,
    record_failure,
    record_success,
    record_unknown,
    take_over,
)
from pipeline.publish.timing import reschedule
from pipeline.publish.timing.rate_caps import is_paced, wait_of
from pipeline.publish.validation import why_closed
from pipeline.states import PUBLICATIONS_IN_FLIGHT
from pipeline.switches import kill_switch

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipeline.platforms.payload_types import Adapted
    from pipeline.publish.timing.rate_caps import RateWait

log = structlog.get_logger(__name__)

OUR_FAULT: Final = "Our own fault interrupted the call; the platform is asked."

MADE_FOR: Final = "made_for"
"""Where a preparation notes what it is of; no platform sees it."""
PENDING_SINCE: Final = "pending_since"
"""Since when the platform has been at work on it; no platform sees it either."""
PREPARING_SECONDS: Final = 20.0
"""After which others get their turn; what was prepared is kept."""
STEPS_AT_ONCE: Final = 20
"""Steps of a preparation that one task makes before others get their turn."""
HELD_WAIT: Final = timedelta(seconds=30)
"""How often a publication that something holds is looked at again; letting go of the hold wakes it at once."""


def send(row: Publication, now: datetime) -> None:
    moment = row.next_attempt_at or row.due_at
    # Claimed by the database's clock: where this machine's is behind, it would be claimed and put off again and again.
    if moment is not None and moment > now and moment > work_queue.database_now():
        put_off(row, moment, now)
        return
    is_held = next(find_blockers(row, now, may_be_on_hold=row.is_on_hold), None) is not None
    if not is_held and reschedule.has_to_move(row, now):
        if reschedule.move_to_next_slot(row, now):
            return
        is_held = True
    if is_held:
        put_off(row, now + HELD_WAIT, now)
        return
    closed = why_closed(row.outlet)
    if closed is not None:
        record_failure(row, closed, now, attempt=None)
        return
    wait = wait_of(row, row.outlet, now)
    if wait is not None:
        put_off(row, wait.until, now, waits_for=wait.as_json())
        return
    _make(row, now)


def _make(row: Publication, now: datetime) -> None:
    """Nothing stands in the way: prepare it, and make the call."""
    if row.revision != row.item.revision:
        # What was prepared with former words must not be sent as the new ones.
        _step(row, PublicationStep.PREPARE, {}, revision=row.item.revision)
    try:
        connection = connect(fresh_credentials(row.outlet, now=now))
    except BeingRenewed as error:
        put_off(row, now + (error.after or HELD_WAIT), now)
        return
    except (TryLater, Refused, NeedsReconnect) as error:
        record_failure(row, error, utc_now(), attempt=None, connection=connect(row.outlet))
        return
    try:
        post = post_for(row, connection)
        if not _get_ready(row, connection, post):
            return
    except (TryLater, Refused, NeedsReconnect) as error:
        record_failure(row, error, utc_now(), attempt=None, connection=connection)
        return
    if connection.platform.is_by_hand:
        request_manual_post(row, post, utc_now())
        return
    attempt = _arm(row, utc_now(), post)
    if attempt is None:
        return
    crash_point("publish.armed")
    _commit(row, connection, post, attempt)


def _get_ready(row: Publication, connection: OutletConnection, post: Adapted) -> bool:
    """Everything that can be repeated; False where it isn't time for the call yet, and the row was given back."""
    problems = connection.platform.validate(connection.account, post)
    if problems:
        first = problems[0]
        raise Refused(first.message, code=first.code, field=first.field)
    made_for = _mark_of(row, post)
    if row.step_state.get(MADE_FOR, made_for) != made_for:
        # Other words for the pictures, other settings, another account: what was prepared is of something else.
        _step(row, PublicationStep.PREPARE, {}, made_for)
    if row.step == PublicationStep.PREPARE and not _has_steps(connection.platform):
        # Nothing to keep before the call: it is written with the attempt.
        row.step, row.step_state = PublicationStep.COMMIT, {}
        crash_point("publish.prepared")
    until = monotonic() + PREPARING_SECONDS
    for _ in range(STEPS_AT_ONCE):
        if row.step != PublicationStep.PREPARE:
            break
        if monotonic() > until:
            put_off(row, utc_now(), utc_now())
            return False
        prepared = connection.platform.prepare(
            connection.account,
            post,
            _plain(row.step_state),
            http=connection.http,
            key=key_of(row),
            now=utc_now(),
        )
        _step(
            row,
            PublicationStep.POLL if prepared.is_done else PublicationStep.PREPARE,
            prepared.state,
            made_for,
        )
        crash_point("publish.prepared")
    else:
        put_off(row, utc_now(), utc_now())
        return False
    if row.step == PublicationStep.POLL:
        progress = connection.platform.poll(
            connection.account, post, _plain(row.step_state), http=connection.http, now=utc_now()
        )
        if isinstance(progress, Pending):
            _wait_for(row, connection.platform, progress, utc_now())
            return False
        _step(row, PublicationStep.COMMIT, row.step_state, made_for)
    return True


def _wait_for(row: Publication, platform: Platform, progress: Pending, now: datetime) -> None:
    """Look again when the platform says, but not for ever: raises `Refused` when its time is up."""
    kept = row.step_state.get(PENDING_SINCE)
    if kept is None:
        _step(row, row.step, {**row.step_state, PENDING_SINCE: as_z(now)})
    ends = (datetime.fromisoformat(kept) if kept else now) + limits.PROCESSING_MOST
    if now >= ends:
        hours = limits.PROCESSING_MOST // timedelta(hours=1)
        message = f"After {hours} hours {platform.label} was still working on what it was given; nothing was published."
        action = (
            "Retry it, which hands everything over anew; where that ends the same way, replace the files."
        )
        raise Refused(message, code="processing_too_long", action=action)
    put_off(row, min(now + progress.after, ends), now)


def _mark_of(row: Publication, post: Adapted) -> str:
    """What a preparation is for: another mark, another preparation."""
    wanted = [receipt_of(post), row.outlet.profile.get("external_id")]
    return hashlib.sha256(json.dumps(wanted, sort_keys=True, default=str).encode()).hexdigest()[:16]


def _plain(state: Mapping[str, Any]) -> dict[str, Any]:
    """The state as its platform left it."""
    return {name: value for name, value in state.items() if name not in {MADE_FOR, PENDING_SINCE}}


def _has_steps(platform: Platform) -> bool:
    kind = type(platform)
    return kind.prepare is not Platform.prepare or kind.poll is not Platform.poll


def _step(row: Publication, step: str, state: Mapping[str, Any], made_for: str = "", **changes: Any) -> None:
    # Each step gets a lease of its own: many files take longer than one.
    wake_at = work_queue.database_now() + LEASE
    kept = {**state, MADE_FOR: made_for} if made_for else dict(state)
    values = {"step": step, "step_state": kept, "wake_at": wake_at, **changes}
    if not row.under_lease().update(**values):
        raise overtaken_error()
    for name, value in values.items():
        setattr(row, name, value)


def _arm(row: Publication, now: datetime, post: Adapted) -> Attempt | None:
    """Commit the attempt before the call, naming the revision and what is sent; None where it was held or edited
    meanwhile, or somebody else had the outlet's turn.
    """
    if kill_switch.stopped("publishing", platform=row.platform, workspace_id=row.workspace_id) is not None:
        put_off(row, now + HELD_WAIT, now)
        return None
    with transaction.atomic():
        item = lock_item(row.item)
        if item.revision != row.revision:
            row.sleep_until(now, attempts=0, step=PublicationStep.PREPARE, step_state={})
            return None
        row.item, row.workspace = item, item.workspace
        outlet = _OUTLET.ask(pk=row.outlet_id)[0]
        held = find_blockers(row, now, asks_switches=False, may_be_on_hold=outlet.is_on_hold)
        if next(held, None) is not None:
            # What was prepared is kept: with the same words it is as good afterwards.
            row.sleep_until(now, attempts=0)
            return None
        if why_closed(outlet) is not None:
            # Switched off or disconnected while it was prepared: the next look says so.
            row.sleep_until(now, attempts=0)
            return None
        wait = _wait_for_turn(row, now)
        if wait is not None:
            put_off(row, wait.until, now, waits_for=wait.as_json())
            return None
        states.move(
            row,
            "publishing",
            under_lease=True,
            attempt_count=row.attempt_count + 1,
            revision=item.revision,
            step=row.step,
            step_state=row.step_state,
            # The call gets a whole lease, however long the lock was waited for.
            wake_at=work_queue.database_now() + LEASE,
            next_attempt_at=None,
            waits_for=None,
            updated_at=now,
        )
        attempt = Attempt(
            workspace_id=row.workspace_id,
            publication=row,
            number=row.attempts_before + 1,
            revision=item.revision,
            receipt=receipt_of(post),
            # The deadline of the call counts from here, whatever the lock took.
            started_at=utc_now(),
        )
        attempt.ends = monotonic() + LONGEST.total_seconds()
        insert([attempt])
        if row.outlet.clicks_since is not None:
            keep_short_links(row)
        refresh_item(item, now=now)
    return attempt


_OUTLET: Final[Prepared[Any]] = Prepared(
    lambda pk: Outlet.everywhere.filter(pk=pk).annotate(is_on_hold=IS_ON_HOLD)
)


def _wait_for_turn(row: Publication, now: datetime) -> RateWait | None:
    """Asked again under the outlet's lock: of two tasks at once one has the turn."""
    if not is_paced(row.outlet, now):
        return None
    outlet: Outlet = Outlet.everywhere.select_for_update(no_key=True).get(pk=row.outlet_id)
    return wait_of(row, outlet, now)


def _commit(row: Publication, connection: OutletConnection, post: Adapted, attempt: Attempt) -> None:
    now = utc_now()
    key = key_of(row)

    def is_ours() -> bool:
        try:
            return bool(row.under_lease().filter(status=PublicationStatus.PUBLISHING).exists())
        finally:
            work_queue.release_connections()

    http = OneCall(connection.http, started_at=attempt.started_at, ends=attempt.ends, is_ours=is_ours)
    # The platform may take its time, in which others can use the connection to the database.
    work_queue.release_connections()
    try:
        sent = connection.platform.commit(
            connection.account, post, _plain(row.step_state), http=http, key=key, now=now
        )
    except (TryLater, Refused, NeedsReconnect) as error:
        crash_point("publish.sent")
        record_failure(row, error, utc_now(), attempt=attempt, connection=connection)
    except OutcomeUnknown as error:
        crash_point("publish.sent")
        record_unknown(row, error, utc_now(), connection=connection)
    # Our own bug after the request may have left: the platform may have the item, so it is not sent again blindly.
    except Exception:
        log.exception("commit_broke", publication=key)
        record_unknown(row, OutcomeUnknown(OUR_FAULT), utc_now())
    else:
        crash_point("publish.sent")
        try:
            record_success(row, sent, utc_now(), attempt=attempt)
        except states.Overtaken:
            _keep_proof(row, sent, attempt)
            raise


def _keep_proof(row: Publication, sent: Sent, attempt: Attempt) -> None:
    """The lease was lost while the platform took the post: its own word is better than any look-up."""
    with transaction.atomic():
        item = lock_item(row.item)
        fresh: Publication = (
            Publication.everywhere.select_for_update(of=("self",))
            .select_related("item", "outlet", "workspace")
            .get(pk=row.pk)
        )
        made = Attempt.everywhere.get(pk=attempt.pk)
        if fresh.status in PUBLICATIONS_IN_FLIGHT and made.status in {
            AttemptStatus.STARTED,
            AttemptStatus.UNKNOWN,
        }:
            take_over(fresh)
            record_success(fresh, sent, utc_now(), attempt=made)
        else:
            keep_late_answer(fresh, item, made, sent, utc_now())
