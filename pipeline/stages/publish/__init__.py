"""Publish: at once or on schedule, to each outlet once, with every outcome told."""

from pipeline.stages.publish.asking import (
    cancel,
    leave,
    reconcile_now,
    renew_scheduled,
    request,
    retry,
    wake_scheduled,
)
from pipeline.stages.publish.clocks import ZONES_EVERY_SECONDS, follow_zones, set_clocks
from pipeline.stages.publish.doubting import doubt_promised
from pipeline.stages.publish.handing_over import is_handed_over, package_files, package_of
from pipeline.stages.publish.item_status import PUBLISHING_STATUSES, lock_groups, refresh_item
from pipeline.stages.publish.judging import (
    CannotPublish,
    Judged,
    Wish,
    dry_run,
    judge,
    problems_of,
    why_closed,
    why_not_publishable,
)
from pipeline.stages.publish.payload import assets_of, effective_overrides, key_of, payload_of, receipt_of
from pipeline.stages.publish.putting_back import as_they_stand, promise_as_before, put_back
from pipeline.stages.publish.queueing import (
    Slot,
    blackouts_of,
    default_queue,
    has_zone,
    lock_outlets,
    moments_of,
    queue_of,
)
from pipeline.stages.publish.recording import note_metrics
from pipeline.stages.publish.removing import remove
from pipeline.stages.publish.retiming import retime
from pipeline.stages.publish.sending import HELD_WAIT
from pipeline.stages.publish.settling import settle
from pipeline.stages.publish.standing import Blocker, held_back, hold_of, latest_of
from pipeline.stages.publish.steps import give_up, work

__all__ = [
    "HELD_WAIT",
    "PUBLISHING_STATUSES",
    "ZONES_EVERY_SECONDS",
    "Blocker",
    "CannotPublish",
    "Judged",
    "Slot",
    "Wish",
    "as_they_stand",
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
    "judge",
    "key_of",
    "latest_of",
    "leave",
    "lock_groups",
    "lock_outlets",
    "moments_of",
    "note_metrics",
    "package_files",
    "package_of",
    "payload_of",
    "problems_of",
    "promise_as_before",
    "put_back",
    "queue_of",
    "receipt_of",
    "reconcile_now",
    "refresh_item",
    "remove",
    "renew_scheduled",
    "request",
    "retime",
    "retry",
    "set_clocks",
    "settle",
    "wake_scheduled",
    "why_closed",
    "why_not_publishable",
    "work",
]
