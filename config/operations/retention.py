"""Lists how long each kind of data is kept, and deletes older data in batches.

Each `forget` deletes or empties a small batch in one short statement, and returns how many rows it handled, or 0
if nothing is too old. If the process is killed in between, the next run continues.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from django.contrib.sessions.models import Session

from accounts import limits as accounts_limits
from accounts import notices, users
from accounts.access import counter_caches, idempotency
from analytics import rollup
from config.core import jobs, limits
from config.core.clock import utc_now
from config.core.crash_points import crash_point
from config.operations import media_sweep
from pipeline import limits as pipeline_limits
from pipeline import mailing
from pipeline.generate.model import batches
from pipeline.ingest import collect
from pipeline.ingest.inbound_deliveries import receive
from pipeline.media import make_film, uploads
from pipeline.outlets import hit_counts, oauth_connect
from pipeline.personas import drafts
from pipeline.schedule import planning, recurring, series
from webhooks import limits as webhooks_limits
from webhooks import recovery
from webhooks import retention as webhooks

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime, timedelta

RUN_INTERVAL_SECONDS: Final = 60.0
BATCH_SIZE: Final = 500
"""Sessions that are deleted at once."""


@dataclass(frozen=True)
class RetentionRule:
    """The rule for one kind of data (`what`); `how_long` is a span, or a text if something other than age ends it.

    Without `forget` nothing has to be done, or another rule's `forget` does it.
    """

    what: str
    how_long: timedelta | str
    forget: Callable[[datetime], int] | None = None


def forget_sessions(now: datetime) -> int:
    """Delete a batch of expired sessions, and return how many."""
    batch = list(
        Session.objects.filter(expire_date__lt=now)
        .order_by("expire_date")
        .values_list("pk", flat=True)[:BATCH_SIZE]
    )
    if batch:
        Session.objects.filter(pk__in=batch).delete()
    return len(batch)


RULES: Final[tuple[RetentionRule, ...]] = (
    RetentionRule(
        "answers to an `Idempotency-Key`", accounts_limits.IDEMPOTENCY_KEPT, idempotency.delete_expired
    ),
    RetentionRule("sessions of people who are logged in", "until they expire", forget_sessions),
    RetentionRule(
        "anonymous sessions, with a form that was sent after a session had ended",
        accounts_limits.STRANGERS_SESSION_KEPT,
    ),
    RetentionRule(
        "accounts whose address was never confirmed", accounts_limits.UNVERIFIED_KEPT, users.delete_unverified
    ),
    RetentionRule(
        "counts of tries at log-ins, and of what strangers sent",
        "until their span ends",
        counter_caches.delete_ended_counts,
    ),
    RetentionRule(
        "content of events (the row stays for the counts)",
        webhooks_limits.EVENT_PAYLOADS_KEPT,
        webhooks.empty_events,
    ),
    RetentionRule(
        "attempts of webhook deliveries", webhooks_limits.DELIVERY_ATTEMPTS_KEPT, webhooks.forget_attempts
    ),
    RetentionRule(
        "webhook deliveries that have ended",
        webhooks_limits.DELIVERY_ATTEMPTS_KEPT,
        webhooks.forget_deliveries,
    ),
    RetentionRule(
        "recoveries of webhooks that have ended", webhooks_limits.DELIVERY_ATTEMPTS_KEPT, recovery.forget
    ),
    RetentionRule(
        "uploads that no raw item and no persona uses", pipeline_limits.UPLOADS_KEPT, uploads.delete_expired
    ),
    RetentionRule(
        "deliveries to webhook sources; beyond a source's newest 20, and those that failed the verification",
        pipeline_limits.INBOUND_DELIVERIES_KEPT,
        receive.forget_deliveries,
    ),
    RetentionRule(
        "secrets of webhook sources",
        "until their source is deleted; a rotated one until its overlap with the new one ends",
        receive.forget_secrets,
    ),
    RetentionRule(
        "files of media that no served item names any more", limits.MEDIA_LEFT_KEPT, media_sweep.sweep_some
    ),
    RetentionRule("those files in the trash, unless a row names them again", limits.MEDIA_TRASH_KEPT),
    RetentionRule(
        "files of what was erased: a workspace, a raw item's uploads, a generated item", "not at all"
    ),
    RetentionRule("files that a killed process was writing", limits.MEDIA_PARTS_KEPT),
    RetentionRule(
        "working folders of films whose process was killed",
        pipeline_limits.RENDER_FOLDERS_KEPT,
        make_film.remove_abandoned_folders,
    ),
    RetentionRule("raw and generated items", "until they are deleted; then a tombstone without content"),
    RetentionRule(
        "what identifies a raw item (`dedup_key`)", "for good, so that deleted content isn't imported again"
    ),
    RetentionRule(
        "entries of a source that nothing was made of, in its log",
        pipeline_limits.SOURCE_ENTRIES_KEPT,
        collect.forget_entries,
    ),
    RetentionRule("drafts of personas", pipeline_limits.PERSONA_DRAFTS_KEPT, drafts.forget),
    RetentionRule(
        "plans of a week, for their undo; what they scheduled stays",
        pipeline_limits.PLANS_KEPT,
        planning.forget,
    ),
    RetentionRule("ended series and their logs; their digests stay", series.KEPT, series.forget),
    RetentionRule(
        "items that no longer repeat, with their logs; their repeats stay", recurring.KEPT, recurring.forget
    ),
    RetentionRule(
        "unfinished connections of outlets at a platform",
        pipeline_limits.OAUTH_ATTEMPT_KEPT,
        oauth_connect.forget,
    ),
    RetentionRule(
        "hosts that are no longer fetched from", pipeline_limits.HOST_SLOTS_KEPT, collect.forget_hosts
    ),
    RetentionRule(
        "each recipient's line of a newsletter; the counts stay",
        pipeline_limits.MAIL_DELIVERIES_KEPT,
        mailing.forget_deliveries,
    ),
    RetentionRule(
        "subscribers who never confirmed",
        pipeline_limits.SUBSCRIBERS_UNCONFIRMED_KEPT,
        mailing.forget_unconfirmed,
    ),
    RetentionRule(
        "other subscribers, including unsubscribed and bounced ones, so that they aren't mailed again",
        "until they are removed",
    ),
    RetentionRule(
        "clicks and fetches that the service counts itself",
        pipeline_limits.HIT_COUNTS_KEPT,
        hit_counts.forget,
    ),
    RetentionRule(
        "their sums by quarter of an hour and day", pipeline_limits.HIT_COUNTS_KEPT, rollup.forget_hits
    ),
    RetentionRule(
        "short links, which hold an address and nothing about their visitors",
        "until their workspace is erased, so that published links keep working",
    ),
    RetentionRule("model answers of a run, those of a batch too", "until the run is over"),
    RetentionRule(
        "batches of calls to a model; their costs stay", pipeline_limits.MODEL_BATCHES_KEPT, batches.forget
    ),
    RetentionRule("notices and their outcome", accounts_limits.NOTICES_KEPT, notices.delete_old),
    RetentionRule("what a model found in a raw item", "until the raw item is deleted"),
    RetentionRule("a workspace's place in its rate limit", "one row for each workspace"),
    RetentionRule(
        "a deleted workspace",
        f"{accounts_limits.WORKSPACE_DELETED_AFTER.days} days, in which it rests; then everything but ledger, audit log and calls to a model is erased",
    ),
    RetentionRule(
        "invitations",
        f"until their workspace is erased; a link works for {accounts_limits.INVITATION_KEPT.days} days",
    ),
    RetentionRule("ledger, audit log, measurements and their sums, calls to a model", "for good"),
)


def forget_some() -> int:
    """Delete a batch of each kind that is too old, and return how many rows in all, or 0 if nothing is left."""
    now, count = utc_now(), 0
    for rule in RULES:
        if rule.forget is None:
            continue
        forgotten = rule.forget(now)
        if forgotten:
            crash_point("retention.forgotten")
        count += forgotten
    return count


jobs.register(
    jobs.BatchJob(name="housekeeping.forget_old_rows", work=forget_some, every_seconds=RUN_INTERVAL_SECONDS)
)
