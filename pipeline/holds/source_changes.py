"""What befalls what was made when its source changes, takes it back, or lists it again; and who is told of it."""

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

_HELD_OVER: Final[Mapping[str, tuple[str, ...]]] = {
    "source_changed": ("", "approval_stale"),
    "source_withdrawn": ("", "approval_stale", "source_changed", "instructions_in_source"),
}
"""The holds that a reason takes the place of: none may be let go by what only answers a weaker one."""
_FLAGGED_OVER: Final[Mapping[str, tuple[str, ...]]] = {
    "source_changed": ("",),
    "source_withdrawn": ("", "source_changed"),
}
OUT: Final = frozenset({"published", "partially_published"})
"""Somebody may be reading it: nothing can be held back any more, so it is flagged."""
_TITLES: Final[Mapping[str, _StrPromise]] = {
    "source_changed": gettext_lazy("The source of “%(title)s” has changed since it was published"),
    "source_withdrawn": gettext_lazy("The source of “%(title)s” was withdrawn since it was published"),
}
_TITLE_CHARACTERS: Final = 100


def hold_what_was_made(row: RawItem, reason: str, now: datetime) -> None:
    """Hold what came of an old version and may still be sent somewhere; flag what was published, and tell people.

    The caller has locked the raw item. Nothing more of a held item is sent until somebody looked.
    """
    flagged = []
    items = GeneratedItem.everywhere.filter(
        # An item that is being drawn again has its words, and comes back with whatever holds it.
        Q(status__in=PUBLISHABLE_ITEMS | {GeneratedItemStatus.REJECTED})
        | Q(status=GeneratedItemStatus.GENERATING, revision__gt=0),
        items_made_from(row.pk, workspace_id=row.workspace_id),
        deleted_at=None,
    )
    # In the order of ids, as every other path that locks several items.
    for item in items.select_for_update().order_by("id"):
        if item.raw_items and row.pk.hex not in item.raw_items:
            # The run left it out: the digest says nothing of it.
            continue
        changes = {}
        if (
            item.status not in {GeneratedItemStatus.PUBLISHED, GeneratedItemStatus.REMOVED}
            and item.held in _HELD_OVER[reason]
        ):
            changes["held"] = reason
        if item.status in OUT and item.flagged in _FLAGGED_OVER[reason]:
            changes["flagged"] = reason
            flagged.append(item)
        if changes:
            GeneratedItem.everywhere.filter(pk=item.pk).update(
                **changes, version=item.version + 1, updated_at=now
            )
    tell_flagged(row, reason, flagged, now)


def withdraw(raw_item_id: UUID, now: datetime) -> bool:
    """Note that its source took a raw item back, and hold what was made of it; False where that was known.

    The raw item keeps its status and its content.
    """
    with transaction.atomic():
        row = _locked(raw_item_id)
        if row is None or row.deleted_at is not None or row.withdrawn_at is not None:
            return False
        _mark(row, now, now)
        hold_what_was_made(row, "source_withdrawn", now)
    return True


def restore(raw_item_id: UUID, now: datetime) -> bool:
    """Its source lists a raw item again: let go what only that held; False where it was not withdrawn."""
    with transaction.atomic():
        row = _locked(raw_item_id)
        if row is None or row.deleted_at is not None or row.withdrawn_at is None:
            return False
        _mark(row, None, now)
        items = GeneratedItem.everywhere.filter(
            Q(held=HoldReason.SOURCE_WITHDRAWN) | Q(flagged=FlagReason.SOURCE_WITHDRAWN),
            items_made_from(row.pk, workspace_id=row.workspace_id),
            deleted_at=None,
        )
        for item in items.select_for_update().order_by("id"):
            keys = [UUID(key) for key in item.raw_items]
            changed = standing_of(item.generation_id, keys) if keys else _since(item, row)
            if changed == "source_withdrawn":
                # Another of its raw items is still gone.
                continue
            GeneratedItem.everywhere.filter(pk=item.pk).update(
                held=changed or _for_orders(item) if item.held == HoldReason.SOURCE_WITHDRAWN else item.held,
                flagged=changed if item.flagged == FlagReason.SOURCE_WITHDRAWN else item.flagged,
                version=item.version + 1,
                updated_at=now,
            )
    return True


def standing_of(generation_id: UUID, raw_items: Collection[UUID]) -> str:
    """What holds back a digest of these: one was taken back or erased, or has changed since the run read it."""
    inputs = GenerationInput.everywhere.filter(generation_id=generation_id, raw_item_id__in=raw_items)
    rows = [(one.raw_item, one.raw_version) for one in inputs.select_related("raw_item")]
    if len(rows) < len(raw_items) or any(row.deleted_at or row.withdrawn_at for row, _ in rows):
        return "source_withdrawn"
    return "source_changed" if any(row.content_version != version for row, version in rows) else ""


def _since(item: GeneratedItem, row: RawItem) -> str:
    """What took the withdrawal's place, or was there before it: the content it was made of may be an old version."""
    is_old = item.raw_version is not None and item.raw_version < row.content_version
    return "source_changed" if is_old else ""


def _for_orders(item: GeneratedItem) -> str:
    """What a withdrawal took the place of, unless somebody approved the item."""
    warns = any(check["code"] == "instructions" and check["outcome"] == "warning" for check in item.checks)
    return "instructions_in_source" if warns and not item.is_approved else ""


def _locked(raw_item_id: UUID) -> RawItem | None:
    row: RawItem | None = RawItem.everywhere.select_for_update().filter(pk=raw_item_id).first()
    return row


def _mark(row: RawItem, withdrawn_at: datetime | None, now: datetime) -> None:
    RawItem.everywhere.filter(pk=row.pk).update(
        withdrawn_at=withdrawn_at, version=F("version") + 1, updated_at=now
    )


def tell_flagged(row: RawItem, reason: str, items: Sequence[GeneratedItem], now: datetime) -> None:
    """One notice for all that was made of an entry; call it in the transaction that flagged the items.

    The key names the version of the entry, so that the same change is never told twice. Test items are nobody's worry.
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
