"""Whether an item may come back: it was made of one entry that is still there, of a source that still gives some."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from django.utils.translation import gettext as _

from pipeline.models import GeneratedItemStatus, RawBody, Source, SourceStatus

if TYPE_CHECKING:
    from pipeline.models import GeneratedItem, RawItem


@dataclass(frozen=True)
class Over:
    """Why it can't come back any more, in a code and in words that say what to do."""

    code: str
    message: str


def why_over(item: GeneratedItem) -> Over | None:
    """None while it can come back; the item as it is now. The nearest cause first."""
    if item.deleted_at is not None:
        return Over("item_erased", _("The item was erased. Let another one come back instead."))
    if item.status == GeneratedItemStatus.REJECTED:
        return _rejected(item)
    raw = item.raw_item
    if raw is None or raw.deleted_at is not None or not RawBody.everywhere.filter(raw_item=raw).exists():
        return Over(
            "content_erased", _("What it was made from was erased, so that nothing can be made of it.")
        )
    if raw.withdrawn_at is not None:
        message = _(
            "Its source took back what it was made from. Let it come back again once the source lists it."
        )
        return Over("source_withdrawn", message)
    return _of_source(raw)


def _rejected(item: GeneratedItem) -> Over:
    if (item.rejection or {}).get("code") == "superseded":
        message = _("Another variant was chosen. Let that one come back instead.")
        return Over("item_superseded", message)
    return Over("item_rejected", _("The item was rejected. Restore it, then let it come back again."))


def _of_source(raw: RawItem) -> Over | None:
    source = Source.everywhere.get(pk=raw.source_id)
    if source.deleted_at is not None:
        message = _("Its source %(name)s was deleted. Restore the source, then let it come back again.")
        return Over("source_deleted", message % {"name": source.name})
    if source.status == SourceStatus.GONE:
        message = _(
            "Its source %(name)s is gone. Switch the source on again or correct its address, then let the item come "
            "back again."
        )
        return Over("source_gone", message % {"name": source.name})
    return None


def is_paused(item: GeneratedItem) -> bool:
    """Whether its source rests: what it gives is not wanted now."""
    raw = item.raw_item
    return raw is not None and Source.everywhere.filter(pk=raw.source_id, status=SourceStatus.PAUSED).exists()
