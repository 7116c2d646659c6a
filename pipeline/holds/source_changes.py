"""Holds or flags items when their source changes, is withdrawn or is listed again, and notifies members."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from uuid import UUID

from django.db import transaction
from django.db.models import F, Q
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from accounts import notices
from pipeline import labels
from pipeline.models import (
    FlagReason,
    GeneratedItem,
    GeneratedItemStatus,
    GenerationInput,
    HoldReason,
    RawItem,
    items_made_from,
)
from pipeline.states import PUBLISHABLE_ITEMS

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from datetime import datetime

    from django.utils.functional import _StrPromise

_REPLACED_HOLDS: Final[Mapping[str, tuple[str, ...]]] = {
    "source_changed": ("", "approval_stale"),
    "source_withdrawn": ("", "approval_stale", "source_changed", "instructions_in_source"),
}
"""The holds that each reason replaces: a hold may not be released by the answer to a weaker one."""
_REPLACED_FLAGS: Final[Mapping[str, tuple[str, ...]]] = {
    "source_changed": ("",),
    "source_withdrawn": ("", "source_changed"),
}
PUBLISHED_STATUSES: Final = frozenset({"published", "partially_published"})
"""The statuses in which an item can't be held back any more, because people may be reading it: it is flagged."""
_TITLES: Final[Mapping[str, _StrPromise]] = {
    "source_changed": gettext_lazy("The source of “%(title)s” has changed since it was published"),
    "source_withdrawn": gettext_lazy("The source of “%(title)s” was withdrawn since it was published"),
}
_MAX_TITLE_CHARACTERS: Final = 100


def hold_derived_items(row: RawItem, reason: str, now: datetime) -> None:
    """Hold items made of this raw item that may still be sent; flag published ones, and notify members.

    An item that is held or flagged for a stronger reason keeps it. Nothing more of a held item is sent until a
    person approves it. The caller has locked the raw item.
    """
    flagged = []
    items = GeneratedItem.everywhere.filter(
        # An item that is being rendered again has its text, and keeps its hold.
        Q(status__in=PUBLISHABLE_ITEMS | {GeneratedItemStatus.REJECTED})
        | Q(status=GeneratedItemStatus.GENERATING, revision__gt=0),
        items_made_from(row.pk, workspace_id=row.workspace_id),
        deleted_at=None,
    )
    # Items are locked in the order of ids, as everywhere, to prevent deadlocks.
    for item in items.select_for_update().order_by("id"):
        if item.raw_items and row.pk.hex not in item.raw_items:
            # The run left this raw item out: the digest doesn't contain it.
            continue
        changes = {}
        if (
            item.status not in {GeneratedItemStatus.PUBLISHED, GeneratedItemStatus.REMOVED}
            and item.held in _REPLACED_HOLDS[reason]
        ):
            changes["held"] = reason
        if item.status in PUBLISHED_STATUSES and item.flagged in _REPLACED_FLAGS[reason]:
            changes["flagged"] = reason
            flagged.append(item)
        if changes:
            GeneratedItem.everywhere.filter(pk=item.pk).update(
                **changes, version=item.version + 1, updated_at=now
            )
    notify_flagged(row, reason, flagged, now)


def withdraw(raw_item_id: UUID, now: datetime) -> bool:
    """Record that the source withdrew a raw item, and hold or flag what was made of it.

    The raw item keeps its status and its content. Returns `False` if it doesn't exist, was deleted, or is known
    to be withdrawn.
    """
    with transaction.atomic():
        row = _lock_raw_item(raw_item_id)
        if row is None or row.deleted_at is not None or row.withdrawn_at is not None:
            return False
        _set_withdrawn_at(row, now, now)
        hold_derived_items(row, "source_withdrawn", now)
    return True


def restore(raw_item_id: UUID, now: datetime) -> bool:
    """Record that the source lists a raw item again, and release the items that only its withdrawal held.

    An item that a weaker reason would hold gets that reason. Returns `False` if the raw item doesn't exist, was
    deleted, or wasn't withdrawn.
    """
    with transaction.atomic():
        row = _lock_raw_item(raw_item_id)
        if row is None or row.deleted_at is not None or row.withdrawn_at is None:
            return False
        _set_withdrawn_at(row, None, now)
        items = GeneratedItem.everywhere.filter(
            Q(held=HoldReason.SOURCE_WITHDRAWN) | Q(flagged=FlagReason.SOURCE_WITHDRAWN),
            items_made_from(row.pk, workspace_id=row.workspace_id),
            deleted_at=None,
        )
        for item in items.select_for_update().order_by("id"):
            raw_item_ids = [UUID(text) for text in item.raw_items]
            if raw_item_ids:
                reason = find_hold_reason(item.generation_id, raw_item_ids)
            else:
                reason = _change_hold(item, row)
            if reason == "source_withdrawn":
                # Another of its raw items is still withdrawn.
                continue
            new_hold = item.held
            if item.held == HoldReason.SOURCE_WITHDRAWN:
                new_hold = reason or _instructions_hold(item)
            GeneratedItem.everywhere.filter(pk=item.pk).update(
                held=new_hold,
                flagged=reason if item.flagged == FlagReason.SOURCE_WITHDRAWN else item.flagged,
                version=item.version + 1,
                updated_at=now,
            )
    return True


def find_hold_reason(generation_id: UUID, raw_items: Collection[UUID]) -> str:
    """Return why a digest of these raw items must be held, or an empty string if it needn't.

    It must be held if one of them was withdrawn, deleted or erased, or has changed since the run read it.
    """
    inputs = GenerationInput.everywhere.filter(generation_id=generation_id, raw_item_id__in=raw_items)
    rows = [(run_input.raw_item, run_input.raw_version) for run_input in inputs.select_related("raw_item")]
    if len(rows) < len(raw_items) or any(row.deleted_at or row.withdrawn_at for row, _ in rows):
        return "source_withdrawn"
    return "source_changed" if any(row.content_version != version for row, version in rows) else ""


def _change_hold(item: GeneratedItem, row: RawItem) -> str:
    """Return `source_changed` if the item was made of an old version, which a withdrawal may have hidden.

    Otherwise, return an empty string.
    """
    is_old = item.raw_version is not None and item.raw_version < row.content_version
    return "source_changed" if is_old else ""


def _instructions_hold(item: GeneratedItem) -> str:
    """Return the hold for instructions that a withdrawal replaced, or an empty string.

    There is none if the item is approved or its checks warn of no instructions.
    """
    has_warning = any(
        check["code"] == "instructions" and check["outcome"] == "warning" for check in item.checks
    )
    return "instructions_in_source" if has_warning and not item.is_approved else ""


def _lock_raw_item(raw_item_id: UUID) -> RawItem | None:
    row: RawItem | None = RawItem.everywhere.select_for_update().filter(pk=raw_item_id).first()
    return row


def _set_withdrawn_at(row: RawItem, withdrawn_at: datetime | None, now: datetime) -> None:
    RawItem.everywhere.filter(pk=row.pk).update(
        withdrawn_at=withdrawn_at, version=F("version") + 1, updated_at=now
    )


def notify_flagged(row: RawItem, reason: str, items: Sequence[GeneratedItem], now: datetime) -> None:
    """Record one notice for all flagged items of a raw item, in the transaction that flagged them.

    The key has the raw item's version, so that the same change is never notified twice. Nothing is recorded for
    test items, or if there are no items.
    """
    if row.test or not items:
        return
    title = row.title or items[0].title or items[0].excerpt
    count = ngettext("%(count)d published item uses it.", "%(count)d published items use it.", len(items)) % {
        "count": len(items)
    }
    version = row.content_version if reason == "source_changed" else row.version
    notices.record(
        "item_flagged",
        workspace_id=row.workspace_id,
        key=f"{row.pk.hex}:{reason}:{version}",
        title=_TITLES[reason] % {"title": title[:_MAX_TITLE_CHARACTERS] or _("Untitled")},
        text=f"{count}\n{labels.FLAGS[reason]}",
        path="#flagged",
        now=now,
    )
