"""Previews an item on each outlet: its posts as sent, pictures cropped as in a timeline, its link's card."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from pipeline.outlets.outlet_client import account_of, platform_of
from pipeline.pages.items import outlet_fit, preview
from pipeline.text.bucket_traits import TRAITS
from pipeline.text.links import find_links

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from django.utils.safestring import SafeString

    from pipeline import publish
    from pipeline.models import GeneratedItem

_MAX_GRID_PICTURES: Final = 4
"""Pictures that the grid of one post shows."""


@dataclass(frozen=True)
class LinkCard:
    """The card of a link; `title` is empty where it isn't known."""

    address: str
    host: str
    title: str


@dataclass(frozen=True)
class ReviewPreview:
    """A post on one outlet; `kind` is its platform, `crop` how pictures are cropped there."""

    fit: outlet_fit.Fit
    kind: str
    name: str
    handle: str
    posts: tuple[SafeString, ...]
    pictures: tuple[preview.PreviewFile, ...]
    more: int
    """Number of pictures beyond those that the grid shows."""
    crop: str
    video: preview.PreviewFile | None
    link: LinkCard | None
    headline: str

    @property
    def is_fine(self) -> bool:
        """Whether the outlet takes the item, with warnings at most."""
        return self.fit.tone != "bad"


def previews_of(
    item: GeneratedItem, look: preview.ItemPreview, *, now: datetime
) -> tuple[ReviewPreview, ...]:
    """Return the previews for the item's default outlets; it comes with its workspace and raw item."""
    return tuple(
        _preview_on_outlet(item, look, verdict)
        for verdict in outlet_fit.validate_default_outlets(item, now=now)
    )


def _preview_on_outlet(
    item: GeneratedItem, item_preview: preview.ItemPreview, verdict: publish.OutletVerdict
) -> ReviewPreview:
    outlet = verdict.outlet
    platform = platform_of(outlet.platform)
    profile: Mapping[str, object] = account_of(outlet).profile
    sent_names = {file.name for file in verdict.post.payload.assets}
    traits = TRAITS[item.bucket]
    pictures = [file for file in item_preview.pictures if file.name in sent_names] if traits.is_posted else []
    video = (
        item_preview.video
        if item_preview.video is not None and item_preview.video.name in sent_names
        else None
    )
    parts: Sequence[str] = verdict.post.parts if traits.is_posted else ()
    return ReviewPreview(
        fit=outlet_fit.fit_of(item, verdict),
        kind=outlet.platform,
        name=str(profile.get("name") or outlet.name),
        handle=str(profile.get("handle") or ""),
        posts=tuple(preview.link_addresses(part) for part in parts if part.strip()),
        pictures=tuple(pictures[:_MAX_GRID_PICTURES]),
        more=max(len(pictures) - _MAX_GRID_PICTURES, 0),
        crop=platform.picture_crop if len(pictures) == 1 else "grid" if pictures else "",
        video=video,
        link=None if pictures or video or not platform.shows_link_card else _link_card_of(item, parts),
        headline=verdict.post.payload.title if traits.has_headline else "",
    )


def _link_card_of(item: GeneratedItem, parts: Sequence[str]) -> LinkCard | None:
    """Return the card of the first link in the words; only the raw item's own address has a headline."""
    url = next((link.url for part in parts for link in find_links(part) if link.has_scheme), None)
    if url is None:
        return None
    raw = item.raw_item
    title = raw.title if raw is not None and raw.deleted_at is None and raw.url == url else ""
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        return None
    return LinkCard(url, host.removeprefix("www."), title) if host else None
