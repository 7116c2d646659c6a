"""Defines a TikTok video: its addresses, and how it is read from oEmbed and yt-dlp."""

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
"""TikTok's own limit of a caption (support.tiktok.com, "Adding a description", read in November 2026)."""

_VIDEO_PATH: Final = re.compile(
    r"/(?:@(?P<name>[^/?#]{1,60})/(?:video|photo)|v|embed(?:/v2)?)/(?P<id>[0-9]{6,25})"
)
_ILLEGAL_CHARACTERS: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufffe\uffff\ud800-\udfff]")


@dataclass(frozen=True)
class TikTokVideo:
    """A video; `by` names where its data come from: `oembed` or `tool`."""

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
        """A hash of the caption, which changes if the caption is edited."""
        return hashlib.sha256(" ".join(self.caption.split()).encode()).hexdigest()[:16]

    @property
    def entry(self) -> Entry:
        """The video as an entry; left out if it has no caption."""
        lines = self.caption.splitlines() or [""]
        media = [EntryMedia(self.thumbnail, "image/jpeg")] if self.thumbnail.startswith("https://") else []
        wordless = Note(
            "no_words", "The video has no caption, and TikTok doesn't publish what is said in it."
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
    """Return the id of the video's entry."""
    return f"tiktok:{video_id}"


def video_id_of(address: str) -> str:
    """Return the number in a video's own address; empty for short links and other pages."""
    match = _VIDEO_PATH.search(_split_url(address).path)
    return match["id"] if match else ""


def plain_address(address: str) -> str:
    """Return the address without the parameters that sharing adds."""
    return f"{SITE}{_split_url(address).path.rstrip('/')}"


def is_tiktok(address: str) -> bool:
    """Return whether the address is at TikTok."""
    host = (_split_url(address).hostname or "").lower()
    return host == "tiktok.com" or host.endswith(".tiktok.com")


def _split_url(address: str) -> SplitResult:
    """Return the parts of an address; empty ones if it can't be read."""
    try:
        return urlsplit(address)
    except ValueError:
        return urlsplit("")


def from_oembed(answer: Mapping[str, Any], address: str) -> TikTokVideo | None:
    """Return the video in an oEmbed answer, or `None` if it is no video.

    Fields: developers.tiktok.com/doc/embed-videos, read in November 2026.
    """
    video_id = video_id_of(address) or str(answer.get("embed_product_id") or "")
    if not re.fullmatch(r"[0-9]{6,25}", video_id) or not isinstance(answer.get("title"), str):
        return None
    name = str(answer.get("author_unique_id") or str(answer.get("author_url") or "").partition("/@")[2])
    return TikTokVideo(
        id=video_id,
        url=plain_address(address)
        if video_id_of(address)
        else f"{SITE}/@{_clean_line(name)}/video/{video_id}",
        caption=_clean_text(answer["title"]),
        author=_clean_line(answer.get("author_name")) or _clean_line(name),
        author_name=_clean_line(name),
        by="oembed",
        thumbnail=_clean_line(answer.get("thumbnail_url")),
    )


def from_tool(item: object, now: datetime) -> TikTokVideo | None:
    """Return the video in an item of `yt-dlp --flat-playlist`, or `None` if it is none."""
    if not isinstance(item, dict) or not re.fullmatch(r"[0-9]{6,25}", str(item.get("id"))):
        return None
    name = _clean_line(item.get("uploader"))
    url = str(item.get("webpage_url") or item.get("url") or "")
    thumbnails = item.get("thumbnails")
    last = thumbnails[-1] if isinstance(thumbnails, list) and thumbnails else {}
    timestamp, duration = item.get("timestamp"), item.get("duration")
    return TikTokVideo(
        id=str(item["id"]),
        url=plain_address(url) if is_tiktok(url) else f"{SITE}/@{name}/video/{item['id']}",
        caption=_clean_text(item.get("description") or item.get("title")),
        author=_clean_line(item.get("channel")) or name,
        author_name=name,
        by="tool",
        thumbnail=_clean_line(last.get("url")) if isinstance(last, dict) else "",
        published_at=_to_datetime(timestamp, now),
        duration_seconds=int(duration)
        if isinstance(duration, int | float) and 0 < duration < 1_000_000
        else None,
    )


def _to_datetime(value: object, now: datetime) -> datetime | None:
    """Return the moment of a timestamp, not after `now`; `None` for an impossible one."""
    # The first number is a date before TikTok began, the second a year that `datetime` can still hold.
    if not isinstance(value, int | float) or not 1_400_000_000 < value < 4_000_000_000:
        return None
    return min(datetime.fromtimestamp(value, tz=UTC), now)


def _clean_text(value: object) -> str:
    """Return a text without illegal characters, its lines trimmed; empty for any other value."""
    text = _ILLEGAL_CHARACTERS.sub("", value) if isinstance(value, str) else ""
    return "\n".join(line.strip() for line in text[:MAX_CAPTION_CHARACTERS].splitlines()).strip()


def _clean_line(value: object) -> str:
    """Return a text on one line, cut to 500 characters."""
    return " ".join(_clean_text(value)[:500].split())
