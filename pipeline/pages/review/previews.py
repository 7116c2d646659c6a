"""An item as it will stand on each outlet: its posts as they are sent, pictures cropped as in a timeline, a card of its link."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from pipeline.outlets.outlet_client import account_of, platform_of
from pipeline.pages.items import outlet_fit, preview
from pipeline.text.content_buckets import TRAITS
from pipeline.text.links import find_links

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from django.utils.safestring import SafeString

    from pipeline import publish
    from pipeline.models import GeneratedItem

_SHOWN_MOST: Final = 4
"""Pictures in the grid of one post."""


@dataclass(frozen=True)
class LinkCard:
    address: str
    host: str
    title: str


@dataclass(frozen=True)
class ReviewPreview:
    fit: outlet_fit.Fit
    kind: str
    name: str
    handle: str
    posts: tuple[SafeString, ...]
    pictures: tuple[preview.PreviewFile, ...]
    more: int
    """Pictures beyond those that the grid shows."""
    crop: str
    video: preview.PreviewFile | None
    link: LinkCard | None
    headline: str

    @property
    def is_fine(self) -> bool:
        return self.fit.tone != "bad"


def previews_of(
    item: GeneratedItem, look: preview.ItemPreview, *, now: datetime
) -> tuple[ReviewPreview, ...]:
    """For the outlets where it goes by default. The item comes with its workspace and its raw item."""
    return tuple(_preview(item, look, one) for one in outlet_fit.judged_of(item, now=now))


def _preview(item: GeneratedItem, look: preview.ItemPreview, judged: publish.OutletVerdict) -> ReviewPreview:
    outlet = judged.outlet
    platform = platform_of(outlet.platform)
    profile: Mapping[str, object] = account_of(outlet).profile
    sent = {one.name for one in judged.post.payload.assets}
    traits = TRAITS[item.bucket]
    pictures = [one for one in look.pictures if one.name in sent] if traits.is_posted else []
    video = look.video if look.video is not None and look.video.name in sent else None
    parts: Sequence[str] = judged.post.parts if traits.is_posted else ()
    return ReviewPreview(
        fit=outlet_fit.fit_of(item, judged),
        kind=outlet.platform,
        name=str(profile.get("name") or outlet.name),
        handle=str(profile.get("handle") or ""),
        posts=tuple(preview.linked(part) for part in parts if part.strip()),
        pictures=tuple(pictures[:_SHOWN_MOST]),
        more=max(len(pictures) - _SHOWN_MOST, 0),
        crop=platform.picture_crop if len(pictures) == 1 else "grid" if pictures else "",
        video=video,
        link=None if pictures or video or not platform.shows_link_card else _card_of(item, parts),
        headline=judged.post.payload.title if traits.has_headline else "",
    )


def _card_of(item: GeneratedItem, parts: Sequence[str]) -> LinkCard | None:
    """Of the first address in the words; its headline is known where it is the source's own."""
    found = next((link.url for part in parts for link in find_links(part) if link.has_scheme), None)
    if found is None:
        return None
    raw = item.raw_item
    title = raw.title if raw is not None and raw.deleted_at is None and raw.url == found else ""
    try:
        host = urlsplit(found).hostname or ""
    except ValueError:
        return None
    return LinkCard(found, host.removeprefix("www."), title) if host else None
