"""Removes posts from their platforms; a post stays published until its removal has succeeded."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import structlog
from django.db import transaction

from config.core import dispatcher, states, work_queue
from config.core.clock import utc_now
from config.core.crash_points import crash_point
from config.core.errors import Conflict
from config.core.middleware import request_id
from pipeline import limits
from pipeline.models import Publication, PublicationStatus, PublicationStep
from pipeline.outlets import health
from pipeline.outlets.outlet_client import connect, platform_of
from pipeline.outlets.renewal import fresh_credentials
from pipeline.platforms.base import Sent
from pipeline.plugins import NeedsReconnect, OutcomeUnknown, PluginError, Refused, TryLater
from pipeline.publish.item_status_and_events import lock_item, refresh_item
from pipeline.publish.payload import key_of
from pipeline.publish.record_outcome import serialize_failure
from pipeline.publish.timing.postpone import overtaken_error, write_scheduled

if TYPE_CHECKING:
    from pipeline.outlets.outlet_client import OutletConnection
    from pipeline.platforms.base import Platform

log = structlog.get_logger(__name__)


def request_removal(
    publication: Publication, *, now: datetime, expected_version: int | None = None
) -> Publication:
    """Schedule the removal of a published post, unless that was done already.

    Raises `Conflict` if the publication isn't published, its platform removes nothing, or the post isn't
    known (see `is_post_known`), and `states.Overtaken` if it isn't the expected version.
    """
    with transaction.atomic():
        item = lock_item(publication.item)
        row: Publication = (
            Publication.everywhere.select_for_update(of=("self",))
            .select_related("outlet")
            .get(pk=publication.pk)
        )
        states.refuse_other_version(row.version, expected_version)
        _refuse_unless_removable(row)
        if row.step != PublicationStep.REMOVE:
            values = {
                "step": "remove",
                "step_state": {**row.step_state, "remove_tries": 0},
                "error": None,
                "wake_at": now,
                "next_attempt_at": now,
                "request_id": request_id(),
                "updated_at": now,
                "version": row.version + 1,
            }
            Publication.everywhere.filter(pk=row.pk).update(**values, **work_queue.overtake())
            row.refresh_from_db(fields=[*values, "lease_token", "attempts"])
            refresh_item(item, now=now)
        dispatcher.wake()
    return row


def _refuse_unless_removable(row: Publication) -> None:
    if row.status != PublicationStatus.PUBLISHED:
        message = f"It is {row.status}; only a published post can be deleted."
        raise Conflict.because(code="not_published", message=message)
    platform = platform_of(row.platform)
    where = f" at {row.url}" if row.url else ""
    if not platform.can_remove:
        message = f"{platform.label} doesn't let apps delete a post. Delete it there by hand{where}."
        raise Conflict.because(code="cannot_remove", message=message)
    if not is_post_known(row, platform):
        raise Conflict.because(code="cannot_remove", message=_unknown_post_message(row, platform))


def is_post_known(row: Publication, platform: Platform) -> bool:
    """Return whether the post can be named to its platform.

    It can't if the platform never named it or a person settled the publication. A platform that is asked to
    delete a post without an id may answer that it is gone.
    """
    return bool(row.external_id) or platform.posts_are_ours


def _unknown_post_message(row: Publication, platform: Platform) -> str:
    where = f" at {row.url}" if row.url else ""
    return f"{platform.label} hasn't named the post. Delete it there by hand{where}."


def remove_post(row: Publication, now: datetime) -> None:
    """Try once to remove the post from its platform, and record the outcome.

    Runs outside of any transaction, because the platform may be slow.
    """
    connection = connect(row.outlet)
    if not is_post_known(row, connection.platform):
        # The removal was requested by a release that didn't refuse it yet.
        message = _unknown_post_message(row, connection.platform)
        _record_removal_failure(row, Refused(message, code="cannot_remove"), connection)
        return
    sent = Sent(external_id=row.external_id, url=row.url, details=row.details)
    try:
        connection = connect(fresh_credentials(row.outlet, now=now))
        connection.platform.remove(connection.account, sent, http=connection.http, now=now)
    except PluginError as error:
        log.info("remove_failed", publication=key_of(row), code=error.code)
        _record_removal_failure(row, error, connection)
        return
    crash_point("publish.removed")
    now = utc_now()
    with transaction.atomic():
        item = lock_item(row.item)
        states.move(
            row,
            "removed",
            under_lease=True,
            step="done",
            error=None,
            wake_at=None,
            next_attempt_at=None,
            attempts=0,
            updated_at=now,
        )
        refresh_item(item, now=now)


def _record_removal_failure(row: Publication, error: PluginError, connection: OutletConnection) -> None:
    """Plan the next try or give up; the post stays published, and its error says why it wasn't taken back."""
    now = utc_now()
    tries = int(row.step_state.get("remove_tries", 0)) + 1
    is_over = tries > len(limits.REMOVAL_RETRIES) or not isinstance(error, TryLater | OutcomeUnknown)
    wait = None if is_over else (getattr(error, "after", None) or limits.REMOVAL_RETRIES[tries - 1])
    next_try_at = None if wait is None else now + min(wait, timedelta(days=1))
    with transaction.atomic():
        item = lock_item(row.item)
        failure = serialize_failure(error, is_retried=not is_over, connection=connection)
        values = {
            "error": failure,
            "step": "done" if is_over else "remove",
            "step_state": {**row.step_state, "remove_tries": tries},
            "wake_at": next_try_at,
            "next_attempt_at": next_try_at,
            "attempts": 0,
            "updated_at": now,
        }
        write_scheduled(row, values)
        if isinstance(error, NeedsReconnect):
            health.mark_lost(row.outlet_id, failure, now, test=row.test, request=row.request_id)
        refresh_item(item, now=now)


def give_up_removal(row: Publication) -> None:
    """Record that the removal's tasks kept crashing; the post stays published.

    Raises `Overtaken` if the lease isn't ours any more.
    """
    message = "Deleting the post failed several times; the operator's log has the reason. Try again."
    failure = serialize_failure(OutcomeUnknown(message, code="gave_up"), is_retried=False)
    if not row.under_lease().update(
        error=failure, step="done", wake_at=None, next_attempt_at=None, attempts=0, version=row.version + 1
    ):
        raise overtaken_error()
