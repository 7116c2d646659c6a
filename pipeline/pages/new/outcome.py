"""Reads the outcome of one raw item: each generated item with its text, its pictures and what to do next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pipeline import labels
from pipeline.generate import raw_item_outcomes, recoverable_failures
from pipeline.generate.checks import LANGUAGE
from pipeline.models import Asset, GeneratedItem, GeneratedItemStatus, RawItemStatus
from pipeline.pages.items import display
from pipeline.pages.items.preview import preview_of
from pipeline.states import ITEMS_IN_MAKING
from pipeline.text.plain_text import plain_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from uuid import UUID

    from accounts.models import Workspace
    from pipeline.models import RawItem
    from pipeline.pages.items.preview import ItemPreview, PreviewFile

_RAW_IN_PROGRESS: Final = frozenset({RawItemStatus.QUEUED, RawItemStatus.PROCESSING})


@dataclass(frozen=True)
class MadeItem:
    """A generated item as the page of the outcome shows it."""

    item: GeneratedItem
    tone: str
    icon: str
    label: str
    text: str
    """The body without markup."""
    error: str
    advice: str
    """What to do if a retry can't help; empty if it can."""
    preview: ItemPreview
    pictures: tuple[PreviewFile, ...]
    """All pictures that the item publishes, in every size."""
    files: tuple[PreviewFile, ...]
    """Files that the card doesn't show, such as stills and captions of a video."""
    flag: str
    """What to do because its source changed or was withdrawn after publishing; empty if nothing."""
    hold: str
    """Why the item is on hold; empty if it isn't."""

    @property
    def is_under_way(self) -> bool:
        """True if the item is still being made."""
        return self.item.status in ITEMS_IN_MAKING


@dataclass(frozen=True)
class SkippedEngine:
    """A format of which nothing is made, or fewer variants than were requested.

    `variants` has the numbers of the skipped variants, from 1; it is empty if all were skipped.
    """

    name: str
    message: str
    variants: tuple[int, ...]

    @property
    def numbers(self) -> str:
        """The numbers of the skipped variants, separated by commas."""
        return ", ".join(str(number) for number in self.variants)


@dataclass(frozen=True)
class MadeOutcome:
    """All that came of a raw item so far; `is_done` is true if nothing is in progress any more."""

    items: tuple[MadeItem, ...]
    left_out: tuple[SkippedEngine, ...]
    reason: str
    """Why nothing is made of the raw item itself; empty if something is."""
    is_done: bool
    language_warning: str = ""
    """Why the stated language can't be the language of the text; empty if it can."""

    @property
    def created_count(self) -> int:
        """The number of items that are made, those on hold among them."""
        return sum(
            made.item.status not in {*ITEMS_IN_MAKING, GeneratedItemStatus.FAILED} for made in self.items
        )

    @property
    def held_count(self) -> int:
        """The number of items on hold."""
        return sum(bool(made.hold) for made in self.items)

    @property
    def failed_count(self) -> int:
        """The number of items that failed."""
        return sum(made.item.status == GeneratedItemStatus.FAILED for made in self.items)


def read_outcome(workspace: Workspace, raw: RawItem) -> MadeOutcome:
    """Return the outcome of a raw item of the workspace, without deleted items."""
    rows = GeneratedItem.objects.of(workspace).filter(raw_item=raw, deleted_at=None)
    items = list(rows.select_related("generation").order_by("engine_output", "variant_index", "id"))
    assets = _assets_by_item(workspace, items)
    errors = recoverable_failures.current_errors(
        workspace, {entry.pk: entry.error for entry in items if entry.status == GeneratedItemStatus.FAILED}
    )
    made_items = tuple(_made_item(item, errors.get(item.pk), assets.get(item.pk, ())) for item in items)
    is_done = raw.status not in _RAW_IN_PROGRESS and not any(entry.is_under_way for entry in made_items)
    reason = (raw.reason or {}).get("message", "") if raw.status not in _RAW_IN_PROGRESS else ""
    # A skipped raw item has one reason for all formats, which is shown instead of each format's.
    skipped = _skipped_engines(raw) if raw.status != RawItemStatus.SKIPPED else ()
    checks = [check for item in items for check in item.present_checks]
    language_warning = next((check["message"] for check in checks if check["code"] == LANGUAGE), "")
    return MadeOutcome(made_items, skipped, str(reason), is_done, str(language_warning))


def _skipped_engines(raw: RawItem) -> tuple[SkippedEngine, ...]:
    """Return the skipped formats of the raw item, one entry for each format and reason."""
    skipped_outcomes = [
        engine_outcome
        for engine_outcome in raw_item_outcomes.read_outcomes_of(raw)
        if engine_outcome["outcome"] == raw_item_outcomes.SKIPPED
    ]
    numbers: dict[tuple[str, str], list[int]] = {}
    for engine_outcome in skipped_outcomes:
        numbers.setdefault((engine_outcome["engine_output"], engine_outcome["reason"]["message"]), []).append(
            engine_outcome["variant"] + 1
        )
    return tuple(
        SkippedEngine(name, message, () if len(variant_numbers) == raw.variants else tuple(variant_numbers))
        for (name, message), variant_numbers in numbers.items()
    )


def _made_item(item: GeneratedItem, error: Mapping[str, Any] | None, assets: Sequence[Asset]) -> MadeItem:
    """Return the item for display; `error` is the current error of a failed one."""
    tone, icon, label = labels.of_item(item)
    preview = preview_of(item, assets)
    return MadeItem(
        item=item,
        tone=tone,
        icon=icon,
        label=str(label),
        text=plain_text(item.body, item.body_format),
        error=display.without_ids(str((item.error or {}).get("message", ""))),
        preview=preview,
        pictures=(*preview.pictures, *preview.other_sizes),
        files=_files_not_shown(preview),
        advice=str((error or {}).get("action", "")) if recoverable_failures.is_final(error) else "",
        flag=str(labels.FLAGS[item.flagged]) if item.flagged else "",
        hold=str(labels.HOLDS.get(item.held, item.held)),
    )


def _assets_by_item(workspace: Workspace, items: list[GeneratedItem]) -> dict[UUID, list[Asset]]:
    """Return the items' files that aren't revoked, by item id and in their order."""
    rows = Asset.objects.of(workspace).filter(item__in=[item.pk for item in items], revoked_at=None)
    assets_by_item: dict[UUID, list[Asset]] = {}
    for asset in rows.order_by("item_id", "position", "id"):
        assets_by_item.setdefault(asset.item_id, []).append(asset)
    return assets_by_item


def _files_not_shown(preview: ItemPreview) -> tuple[PreviewFile, ...]:
    """Return the files that the item's preview doesn't show."""
    shown_files = {*preview.pictures, *preview.other_sizes, preview.document, preview.video, preview.sound}
    return tuple(file for file in preview.files if file not in shown_files)
