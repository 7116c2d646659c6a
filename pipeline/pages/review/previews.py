"""Previews an item on each outlet: its posts as sent, pictures cropped as in a timeline, and the card of its link."""

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
"""The most pictures that the grid of one post shows."""


@dataclass(frozen=True)
class LinkCard:
    """The card of a link; `title` is empty if it isn't known."""

    address: str
    host: str
    title: str


@dataclass(frozen=True)
class ReviewPreview:
    """The preview of an item on one outlet.

    `kind` is the kind of the outlet's platform. `crop` is how pictures are cropped there: the platform's crop of a
    single picture, `grid` for several, or empty without pictures.
    """

    fit: outlet_fit.Fit
    kind: str
    name: str
    handle: str
    posts: tuple[SafeString, ...]
    pictures: tuple[preview.PreviewFile, ...]
    more: int
    """The number of pictures beyond those that the grid shows."""
    crop: str
    video: preview.PreviewFile | None
    link: LinkCard | None
    headline: str

    @property
    def is_fine(self) -> bool:
        """True if the outlet takes the item, with warnings at most."""
        return self.fit.tone != "bad"


def build_previews(
    item: GeneratedItem, item_preview: preview.ItemPreview, *, now: datetime
) -> tuple[ReviewPreview, ...]:
    """Return the previews for the item's default outlets; its workspace and raw item must be loaded."""
    verdicts = outlet_fit.validate_default_outlets(item, now=now)
    return tuple(_preview_on_outlet(item, item_preview, verdict) for verdict in verdicts)


def _preview_on_outlet(
    item: GeneratedItem, item_preview: preview.ItemPreview, verdict: publish.OutletVerdict
) -> ReviewPreview:
    """Return the preview for the outlet of a verdict, with the files that would be sent there."""
    outlet = verdict.outlet
    platform = platform_of(outlet.platform)
    profile: Mapping[str, object] = account_of(outlet).profile
    sent_names = {file.name for file in verdict.post.payload.assets}
    traits = TRAITS[item.bucket]
    pictures = [file for file in item_preview.pictures if file.name in sent_names] if traits.is_posted else []
    video = item_preview.video
    if video is not None and video.name not in sent_names:
        video = None
    parts: Sequence[str] = verdict.post.parts if traits.is_posted else ()
    crop = "grid" if pictures else ""
    if len(pictures) == 1:
        crop = platform.picture_crop
    shows_link_card = platform.shows_link_card and not pictures and video is None
    return ReviewPreview(
        fit=outlet_fit.fit_of(item, verdict),
        kind=outlet.platform,
        name=str(profile.get("name") or outlet.name),
        handle=str(profile.get("handle") or ""),
        posts=tuple(preview.link_addresses(part) for part in parts if part.strip()),
        pictures=tuple(pictures[:_MAX_GRID_PICTURES]),
        more=max(len(pictures) - _MAX_GRID_PICTURES, 0),
        crop=crop,
        video=video,
        link=_link_card_of(item, parts) if shows_link_card else None,
        headline=verdict.post.payload.title if traits.has_headline else "",
    )


def _link_card_of(item: GeneratedItem, parts: Sequence[str]) -> LinkCard | None:
    """Return the card of the first link in the posts, or `None` if there is none or it has no host.

    Only a link to the raw item's address has a title.
    """
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
