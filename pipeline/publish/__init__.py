"""Publishes items: at once or on schedule, to each outlet at most once, with every outcome recorded."""

from pipeline.publish.blockers import (
    RELEASE_HOLD_CALL,
    Blocker,
    access_blockers,
    find_blockers,
    find_hold,
    latest_of,
)
from pipeline.publish.item_status_and_events import (
    PUBLISHING_STATUSES,
    lock_groups,
    lock_groups_of,
    refresh_item,
)
from pipeline.publish.manual_publish import package_files, package_of
from pipeline.publish.payload import effective_overrides, key_of, payload_of, read_assets_by_item, receipt_of
from pipeline.publish.reconciliation import mark_unsent_unknown, settle_publication
from pipeline.publish.record_outcome import note_metrics
from pipeline.publish.removal import is_post_known, request_removal
from pipeline.publish.requests import (
    cancel,
    cancel_failed,
    reconcile_now,
    renew_scheduled,
    request,
    retry,
    wake_scheduled,
)
from pipeline.publish.send import HELD_WAIT
from pipeline.publish.timing.queue_slots import (
    blackouts_of,
    ensure_default_queue,
    find_publish_queue,
    has_zone,
    lock_outlets,
    moments_of,
)
from pipeline.publish.timing.reschedule import apply_zone_changes, retime
from pipeline.publish.undo_snapshot import reschedule_from_snapshot, restore_snapshot, take_snapshot
from pipeline.publish.validation import (
    CannotPublish,
    OutletVerdict,
    PublishWish,
    dry_run,
    problems_of,
    validate_outlets,
    why_closed,
    why_not_publishable,
)

__all__ = [
    "HELD_WAIT",
    "PUBLISHING_STATUSES",
    "RELEASE_HOLD_CALL",
    "Blocker",
    "CannotPublish",
    "OutletVerdict",
    "PublishWish",
    "access_blockers",
    "apply_zone_changes",
    "blackouts_of",
    "cancel",
    "cancel_failed",
    "dry_run",
    "effective_overrides",
    "ensure_default_queue",
    "find_blockers",
    "find_hold",
    "find_publish_queue",
    "has_zone",
    "is_post_known",
    "key_of",
    "latest_of",
    "lock_groups",
    "lock_groups_of",
    "lock_outlets",
    "mark_unsent_unknown",
    "moments_of",
    "note_metrics",
    "package_files",
    "package_of",
    "payload_of",
    "problems_of",
    "read_assets_by_item",
    "receipt_of",
    "reconcile_now",
    "refresh_item",
    "renew_scheduled",
    "request",
    "request_removal",
    "reschedule_from_snapshot",
    "restore_snapshot",
    "retime",
    "retry",
    "settle_publication",
    "take_snapshot",
    "validate_outlets",
    "wake_scheduled",
    "why_closed",
    "why_not_publishable",
]
