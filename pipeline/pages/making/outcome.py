"""What has come of one raw item so far: each item with its words, its pictures, and what to do next."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from django.utils.translation import gettext as _

from config.ground.ids import encode
from pipeline.models import Asset, GeneratedItem
from pipeline.overview import FLAGS, Call, looked_at
from pipeline.pages.items import words

if TYPE_CHECKING:
    from accounts.models import Workspace
    from pipeline.models import RawItem

_RAW_UNDER_WAY: Final = frozenset({"queued", "processing"})


@dataclass(frozen=True)
class Picture:
    """An address below this site's own, so that a page may show it."""

    address: str
    name: str
    width: int | None
    height: int | None
    alt_text: str
    kind: str = "image"


@dataclass(frozen=True)
class Seen:
    item: GeneratedItem
    tone: str
    icon: str
    label: str
    words: str
    error: str
    pictures: tuple[Picture, ...]
    documents: tuple[Picture, ...]
    call: Call | None
    flag: str
    """What to do about what befell its source after it was published; empty where nothing did."""

    @property
    def is_under_way(self) -> bool:
        return self.item.status in words.UNDER_WAY


@dataclass(frozen=True)
class Outcome:
    items: tuple[Seen, ...]
    reason: str
    """Why the raw item itself is not worked on, in words; empty where it is."""
    is_done: bool

    @property
    def ready(self) -> int:
        return sum(one.item.status not in {*words.UNDER_WAY, "failed"} for one in self.items)

    @property
    def failed(self) -> int:
        return sum(one.item.status == "failed" for one in self.items)


def of(workspace: Workspace, raw: RawItem) -> Outcome:
    rows = GeneratedItem.objects.of(workspace).filter(raw_item=raw, deleted_at=None)
    items = list(rows.select_related("generation").order_by("engine_output", "variant_index", "id"))
    pictures = _pictures(workspace, items)
    seen = tuple(_seen(item, pictures.get(item.pk.hex, ())) for item in items)
    is_done = raw.status not in _RAW_UNDER_WAY and not any(one.is_under_way for one in seen)
    reason = (raw.reason or {}).get("message", "") if raw.status not in _RAW_UNDER_WAY else ""
    return Outcome(seen, str(reason), is_done)


def _seen(item: GeneratedItem, pictures: tuple[Picture, ...]) -> Seen:
    tone, icon, label = words.state_of(item)
    return Seen(
        item=item,
        tone=tone,
        icon=icon,
        label=label,
        words=item.body,
        error=str((item.error or {}).get("message", "")),
        pictures=tuple(one for one in pictures if one.kind == "image"),
        documents=tuple(one for one in pictures if one.kind == "document"),
        call=_call(item),
        flag=str(FLAGS[item.flagged]) if item.flagged else "",
    )


def _call(item: GeneratedItem) -> Call | None:
    address = f"/v1/generated/{encode('gen', item.pk)}"
    if item.status == "ready":
        return Call(_("How to publish it"), "POST", f"{address}/publish", "{}")
    if item.status == "failed":
        return Call(_("How to try it again"), "POST", f"{address}/retry")
    return looked_at(item.pk, item.flagged)


def _pictures(workspace: Workspace, items: list[GeneratedItem]) -> dict[str, tuple[Picture, ...]]:
    rows = Asset.objects.of(workspace).filter(item__in=[one.pk for one in items], revoked_at=None)
    found: dict[str, tuple[Picture, ...]] = {}
    for row in rows.filter(kind__in=("image", "document")).order_by("item_id", "position", "id"):
        address = f"/media/{row.secret}/{row.name}"
        shown = Picture(address, row.name, row.width, row.height, row.alt_text, row.kind)
        found[row.item_id.hex] = (*found.get(row.item_id.hex, ()), shown)
    return found
