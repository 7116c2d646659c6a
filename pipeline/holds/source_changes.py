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
"""The holds that each reason replaces: none may be released by the answer to a weaker one."""
_REPLACED_FLAGS: Final[Mapping[str, tuple[str, ...]]] = {
    "source_changed": ("",),
    "source_withdrawn": ("", "source_changed"),
}
PUBLISHED_STATUSES: Final = frozenset({"published", "partially_published"})
"""Somebody may be reading the item: it can't be held back any more, so it is flagged."""
_TITLES: Final[Mapping[str, _StrPromise]] = {
    "source_changed": gettext_lazy("The source of “%(title)s” has changed since it was published"),
    "source_withdrawn": gettext_lazy("The source of “%(title)s” was withdrawn since it was published"),
}
_TITLE_CHARACTERS: Final = 100


def hold_derived_items(row: RawItem, reason: str, now: datetime) -> None:
    """Hold items made of an old version that may still be sent; flag published ones, and notify members.

    The caller has locked the raw item. Nothing more of a held item is sent until somebody has looked at it.
    """
    flagged = []
    items = GeneratedItem.everywhere.filter(
        # An item that is being rendered again has its text, and keeps its hold.
        Q(status__in=PUBLISHABLE_ITEMS | {GeneratedItemStatus.REJECTED})
        | Q(status=GeneratedItemStatus.GENERATING, revision__gt=0),
        items_made_from(row.pk, workspace_id=row.workspace_id),
        deleted_at=None,
    )
    # In the order of ids, as everywhere that several items are locked, to prevent deadlocks.
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
    """Note that the source withdrew a raw item, and hold what was made of it; False if known already.

    The raw item keeps its status and its content.
    """
    with transaction.atomic():
        row = _lock(raw_item_id)
        if row is None or row.deleted_at is not None or row.withdrawn_at is not None:
            return False
        _set_withdrawn_at(row, now, now)
        hold_derived_items(row, "source_withdrawn", now)
    return True


def restore(raw_item_id: UUID, now: datetime) -> bool:
    """Note that the source lists a raw item again, and release what only that held; False if it always did."""
    with transaction.atomic():
        row = _lock(raw_item_id)
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
            reason = (
                hold_reason_of(item.generation_id, raw_item_ids) if raw_item_ids else _change_hold(item, row)
            )
            if reason == "source_withdrawn":
                # Another of its raw items is still withdrawn.
                continue
            GeneratedItem.everywhere.filter(pk=item.pk).update(
                held=reason or _instructions_hold(item)
                if item.held == HoldReason.SOURCE_WITHDRAWN
                else item.held,
                flagged=reason if item.flagged == FlagReason.SOURCE_WITHDRAWN else item.flagged,
                version=item.version + 1,
                updated_at=now,
            )
    return True


def hold_reason_of(generation_id: UUID, raw_items: Collection[UUID]) -> str:
    """Return why a digest of these raw items must be held, empty if it needn't.

    One was withdrawn or erased, or has changed since the run read it.
    """
    inputs = GenerationInput.everywhere.filter(generation_id=generation_id, raw_item_id__in=raw_items)
    rows = [(run_input.raw_item, run_input.raw_version) for run_input in inputs.select_related("raw_item")]
    if len(rows) < len(raw_items) or any(row.deleted_at or row.withdrawn_at for row, _ in rows):
        return "source_withdrawn"
    return "source_changed" if any(row.content_version != version for row, version in rows) else ""


def _change_hold(item: GeneratedItem, row: RawItem) -> str:
    """Return `source_changed` if the item was made of an old version; a withdrawal may hide that."""
    is_old = item.raw_version is not None and item.raw_version < row.content_version
    return "source_changed" if is_old else ""


def _instructions_hold(item: GeneratedItem) -> str:
    """Return the hold for instructions that a withdrawal replaced, unless the item is approved."""
    has_warning = any(
        check["code"] == "instructions" and check["outcome"] == "warning" for check in item.checks
    )
    return "instructions_in_source" if has_warning and not item.is_approved else ""


def _lock(raw_item_id: UUID) -> RawItem | None:
    row: RawItem | None = RawItem.everywhere.select_for_update().filter(pk=raw_item_id).first()
    return row


def _set_withdrawn_at(row: RawItem, withdrawn_at: datetime | None, now: datetime) -> None:
    RawItem.everywhere.filter(pk=row.pk).update(
        withdrawn_at=withdrawn_at, version=F("version") + 1, updated_at=now
    )


def notify_flagged(row: RawItem, reason: str, items: Sequence[GeneratedItem], now: datetime) -> None:
    """Record one notice for all items of an entry; call it in the transaction that flagged them.

    The key names the entry's version, so that the same change is never notified twice. Test items aren't
    notified.
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
        title=_TITLES[reason] % {"title": title[:_TITLE_CHARACTERS] or _("Untitled")},
        text=f"{count}\n{labels.FLAGS[reason]}",
        path="#flagged",
        now=now,
    )
