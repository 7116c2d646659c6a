"""Sends a publication: checks what holds it back, prepares it, arms an attempt, and makes the call once."""

from __future__ import annotations

import hashlib
import json
from datetime import datetime, timedelta
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

import structlog
from django.conf import settings
from django.db import transaction

from config.core import states, work_queue
from config.core.clock import utc_now
from config.core.crash_points import crash_point
from config.core.database.insert import insert
from config.core.database.prepared_queries import Prepared
from config.core.datetimes import format_utc
from config.core.http_client import Client, Response, TimedOut
from config.core.settings_checks import LONGEST_CALL_SECONDS
from pipeline import limits
from pipeline.models import Attempt, Outlet, Publication, PublicationStatus, PublicationStep
from pipeline.outlets.check_account import BeingRenewed
from pipeline.outlets.outlet_client import OutletConnection, connect
from pipeline.outlets.renewal import fresh_credentials
from pipeline.platforms import http_calls
from pipeline.platforms.base import Pending, Platform
from pipeline.plugins import NeedsReconnect, OutcomeUnknown, Refused, TryLater
from pipeline.publish.blockers import IS_ON_HOLD, find_blockers, is_too_late
from pipeline.publish.item_status_and_events import lock_item, refresh_item
from pipeline.publish.late_answers import record_despite_lost_lease
from pipeline.publish.manual_publish import request_manual_post
from pipeline.publish.payload import keep_short_links, key_of, post_for, receipt_of
from pipeline.publish.record_outcome import LEASE, record_failure, record_success, record_unknown
from pipeline.publish.timing.postpone import overtaken_error, postpone
from pipeline.publish.timing.rate_caps import is_paced, wait_of
from pipeline.publish.timing.reschedule import move_to_next_slot
from pipeline.publish.validation import why_closed
from pipeline.switches import kill_switch

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pipeline.platforms.payload_types import Adapted
    from pipeline.publish.timing.rate_caps import RateWait

log = structlog.get_logger(__name__)

OUR_FAULT: Final = "An internal error interrupted the call. The platform is asked."

LONGEST_CALL: Final = timedelta(seconds=min(LONGEST_CALL_SECONDS, settings.LEASE_SECONDS * 5 / 6))
"""The longest call, from the start of its attempt with uploads and all requests; shorter than the lease."""
MADE_FOR: Final = "made_for"
"""Key of the step state for the mark of what was prepared; platforms don't see it."""
PENDING_SINCE: Final = "pending_since"
"""Key of the step state for when the platform began to process the post; platforms don't see it."""
PREPARING_SECONDS: Final = 20.0
"""After this time other publications get their turn; what was prepared is kept."""
STEPS_AT_ONCE: Final = 20
"""Steps of a preparation that one task does before other publications get their turn."""
HELD_WAIT: Final = timedelta(seconds=30)
"""How often a publication on hold is checked again; a release of the hold wakes it at once."""


def send(row: Publication, now: datetime) -> None:
    """Send the publication that this task has the lease of, or record why not.

    It is put off if it isn't due, is on hold or has to wait
    for its turn; it fails if its outlet can't be used.
    """
    planned_at = row.next_attempt_at or row.due_at
    # Claims go by the database's clock: if this machine's is behind, the row would be claimed and put off
    # again and again.
    if planned_at is not None and planned_at > now and planned_at > work_queue.database_now():
        postpone(row, planned_at, now)
        return
    is_held = next(find_blockers(row, now, may_be_on_hold=row.is_on_hold), None) is not None
    if not is_held and row.late_policy == "next_slot" and is_too_late(row, now):
        if move_to_next_slot(row, now):
            return
        is_held = True
    if is_held:
        postpone(row, now + HELD_WAIT, now)
        return
    closed_error = why_closed(row.outlet)
    if closed_error is not None:
        record_failure(row, closed_error, now, attempt=None)
        return
    rate_wait = wait_of(row, row.outlet, now)
    if rate_wait is not None:
        postpone(row, rate_wait.until, now, waits_for=rate_wait.as_json())
        return
    _publish_now(row, now)


def _publish_now(row: Publication, now: datetime) -> None:
    """Prepare the publication and make the call; nothing holds it back any more."""
    if row.revision != row.item.revision:
        # What was prepared from an older revision must not be sent as the new one.
        _save_step(row, PublicationStep.PREPARE, {}, revision=row.item.revision)
    try:
        connection = connect(fresh_credentials(row.outlet, now=now))
    except BeingRenewed as error:
        postpone(row, now + (error.after or HELD_WAIT), now)
        return
    except (TryLater, Refused, NeedsReconnect) as error:
        record_failure(row, error, utc_now(), attempt=None, connection=connect(row.outlet))
        return
    try:
        post = post_for(row, connection)
        if not _prepare(row, connection, post):
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


def _prepare(row: Publication, connection: OutletConnection, post: Adapted) -> bool:
    """Do everything before the call that can be repeated.

    False if it isn't time for the call yet; the row was given
    back then. Raises `Refused` if the post isn't valid.
    """
    problems = connection.platform.validate(connection.account, post)
    if problems:
        first = problems[0]
        raise Refused(first.message, code=first.code, field=first.field)
    mark = _preparation_mark(row, post)
    if row.step_state.get(MADE_FOR, mark) != mark:
        # Other alternative texts, settings or account: what was prepared is for a different post.
        _save_step(row, PublicationStep.PREPARE, {}, mark)
    if row.step == PublicationStep.PREPARE and not _has_preparation(connection.platform):
        # Nothing was prepared that has to be stored before the call: the step is written with the attempt.
        row.step, row.step_state = PublicationStep.COMMIT, {}
        crash_point("publish.prepared")
    deadline = monotonic() + PREPARING_SECONDS
    for _ in range(STEPS_AT_ONCE):
        if row.step != PublicationStep.PREPARE:
            break
        if monotonic() > deadline:
            postpone(row, utc_now(), utc_now())
            return False
        prepared = connection.platform.prepare(
            connection.account,
            post,
            _platform_state(row.step_state),
            http=connection.http,
            key=key_of(row),
            now=utc_now(),
        )
        _save_step(
            row,
            PublicationStep.POLL if prepared.is_done else PublicationStep.PREPARE,
            prepared.state,
            mark,
        )
        crash_point("publish.prepared")
    else:
        postpone(row, utc_now(), utc_now())
        return False
    if row.step == PublicationStep.POLL:
        progress = connection.platform.poll(
            connection.account, post, _platform_state(row.step_state), http=connection.http, now=utc_now()
        )
        if isinstance(progress, Pending):
            _wait_for_platform(row, connection.platform, progress, utc_now())
            return False
        _save_step(row, PublicationStep.COMMIT, row.step_state, mark)
    return True


def _wait_for_platform(row: Publication, platform: Platform, progress: Pending, now: datetime) -> None:
    """Poll again when the platform says so. Raises `Refused` after `limits.PROCESSING_MOST`."""
    pending_since = row.step_state.get(PENDING_SINCE)
    if pending_since is None:
        _save_step(row, row.step, {**row.step_state, PENDING_SINCE: format_utc(now)})
    deadline = (datetime.fromisoformat(pending_since) if pending_since else now) + limits.PROCESSING_MOST
    if now >= deadline:
        hours = limits.PROCESSING_MOST // timedelta(hours=1)
        message = (
            f"After {hours} hours {platform.label} was still processing the files; nothing was published."
        )
        action = "Retry it to upload everything again. If that fails too, replace the files."
        raise Refused(message, code="processing_too_long", action=action)
    postpone(row, min(now + progress.after, deadline), now)


def _preparation_mark(row: Publication, post: Adapted) -> str:
    """Return the mark of what a preparation is for: another post or account has another mark."""
    identity = [receipt_of(post), row.outlet.profile.get("external_id")]
    return hashlib.sha256(json.dumps(identity, sort_keys=True, default=str).encode()).hexdigest()[:16]


def _platform_state(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return the step state as the platform left it, without our own keys."""
    return {name: value for name, value in state.items() if name not in {MADE_FOR, PENDING_SINCE}}


def _has_preparation(platform: Platform) -> bool:
    """Return whether the platform prepares or polls before the call."""
    platform_class = type(platform)
    return platform_class.prepare is not Platform.prepare or platform_class.poll is not Platform.poll


def _save_step(row: Publication, step: str, state: Mapping[str, Any], mark: str = "", **changes: Any) -> None:
    """Store step and state and renew the lease. Raises `Overtaken` if the lease isn't ours any more."""
    # Each step gets a lease of its own, because many files take longer than one lease.
    wake_at = work_queue.database_now() + LEASE
    new_state = {**state, MADE_FOR: mark} if mark else dict(state)
    values = {"step": step, "step_state": new_state, "wake_at": wake_at, **changes}
    if not row.under_lease().update(**values):
        raise overtaken_error()
    for name, value in values.items():
        setattr(row, name, value)


def _arm(row: Publication, now: datetime, post: Adapted) -> Attempt | None:
    """Commit the attempt before the call, with the revision and what is sent.

    `None` if the publication was held or edited meanwhile, or if
    another one has the outlet's turn; the row was given back then.
    """
    if kill_switch.stopped("publishing", platform=row.platform, workspace_id=row.workspace_id) is not None:
        postpone(row, now + HELD_WAIT, now)
        return None
    with transaction.atomic():
        item = lock_item(row.item)
        if item.revision != row.revision:
            row.sleep_until(now, attempts=0, step=PublicationStep.PREPARE, step_state={})
            return None
        row.item, row.workspace = item, item.workspace
        outlet = _OUTLET_QUERY.ask(pk=row.outlet_id)[0]
        blockers = find_blockers(row, now, asks_switches=False, may_be_on_hold=outlet.is_on_hold)
        if next(blockers, None) is not None:
            # What was prepared is kept: it is still good after the hold if the item stays as it is.
            row.sleep_until(now, attempts=0)
            return None
        if why_closed(outlet) is not None:
            # Disabled or disconnected while the post was prepared: the next try records that.
            row.sleep_until(now, attempts=0)
            return None
        rate_wait = _rate_wait_under_lock(row, now)
        if rate_wait is not None:
            postpone(row, rate_wait.until, now, waits_for=rate_wait.as_json())
            return None
        states.move(
            row,
            "publishing",
            under_lease=True,
            attempt_count=row.attempt_count + 1,
            revision=item.revision,
            step=row.step,
            step_state=row.step_state,
            # The call gets a whole lease, however long this waited for the lock.
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
            # The deadline of the call counts from here, however long this waited for the lock.
            started_at=utc_now(),
        )
        attempt.ends = monotonic() + LONGEST_CALL.total_seconds()
        insert([attempt])
        if row.outlet.clicks_since is not None:
            keep_short_links(row)
        refresh_item(item, now=now)
    return attempt


_OUTLET_QUERY: Final[Prepared[Any]] = Prepared(
    lambda pk: Outlet.everywhere.filter(pk=pk).annotate(is_on_hold=IS_ON_HOLD)
)


def _rate_wait_under_lock(row: Publication, now: datetime) -> RateWait | None:
    """Return how long to wait for the outlet's turn, asked again under the outlet's lock.

    Of two tasks at the same time only one has the turn.
    """
    if not is_paced(row.outlet, now):
        return None
    outlet: Outlet = Outlet.everywhere.select_for_update(no_key=True).get(pk=row.outlet_id)
    return wait_of(row, outlet, now)


def _commit(row: Publication, connection: OutletConnection, post: Adapted, attempt: Attempt) -> None:
    """Make the call once, and record its outcome.

    Only proof of refusal is a failure; whatever leaves the outcome open is recorded as unknown.
    """
    now = utc_now()
    key = key_of(row)

    def is_ours() -> bool:
        try:
            return bool(row.under_lease().filter(status=PublicationStatus.PUBLISHING).exists())
        finally:
            work_queue.release_connections()

    http = OneCall(connection.http, started_at=attempt.started_at, ends=attempt.ends, is_ours=is_ours)
    # The platform may take long; others can use the database connection meanwhile.
    work_queue.release_connections()
    try:
        sent = connection.platform.commit(
            connection.account, post, _platform_state(row.step_state), http=http, key=key, now=now
        )
    except (TryLater, Refused, NeedsReconnect) as error:
        crash_point("publish.sent")
        record_failure(row, error, utc_now(), attempt=attempt, connection=connection)
    except OutcomeUnknown as error:
        crash_point("publish.sent")
        record_unknown(row, error, utc_now(), connection=connection)
    # Our own bug, after the request may have left: the platform may have the item, so it isn't sent blindly
    # again.
    except Exception:
        log.exception("commit_broke", publication=key)
        record_unknown(row, OutcomeUnknown(OUR_FAULT), utc_now())
    else:
        crash_point("publish.sent")
        try:
            record_success(row, sent, utc_now(), attempt=attempt)
        except states.Overtaken:
            record_despite_lost_lease(row, sent, attempt)
            raise


class OneCall(Client):
    """Passes requests on to `client`, none after the deadline and none for longer than what is left until it.

    From the second request on, `is_ours` is asked too: a call of several steps ends where another task has
    taken over.
    """

    def __init__(
        self, client: Client, *, started_at: datetime, ends: float, is_ours: Callable[[], bool]
    ) -> None:
        """`ends` is the deadline by `monotonic()`, which stands still while the machine is suspended."""
        super().__init__(client.policy)
        self._client = client
        # By the wall clock too, which goes on while the machine is suspended.
        self._ends_at = started_at + LONGEST_CALL
        self._ends = ends
        self._is_ours = is_ours
        self._has_asked = False

    def request(self, method: str, url: str, **options: Any) -> Response:
        """Send the request. Raises `TimedOut` past the deadline, or where another worker has taken over."""
        seconds_left = min(self._ends - monotonic(), (self._ends_at - utc_now()).total_seconds())
        if seconds_left <= 0:
            message = f"The {LONGEST_CALL.total_seconds():g} seconds of the whole call were over."
            raise TimedOut(message)
        if self._has_asked and not self._is_ours():
            message = "Another worker has taken the publication over."
            raise TimedOut(message)
        self._has_asked = True
        options["timeout"] = min(options.get("timeout", http_calls.TIMEOUT_SECONDS), seconds_left)
        return self._client.request(method, url, **options)
