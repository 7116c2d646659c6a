"""Lists the videos of a channel or playlist: by its feed, and if that fails, by the Data API."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from config.core.http_client import OutboundError, read_retry_after
from pipeline.limits import FEED_BYTES
from pipeline.plugins import Refused, TryLater
from pipeline.sources.base import Note
from pipeline.sources.feeds.read_feed import entry_of, read_feed
from pipeline.sources.youtube.api import ApiFailed
from pipeline.sources.youtube.video import YouTubeVideo, watch_address

if TYPE_CHECKING:
    from config.core.http_client import Client, Response
    from pipeline.sources.base import Entry
    from pipeline.sources.youtube.api import DataApi
    from pipeline.sources.youtube.poll_state import YouTubePollState

FEED_SECONDS: Final = 12
PAGE_SECONDS: Final = 8
MAX_FEED_VIDEOS: Final = 15
"""The number of videos that a feed shows; a first poll by the Data API takes no more."""
MAX_PAGE_BYTES: Final = 3 * 1024 * 1024
MAX_REDIRECTS: Final = 3
BLOCKED_WAIT: Final = timedelta(hours=1)
MAX_WAIT: Final = timedelta(hours=24)

PLAYLIST_PAGES: Final = 4
"""The pages of 50 videos that are read of a playlist, whose newest videos may stand anywhere in it."""
_FEED_OUTAGE_NOTE: Final = Note(
    "feed_outage", "YouTube's feed doesn't answer at the moment; the list comes from the Data API."
)
_PLAYLIST_CUT_OFF_NOTE: Final = Note(
    "playlist_cut_off",
    f"YouTube's feed shows the first {MAX_FEED_VIDEOS} videos of a playlist only. Where new ones are added at its end, they are seen "
    "only with a key of the Data API, which the operator sets as YOUTUBE_API_KEY.",
)

_CHANGING_COUNTS: Final = re.compile(rb"<media:(?:statistics|starRating)\b[^<>]{0,200}/>")
_DELETED_ENTRY: Final = re.compile(
    rb"""<at:deleted-entry\b[^<>]{0,300}\bref=["']yt:video:([A-Za-z0-9_-]{11})["']"""
)
_ENTRY_ID: Final = re.compile(r"yt:video:([A-Za-z0-9_-]{11})(?:\||$)")
_CHANNEL_ID_PATTERNS: Final = (
    re.compile(r"""<link rel="canonical" href="https://www\.youtube\.com/channel/(UC[A-Za-z0-9_-]{22})">"""),
    re.compile(r""""externalId":"(UC[A-Za-z0-9_-]{22})\""""),
)


_PAGE_PATHS: Final = {"handle": "", "user": "user/", "custom": "c/"}
"""The paths of the pages of names, by the kinds whose channel has to be found."""
_API_PARAMETERS: Final = {"handle": "forHandle", "user": "forUsername"}


@dataclass(frozen=True)
class FollowedAddress:
    """A channel, a playlist or a video by its id, or a channel by a name, which the source follows.

    `kind` is `channel`, `playlist`, `video`, `handle`, or `user` or `custom` for the name of an old address.
    The channel's id has to be found for the last three.
    """

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"

    @property
    def name_in_messages(self) -> str:
        """The name with the word for it, as messages call it."""
        return f"handle {self.name}" if self.kind == "handle" else f"name {self.name}"


@dataclass(frozen=True)
class VideoListing:
    """Videos, newest first.

    `origin` is `feed`, `api`, `video` for a single video, or `same` if the feed is unchanged since the last
    poll. `is_from_usual_origin` is `False` if the list comes from elsewhere than at other polls, because its
    wording may differ then. `digest` is that of the feed, or empty if no feed was read. `deleted` are the ids
    of videos that the feed declares deleted.
    """

    origin: str
    is_from_usual_origin: bool = True
    videos: tuple[YouTubeVideo, ...] = ()
    title: str = ""
    digest: str = ""
    deleted: frozenset[str] = frozenset()
    malformed: int = 0
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True)
class VideoLister:
    """Reads lists from YouTube. `api` is `None` if the operator gave no key, or if the API may not be called now."""

    http: Client
    base: str
    api: DataApi | None
    now: datetime

    def list_videos(self, followed: FollowedAddress, state: YouTubePollState) -> VideoListing:
        """Return the videos of the followed address, and store the channel of a name in `state`.

        Raises `TryLater` if they can't be listed now, with the code `not_found` for a channel, playlist or video
        that YouTube shows nowhere, because it may come back. Raises `Refused` only for a name that no channel has
        according to the Data API.
        """
        if followed.kind == "video":
            return self._single_video(followed.name, state)
        if followed.kind in _PAGE_PATHS and not state.channel_id:
            state.channel_id = self._find_channel(followed)
        channel = followed.name if followed.kind == "channel" else state.channel_id
        query = f"channel_id={channel}" if channel else f"playlist_id={followed.name}"
        if self.api is not None and not channel:
            try:
                return self._list_from_api(self.api, followed.name, state, pages=PLAYLIST_PAGES)
            except ApiFailed as error:
                if error.code == "not_found":
                    message = "YouTube has no such playlist, or hides it. Check the playlist's address."
                    raise TryLater(message, code="not_found") from error
                listing = self._list_from_feed(query, channel, state)
                return replace(listing, is_from_usual_origin=False, notes=(Note(error.code, str(error)),))
        try:
            listing = self._list_from_feed(query, channel, state)
        except TryLater as feed_error:
            if self.api is None or feed_error.code == "not_found":
                raise
            # The playlist of a channel's uploads has the channel's id, with UU for UC.
            uploads = f"UU{channel.removeprefix('UC')}"
            return self._list_from_api_after_feed_failed(self.api, uploads, state, feed_error)
        # An unchanged feed wasn't read again; its `floor` tells that the first one was cut off.
        is_cut_off = len(listing.videos) >= MAX_FEED_VIDEOS or (listing.origin == "same" and state.floor > 0)
        return listing if channel or not is_cut_off else replace(listing, notes=(_PLAYLIST_CUT_OFF_NOTE,))

    def is_public(self, video_id: str) -> bool:
        """Return whether YouTube still shows a video to everybody by oEmbed, or `True` if it doesn't answer."""
        try:
            response = self.http.get(
                _oembed_url(self.base, video_id), timeout=PAGE_SECONDS, max_bytes=MAX_PAGE_BYTES
            )
        except OutboundError:
            return True
        return not _is_hidden(response)

    def _single_video(self, video_id: str, state: YouTubePollState) -> VideoListing:
        """Return one video by oEmbed, with title and channel, or no video if a known one was taken back.

        Raises `TryLater` if oEmbed can't be read, or shows no such video at the first poll.
        """
        response = self._get(_oembed_url(self.base, video_id), PAGE_SECONDS, "The video")
        if _is_hidden(response):
            if state.begun:
                return VideoListing("video", title=state.title)
            message = "YouTube has no such public video. Check the video's address."
            raise TryLater(message, code="not_found", platform_status=response.status)
        try:
            answer = json.loads(response.body) if response.status == 200 else None
        except (ValueError, RecursionError):
            answer = None
        if not isinstance(answer, dict):
            message = (
                f"YouTube answered with status {response.status} for the video. It is retried automatically."
            )
            raise TryLater(message, code="video_unreadable", platform_status=response.status)
        title, channel = (str(answer.get(name) or "") for name in ("title", "author_name"))
        return VideoListing("video", videos=(YouTubeVideo(video_id, title, channel=channel),), title=title)

    # --- The feed ---

    def _list_from_feed(self, query: str, channel: str, state: YouTubePollState) -> VideoListing:
        """Return the feed's videos, or the origin `same` if unchanged. Raises `TryLater` if it can't be read."""
        response = self._get(f"{self.base}/feeds/videos.xml?{query}", FEED_SECONDS, "The feed")
        if response.status != 200:
            raise self._diagnose_feed_failure(response, channel)
        _raise_if_page(response)
        digest = hashlib.sha256(_CHANGING_COUNTS.sub(b"", response.body)).hexdigest()
        if digest == state.digest:
            return VideoListing("same", title=state.title, digest=digest)
        try:
            document = read_feed(response.body, url=response.url, content_type="text/xml; charset=utf-8")
        except Refused as error:
            message = "YouTube answered with something that is not a feed. It is polled again later."
            raise TryLater(message, code="feed_unreadable") from error
        entries = [entry_of(record, identity=record["id"], now=self.now) for record in document.records]
        optional_videos = [_entry_to_video(entry) for entry in entries]
        videos = {video.id: video for video in optional_videos if video is not None}
        return VideoListing(
            "feed",
            videos=tuple(videos.values()),
            title=document.title,
            digest=digest,
            deleted=frozenset(video_id.decode() for video_id in _DELETED_ENTRY.findall(response.body)),
            malformed=document.malformed + optional_videos.count(None),
        )

    def _diagnose_feed_failure(self, response: Response, channel: str) -> TryLater:
        """Return the plug-in error for a response without a feed. After a 404 the channel's page is asked too."""
        status = response.status
        named_wait = read_retry_after(response.headers, now=self.now, longest=MAX_WAIT)
        if status in {401, 403, 429}:
            message = (
                f"YouTube refuses this service at the moment (status {status}). It is polled again later. "
                "An operator can set YOUTUBE_API_KEY to use the Data API instead."
            )
            wait = named_wait or BLOCKED_WAIT
            return TryLater(message, code="blocked", after=wait, platform_status=status)
        if status == 404 and channel and self._is_no_channel(channel):
            message = (
                "YouTube has no such channel: neither its feed nor its page exists. Check the "
                "channel's address."
            )
            return TryLater(message, code="not_found", platform_status=status)
        message = (
            f"YouTube answered with status {status} for the feed. This happens now and then for days, also "
            "to channels and lists that work. The feed is polled again automatically; an operator can set "
            "YOUTUBE_API_KEY to use the Data API in the meantime."
        )
        return TryLater(message, code="feed_outage", after=named_wait or None, platform_status=status)

    def _is_no_channel(self, channel: str) -> bool:
        """Return whether the channel's page doesn't exist either, or `False` if it can't be fetched."""
        try:
            response = self.http.get(
                f"{self.base}/channel/{channel}", timeout=PAGE_SECONDS, max_bytes=65_536, truncate=True
            )
        except OutboundError:
            return False
        return response.status == 404

    def _get(self, url: str, seconds: float, subject: str, *, truncate: bool = False) -> Response:
        """Fetch an address. Raises `TryLater` if there is no answer."""
        limit = MAX_PAGE_BYTES if truncate else FEED_BYTES
        try:
            return self.http.get(
                url, timeout=seconds, max_bytes=limit, max_redirects=MAX_REDIRECTS, truncate=truncate
            )
        except OutboundError as error:
            message = f"{subject} could not be fetched from YouTube: {error}"
            raise TryLater(message, code=error.code) from error

    # --- The Data API ---

    def _list_from_api(
        self, api: DataApi, playlist: str, state: YouTubePollState, *, pages: int
    ) -> VideoListing:
        """Return the newest videos by the Data API: at the first poll `MAX_FEED_VIDEOS`, later new and known ones.

        Raises `ApiFailed` if a call fails; then `state` says how long the API is left alone.
        """
        try:
            videos = api.videos_of(playlist, pages=pages, now=self.now)
        except ApiFailed as error:
            if error.until is not None:
                state.api_after = int(error.until.timestamp())
            raise
        oldest = datetime.min.replace(tzinfo=UTC)
        videos.sort(key=lambda video: video.listed_at or oldest, reverse=True)
        if not state.begun:
            return VideoListing("api", videos=tuple(videos[:MAX_FEED_VIDEOS]), title=_channel_name(videos))
        # Older videos may never have been in a feed, so they don't count as new.
        begun = datetime.fromtimestamp(state.begun, tz=UTC)
        videos = [
            video
            for video in videos
            if video.id in state.records
            or video.id in state.waiting
            or (video.listed_at is not None and video.listed_at > begun)
        ]
        return VideoListing("api", videos=tuple(videos), title=state.title)

    def _list_from_api_after_feed_failed(
        self, api: DataApi, uploads: str, state: YouTubePollState, feed_error: TryLater
    ) -> VideoListing:
        """Return the list by the Data API because the feed failed. Raises `TryLater` if the API fails too."""
        try:
            listing = self._list_from_api(api, uploads, state, pages=1)
        except ApiFailed as error:
            wait = error.until - self.now if error.until else feed_error.after
            message = f"{feed_error.message} {error}"
            wait = min(wait, MAX_WAIT) if wait else None
            raise TryLater(message, code=error.code, after=wait) from error
        return replace(listing, is_from_usual_origin=False, notes=(_FEED_OUTAGE_NOTE,))

    # --- Handles ---

    def _find_channel(self, followed: FollowedAddress) -> str:
        """Return the id of a name's channel, by the Data API or from the name's page.

        Raises `Refused` if no channel has the name according to the Data API, and `TryLater` if the page doesn't
        show it.
        """
        # The Data API can't look up names of the kind /c/….
        if self.api is not None and followed.kind != "custom":
            try:
                channel_id = self.api.channel_of(
                    followed.name, by=_API_PARAMETERS[followed.kind], now=self.now
                )
            except ApiFailed:
                return self._find_channel_on_page(followed)
            if channel_id:
                return channel_id
            message = f"YouTube has no channel with the {followed.name_in_messages}. Check the spelling."
            raise Refused(message, code="not_found", field=f"config.{followed.kind}")
        return self._find_channel_on_page(followed)

    def _find_channel_on_page(self, followed: FollowedAddress) -> str:
        """Return the channel's id from the name's page. Raises `TryLater` if the page doesn't show it."""
        url = f"{self.base}/{_PAGE_PATHS[followed.kind]}{quote(followed.name, safe='@')}"
        response = self._get(url, PAGE_SECONDS, "The channel's page", truncate=True)
        if response.status == 404:
            message = f"YouTube has no channel with the {followed.name_in_messages}. Check the spelling."
            raise TryLater(message, code="not_found", platform_status=404)
        _raise_if_consent(response)
        text = response.body.decode(errors="replace")
        for pattern in _CHANNEL_ID_PATTERNS:
            match = pattern.search(text)
            if response.status == 200 and match:
                return match[1]
        message = (
            f"YouTube's page of {followed.name} doesn't say which channel it is (status {response.status}). "
            "It is retried automatically. To skip the wait, give the channel's id (UC…) instead, or have "
            "the operator set YOUTUBE_API_KEY."
        )
        raise TryLater(message, code="handle_unreadable", platform_status=response.status)


def _oembed_url(base: str, video_id: str) -> str:
    """Return the oEmbed address of a video."""
    return f"{base}/oembed?format=json&url={quote(watch_address(video_id), safe='')}"


def _is_hidden(response: Response) -> bool:
    """Return whether oEmbed's answer says that not everybody sees the video."""
    if response.status != 200:
        return response.status in {400, 401, 403, 404}
    # YouTube has answered "Forbidden" for private videos under status 200, too.
    return response.body.strip().startswith((b"Forbidden", b"Unauthorized", b"Not Found"))


def _raise_if_page(response: Response) -> None:
    """Raise `TryLater` if the answer is a web page instead of a feed, such as a request for consent."""
    _raise_if_consent(response)
    start = response.body[:2000].lower()
    if b"<html" in start or b"<!doctype html" in start:
        message = "YouTube answered with a web page instead of the feed, as it does for suspected robots."
        raise TryLater(message, code="blocked", after=BLOCKED_WAIT)


def _raise_if_consent(response: Response) -> None:
    """Raise `TryLater` if YouTube asks for consent to cookies."""
    is_consent = (
        "//consent.youtube.com" in response.url or b'action="https://consent.youtube.com' in response.body
    )
    if is_consent:
        message = (
            "YouTube asks for a visitor's consent to cookies before it shows anything, which a service "
            "can't give. An operator can set YOUTUBE_API_KEY to use the Data API instead."
        )
        raise TryLater(message, code="consent_page", after=BLOCKED_WAIT)


def _entry_to_video(entry: Entry) -> YouTubeVideo | None:
    """Return a feed's entry as a video, or `None` if it has no video's id."""
    match = _ENTRY_ID.match(entry.external_id or "")
    if match is None:
        return None
    return YouTubeVideo(
        id=match[1],
        title=entry.title,
        description=entry.body,
        published_at=entry.published_at,
        channel=entry.author,
    )


def _channel_name(videos: list[YouTubeVideo]) -> str:
    """Return the channel's name, or an empty string if there are no videos."""
    return videos[0].channel if videos else ""
