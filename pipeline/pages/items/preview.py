"""Renders an item as it will look: posts, pictures, a player, an article or a letter, as safe HTML."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import nh3
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe
from django.utils.text import capfirst
from django.utils.translation import gettext as _

from pipeline.text.body_html import to_html
from pipeline.text.bucket_traits import TRAITS
from pipeline.text.links import find_links

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipeline.models import Asset, GeneratedItem

# A picture on another server would tell that server who opens the page, which shows the item's own files instead.
_SHOWN_TAGS: Final = nh3.ALLOWED_TAGS - {"img", "map", "area"}
# Matches the beginning of `<h2 class="…">` and of `</h2>`.
_HEADING: Final = re.compile(r"(</?h)([1-6])(?=[\s>])")
_EMPTY: Final = SafeString()
OTHER_SIZE: Final = "alternative"
"""The role of a picture that is another size of one of the item's pictures."""


@dataclass(frozen=True)
class PreviewFile:
    """A file of the item; `address` is its path on this site, and `duration` is in seconds."""

    id: Any
    address: str
    name: str
    role: str
    kind: str
    mime_type: str
    bytes: int
    width: int | None
    height: int | None
    duration: float | None
    alt_text: str

    @property
    def language(self) -> str:
        """The language of captions, from a name such as `captions.de.vtt`; empty if the name holds none."""
        match = re.search(r"\.([a-z]{2,3}(?:-[A-Za-z0-9]+)*)\.[a-z]+$", self.name)
        return match[1] if match else ""

    @property
    def label(self) -> str:
        return str(capfirst((self.role or self.kind).replace("_", " ")))


@dataclass(frozen=True)
class ItemPreview:
    """The parts of an item's preview; a part is empty if the item has none."""

    posts: tuple[SafeString, ...] = ()
    html: SafeString = _EMPTY
    pictures: tuple[PreviewFile, ...] = ()
    other_sizes: tuple[PreviewFile, ...] = ()
    document: PreviewFile | None = None
    """A PDF of all pictures, for the outlets that take one."""
    video: PreviewFile | None = None
    poster: PreviewFile | None = None
    tracks: tuple[PreviewFile, ...] = ()
    frames: tuple[PreviewFile, ...] = ()
    sound: PreviewFile | None = None
    files: tuple[PreviewFile, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    """Label and text of each of the shorter typed fields."""
    caption: SafeString = _EMPTY
    script: str = ""
    subject: str = ""
    preheader: str = ""


def file_of(asset: Asset) -> PreviewFile:
    """Return the asset as a file of the preview."""
    return PreviewFile(
        id=asset.pk,
        address=f"/media/{asset.secret}/{asset.name}",
        name=asset.name,
        role=asset.role,
        kind=asset.kind,
        mime_type=asset.mime_type,
        bytes=asset.bytes,
        width=asset.width,
        height=asset.height,
        duration=asset.duration,
        alt_text=asset.alt_text,
    )


def preview_of(
    item: GeneratedItem, assets: Sequence[Asset], claims: Sequence[tuple[int, str]] = ()
) -> ItemPreview:
    """Return the item's preview.

    `claims` are numbers and texts of claims. Each claim's text in a post becomes a link to the claim's quote in the
    source.
    """
    content: Mapping[str, Any] = item.content
    parts = [str(part) for part in content.get("parts") or () if str(part).strip()]
    traits = TRAITS[item.bucket]
    # The body of a film with a script is not a post.
    is_posted = traits.is_posted and not (item.bucket == "video" and content.get("script"))
    posts = (parts or [item.body]) if is_posted and item.body.strip() else []
    script = content.get("script")
    if not script and item.bucket == "video" and not is_posted:
        script = item.body
    return replace(
        _preview_files([file_of(asset) for asset in assets]),
        posts=tuple(_render_post(part, claims) for part in posts),
        html=_EMPTY if traits.is_posted else _render_body(item),
        facts=_list_facts(item.bucket, content),
        caption=_render_caption(item, claims),
        script=str(script or ""),
        subject=str(content.get("subject") or (item.title if item.bucket == "newsletter" else "")),
        preheader=str(content.get("preheader") or ""),
    )


def _preview_files(files: Sequence[PreviewFile]) -> ItemPreview:
    """Return a preview with the files alone, each in the part that shows it."""
    stills = [file for file in files if file.kind == "image"]
    frames = tuple(file for file in stills if file.role.startswith("frame"))
    video = next((file for file in files if file.mime_type.startswith("video/")), None)
    poster = next((file for file in stills if file.role in {"thumbnail", "poster"}), None)
    other_sizes = tuple(file for file in stills if file.role == OTHER_SIZE)
    shown_elsewhere = {*frames, *other_sizes, poster if video is not None else None}
    return ItemPreview(
        pictures=tuple(file for file in stills if file not in shown_elsewhere),
        other_sizes=other_sizes,
        document=next((file for file in files if file.mime_type == "application/pdf"), None),
        video=video,
        poster=poster,
        tracks=tuple(file for file in files if file.mime_type == "text/vtt"),
        frames=frames,
        sound=next(
            # The voice of a film is part of the film.
            (file for file in files if file.mime_type.startswith("audio/") and file.role != "voice"),
            None,
        ),
        files=tuple(files),
    )


def _render_caption(item: GeneratedItem, claims: Sequence[tuple[int, str]]) -> SafeString:
    """Return the caption as a post, or an empty text if it repeats the body."""
    text = str(item.content.get("caption") or "")
    return _EMPTY if text.strip() == item.body.strip() else _render_post(text, claims)


def _list_facts(bucket: str, content: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Return label and text of the shorter typed fields that have a text, none if the bucket has no headline."""
    labels = {
        "slug": _("Address"),
        "meta_description": _("Description"),
        "canonical_url": _("Original at"),
        "tags": _("Tags"),
    }
    facts = []
    for name, label in labels.items():
        value = content.get(name)
        text = ", ".join(map(str, value)) if isinstance(value, list) else str(value or "")
        if text:
            facts.append((label, text))
    return tuple(facts) if TRAITS[bucket].has_headline else ()


def _render_body(item: GeneratedItem) -> SafeString:
    """Return the body as sanitised HTML, its headings below the page's own."""
    # An article stands under its headline, which is a heading of the third level;
    # a letter stands under the page's heading of the second level.
    return sanitize_html(to_html(item.body, item.body_format), top=4 if item.bucket == "blog" else 3)


def sanitize_html(html: str, *, top: int) -> SafeString:
    """Return the HTML sanitised and without pictures, with its highest heading at level `top` (1 to 6)."""
    clean_html = nh3.clean(html, tags=_SHOWN_TAGS, url_schemes={"http", "https", "mailto"})
    return mark_safe(_lower_headings(clean_html, top))  # noqa: S308  sanitised just above


def _lower_headings(html: str, top: int) -> str:
    """Return the HTML with its highest heading at level `top`, and no level skipped on the way down.

    Screen readers expect headings without gaps.
    """
    levels = [int(match[2]) for match in _HEADING.finditer(html)]
    shift = top - min(levels, default=top)
    before = level = top - 1

    def lower(match: re.Match[str]) -> str:
        nonlocal before, level
        if not match[1].startswith("</"):
            level = min(int(match[2]) + shift, before + 1, 6)
            before = level
        return f"{match[1]}{level}"

    return _HEADING.sub(lower, html)


def _render_post(text: str, claims: Sequence[tuple[int, str]]) -> SafeString:
    """Return a post with its addresses as links, and each claim's text as a link to the claim's quote."""
    spans = sorted(_find_claim_spans(text, claims))
    pieces: list[SafeString] = []
    offset = 0
    for start, end, number in spans:
        pieces.append(link_addresses(text[offset:start]))
        claim_link = '<a class="said" href="#claim-{}" data-claim="{}">{}</a>'
        pieces.append(format_html(claim_link, number, number, text[start:end]))
        offset = end
    pieces.append(link_addresses(text[offset:]))
    return format_html_join("", "{}", ((piece,) for piece in pieces))


def _find_claim_spans(post_text: str, claims: Sequence[tuple[int, str]]) -> list[tuple[int, int, int]]:
    """Return start, end and number of each claim that the post contains; of two that overlap, the first one."""
    spans: list[tuple[int, int, int]] = []
    for number, claim_text in claims:
        text = claim_text.strip()
        start = post_text.find(text) if text else -1
        end = start + len(text)
        if start >= 0 and not any(start < span[1] and span[0] < end for span in spans):
            spans.append((start, end, number))
    return spans


def link_addresses(text: str) -> SafeString:
    """Return the text as HTML with its addresses that have a scheme as links, and everything else escaped."""
    pieces: list[SafeString] = []
    offset = 0
    for link in find_links(text):
        if not link.has_scheme:
            continue
        pieces.append(format_html("{}", text[offset : link.start]))
        url = link.url
        pieces.append(format_html('<a href="{}" rel="noreferrer nofollow">{}</a>', url, url))
        offset = link.end
    pieces.append(format_html("{}", text[offset:]))
    return format_html_join("", "{}", ((piece,) for piece in pieces))
