"""Write what became of a publication, and tell it."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from django.db import transaction
from django.db.models import F
from django.utils.translation import gettext as _

from accounts import notices
from config.ground import limits, states
from config.ground.crash import crash_point
from config.ground.errors import Detail
from config.ground.moments import as_z
from pipeline import events, payloads
from pipeline.models import Attempt, GeneratedItem, Outlet, Publication
from pipeline.plugins import NeedsReconnect, PluginError, Refused, TryLater
from pipeline.stages import pictures
from pipeline.stages.publish.item_status import locked, refresh_item
from pipeline.stages.publish.payload import effective_overrides, words_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID

    from pipeline.platforms.base import Sent

MESSAGE_CHARACTERS: Final = 1000
"""Of what a platform says of a failure; the rest is in nobody's interest."""


def record_success(row: Publication, sent: Sent, now: datetime, *, attempt: Attempt | None) -> None:
    with transaction.atomic():
        item = locked(row.item)
        states.move(
            row,
            "published",
            under_lease=True,
            wake_at=None,
            next_attempt_at=None,
            external_id=sent.external_id[:300],
            url=sent.url[: limits.URL_CHARACTERS],
            error=None,
            unknown_since=None,
            published_at=now,
            # As it was sent, whatever becomes of the item.
            overrides=effective_overrides(words_of(row), row.outlet, row.overrides),
            attempts=0,
            updated_at=now,
        )
        _close_attempts(row, "succeeded", None, now, attempt=attempt)
        if attempt is not None:
            _reconnected(row.outlet, now)
        refresh_item(item, now=now)
        tell(row, item, "published.success", now)
        crash_point("publish.recorded")


def record_failure(
    row: Publication,
    error: PluginError,
    now: datetime,
    *,
    attempt: Attempt | None,
    tries: int | None = None,
) -> None:
    """It was provably not published: due again by the schedule, or failed for good.

    `tries` is how often it was tried with this one. A failure before the call is a try of its own; one that a
    look-up tells is of a call that was counted when it was armed.
    """
    with transaction.atomic():
        item = locked(row.item)
        if tries is None:
            tries = row.attempt_count if attempt is not None else row.attempt_count + 1
        wait = _wait_after(error, tries)
        next_at = None if wait is None else now + wait
        is_late = next_at is not None and is_overdue(row, now)
        shown = {
            "code": error.code,
            "class": type(error).__name__,
            "message": error.message[:MESSAGE_CHARACTERS],
            "retryable": next_at is not None,
            "platform_status": error.platform_status,
        }
        values: dict[str, Any] = {
            "error": shown,
            "attempt_count": tries,
            "next_attempt_at": next_at,
            "wake_at": next_at and (next_at if is_late else _or_when_overdue(row, next_at)),
            "attempts": 0,
            "step": "prepare",
            "step_state": {},
            "unknown_since": None,
            "lookups": 0,
            "updated_at": now,
        }
        if is_late:
            values["overdue_told_at"] = now
        to = "scheduled" if next_at else "failed"
        if row.status == to:
            write_scheduled(row, values)
        else:
            states.move(row, to, under_lease=True, **values)
        _close_attempts(row, "failed", shown, now, attempt=attempt)
        if isinstance(error, NeedsReconnect):
            _disconnect(row, error, now)
        refresh_item(item, now=now)
        tell(row, item, "published.failed", now, will_retry=next_at is not None)
        if is_late:
            tell(row, item, "published.overdue", now)
        crash_point("publish.recorded")


def record_unknown(
    row: Publication, message: str, now: datetime, *, platform_status: int | None = None
) -> None:
    with transaction.atomic():
        item = locked(row.item)
        shown = {
            "code": "outcome_unknown",
            "class": "OutcomeUnknown",
            "message": message[:MESSAGE_CHARACTERS],
            "retryable": False,
            "platform_status": platform_status,
        }
        look_at = now + limits.RECONCILE_EVERY[0]
        states.move(
            row,
            "unknown",
            under_lease=True,
            error=shown,
            unknown_since=now,
            # Each time that its outcome is lost is told of its own.
            unknown_told_at=None,
            lookups=0,
            next_attempt_at=look_at,
            wake_at=look_at,
            attempts=0,
            updated_at=now,
        )
        for attempt in Attempt.everywhere.filter(publication=row, status="started"):
            states.move(attempt, "unknown", error=shown)
        refresh_item(item, now=now)
        crash_point("publish.recorded")


def note_metrics(publication_id: UUID, metrics: Mapping[str, int | None], *, now: datetime) -> None:
    """Keep the newest numbers beside the publication, for its JSON; the measurements themselves are the facts."""
    Publication.everywhere.filter(pk=publication_id).update(
        metrics=dict(metrics), version=F("version") + 1, updated_at=now
    )


def put_off(row: Publication, until: datetime, now: datetime) -> None:
    """Give a scheduled publication back unsent; where that makes it overdue, tell so in the same transaction."""
    if not is_overdue(row, now):
        row.sleep_until(_or_when_overdue(row, until), attempts=0)
        return
    with transaction.atomic():
        item = locked(row.item)
        # Nothing that is shown changes, so that the version stays.
        if not row.sleep_until(until, attempts=0, overdue_told_at=now):
            raise overtaken()
        row.overdue_told_at = now
        tell(row, item, "published.overdue", now)


def is_overdue(row: Publication, now: datetime) -> bool:
    """Whether its people have to be told by now that it is late, and were not."""
    tell_at = _overdue_at(row)
    return tell_at is not None and now >= tell_at


def next_look(row: Publication) -> datetime | None:
    """When a hand looks at a scheduled publication: for its next try, or before that to tell that it is late."""
    moment = row.next_attempt_at or row.due_at
    return moment and _or_when_overdue(row, moment)


def _or_when_overdue(row: Publication, until: datetime) -> datetime:
    tell_at = _overdue_at(row)
    return until if tell_at is None else min(until, tell_at)


def _overdue_at(row: Publication) -> datetime | None:
    if row.overdue_told_at is not None or row.due_at is None:
        return None
    return row.due_at + limits.OVERDUE_TOLD_AFTER


def write_scheduled(row: Publication, values: Mapping[str, Any]) -> None:
    """A failure before the call leaves the status as it is; the lease still has to hold."""
    if not row.under_lease().update(**values, version=F("version") + 1):
        raise overtaken()
    for name, value in values.items():
        setattr(row, name, value)
    row.version += 1


def overtaken() -> states.Overtaken:
    return states.Overtaken(Detail("status", "changed_meanwhile", "Somebody changed it meanwhile."))


def _wait_after(error: PluginError, tries: int) -> timedelta | None:
    """None where it is not tried again: the content is refused, or its tries are used up."""
    if isinstance(error, Refused) or tries > len(limits.PUBLISH_RETRIES):
        return None
    planned = limits.PUBLISH_RETRIES[max(tries, 1) - 1]
    asked = error.after if isinstance(error, TryLater) else None
    # A platform that names a time is believed, up to a day; a shorter time than the schedule's is taken too.
    return planned if asked is None else min(asked, timedelta(days=1))


def _close_attempts(
    row: Publication, to: str, error: Mapping[str, Any] | None, now: datetime, *, attempt: Attempt | None
) -> None:
    """The attempt of this call, or every one whose outcome was open until a look-up told it."""
    open_ones = (
        [attempt]
        if attempt is not None
        else list(Attempt.everywhere.filter(publication=row, status__in=["started", "unknown"]))
    )
    for one in open_ones:
        states.move(one, to, error=error, finished_at=now)


def _disconnect(row: Publication, error: NeedsReconnect, now: datetime) -> None:
    # Locked, because two publications may learn of it at once; the weaker lock lets others refer to the outlet.
    outlet: Outlet = Outlet.everywhere.select_for_update(no_key=True).get(pk=row.outlet_id)
    if outlet.status != "ok":
        return
    states.move(
        outlet,
        "needs_reconnect",
        last_error={"code": error.code, "message": error.message[:MESSAGE_CHARACTERS], "at": as_z(now)},
        updated_at=now,
    )
    events.record(
        "outlet.needs_reconnect",
        workspace_id=outlet.workspace_id,
        test=row.test,
        data={"outlet": payloads.outlet(payloads.row_of(outlet), is_default=outlet.is_default)},
        request=row.request_id,
        now=now,
    )
    if not row.test:
        notices.record(
            "outlet_reconnect",
            workspace_id=outlet.workspace_id,
            key=f"{outlet.pk.hex}:{outlet.version}",
            title=_("%(outlet)s has to be reconnected") % {"outlet": outlet.name},
            text=_("%(platform)s says: %(error)s\nNothing is published there until then.")
            % {"platform": outlet.platform, "error": error.message},
            path="#outlets",
            now=now,
        )


def _reconnected(outlet: Outlet, now: datetime) -> None:
    """What has just taken a post works again."""
    if outlet.status != "needs_reconnect":
        return
    fresh: Outlet = Outlet.everywhere.select_for_update(no_key=True).get(pk=outlet.pk)
    if fresh.status == "needs_reconnect":
        states.move(fresh, "ok", last_error=None, updated_at=now)


def tell(
    row: Publication, item: GeneratedItem, event_type: str, now: datetime, *, will_retry: bool | None = None
) -> None:
    data: dict[str, Any] = {
        "generated_item": payloads.generated_item(
            payloads.row_of(item),
            publications=Publication.everywhere.filter(item=item)
            .order_by("id")
            .values(*payloads.PUBLICATION_FIELDS),
            assets=pictures.files_of(item),
            now=now,
        ),
        "publication": payloads.publication(payloads.row_of(row)),
    }
    if event_type == "published.failed":
        data["error"] = row.error
        data["will_retry"] = will_retry
        data["next_attempt_at"] = as_z(row.next_attempt_at) if will_retry and row.next_attempt_at else None
    events.record(
        event_type,
        workspace_id=row.workspace_id,
        test=row.test,
        data=data,
        generated_item_id=row.item_id,
        publication_id=row.pk,
        source_id=item.source_id,
        will_retry=will_retry,
        request=row.request_id,
        now=now,
    )
    if event_type == "published.failed" and will_retry is False and not row.test:
        _notify_of_failure(row, item, now)


def _notify_of_failure(row: Publication, item: GeneratedItem, now: datetime) -> None:
    """A failure that ends its tries; sent anew by a person and failed again, it is another one."""
    words = {"item": item.title or item.excerpt or _("An item"), "outlet": row.outlet.name}
    if row.status == "unknown":
        title = _("Nobody knows whether “%(item)s” was published on %(outlet)s") % words
    else:
        title = _("“%(item)s” was not published on %(outlet)s") % words
    notices.record(
        "post_failed",
        workspace_id=row.workspace_id,
        key=f"{row.pk.hex}:{row.version}",
        title=title,
        text=str((row.error or {}).get("message", "")),
        path="#failed",
        now=now,
    )
