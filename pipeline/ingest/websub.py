"""Subscribes to hubs that announce a source's changes (W3C WebSub), renews leases, and receives pushes.

A push only wakes the source's poll, which reads the changes as any poll does. A lost push costs a day at most,
because a source with a lease is polled once a day all the same.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import structlog
from django.conf import settings
from django.db import transaction
from django.db.models import Q

from config.core import dispatcher, limits, states, work_queue
from config.core.clock import utc_now
from config.core.crash_points import crash_point
from config.core.datetimes import format_utc
from config.core.http_client import OutboundError, shared
from pipeline.models import Source, WebSubStatus, WebSubSubscription
from pipeline.sources.feeds.decoding import ILLEGAL_CHARACTERS
from pipeline.states import ENDED_SUBSCRIPTIONS, POLLED_SOURCES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pipeline.sources.base import Hub

log = structlog.get_logger(__name__)

LEASE: Final = timedelta(days=10)
"""The lease that we request; the hub may give another one."""
SHORTEST_LEASE: Final = timedelta(minutes=5)
LONGEST_LEASE: Final = timedelta(days=90)
RENEW_AT_SHARE: Final = 0.8
"""The share of a lease after which it is renewed."""
VERIFICATION_TIMEOUT: Final = timedelta(minutes=10)
"""The time within which the hub has to verify a request that it accepted."""
FIRST_WAIT: Final = timedelta(hours=1)
"""The wait after the first request that failed; it doubles up to `LONGEST_WAIT`."""
LONGEST_WAIT: Final = timedelta(days=1)
DENIED_WAIT: Final = timedelta(days=7)
SLOW_POLL: Final = timedelta(days=1)
"""The least wait between two polls of a source with a lease."""
MIN_TIME_BETWEEN_WAKES: Final = timedelta(minutes=1)
"""The least time between two polls that pushes cause, however often a hub calls."""
TIMEOUT_SECONDS: Final = 15
MAX_ANSWER_BYTES: Final = 64 * 1024
MAX_PUSH_BYTES: Final = 20 * 1024 * 1024
"""The size limit of a push, which is read piece by piece for its signature and not stored."""
MAX_MESSAGE_CHARACTERS: Final = 500
LEASED: Final = ("active", "renewing")
ALGORITHMS: Final = frozenset({"sha1", "sha256", "sha384", "sha512"})


def is_offered() -> bool:
    """Return whether hubs can reach this instance; the secret needs https."""
    return settings.PUBLIC_URL.startswith("https://")


def follow(source: Source, hub: Hub | None, *, now: datetime) -> timedelta | None:
    """Subscribe a polled source to its hub, and return the least wait for the next poll if it has a lease.

    The result is `None` without a lease. There is no subscription if the source names no hub, hubs can't reach
    the instance, or an address is too long to store. A source that names another hub or topic than before, or
    whose subscription ended, subscribes again.
    """
    if hub is None or not hub.urls or not is_offered():
        return None
    url, topic = hub.urls[0], hub.topic
    if max(len(url), len(topic)) > limits.URL_CHARACTERS:
        return None
    row = WebSubSubscription.everywhere.filter(source=source).first()
    if row is None:
        _subscribe(source, url, topic, now)
        return None
    if (row.hub, row.topic) != (url, topic) or row.status == WebSubStatus.ENDED:
        _resubscribe(row, url, topic, now)
        return None
    has_lease = row.status in LEASED and row.lease_ends_at is not None and row.lease_ends_at > now
    return SLOW_POLL if has_lease else None


def _subscribe(source: Source, url: str, topic: str, now: datetime) -> None:
    """Store the first subscription of a source; a worker then calls the hub."""
    row = WebSubSubscription(
        workspace_id=source.workspace_id,
        source=source,
        hub=url,
        topic=topic,
        token=secrets.token_urlsafe(24),
        secret=secrets.token_urlsafe(32),
        due_at=now,
        wake_at=now,
        created_at=now,
        updated_at=now,
    )
    with transaction.atomic():
        # A poll that was killed after this and comes again finds the row; two at once make one.
        WebSubSubscription.everywhere.bulk_create([row], ignore_conflicts=True)
        dispatcher.wake()


def _resubscribe(row: WebSubSubscription, url: str, topic: str, now: datetime) -> None:
    """Subscribe again at that hub, with a new callback address, unless the row was moved meanwhile."""
    changes: dict[str, Any] = {"hub": url, "topic": topic, "tries": 0, "error": None, "lease_ends_at": None}
    with transaction.atomic():
        try:
            # The old callback address is dropped, so that the old hub gets a 410 there.
            states.move(
                row,
                "wanted",
                due_at=now,
                wake_at=now,
                token=secrets.token_urlsafe(24),
                **changes,
                **work_queue.overtake(),
            )
        except states.Overtaken:
            return
        dispatcher.wake()


# --- The worker ------------------------------------------------------------------------------------------------------


def advance_subscription(row: WebSubSubscription) -> None:
    """Request or renew the lease, record its lapse, or end the subscription, unless the row was moved meanwhile."""
    crash_point("websub.claimed")
    now = utc_now()
    try:
        if not _is_still_wanted(row):
            states.move(row, "ended", under_lease=True, wake_at=None, due_at=None, attempts=0)
            return
        has_lease = row.lease_ends_at is not None and row.lease_ends_at > now
        if row.status == WebSubStatus.ASKED or (row.status in LEASED and not has_lease):
            _record_lapse(row, now)
        else:
            _request_lease(row, "renewing" if has_lease else "asked", now)
    except states.Overtaken:
        # The hub's answer, or a poll that found another hub, was faster.
        log.info("overtaken", subscription=row.pk.hex)


def give_up(row: WebSubSubscription) -> None:
    """Sleep for a day after several failures; polls go on meanwhile."""
    row.sleep_until(utc_now() + LONGEST_WAIT, attempts=0)


def _is_still_wanted(row: WebSubSubscription) -> bool:
    """Return whether source and workspace are active and a hub can reach this instance."""
    source: Source = Source.everywhere.select_related("workspace").get(pk=row.source_id)
    is_polled = source.status in POLLED_SOURCES and source.deleted_at is None
    return is_offered() and is_polled and source.workspace.is_at_work


def _request_lease(row: WebSubSubscription, to: str, now: datetime) -> None:
    """Request a lease from the hub, and record a refusal.

    The state is saved before the call, because some hubs verify before they answer it. Nothing is requested if
    the row was moved meanwhile. Raises `states.Overtaken` if it was moved before a change of status.
    """
    tries = row.tries + 1
    values: dict[str, Any] = {"asked_at": now, "tries": tries, "attempts": 0}
    until = now + VERIFICATION_TIMEOUT if to == "asked" else _before_lease_ends(row, now + _wait_after(tries))
    if row.status == to:
        # The hub didn't answer the last renewal, but the lease still runs.
        if not row.sleep_until(until, due_at=until, **values):
            return
        row.tries = tries
    else:
        states.move(row, to, under_lease=True, wake_at=until, due_at=until, **values)
    crash_point("websub.armed")
    problem = _send_request(row)
    crash_point("websub.sent")
    if problem:
        _record_refusal(row, problem, now)


def _send_request(row: WebSubSubscription) -> str:
    """Call the hub, and return an error message, or an empty string if the hub accepted the request."""
    form = {
        "hub.callback": f"{settings.PUBLIC_URL.rstrip('/')}/hooks/websub/{row.token}",
        "hub.mode": "subscribe",
        "hub.topic": row.topic,
        "hub.lease_seconds": str(int(LEASE.total_seconds())),
    }
    if row.hub.startswith("https://"):
        form["hub.secret"] = _secret_of(row)
    try:
        answer = shared.client().post(
            row.hub,
            form=form,
            timeout=TIMEOUT_SECONDS,
            max_bytes=MAX_ANSWER_BYTES,
            truncate=True,
            max_redirects=3,
        )
    except OutboundError as error:
        return f"The hub could not be asked: {error}"
    if 200 <= answer.status < 300:
        return ""
    reply = " ".join(answer.body.decode("utf-8", errors="replace").split())[:200]
    return f"The hub refused (status {answer.status}){': ' + reply if reply else '.'}"


def _secret_of(row: WebSubSubscription) -> str:
    """Return the subscription's secret, decrypted unless the row was just made."""
    return row.secret if isinstance(row.secret, str) else row.secret.open()


def _record_refusal(row: WebSubSubscription, problem: str, now: datetime) -> None:
    """Store the error and try again later; a lease that still runs stays."""
    until = _before_lease_ends(row, now + _wait_after(row.tries))
    message = ILLEGAL_CHARACTERS.sub("", problem)[:MAX_MESSAGE_CHARACTERS]
    error = {"code": "hub_refused", "message": message, "at": format_utc(now)}
    if row.status == WebSubStatus.ASKED:
        states.move(row, "wanted", under_lease=True, wake_at=until, due_at=until, error=error)
    else:
        row.sleep_until(until, due_at=until, error=error)


def _before_lease_ends(row: WebSubSubscription, moment: datetime) -> datetime:
    """Return `moment`, or the end of the lease if that comes first."""
    return min(moment, row.lease_ends_at) if row.lease_ends_at is not None else moment


def _record_lapse(row: WebSubSubscription, now: datetime) -> None:
    """Record that the hub didn't verify in time, or that the lease ended without a new one.

    The lease is requested again at once if it ended, else after a wait.
    """
    is_over = row.status in LEASED
    until = now if is_over else now + _wait_after(row.tries)
    message = "The lease ended." if is_over else "The hub took the request and did not verify it in time."
    error = {"code": "lease_ended" if is_over else "not_verified", "message": message, "at": format_utc(now)}
    states.move(
        row,
        "wanted",
        under_lease=True,
        wake_at=until,
        due_at=until,
        attempts=0,
        lease_ends_at=None,
        error=error,
    )


def _wait_after(tries: int) -> timedelta:
    """Return the wait before the next request, which doubles with each try, up to `LONGEST_WAIT`."""
    doubled: int = 2 ** min(max(tries - 1, 0), 8)
    return min(FIRST_WAIT * doubled, LONGEST_WAIT)


# --- Calls of the hub ------------------------------------------------------------------------------------------------


def verify(token: str, *, mode: str, topic: str, lease_seconds: int | None, now: datetime) -> bool:
    """Begin the lease that the hub's verification request offers. Return `True` if it is to be confirmed.

    It isn't if there is no such subscription with that topic, it has ended, it was moved meanwhile, or `mode`
    isn't `subscribe`. The lease is kept within its bounds, and `LEASE` if the hub names none.
    """
    row = WebSubSubscription.everywhere.filter(token=token).first()
    if row is None or topic != row.topic or mode != "subscribe" or row.status in ENDED_SUBSCRIPTIONS:
        return False
    offered_lease = timedelta(seconds=lease_seconds) if lease_seconds else LEASE
    lease = max(SHORTEST_LEASE, min(offered_lease, LONGEST_LEASE))
    renew_at = now + lease * RENEW_AT_SHARE
    try:
        states.move(
            row,
            "active",
            wake_at=renew_at,
            due_at=renew_at,
            lease_ends_at=now + lease,
            tries=0,
            error=None,
            **work_queue.overtake(),
        )
    except states.Overtaken:
        # It ended at this moment, or another verification was first; the hub asks again if it matters.
        return False
    crash_point("websub.verified")
    return True


def deny(token: str, *, topic: str, reason: str, now: datetime) -> bool:
    """Record that the hub denies the subscription, which is requested again after `DENIED_WAIT`.

    Return `False` if there is no such subscription with that topic, it has ended, or it was moved meanwhile.
    """
    row = WebSubSubscription.everywhere.filter(token=token).first()
    if row is None or topic != row.topic or row.status in ENDED_SUBSCRIPTIONS:
        return False
    next_request = now + DENIED_WAIT
    reason = ILLEGAL_CHARACTERS.sub("", reason).strip()
    detail = f": {reason[:300]}" if reason else "."
    error = {"code": "denied", "message": f"The hub denied the subscription{detail}", "at": format_utc(now)}
    try:
        states.move(
            row,
            "denied",
            wake_at=next_request,
            due_at=next_request,
            lease_ends_at=None,
            error=error,
            **work_queue.overtake(),
        )
    except states.Overtaken:
        return False
    return True


def receive(token: str, signature: str, pieces: Iterable[bytes], *, now: datetime) -> bool:
    """Handle a push by waking the source. Return `False` if there is no such subscription, or it has ended.

    The subscription of a source that isn't polled any more is ended here. A push that isn't signed as agreed is
    ignored. `signature` is the header's `<algorithm>=<hex>` over the raw body, of which `pieces` are the parts
    in order.
    """
    row = WebSubSubscription.everywhere.filter(token=token).select_related("source__workspace").first()
    if row is None or row.status in ENDED_SUBSCRIPTIONS:
        return False
    source = row.source
    if (
        source.status not in POLLED_SOURCES
        or source.deleted_at is not None
        or not source.workspace.is_at_work
    ):
        _end(row)
        return False
    if row.hub.startswith("https://") and not _is_signed(_secret_of(row), signature, pieces):
        log.warning("websub_push_not_signed", subscription=row.pk.hex)
        return True
    _wake_source(row, now)
    return True


def _end(row: WebSubSubscription) -> None:
    """End the subscription, unless the row was moved meanwhile."""
    try:
        states.move(row, "ended", wake_at=None, due_at=None, lease_ends_at=None, **work_queue.overtake())
    except states.Overtaken:
        log.info("overtaken", subscription=row.pk.hex)


def _is_signed(secret: str, signature: str, pieces: Iterable[bytes]) -> bool:
    """Return whether the pieces have this signature, by a known algorithm, and aren't too large."""
    algorithm, _, digest = signature.strip().partition("=")
    if algorithm.lower() not in ALGORITHMS:
        return False
    expected = hmac.new(secret.encode(), digestmod=getattr(hashlib, algorithm.lower()))
    size = 0
    for piece in pieces:
        size += len(piece)
        if size > MAX_PUSH_BYTES:
            return False
        expected.update(piece)
    return hmac.compare_digest(expected.hexdigest().encode(), digest.strip().lower().encode())


def _wake_source(row: WebSubSubscription, now: datetime) -> None:
    """Wake the source for a poll at once, or as soon as `MIN_TIME_BETWEEN_WAKES` allows.

    A poll that is running may have missed the change, so it is overtaken. Nothing is done if the poll of an
    earlier push is still to come.
    """
    if row.woken_until is not None and row.woken_until > now + MIN_TIME_BETWEEN_WAKES:
        # The poll that an earlier push caused hasn't run yet.
        return
    moment = max(now, row.woken_until) if row.woken_until else now
    with transaction.atomic():
        # Of two pushes at the same time only one wakes the source, and the poll comes after both.
        unchanged = WebSubSubscription.everywhere.filter(pk=row.pk, woken_until=row.woken_until)
        if not unchanged.update(woken_until=moment + MIN_TIME_BETWEEN_WAKES, pushed_at=now, updated_at=now):
            return
        sleeps_longer = Q(wake_at__gt=moment) | Q(wake_at=None) | Q(attempts__gt=0)
        sources = Source.everywhere.filter(
            sleeps_longer, pk=row.source_id, status__in=POLLED_SOURCES, deleted_at=None
        )
        sources.update(wake_at=moment, due_at=moment, **work_queue.overtake())
        dispatcher.wake()
    crash_point("websub.woken")
