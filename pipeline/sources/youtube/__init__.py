"""Defines sources of YouTube channels, playlists and videos: settings, and how they are fetched."""

from __future__ import annotations

import re
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, Any, ClassVar, Final

from pipeline.plugins import ConfigInvalid, Evidence, Problem
from pipeline.sources.base import Source
from pipeline.sources.config_fields import BATCH_HOURS, Group, Text, clean
from pipeline.sources.youtube.address import CHANNEL_ID, PLAYLIST_ID, place_in
from pipeline.sources.youtube.api import DataApi
from pipeline.sources.youtube.captions import CaptionReader
from pipeline.sources.youtube.listing import FollowedAddress, VideoLister
from pipeline.sources.youtube.poll import Poll
from pipeline.sources.youtube.poll_state import YouTubePollState

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from config.core.http_client import Client
    from pipeline.sources.base import Fetch

CAPTIONS_SECONDS: Final = 30
"""The seconds after the beginning of a poll within which calls for captions end; a fetch has ten more."""

_SITE_PATTERN: Final = r"^\s*(?:https?://(?:www\.|m\.)?youtube\.com/"
_CHANNEL_PATTERN: Final = _SITE_PATTERN + r"channel/)?(UC[A-Za-z0-9_-]{22})/?\s*$"
_PLAYLIST_PATTERN: Final = _SITE_PATTERN + r"playlist\?list=)?((?:PL|UU|FL|OL|LL)[A-Za-z0-9_-]{8,62})\s*$"
_VIDEO_PATTERN: Final = _SITE_PATTERN + r"watch\?v=)?([A-Za-z0-9_-]{11})\s*$"
_NAME_PATTERN: Final = r"""^\s*[^\s@/\\?#%&<>"'\u0000-\u001f\u007f\ud800-\udfff]{1,60}\s*$"""
# Handles have 3 to 30 characters of any script (support.google.com/youtube/answer/11585688).
_HANDLE_PATTERN: Final = (
    _SITE_PATTERN + r""")?@?([^\s@/\\?#%&<>"'\u0000-\u001f\u007f\ud800-\udfff]{3,30})/?\s*$"""
)


@dataclass(frozen=True)
class Id(Text):
    """An identifier, or an address with it that people copy from the browser; the identifier is stored."""

    prefix: str = ""

    def store(self, value: str) -> str:
        match = re.search(self.pattern, value)
        return f"{self.prefix}{match[1]}" if match else value


# Every address of YouTube; `place_in` decides which of them can be read.
_ADDRESS_PATTERN: Final = (
    r"^\s*(?:https?://)?(?:(?:www\.|m\.|music\.)?youtube\.com|(?:www\.)?youtube-nocookie\.com|(?:www\.)?youtu\.be)"
    r"/[^\s\\\u0000-\u0020\u007f\ud800-\udfff]+\s*$"
)
_PLACE_FIELDS: Final = ("channel", "playlist", "handle", "video", "user", "custom")

SETTINGS: Final = Group(
    "an address on YouTube",
    {
        "url": Text(
            "any address of a channel, a handle, a playlist or a video on YouTube, such as https://www.youtube.com/@example",
            max_length=500,
            pattern=_ADDRESS_PATTERN,
            description="Any address of a channel, a handle, a playlist or a video. It is stored as what "
            "it leads to: one of the other settings.",
        ),
        "channel": Id(
            "the channel's id (`UC…`, 24 characters) or its address with that id; any other address goes into `url`",
            max_length=200,
            pattern=_CHANNEL_PATTERN,
        ),
        "playlist": Id("the playlist's id (`PL…`) or its address", max_length=200, pattern=_PLAYLIST_PATTERN),
        "handle": Id(
            "the channel's handle, such as @example", max_length=200, pattern=_HANDLE_PATTERN, prefix="@"
        ),
        "video": Id("the video's id (11 characters) or its address", max_length=200, pattern=_VIDEO_PATTERN),
        "user": Text("the name in an old address /user/…", max_length=60, pattern=_NAME_PATTERN),
        "custom": Text("the name in an old address /c/…", max_length=60, pattern=_NAME_PATTERN),
        "batch_hours": BATCH_HOURS,
    },
    exactly_one_of=("url", *_PLACE_FIELDS),
)


_NOT_A_PLACE: Final = (
    "This address leads to no channel, playlist or video that everybody can see. Give one such as "
    "https://www.youtube.com/@example, …/playlist?list=PL…, …/watch?v=… or https://youtu.be/…."
)


class YouTubeSource(Source):
    """Reads channels, playlists and videos by feed and captions, and by the Data API if there is a key."""

    kind = "youtube"
    label = "YouTube"
    evidence = Evidence("documents", "November 2026", "tests/sources/test_youtube.py")
    fetches = True
    config_schema: ClassVar[Mapping[str, Any]] = SETTINGS.schema()
    # The feeds change every quarter of an hour at most.
    default_interval_minutes = 30
    environment: ClassVar[Mapping[str, str]] = {
        "YOUTUBE_URL": "https://www.youtube.com",
        "YOUTUBE_API_URL": "https://www.googleapis.com",
        "YOUTUBE_API_KEY": "",
        "VIDEO_TOOL": "",
    }

    def clean_config(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """Return the settings, with an address replaced by its place, such as `{"handle": "@example"}`.

        Raises `ConfigInvalid` if a setting is invalid or the address leads to no public place.
        """
        cleaned = clean(SETTINGS, config)
        address = cleaned.pop("url", None)
        if address is None:
            return cleaned
        place = place_in(address)
        if place is None:
            raise ConfigInvalid([Problem("config.url", "not_a_place", _NOT_A_PLACE)])
        kind, name = place
        return {kind: name, **cleaned}

    def guess_settings(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Move an address, an id or a handle to the setting that it belongs to.

        People call all of them the channel, and enter them in any field.
        """
        guessed = super().guess_settings(values)
        for name in ("url", *_PLACE_FIELDS):
            value = guessed.get(name)
            if not isinstance(value, str) or not SETTINGS.fields[name].read(value, name)[1]:
                continue
            setting, text = name, value
            if place_in(value) is not None:
                setting = "url"
            elif CHANNEL_ID.fullmatch(value.strip()):
                setting = "channel"
            elif PLAYLIST_ID.fullmatch(value.strip()):
                setting = "playlist"
            elif "/" not in value and not SETTINGS.fields["handle"].read(value, name)[1]:
                setting, text = "handle", f"@{value.strip().removeprefix('@')}"
            # The order of the settings stays.
            pairs = [(setting, text) if key == name else (key, entry) for key, entry in guessed.items()]
            guessed = dict(pairs)
        return guessed

    def fetch(
        self,
        config: Mapping[str, Any],
        state: Mapping[str, Any],
        *,
        http: Client,
        now: datetime,
        environment: Mapping[str, str],
    ) -> Fetch:
        """Return the videos that are new or changed since `state`, and those that were taken back.

        Raises `TryLater` if they can't be listed now, and `Refused` if no channel has the name.
        """
        deadline = monotonic() + CAPTIONS_SECONDS
        followed = _followed_address(config)
        poll_state = YouTubePollState.of(state, place=str(followed))
        key = environment["YOUTUBE_API_KEY"]
        is_api_open = bool(key) and poll_state.api_after <= now.timestamp()
        api = DataApi(http, environment["YOUTUBE_API_URL"], key) if is_api_open else None
        base = environment["YOUTUBE_URL"]
        lister = VideoLister(http, base, api, now)
        listing = lister.list_videos(followed, poll_state)
        captions = CaptionReader(http, base, environment["VIDEO_TOOL"], deadline)
        return Poll(poll_state, lister, captions, now, api).run(listing)


def _followed_address(config: Mapping[str, Any]) -> FollowedAddress:
    """Return the channel, playlist or video that the settings name."""
    kind = next(name for name in _PLACE_FIELDS if name in config)
    return FollowedAddress(kind, config[kind])


PLUGIN = YouTubeSource()
