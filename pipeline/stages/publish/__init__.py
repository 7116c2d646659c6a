"""Publish: at once or on schedule, to each outlet once, with every outcome told."""

from pipeline.stages.publish.asking import (
    cancel,
    reconcile_now,
    renew_scheduled,
    request,
    retry,
    wake_scheduled,
)
from pipeline.stages.publish.doubting import doubt_promised
from pipeline.stages.publish.item_status import PUBLISHING_STATUSES, lock_groups, refresh_item
from pipeline.stages.publish.judging import CannotPublish, Judged, Wish, dry_run, judge
from pipeline.stages.publish.payload import effective_overrides, key_of, payload_of
from pipeline.stages.publish.recording import note_metrics
from pipeline.stages.publish.sending import HELD_WAIT, blocker, give_up, work
from pipeline.stages.publish.settling import settle

__all__ = [
    "HELD_WAIT",
    "PUBLISHING_STATUSES",
    "CannotPublish",
    "Judged",
    "Wish",
    "blocker",
    "cancel",
    "doubt_promised",
    "dry_run",
    "effective_overrides",
    "give_up",
    "judge",
    "key_of",
    "lock_groups",
    "note_metrics",
    "payload_of",
    "reconcile_now",
    "refresh_item",
    "renew_scheduled",
    "request",
    "retry",
    "settle",
    "wake_scheduled",
    "work",
]
