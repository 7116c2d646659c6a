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

_VIDEO_ID: Final = re.compile(r"[0-9]{6,25}")
_VIDEO_PATH: Final = re.compile(
    rf"/(?:@(?P<name>[^/?#]{{1,60}})/(?:video|photo)|v|embed(?:/v2)?)/(?P<id>{_VIDEO_ID.pattern})"
)
"""The path of a video, such as `/@example/video/7106594312292453675` or `/embed/v2/7106594312292453675`."""
_ILLEGAL_CHARACTERS: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ufffe\uffff\ud800-\udfff]")


@dataclass(frozen=True)
class TikTokVideo:
    """A video; `by` names the origin of its data: `oembed`, or `tool` for yt-dlp."""

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
        """A hash of the caption, which changes if the caption is edited in more than its blanks."""
        return hashlib.sha256(" ".join(self.caption.split()).encode()).hexdigest()[:16]

    @property
    def entry(self) -> Entry:
        """The video as an entry, which is left out if the video has no caption."""
        lines = self.caption.splitlines() or [""]
        media = [EntryMedia(self.thumbnail, "image/jpeg")] if self.thumbnail.startswith("https://") else []
        no_caption = Note(
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
            left_out=None if self.caption else no_caption,
        )


def external_id(video_id: str) -> str:
    """Return the id of the video's entry."""
    return f"tiktok:{video_id}"


def video_id_of(address: str) -> str:
    """Return the number in a video's address, or an empty string for short links and other pages."""
    match = _VIDEO_PATH.search(_split_url(address).path)
    return match["id"] if match else ""


def plain_address(address: str) -> str:
    """Return the address on www.tiktok.com, without the query that sharing adds and without a final slash."""
    return f"{SITE}{_split_url(address).path.rstrip('/')}"


def is_tiktok(address: str) -> bool:
    """Return whether the address is on a host of TikTok."""
    host = (_split_url(address).hostname or "").lower()
    return host == "tiktok.com" or host.endswith(".tiktok.com")


def _split_url(address: str) -> SplitResult:
    """Return the parts of an address, all of them empty if it can't be read."""
    try:
        return urlsplit(address)
    except ValueError:
        return urlsplit("")


def from_oembed(answer: Mapping[str, Any], address: str) -> TikTokVideo | None:
    """Return the video in an oEmbed answer, or `None` if the answer has no video's id or no title.

    The fields are those of developers.tiktok.com/doc/embed-videos, read in November 2026.
    """
    id_in_address = video_id_of(address)
    video_id = id_in_address or str(answer.get("embed_product_id") or "")
    if not _VIDEO_ID.fullmatch(video_id) or not isinstance(answer.get("title"), str):
        return None
    name = _clean_line(
        str(answer.get("author_unique_id") or str(answer.get("author_url") or "").partition("/@")[2])
    )
    return TikTokVideo(
        id=video_id,
        url=plain_address(address) if id_in_address else f"{SITE}/@{name}/video/{video_id}",
        caption=_clean_text(answer["title"]),
        author=_clean_line(answer.get("author_name")) or name,
        author_name=name,
        by="oembed",
        thumbnail=_clean_line(answer.get("thumbnail_url")),
    )


def from_yt_dlp(item: object, now: datetime) -> TikTokVideo | None:
    """Return the video in an item of `yt-dlp --flat-playlist`, or `None` if the item has no video's id."""
    if not isinstance(item, dict) or not _VIDEO_ID.fullmatch(str(item.get("id"))):
        return None
    name = _clean_line(item.get("uploader"))
    url = str(item.get("webpage_url") or item.get("url") or "")
    thumbnails = item.get("thumbnails")
    thumbnail = thumbnails[-1] if isinstance(thumbnails, list) and thumbnails else {}
    duration = item.get("duration")
    if not isinstance(duration, int | float) or not 0 < duration < 1_000_000:
        duration = None
    return TikTokVideo(
        id=str(item["id"]),
        url=plain_address(url) if is_tiktok(url) else f"{SITE}/@{name}/video/{item['id']}",
        caption=_clean_text(item.get("description") or item.get("title")),
        author=_clean_line(item.get("channel")) or name,
        author_name=name,
        by="tool",
        thumbnail=_clean_line(thumbnail.get("url")) if isinstance(thumbnail, dict) else "",
        published_at=_to_datetime(item.get("timestamp"), now),
        duration_seconds=None if duration is None else int(duration),
    )


def _to_datetime(value: object, now: datetime) -> datetime | None:
    """Return the moment of a timestamp, not after `now`, or `None` for an impossible value."""
    # The first number is a date before TikTok began, the second a year that `datetime` can still hold.
    if not isinstance(value, int | float) or not 1_400_000_000 < value < 4_000_000_000:
        return None
    return min(datetime.fromtimestamp(value, tz=UTC), now)


def _clean_text(value: object) -> str:
    """Return a text with trimmed lines, cut to `MAX_CAPTION_CHARACTERS`, or "" for any other value."""
    text = _ILLEGAL_CHARACTERS.sub("", value) if isinstance(value, str) else ""
    return "\n".join(line.strip() for line in text[:MAX_CAPTION_CHARACTERS].splitlines()).strip()


def _clean_line(value: object) -> str:
    """Return a text on one line, cut to 500 characters, or "" for any other value."""
    return " ".join(_clean_text(value)[:500].split())
