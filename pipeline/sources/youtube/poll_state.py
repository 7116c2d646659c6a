"""Stores the poll state of a YouTube source: listed videos, waiting videos, and pauses of calls."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from pipeline.sources.youtube.video import VIDEO_ID, YouTubeVideo

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_RECORDS: Final = 300
"""Twenty times the videos of a feed, and more than are read of a playlist."""
MAX_WAITING: Final = 50


@dataclass
class YouTubeRecord:
    """A video that was listed.

    `fate` is `given`, `left_out` or `withdrawn`; `published` is in seconds since 1970; `missing` is the number
    of checks in a row without the video.
    """

    fingerprint: str
    fate: str
    has_captions: bool = False
    published: int = 0
    missing: int = 0
    is_unlisted: bool = False


@dataclass
class UpcomingVideo:
    """A video that is given later.

    `next` is when to check it again and `first` when it was first seen, in seconds since 1970; `why` is `live`
    or `captions`.
    """

    video: YouTubeVideo
    why: str
    first: int
    next: int
    tries: int = 0


@dataclass
class YouTubePollState:
    """The poll state of one source.

    Times are seconds since 1970. `place` is the followed address; `begun` is the moment of the first poll, or 0
    before it; `digest` is that of the feed that was last read. `floor` is when the oldest video of the first poll was
    published, or 0 if the list was complete. Before `captions_after` and `api_after` no captions are read and the
    Data API isn't called; `checked` is the last check by it. `told` is the number of notes of the last poll.
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
    def of(cls, state: Mapping[str, Any], *, place: str) -> YouTubePollState:
        """Return the stored state, or an empty state if it is of another channel or list."""
        if state.get("place") != place:
            return cls(place)
        poll_state = cls(place)
        for name in ("channel_id", "title", "digest"):
            setattr(poll_state, name, _string(state.get(name)))
        for name in ("begun", "floor", "captions_after", "api_after", "checked", "told"):
            setattr(poll_state, name, _positive_int(state.get(name)))
        for video_id, stored in _videos_in(state.get("records")):
            poll_state.records[video_id] = YouTubeRecord(
                fingerprint=_string(stored.get("fingerprint")),
                fate=_string(stored.get("fate")),
                has_captions=stored.get("has_captions") is True,
                published=_positive_int(stored.get("published")),
                missing=_positive_int(stored.get("missing")),
                is_unlisted=stored.get("is_unlisted") is True,
            )
        for video_id, stored in _videos_in(state.get("waiting")):
            poll_state.waiting[video_id] = UpcomingVideo(
                YouTubeVideo.from_json(video_id, stored),
                why=_string(stored.get("why")),
                first=_positive_int(stored.get("first")),
                next=_positive_int(stored.get("next")),
                tries=_positive_int(stored.get("tries")),
            )
        return poll_state

    def as_state(self) -> dict[str, Any]:
        """Return the state as JSON to store, cut to its bounds."""
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
                    **upcoming.video.as_json(),
                    "why": upcoming.why,
                    "first": upcoming.first,
                    "next": upcoming.next,
                    "tries": upcoming.tries,
                }
                for video_id, upcoming in waiting
            },
        }


def _string(value: object) -> str:
    """Return a string, or an empty one for any other value."""
    return value if isinstance(value, str) else ""


def _positive_int(value: object) -> int:
    """Return a positive integer, or 0 for any other value."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def _videos_in(value: object) -> list[tuple[str, Mapping[str, Any]]]:
    """Return the stored objects of videos with their ids, without malformed ones."""
    if not isinstance(value, dict):
        return []
    return [
        (key, stored)
        for key, stored in value.items()
        if VIDEO_ID.fullmatch(str(key)) and isinstance(stored, dict)
    ]
