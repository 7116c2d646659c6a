"""What a YouTube source remembers from poll to poll: what it listed, what waits, and whom to leave alone until when."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from pipeline.sources.youtube.video import VIDEO_ID, YouTubeVideo

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_RECORDS: Final = 300
"""Twenty times what a feed shows, and more than is read of a playlist."""
MAX_WAITING: Final = 50


@dataclass
class YouTubeRecord:
    """A video that was listed: `fate` is `given`, `left_out` or `withdrawn`; moments are seconds since 1970."""

    fingerprint: str
    fate: str
    has_captions: bool = False
    published: int = 0
    missing: int = 0
    is_unlisted: bool = False


@dataclass
class UpcomingVideo:
    """A video that is listed later: `next` is when to look again, `first` when it was first seen.

    `why` is `live` or `captions`.
    """

    video: YouTubeVideo
    why: str
    first: int
    next: int
    tries: int = 0


@dataclass
class YouTubeMemory:
    """`begun` is the moment of the first poll, 0 before it; `digest` is of the feed that was last read.

    `floor` is when the oldest video of the first poll was published, 0 where the list was shown whole; `told` is how
    many notes the last poll brought.
    """

    place: str
    channel_id: str = ""
    title: str = ""
    digest: str = ""
    begun: int = 0
    floor: int = 0
    captions_after: int = 0
    api_after: int = 0
    checked: int = 0
    told: int = 0
    records: dict[str, YouTubeRecord] = field(default_factory=dict)
    waiting: dict[str, UpcomingVideo] = field(default_factory=dict)

    @classmethod
    def of(cls, state: Mapping[str, Any], *, place: str) -> YouTubeMemory:
        """What the state says; nothing where it speaks of another channel or list."""
        if state.get("place") != place:
            return cls(place)
        memory = cls(place)
        for name in ("channel_id", "title", "digest"):
            setattr(memory, name, _text(state.get(name)))
        for name in ("begun", "floor", "captions_after", "api_after", "checked", "told"):
            setattr(memory, name, _count(state.get(name)))
        for video_id, kept in _members(state.get("records")):
            memory.records[video_id] = YouTubeRecord(
                fingerprint=_text(kept.get("fingerprint")),
                fate=_text(kept.get("fate")),
                has_captions=kept.get("has_captions") is True,
                published=_count(kept.get("published")),
                missing=_count(kept.get("missing")),
                is_unlisted=kept.get("is_unlisted") is True,
            )
        for video_id, kept in _members(state.get("waiting")):
            memory.waiting[video_id] = UpcomingVideo(
                YouTubeVideo.of_json(video_id, kept),
                why=_text(kept.get("why")),
                first=_count(kept.get("first")),
                next=_count(kept.get("next")),
                tries=_count(kept.get("tries")),
            )
        return memory

    def as_state(self) -> dict[str, Any]:
        newest = sorted(self.records.items(), key=lambda pair: pair[1].published, reverse=True)[:MAX_RECORDS]
        waiting = list(self.waiting.items())[:MAX_WAITING]
        return {
            "place": self.place,
            "channel_id": self.channel_id,
            "title": self.title,
            "digest": self.digest,
            "begun": self.begun,
            "floor": self.floor,
            "captions_after": self.captions_after,
            "api_after": self.api_after,
            "checked": self.checked,
            "told": self.told,
            "records": {video_id: dict(vars(record)) for video_id, record in newest},
            "waiting": {
                video_id: {
                    **one.video.as_json(),
                    "why": one.why,
                    "first": one.first,
                    "next": one.next,
                    "tries": one.tries,
                }
                for video_id, one in waiting
            },
        }


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def _members(value: object) -> list[tuple[str, Mapping[str, Any]]]:
    if not isinstance(value, dict):
        return []
    return [
        (key, one) for key, one in value.items() if VIDEO_ID.fullmatch(str(key)) and isinstance(one, dict)
    ]
