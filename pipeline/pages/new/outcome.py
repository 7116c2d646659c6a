"""What has come of one raw item so far: each item with its words, its pictures, and what to do next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pipeline import labels
from pipeline.generate import raw_item_outcomes, retry_rules
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

_RAW_UNDER_WAY: Final = frozenset({"queued", "processing"})


@dataclass(frozen=True)
class MadeItem:
    item: GeneratedItem
    tone: str
    icon: str
    label: str
    words: str
    error: str
    advice: str
    """What helps where trying again can't; empty where it can."""
    look: ItemPreview
    pictures: tuple[PreviewFile, ...]
    """All that it publishes, in every size."""
    files: tuple[PreviewFile, ...]
    """Those that the card doesn't show, such as stills and captions of a film."""
    flag: str
    """What to do about what befell its source after it was published; empty where nothing did."""
    hold: str
    """Why it is held back; empty where it isn't."""

    @property
    def is_under_way(self) -> bool:
        return self.item.status in ITEMS_IN_MAKING


@dataclass(frozen=True)
class SkippedEngine:
    """A format of which nothing is made, or fewer variants than were asked for: `variants` are their numbers, from 1."""

    name: str
    message: str
    variants: tuple[int, ...]

    @property
    def numbers(self) -> str:
        return ", ".join(str(number) for number in self.variants)


@dataclass(frozen=True)
class MadeOutcome:
    items: tuple[MadeItem, ...]
    left_out: tuple[SkippedEngine, ...]
    reason: str
    """Why the raw item itself is not worked on, in words; empty where it is."""
    is_done: bool
    language: str = ""
    """Why the language that was stated can't be that of the text; empty where it may be."""

    @property
    def ready(self) -> int:
        return sum(
            one.item.status not in {*ITEMS_IN_MAKING, GeneratedItemStatus.FAILED} and not one.hold
            for one in self.items
        )

    @property
    def held(self) -> int:
        return sum(bool(one.hold) for one in self.items)

    @property
    def failed(self) -> int:
        return sum(one.item.status == GeneratedItemStatus.FAILED for one in self.items)


def of(workspace: Workspace, raw: RawItem) -> MadeOutcome:
    rows = GeneratedItem.objects.of(workspace).filter(raw_item=raw, deleted_at=None)
    items = list(rows.select_related("generation").order_by("engine_output", "variant_index", "id"))
    assets = _assets(workspace, items)
    errors = retry_rules.current_errors(
        workspace, {one.pk: one.error for one in items if one.status == GeneratedItemStatus.FAILED}
    )
    seen = tuple(_seen(item, errors.get(item.pk), assets.get(item.pk, ())) for item in items)
    is_done = raw.status not in _RAW_UNDER_WAY and not any(one.is_under_way for one in seen)
    reason = (raw.reason or {}).get("message", "") if raw.status not in _RAW_UNDER_WAY else ""
    # Where the raw item itself is left out, its reason says all of it.
    left_out = _left_out(raw) if raw.status != RawItemStatus.SKIPPED else ()
    checks = [check for item in items for check in item.present_checks]
    language = next((check["message"] for check in checks if check["code"] == LANGUAGE), "")
    return MadeOutcome(seen, left_out, str(reason), is_done, str(language))


def _left_out(raw: RawItem) -> tuple[SkippedEngine, ...]:
    skipped = [
        one for one in raw_item_outcomes.read_outcomes_of(raw) if one["outcome"] == raw_item_outcomes.SKIPPED
    ]
    numbers: dict[tuple[str, str], list[int]] = {}
    for one in skipped:
        numbers.setdefault((one["engine_output"], one["reason"]["message"]), []).append(one["variant"] + 1)
    return tuple(
        SkippedEngine(name, message, () if len(of_it) == raw.variants else tuple(of_it))
        for (name, message), of_it in numbers.items()
    )


def _seen(item: GeneratedItem, error: Mapping[str, Any] | None, assets: Sequence[Asset]) -> MadeItem:
    tone, icon, label = labels.of_item(item)
    look = preview_of(item, assets)
    return MadeItem(
        item=item,
        tone=tone,
        icon=icon,
        label=str(label),
        words=plain_text(item.body, item.body_format),
        error=display.without_ids(str((item.error or {}).get("message", ""))),
        look=look,
        pictures=(*look.pictures, *look.other_sizes),
        files=_folded(look),
        advice=str((error or {}).get("action", "")) if retry_rules.is_final(error) else "",
        flag=str(labels.FLAGS[item.flagged]) if item.flagged else "",
        hold=str(labels.HOLDS.get(item.held, item.held)),
    )


def _assets(workspace: Workspace, items: list[GeneratedItem]) -> dict[UUID, list[Asset]]:
    rows = Asset.objects.of(workspace).filter(item__in=[one.pk for one in items], revoked_at=None)
    found: dict[UUID, list[Asset]] = {}
    for row in rows.order_by("item_id", "position", "id"):
        found.setdefault(row.item_id, []).append(row)
    return found


def _folded(look: ItemPreview) -> tuple[PreviewFile, ...]:
    shown = {*look.pictures, *look.other_sizes, look.document, look.video, look.sound}
    return tuple(one for one in look.files if one not in shown)
