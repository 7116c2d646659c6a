"""The YouTube Data API v3, as far as sources need it: a handle's channel, a list's newest videos, what a video is.

Each call costs one unit of the key's quota (10,000 a day by default, developers.google.com/youtube/v3/determine_quota_cost,
read in November 2026). The key travels in a header, so that it stands in no address, log or error.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

from config.core.http_client import OutboundError
from pipeline.sources.youtube.video import VIDEO_ID, Details, YouTubeVideo

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from config.core.http_client import Client, Response

PAGE: Final = 50
CALL_SECONDS: Final = 10
MAX_BYTES: Final = 4 * 1024 * 1024
EARLIEST_YEAR: Final = 2005
"""YouTube's first; what is older is nonsense."""
SHORT_PAUSE: Final = timedelta(hours=1)
_PACIFIC: Final = ZoneInfo("America/Los_Angeles")
_OVER_QUOTA: Final = frozenset({"quotaExceeded", "dailyLimitExceeded"})
_TOO_FAST: Final = frozenset({"rateLimitExceeded", "userRateLimitExceeded"})
_DURATION: Final = re.compile(
    r"P(?:(?P<days>[0-9]{1,4})D)?(?:T(?:(?P<hours>[0-9]{1,4})H)?(?:(?P<minutes>[0-9]{1,4})M)?(?:(?P<seconds>[0-9]{1,6})S)?)?"
)


class ApiFailed(Exception):
    """`code` for programs, `str()` a sentence; `until` where it makes no sense to ask before."""

    def __init__(self, code: str, message: str, until: datetime | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.until = until


@dataclass(frozen=True)
class DataApi:
    http: Client
    base: str
    key: str

    def channel_of(self, name: str, *, by: str, now: datetime) -> str:
        """The id of a name's channel, or an empty text where there is none; `by` is `forHandle` or `forUsername`."""
        found = self._ask("channels", {"part": "id", by: name}, now)
        ids = [one.get("id") for one in _items(found)]
        return ids[0] if ids and isinstance(ids[0], str) else ""

    def videos_of(self, playlist: str, *, pages: int, now: datetime) -> list[YouTubeVideo]:
        """The first pages of a playlist, in its own order; of a channel's uploads those are the newest."""
        query = {"part": "snippet,contentDetails", "playlistId": playlist, "maxResults": str(PAGE)}
        found: list[YouTubeVideo] = []
        for _page in range(pages):
            answer = self._ask("playlistItems", query, now)
            videos = [_listed(one, now) for one in _items(answer)]
            found += [video for video in videos if video is not None]
            following = answer.get("nextPageToken") if isinstance(answer, dict) else None
            if not isinstance(following, str):
                break
            query["pageToken"] = following
        return found

    def details_of(self, ids: Sequence[str], *, now: datetime) -> dict[str, Details]:
        """By id; a video that is missing was deleted, or is hidden from everybody."""
        if not ids:
            return {}
        query = {"part": "snippet,contentDetails,status,liveStreamingDetails", "id": ",".join(ids[:PAGE])}
        found = self._ask("videos", query, now)
        return {str(one.get("id")): _details(one) for one in _items(found)}

    def _ask(self, resource: str, query: Mapping[str, str], now: datetime) -> Any:
        pairs = urlencode(query)
        try:
            response = self.http.get(
                f"{self.base}/youtube/v3/{resource}?{pairs}",
                headers={"X-Goog-Api-Key": self.key, "Accept": "application/json"},
                timeout=CALL_SECONDS,
                max_bytes=MAX_BYTES,
            )
        except OutboundError as error:
            message = f"YouTube's Data API could not be asked: {error}"
            raise ApiFailed("api_unreachable", message) from None
        if response.status != 200:
            raise _failure(response, now)
        return _parsed(response)


def next_midnight(now: datetime) -> datetime:
    """When the quota begins anew: at midnight Pacific time."""
    local = now.astimezone(_PACIFIC)
    midnight = datetime(local.year, local.month, local.day, tzinfo=_PACIFIC) + timedelta(days=1)
    return midnight.astimezone(UTC)


def _parsed(response: Response) -> Any:
    try:
        return json.loads(response.body)
    except (ValueError, RecursionError):
        message = "YouTube's Data API answered with something else than JSON."
        raise ApiFailed("api_unreadable", message) from None


def _failure(response: Response, now: datetime) -> ApiFailed:
    reason = ""
    try:
        error = json.loads(response.body)["error"]
        reason = str(error["errors"][0]["reason"])
    except (ValueError, RecursionError, KeyError, IndexError, TypeError):
        error = None
    if reason in _OVER_QUOTA:
        until = next_midnight(now)
        message = (
            "The day's quota of YouTube's Data API is used up. It begins anew at midnight Pacific time, "
            f"{until:%H:%M} UTC. An operator can ask Google for a larger one."
        )
        return ApiFailed("quota_exceeded", message, until)
    if response.status == 429 or reason in _TOO_FAST:
        message = "YouTube's Data API is asked too often at the moment; it is left alone for an hour."
        return ApiFailed("api_rate_limited", message, now + SHORT_PAUSE)
    if response.status == 404:
        return ApiFailed("not_found", "YouTube's Data API knows no such list.")
    if response.status >= 500:
        message = f"YouTube's Data API has a fault of its own (status {response.status})."
        return ApiFailed("api_fault", message)
    message = (
        f"YouTube's Data API refuses the service's key (status {response.status}). The operator should look at "
        "YOUTUBE_API_KEY and at what the key is allowed."
    )
    return ApiFailed("api_key_refused", message, now + SHORT_PAUSE)


def _items(found: Any) -> list[dict[str, Any]]:
    items = found.get("items") if isinstance(found, dict) else None
    return [one for one in items if isinstance(one, dict)] if isinstance(items, list) else []


def _part(one: Mapping[str, Any], name: str) -> dict[str, Any]:
    part = one.get(name)
    return part if isinstance(part, dict) else {}


def _listed(one: Mapping[str, Any], now: datetime) -> YouTubeVideo | None:
    snippet, content = _part(one, "snippet"), _part(one, "contentDetails")
    video_id = str(content.get("videoId") or "")
    published = moment(content.get("videoPublishedAt"))
    # Of a deleted or private video a playlist keeps the place, without the date.
    if not VIDEO_ID.fullmatch(video_id) or published is None:
        return None
    return YouTubeVideo(
        id=video_id,
        title=str(snippet.get("title") or ""),
        description=str(snippet.get("description") or ""),
        published_at=min(published, now),
        channel=str(snippet.get("videoOwnerChannelTitle") or snippet.get("channelTitle") or ""),
        listed_at=moment(snippet.get("publishedAt")),
    )


def _details(one: Mapping[str, Any]) -> Details:
    snippet, live = _part(one, "snippet"), _part(one, "liveStreamingDetails")
    status = _part(one, "status")
    written = str(snippet.get("liveBroadcastContent") or "none")
    return Details(
        duration_seconds=seconds_of(str(_part(one, "contentDetails").get("duration") or "")),
        live=written if written in {"live", "upcoming"} else "none",
        starts_at=moment(live.get("scheduledStartTime")),
        is_private=status.get("privacyStatus") == "private",
        licence=str(status.get("license") or "")[:40],
        language=str(snippet.get("defaultAudioLanguage") or "")[:35],
    )


def seconds_of(duration: str) -> int | None:
    """The seconds of an ISO 8601 duration such as `PT1H2M3S`; a broadcast that runs has `P0D`, which is None."""
    match = _DURATION.fullmatch(duration)
    if match is None:
        return None
    days, hours, minutes, seconds = (
        int(match[name] or 0) for name in ("days", "hours", "minutes", "seconds")
    )
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds or None


def moment(written: object) -> datetime | None:
    """An aware moment of an RFC 3339 text, or None."""
    if not isinstance(written, str):
        return None
    try:
        found = datetime.fromisoformat(written[:40])
        return found.astimezone(UTC) if found.tzinfo and found.year >= EARLIEST_YEAR else None
    except (ValueError, OverflowError):
        return None
