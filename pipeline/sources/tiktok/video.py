"""A video of TikTok: its addresses, and what oEmbed and yt-dlp say of it."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import SplitResult, urlsplit

from pipeline.limits import TITLE_CHARACTERS
from pipeline.sources.base import Entry, EntryMedia, Note

if TYPE_CHECKING:
    from collections.abc import Mapping

SITE: Final = "https://www.tiktok.com"
SHORT_HOSTS: Final = frozenset({"vm.tiktok.com", "vt.tiktok.com"})
MAX_CAPTION_CHARACTERS: Final = 4000
"""TikTok's own limit for what an account writes (support.tiktok.com, "Adding a description", read in November 2026)."""

_VIDEO_PATH: Final = re.compile(
    r"/(?:@(?P<name>[^/?#]{1,60})/(?:video|photo)|v|embed(?:/v2)?)/(?P<id>[0-9]{6,25})"
)
_ILLEGAL: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufffe\uffff\ud800-\udfff]")


@dataclass(frozen=True)
class TikTokVideo:
    """`by` names who told of it: `oembed` or `tool`."""

    id: str
    url: str
    caption: str
    author: str
    by: str
    author_name: str = ""
    thumbnail: str = ""
    published_at: datetime | None = None
    duration_seconds: int | None = None

    @property
    def fingerprint(self) -> str:
        return hashlib.sha256(" ".join(self.caption.split()).encode()).hexdigest()[:16]

    @property
    def entry(self) -> Entry:
        lines = self.caption.splitlines() or [""]
        media = [EntryMedia(self.thumbnail, "image/jpeg")] if self.thumbnail.startswith("https://") else []
        wordless = Note(
            "no_words", "The video has no words beside it, and TikTok gives nobody what is said in it."
        )
        return Entry(
            external_id=external_id(self.id),
            url=self.url,
            title=lines[0][:TITLE_CHARACTERS],
            body=self.caption,
            author=self.author,
            published_at=self.published_at,
            media=(*media, EntryMedia(self.url)),
            metadata={
                "video_id": self.id,
                "author": self.author_name,
                "duration_seconds": self.duration_seconds,
                "by": self.by,
            },
            left_out=None if self.caption else wordless,
        )


def external_id(video_id: str) -> str:
    return f"tiktok:{video_id}"


def video_id_of(address: str) -> str:
    """The number in a video's own address; nothing in a short link and in other pages."""
    match = _VIDEO_PATH.search(_parts(address).path)
    return match["id"] if match else ""


def plain_address(address: str) -> str:
    """The address without what a share adds to it."""
    return f"{SITE}{_parts(address).path.rstrip('/')}"


def is_tiktok(address: str) -> bool:
    host = (_parts(address).hostname or "").lower()
    return host == "tiktok.com" or host.endswith(".tiktok.com")


def _parts(address: str) -> SplitResult:
    try:
        return urlsplit(address)
    except ValueError:
        return urlsplit("")


def of_oembed(found: Mapping[str, Any], address: str) -> TikTokVideo | None:
    """developers.tiktok.com/doc/embed-videos, read in November 2026; None for what is no video."""
    video_id = video_id_of(address) or str(found.get("embed_product_id") or "")
    if not re.fullmatch(r"[0-9]{6,25}", video_id) or not isinstance(found.get("title"), str):
        return None
    name = str(found.get("author_unique_id") or str(found.get("author_url") or "").partition("/@")[2])
    return TikTokVideo(
        id=video_id,
        url=plain_address(address) if video_id_of(address) else f"{SITE}/@{_line(name)}/video/{video_id}",
        caption=_words(found["title"]),
        author=_line(found.get("author_name")) or _line(name),
        author_name=_line(name),
        by="oembed",
        thumbnail=_line(found.get("thumbnail_url")),
    )


def of_tool(found: object, now: datetime) -> TikTokVideo | None:
    """One entry of what `yt-dlp --flat-playlist` prints for an account."""
    if not isinstance(found, dict) or not re.fullmatch(r"[0-9]{6,25}", str(found.get("id"))):
        return None
    name = _line(found.get("uploader"))
    url = str(found.get("webpage_url") or found.get("url") or "")
    thumbnails = found.get("thumbnails")
    last = thumbnails[-1] if isinstance(thumbnails, list) and thumbnails else {}
    at, lasts = found.get("timestamp"), found.get("duration")
    return TikTokVideo(
        id=str(found["id"]),
        url=plain_address(url) if is_tiktok(url) else f"{SITE}/@{name}/video/{found['id']}",
        caption=_words(found.get("description") or found.get("title")),
        author=_line(found.get("channel")) or name,
        author_name=name,
        by="tool",
        thumbnail=_line(last.get("url")) if isinstance(last, dict) else "",
        published_at=_moment(at, now),
        duration_seconds=int(lasts) if isinstance(lasts, int | float) and 0 < lasts < 1_000_000 else None,
    )


def _moment(value: object, now: datetime) -> datetime | None:
    # TikTok is younger than the first of these numbers, and the second is a year that a calendar can still write.
    if not isinstance(value, int | float) or not 1_400_000_000 < value < 4_000_000_000:
        return None
    return min(datetime.fromtimestamp(value, tz=UTC), now)


def _words(value: object) -> str:
    text = _ILLEGAL.sub("", value) if isinstance(value, str) else ""
    return "\n".join(line.strip() for line in text[:MAX_CAPTION_CHARACTERS].splitlines()).strip()


def _line(value: object) -> str:
    return " ".join(_words(value)[:500].split())
