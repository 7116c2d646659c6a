"""Defines a YouTube video as the sources know it, and the details that the Data API adds."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

SITE: Final = "https://www.youtube.com"
LATEST_SECONDS: Final = 4_000_000_000
"""The latest moment read from the state, in seconds since 1970; `datetime` can still hold its year."""
VIDEO_ID: Final = re.compile(r"[A-Za-z0-9_-]{11}")
THUMBNAIL: Final = "https://i.ytimg.com/vi/{video_id}/hqdefault.jpg"
"""The address of the picture that every video has; channel feeds name it."""
MAX_DESCRIPTION_CHARACTERS: Final = 5000
"""YouTube's limit of a description.

It stands in developers.google.com/youtube/v3/docs/videos, `snippet.description`, read in November 2026.
"""

_WEB_ADDRESS: Final = re.compile(r"https?://|www\.", re.IGNORECASE)
_HASHTAGS_ONLY: Final = re.compile(r"\s*(?:#[^\s#]+\s*)+")
_CHAPTER_MARK: Final = re.compile(r"\s*[([]?(?:[0-9]{1,2}:)?[0-9]{1,2}:[0-9]{2}\b")


@dataclass(frozen=True)
class YouTubeVideo:
    """A video as a list describes it; `listed_at` is when it came into the list, or `None` if that isn't known."""

    id: str
    title: str
    description: str = ""
    published_at: datetime | None = None
    channel: str = ""
    listed_at: datetime | None = None

    @property
    def external_id(self) -> str:
        """The id of the video's entry."""
        return f"yt:video:{self.id}"

    @property
    def url(self) -> str:
        """The address of the video's page."""
        return watch_address(self.id)

    @property
    def fingerprint(self) -> str:
        """A hash that changes when title or description change in more than white space."""
        normalized = "\0".join(" ".join(text.split()) for text in (self.title, self.description))
        return hashlib.sha256(normalized.encode()).hexdigest()[:16]

    def as_json(self) -> dict[str, Any]:
        """Return the video as JSON to store, without `listed_at`."""
        return {
            "title": self.title,
            "description": self.description,
            "published": int(self.published_at.timestamp()) if self.published_at else None,
            "channel": self.channel,
        }

    @classmethod
    def from_json(cls, video_id: str, stored: Mapping[str, Any]) -> YouTubeVideo:
        """Return a stored video."""
        published = stored.get("published")
        is_moment = isinstance(published, int) and 0 < published < LATEST_SECONDS
        return cls(
            id=video_id,
            title=str(stored.get("title", "")),
            description=str(stored.get("description", "")),
            published_at=datetime.fromtimestamp(published or 0, tz=UTC) if is_moment else None,
            channel=str(stored.get("channel", "")),
        )


@dataclass(frozen=True)
class Details:
    """The details that only the Data API gives; `live` is `none`, `live` or `upcoming`."""

    duration_seconds: int | None = None
    live: str = "none"
    starts_at: datetime | None = None
    is_private: bool = False
    licence: str = ""
    language: str = ""


def watch_address(video_id: str) -> str:
    """Return the address of a video's page."""
    return f"{SITE}/watch?v={video_id}"


def prose_of(description: str) -> str:
    """Return a description, cut first, without lines that hold a link, only hashtags, or a chapter mark."""
    lines = [
        line.strip()
        for line in description[:MAX_DESCRIPTION_CHARACTERS].splitlines()
        if not (_WEB_ADDRESS.search(line) or _HASHTAGS_ONLY.fullmatch(line) or _CHAPTER_MARK.match(line))
    ]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()
