"""Calls the YouTube Data API v3, as far as sources need it.

It finds the channel of a name, the newest videos of a list, and details of videos. Each call costs one unit of the
key's quota (10,000 a day by default, developers.google.com/youtube/v3/determine_quota_cost, read in November
2026). The key is sent in a header, so that it stands in no address, log or error.
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

PAGE_SIZE: Final = 50
CALL_SECONDS: Final = 10
MAX_BYTES: Final = 4 * 1024 * 1024
EARLIEST_YEAR: Final = 2005
"""YouTube's first year; older dates are nonsense."""
API_PAUSE: Final = timedelta(hours=1)
"""The time without calls after the API limits the rate or refuses the key."""
_PACIFIC: Final = ZoneInfo("America/Los_Angeles")
_QUOTA_REASONS: Final = frozenset({"quotaExceeded", "dailyLimitExceeded"})
_RATE_REASONS: Final = frozenset({"rateLimitExceeded", "userRateLimitExceeded"})
_DURATION: Final = re.compile(
    r"P(?:(?P<days>[0-9]{1,4})D)?(?:T(?:(?P<hours>[0-9]{1,4})H)?(?:(?P<minutes>[0-9]{1,4})M)?(?:(?P<seconds>[0-9]{1,6})S)?)?"
)


class ApiFailed(Exception):
    """Raised if the Data API fails; `code` is for programs, and calls before `until` make no sense."""

    def __init__(self, code: str, message: str, until: datetime | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.until = until


@dataclass(frozen=True)
class DataApi:
    """The Data API with the operator's key."""

    http: Client
    base: str
    key: str

    def channel_of(self, name: str, *, by: str, now: datetime) -> str:
        """Return the id of a name's channel, or an empty string if there is none.

        `by` is `forHandle` or `forUsername`. Raises `ApiFailed` if the call fails.
        """
        answer = self._call("channels", {"part": "id", by: name}, now)
        ids = [item.get("id") for item in _items_in(answer)]
        return ids[0] if ids and isinstance(ids[0], str) else ""

    def videos_of(self, playlist: str, *, pages: int, now: datetime) -> list[YouTubeVideo]:
        """Return the videos on the first pages of a playlist, in its order, without those that nobody can see.

        For a channel's uploads these are the newest. Raises `ApiFailed` if a call fails.
        """
        query = {"part": "snippet,contentDetails", "playlistId": playlist, "maxResults": str(PAGE_SIZE)}
        listed_videos: list[YouTubeVideo] = []
        for _page in range(pages):
            answer = self._call("playlistItems", query, now)
            videos = [_listed_video(item, now) for item in _items_in(answer)]
            listed_videos += [video for video in videos if video is not None]
            next_token = answer.get("nextPageToken") if isinstance(answer, dict) else None
            if not isinstance(next_token, str):
                break
            query["pageToken"] = next_token
        return listed_videos

    def details_of(self, ids: Sequence[str], *, now: datetime) -> dict[str, Details]:
        """Return the details of the first `PAGE_SIZE` videos by id.

        A missing one was deleted, or is hidden from everybody. Raises `ApiFailed` if the call fails.
        """
        if not ids:
            return {}
        query = {
            "part": "snippet,contentDetails,status,liveStreamingDetails",
            "id": ",".join(ids[:PAGE_SIZE]),
        }
        answer = self._call("videos", query, now)
        return {str(item.get("id")): _details_in(item) for item in _items_in(answer)}

    def _call(self, resource: str, query: Mapping[str, str], now: datetime) -> Any:
        """Return the API's answer. Raises `ApiFailed` if there is none, or it isn't JSON under status 200."""
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
        return _parse_json(response)


def next_midnight(now: datetime) -> datetime:
    """Return the moment at which the quota is renewed: the next midnight in Pacific time, in UTC."""
    local = now.astimezone(_PACIFIC)
    midnight = datetime(local.year, local.month, local.day, tzinfo=_PACIFIC) + timedelta(days=1)
    return midnight.astimezone(UTC)


def _parse_json(response: Response) -> Any:
    """Return the answer's JSON. Raises `ApiFailed` if it isn't JSON."""
    try:
        return json.loads(response.body)
    except (ValueError, RecursionError):
        message = "YouTube's Data API answered with something else than JSON."
        raise ApiFailed("api_unreadable", message) from None


def _failure(response: Response, now: datetime) -> ApiFailed:
    """Return the failure that a response means."""
    reason = ""
    try:
        error = json.loads(response.body)["error"]
        reason = str(error["errors"][0]["reason"])
    except (ValueError, RecursionError, KeyError, IndexError, TypeError):
        error = None
    if reason in _QUOTA_REASONS:
        until = next_midnight(now)
        message = (
            "The day's quota of YouTube's Data API is used up. It resets at midnight Pacific time, "
            f"{until:%H:%M} UTC. An operator can ask Google for a larger one."
        )
        return ApiFailed("quota_exceeded", message, until)
    if response.status == 429 or reason in _RATE_REASONS:
        message = "YouTube's Data API is rate limiting this service. It is asked again in an hour."
        return ApiFailed("api_rate_limited", message, now + API_PAUSE)
    if response.status == 404:
        return ApiFailed("not_found", "YouTube's Data API has no such list.")
    if response.status >= 500:
        message = f"YouTube's Data API has an internal error (status {response.status})."
        return ApiFailed("api_fault", message)
    message = (
        f"YouTube's Data API refuses the service's key (status {response.status}). The operator should "
        "check YOUTUBE_API_KEY and what the key may do."
    )
    return ApiFailed("api_key_refused", message, now + API_PAUSE)


def _items_in(answer: Any) -> list[dict[str, Any]]:
    """Return the items of an answer."""
    items = answer.get("items") if isinstance(answer, dict) else None
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []


def _part_of(item: Mapping[str, Any], name: str) -> dict[str, Any]:
    """Return an object within an item, or an empty mapping if it is missing."""
    part = item.get(name)
    return part if isinstance(part, dict) else {}


def _listed_video(item: Mapping[str, Any], now: datetime) -> YouTubeVideo | None:
    """Return a playlist's item as a video, or `None` for a video that nobody can see."""
    snippet, content = _part_of(item, "snippet"), _part_of(item, "contentDetails")
    video_id = str(content.get("videoId") or "")
    published = parse_moment(content.get("videoPublishedAt"))
    # A playlist still lists deleted and private videos, but without their dates.
    if not VIDEO_ID.fullmatch(video_id) or published is None:
        return None
    return YouTubeVideo(
        id=video_id,
        title=str(snippet.get("title") or ""),
        description=str(snippet.get("description") or ""),
        published_at=min(published, now),
        channel=str(snippet.get("videoOwnerChannelTitle") or snippet.get("channelTitle") or ""),
        listed_at=parse_moment(snippet.get("publishedAt")),
    )


def _details_in(item: Mapping[str, Any]) -> Details:
    """Return the details in an item of the API's list of videos."""
    snippet, live = _part_of(item, "snippet"), _part_of(item, "liveStreamingDetails")
    status = _part_of(item, "status")
    broadcast = str(snippet.get("liveBroadcastContent") or "none")
    return Details(
        duration_seconds=seconds_of(str(_part_of(item, "contentDetails").get("duration") or "")),
        live=broadcast if broadcast in {"live", "upcoming"} else "none",
        starts_at=parse_moment(live.get("scheduledStartTime")),
        is_private=status.get("privacyStatus") == "private",
        licence=str(status.get("license") or "")[:40],
        language=str(snippet.get("defaultAudioLanguage") or "")[:35],
    )


def seconds_of(duration: str) -> int | None:
    """Return the seconds of an ISO 8601 duration such as `PT1H2M3S`, or `None` if it isn't one.

    It is `None` for `P0D` too, which a running broadcast has.
    """
    match = _DURATION.fullmatch(duration)
    if match is None:
        return None
    days, hours, minutes, seconds = (
        int(match[name] or 0) for name in ("days", "hours", "minutes", "seconds")
    )
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds or None


def parse_moment(text: object) -> datetime | None:
    """Return the moment of an RFC 3339 text in UTC, or `None` for any other value or too early a year."""
    if not isinstance(text, str):
        return None
    try:
        parsed = datetime.fromisoformat(text[:40])
        return parsed.astimezone(UTC) if parsed.tzinfo and parsed.year >= EARLIEST_YEAR else None
    except (ValueError, OverflowError):
        return None
