"""Publish: at once or on schedule, to each outlet once, with every outcome told."""

from pipeline.publish.blockers import RELEASE, Blocker, held_back, hold_of, latest_of, without_access
from pipeline.publish.item_status import PUBLISHING_STATUSES, lock_groups, lock_groups_of, refresh_item
from pipeline.publish.manual_publish import is_handed_over, package_files, package_of
from pipeline.publish.payload import assets_of, effective_overrides, key_of, payload_of, receipt_of
from pipeline.publish.reconciliation import doubt_promised, settle_publication
from pipeline.publish.removal import remove
from pipeline.publish.requests import (
    cancel,
    leave,
    reconcile_now,
    renew_scheduled,
    request,
    retry,
    wake_scheduled,
)
from pipeline.publish.results import note_metrics
from pipeline.publish.send import HELD_WAIT
from pipeline.publish.steps import advance_publication, give_up
from pipeline.publish.timing.queue_slots import (
    blackouts_of,
    default_queue,
    has_zone,
    lock_outlets,
    moments_of,
    publish_queue_of,
)
from pipeline.publish.timing.reschedule import ZONES_EVERY_SECONDS, follow_zones, retime, set_clocks
from pipeline.publish.undo_snapshot import put_back, reschedule_from_snapshot, snapshot
from pipeline.publish.validation import (
    CannotPublish,
    OutletVerdict,
    Wish,
    dry_run,
    problems_of,
    validate_outlets,
    why_closed,
    why_not_publishable,
)

__all__ = [
    "HELD_WAIT",
    "PUBLISHING_STATUSES",
    "RELEASE",
    "ZONES_EVERY_SECONDS",
    "Blocker",
    "CannotPublish",
    "OutletVerdict",
    "Wish",
    "advance_publication",
    "assets_of",
    "blackouts_of",
    "cancel",
    "default_queue",
    "doubt_promised",
    "dry_run",
    "effective_overrides",
    "follow_zones",
    "give_up",
    "has_zone",
    "held_back",
    "hold_of",
    "is_handed_over",
    "key_of",
    "latest_of",
    "leave",
    "lock_groups",
    "lock_groups_of",
    "lock_outlets",
    "moments_of",
    "note_metrics",
    "package_files",
    "package_of",
    "payload_of",
    "problems_of",
    "publish_queue_of",
    "put_back",
    "receipt_of",
    "reconcile_now",
    "refresh_item",
    "remove",
    "renew_scheduled",
    "request",
    "reschedule_from_snapshot",
    "retime",
    "retry",
    "set_clocks",
    "settle_publication",
    "snapshot",
    "validate_outlets",
    "wake_scheduled",
    "why_closed",
    "why_not_publishable",
    "without_access",
]
