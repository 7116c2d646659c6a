"""Defines sources of TikTok accounts, hashtags and single videos: settings, and how they are fetched."""

from __future__ import annotations

import re
from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, Any, ClassVar, Final

from pipeline.plugins import Evidence
from pipeline.sources.base import Source
from pipeline.sources.config_fields import BATCH_HOURS, Group, Many, Text, WebAddress, clean
from pipeline.sources.tiktok.links_poll import SingleVideosPoll
from pipeline.sources.tiktok.listing import AccountPoll, find_unlistable_settings, list_videos
from pipeline.sources.tiktok.oembed import OEmbed
from pipeline.sources.tiktok.poll_state import TikTokPollState

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from config.core.http_client import Client
    from pipeline.plugins import Unavailability
    from pipeline.sources.base import Fetch

MAX_LINKS: Final = 100
CALLS_SECONDS: Final = 34
"""The seconds after the beginning of a poll within which all calls to TikTok end."""

_USERNAME_PATTERN: Final = r"^\s*@?[A-Za-z0-9_.]{2,24}\s*$"
_HASHTAG_PATTERN: Final = r"^\s*#?[^\s#@/\\?%&<>\u0000-\u001f\u007f\ud800-\udfff]{1,100}\s*$"
_ACCOUNT_OR_TAG_URL: Final = re.compile(
    r"\s*(?:https?://)?(?:www\.|m\.)?tiktok\.com/(?:@(?P<user>[A-Za-z0-9_.]{2,24})|tag/(?P<tag>[^\s/?#]{1,100}))/?(?:[?#].*)?$"
)
_LINK_PATTERN: Final = (
    r"^\s*https://(?:www\.|m\.|vm\.|vt\.)?tiktok\.com/[^\s\\\u0000-\u0020\u007f\ud800-\udfff]+\s*$"
)


@dataclass(frozen=True)
class Name(Text):
    """A name that people write with or without its `sign`, and that is stored without it."""

    sign: str = ""

    def store(self, value: str) -> str:
        return value.removeprefix(self.sign)


SETTINGS: Final = Group(
    "the username, the hashtag or the links",
    {
        "username": Name(
            "the account's username, such as @example", max_length=100, pattern=_USERNAME_PATTERN, sign="@"
        ),
        "hashtag": Name("one hashtag, such as #example", max_length=200, pattern=_HASHTAG_PATTERN, sign="#"),
        "links": Many(
            "the addresses of the videos",
            WebAddress(
                "a video's address, such as https://www.tiktok.com/@example/video/1", pattern=_LINK_PATTERN
            ),
            maximum=MAX_LINKS,
        ),
        "batch_hours": BATCH_HOURS,
    },
    exactly_one_of=("username", "hashtag", "links"),
)


class TikTok(Source):
    """Reads links by oEmbed, accounts and hashtags through yt-dlp if the operator has it."""

    kind = "tiktok"
    label = "TikTok"
    evidence = Evidence("documents", "November 2026", "tests/sources/test_tiktok.py")
    fetches = True
    config_schema: ClassVar[Mapping[str, Any]] = SETTINGS.schema()
    default_interval_minutes = 6 * 60
    environment: ClassVar[Mapping[str, str]] = {
        "TIKTOK_URL": "https://www.tiktok.com",
        "TIKTOK_SHORT_URL": "https://vm.tiktok.com",
        "VIDEO_TOOL": "",
    }

    def clean_config(self, config: Mapping[str, Any]) -> dict[str, Any]:
        return clean(SETTINGS, config)

    def guess_settings(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Read the address of an account or hashtag as its name."""
        guessed = super().guess_settings(values)
        for name, value in list(guessed.items()):
            address = value[0] if isinstance(value, list) and len(value) == 1 else value
            match = _ACCOUNT_OR_TAG_URL.match(address) if isinstance(address, str) else None
            if match is not None and name in SETTINGS.fields:
                del guessed[name]
                guessed.setdefault("username" if match["user"] else "hashtag", match["user"] or match["tag"])
        return guessed

    def unavailable_settings(self, environment: Mapping[str, str]) -> Mapping[str, Unavailability]:
        return find_unlistable_settings(environment["VIDEO_TOOL"])

    def fetch(
        self,
        config: Mapping[str, Any],
        state: Mapping[str, Any],
        *,
        http: Client,
        now: datetime,
        environment: Mapping[str, str],
    ) -> Fetch:
        """Return new and changed videos and withdrawals. Raises `TryLater` if nothing could be read."""
        deadline = monotonic() + CALLS_SECONDS
        oembed = OEmbed(http, environment["TIKTOK_URL"], environment["TIKTOK_SHORT_URL"], deadline, now)
        if "links" in config:
            links_state = TikTokPollState.of(state, place="links")
            return SingleVideosPoll(links_state, oembed, now).run(config["links"])
        place = next(f"{name}:{config[name]}" for name in ("username", "hashtag") if name in config)
        videos = list_videos(config, tool=environment["VIDEO_TOOL"], now=now)
        return AccountPoll(TikTokPollState.of(state, place=place), oembed, now).run(videos)


PLUGIN = TikTok()
