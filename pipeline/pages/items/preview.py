"""An item as it will look: posts, pictures, a player, an article, a letter; safe to put in a page."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import nh3
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe
from django.utils.text import capfirst

from pipeline.text.body_html import to_html
from pipeline.text.content_buckets import TRAITS
from pipeline.text.links import find_links

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipeline.models import Asset, GeneratedItem

# Pictures of others would tell them who looks; what stands in the page is the item's own.
_SHOWN_TAGS: Final = nh3.ALLOWED_TAGS - {"img", "map", "area"}
_HEADING: Final = re.compile(r"(</?h)([1-6])(?=[\s>])")
_NOTHING: Final = SafeString()
OTHER_SIZE: Final = "alternative"


@dataclass(frozen=True)
class PreviewFile:
    """A file of the item at an address below this site's own."""

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
        """Of captions, from a name such as `captions.de.vtt`; empty where it says none."""
        found = re.search(r"\.([a-z]{2,3}(?:-[A-Za-z0-9]+)*)\.[a-z]+$", self.name)
        return found[1] if found else ""

    @property
    def label(self) -> str:
        return str(capfirst((self.role or self.kind).replace("_", " ")))


@dataclass(frozen=True)
class ItemPreview:
    """What there is to show; empty parts where the kind of item has none."""

    posts: tuple[SafeString, ...] = ()
    html: SafeString = _NOTHING
    pictures: tuple[PreviewFile, ...] = ()
    other_sizes: tuple[PreviewFile, ...] = ()
    document: PreviewFile | None = None
    """All pictures in one file, for the outlets that take that."""
    video: PreviewFile | None = None
    poster: PreviewFile | None = None
    tracks: tuple[PreviewFile, ...] = ()
    frames: tuple[PreviewFile, ...] = ()
    sound: PreviewFile | None = None
    files: tuple[PreviewFile, ...] = ()
    facts: tuple[tuple[str, str], ...] = ()
    """Label and words of the shorter typed fields."""
    caption: SafeString = _NOTHING
    script: str = ""
    subject: str = ""
    preheader: str = ""


def file_of(asset: Asset) -> PreviewFile:
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
    item: GeneratedItem, assets: Sequence[Asset], said: Sequence[tuple[int, str]] = ()
) -> ItemPreview:
    """`said` are the claims' numbers and words; where a post says one, the words lead to the source's."""
    files = tuple(file_of(one) for one in assets)
    content: Mapping[str, Any] = item.content
    stills = [one for one in files if one.kind == "image"]
    frames = tuple(one for one in stills if one.role.startswith("frame"))
    video = next((one for one in files if one.mime_type.startswith("video/")), None)
    poster = next((one for one in stills if one.role in {"thumbnail", "poster"}), None)
    others = tuple(one for one in stills if one.role == OTHER_SIZE)
    beside = {*frames, *others, poster if video is not None else None}
    pictures = [one for one in stills if one not in beside]
    parts = [str(part) for part in content.get("parts") or () if str(part).strip()]
    traits = TRAITS[item.bucket]
    is_posted = traits.is_posted and not (item.bucket == "video" and content.get("script"))
    posts = (parts or [item.body]) if is_posted and item.body.strip() else []
    return ItemPreview(
        posts=tuple(_post(part, said) for part in posts),
        html=_NOTHING if traits.is_posted else _page(item),
        pictures=tuple(pictures),
        other_sizes=others,
        document=next((one for one in files if one.mime_type == "application/pdf"), None),
        video=video,
        poster=poster,
        tracks=tuple(one for one in files if one.mime_type == "text/vtt"),
        frames=frames,
        sound=next(
            # A film's voice is heard in the film.
            (one for one in files if one.mime_type.startswith("audio/") and one.role != "voice"),
            None,
        ),
        files=files,
        facts=_facts(item.bucket, content),
        caption=_caption(item, said),
        script=str(
            content.get("script") or ("" if is_posted else item.body if item.bucket == "video" else "")
        ),
        subject=str(content.get("subject") or (item.title if item.bucket == "newsletter" else "")),
        preheader=str(content.get("preheader") or ""),
    )


def _caption(item: GeneratedItem, said: Sequence[tuple[int, str]]) -> SafeString:
    """Empty where it says what the body says already."""
    words = str(item.content.get("caption") or "")
    return _NOTHING if words.strip() == item.body.strip() else _post(words, said)


def _facts(bucket: str, content: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    from django.utils.translation import gettext as _  # noqa: PLC0415  the short name is used here alone

    named = {
        "slug": _("Address"),
        "meta_description": _("Description"),
        "canonical_url": _("Original at"),
        "tags": _("Tags"),
    }
    found = []
    for name, label in named.items():
        value = content.get(name)
        words = ", ".join(map(str, value)) if isinstance(value, list) else str(value or "")
        if words:
            found.append((label, words))
    return tuple(found) if TRAITS[bucket].has_headline else ()


def _page(item: GeneratedItem) -> SafeString:
    """The body as sanitised HTML, its headings below the page's own."""
    # An article stands under its headline, which is a heading of the third level; a letter under the page's second.
    return shown_html(to_html(item.body, item.body_format), top=4 if item.bucket == "blog" else 3)


def shown_html(html: str, *, top: int) -> SafeString:
    """Without pictures from elsewhere, sanitised, and with its highest heading at level `top`."""
    shown = nh3.clean(html, tags=_SHOWN_TAGS, url_schemes={"http", "https", "mailto"})
    return mark_safe(_lowered(shown, top))  # noqa: S308  sanitised just above


def _lowered(html: str, top: int) -> str:
    """With its highest heading at level `top` and none left
    out on the way down, as a reader's software expects.
    """
    levels = [int(found[2]) for found in _HEADING.finditer(html)]
    shift = top - min(levels, default=top)
    before = level = top - 1

    def lower(found: re.Match[str]) -> str:
        nonlocal before, level
        if not found[1].startswith("</"):
            level = min(int(found[2]) + shift, before + 1, 6)
            before = level
        return f"{found[1]}{level}"

    return _HEADING.sub(lower, html)


def _post(words: str, said: Sequence[tuple[int, str]]) -> SafeString:
    """A post's words with its addresses as links, and with what the source says as links to that."""
    spans = sorted(_spans(words, said))
    pieces: list[SafeString] = []
    at = 0
    for start, end, number in spans:
        pieces.append(linked(words[at:start]))
        piece = '<a class="said" href="#claim-{}" data-claim="{}">{}</a>'
        pieces.append(format_html(piece, number, number, words[start:end]))
        at = end
    pieces.append(linked(words[at:]))
    return format_html_join("", "{}", ((piece,) for piece in pieces))


def _spans(words: str, said: Sequence[tuple[int, str]]) -> list[tuple[int, int, int]]:
    found: list[tuple[int, int, int]] = []
    for number, claimed in said:
        text = claimed.strip()
        start = words.find(text) if text else -1
        end = start + len(text)
        if start >= 0 and not any(start < other[1] and other[0] < end for other in found):
            found.append((start, end, number))
    return found


def linked(words: str) -> SafeString:
    """Words with their addresses as links, everything else escaped."""
    pieces: list[SafeString] = []
    at = 0
    for link in find_links(words):
        if not link.has_scheme:
            continue
        pieces.append(format_html("{}", words[at : link.start]))
        url = link.url
        pieces.append(format_html('<a href="{}" rel="noreferrer nofollow">{}</a>', url, url))
        at = link.end
    pieces.append(format_html("{}", words[at:]))
    return format_html_join("", "{}", ((piece,) for piece in pieces))
