"""Lists the videos of a TikTok account or hashtag through yt-dlp, if the operator has it.

TikTok itself shows these lists only to people.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from pipeline.plugins import TryLater, Unavailability
from pipeline.sources import yt_dlp
from pipeline.sources.base import Entry, Fetch
from pipeline.sources.tiktok.oembed import NoVideo, OEmbed
from pipeline.sources.tiktok.poll_state import TikTokPollState, TikTokRecord
from pipeline.sources.tiktok.video import SITE, external_id, from_yt_dlp

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime
    from typing import Any

    from pipeline.sources.tiktok.video import TikTokVideo

MAX_VIDEOS: Final = 15
MAX_CHECKS_PER_POLL: Final = 3
"""The most videos missing from the list that one poll checks by oEmbed."""
MISSES_UNTIL_WITHDRAWN: Final = 2
"""The number of such checks in a row without the video after which its entry is withdrawn."""
TOOL_MISSING_WAIT: Final = timedelta(hours=24)
BLOCKED_WAIT: Final = timedelta(hours=6)

_TOOL_SETTINGS: Final = ("username", "hashtag")
"""The settings whose videos only the tool can list."""
_NO_TOOL: Final = (
    "TikTok lists the videos of an account or a hashtag only to people. Reading the list takes a program "
    "such as yt-dlp, which this service doesn't have."
)
_TOOL_GONE: Final = "The program that VIDEO_TOOL names is missing or can't be started."
_NO_TOOL_REMEDY: Final = (
    'Give the videos\' addresses instead, as `"config": {"links": ["https://www.tiktok.com/@example/video/7106594312292453675"]}`, '
    "or ask the operator to install yt-dlp and set VIDEO_TOOL."
)
_FAILURE_MESSAGES: Final = {
    "blocked": ("blocked", "TikTok refuses this service at the moment. It is polled again later."),
    "private": ("private", "The account is private. Its videos need a TikTok log-in."),
    "gone": ("not_found", "TikTok has no such account or hashtag. Check the spelling."),
    "outdated": (
        "tool_outdated",
        "yt-dlp can't read TikTok's pages, which have changed. The operator should update yt-dlp.",
    ),
    "unreachable": (
        "unreachable",
        (
            "yt-dlp can't reach TikTok from this service. The operator should check its internet "
            "connection and proxy."
        ),
    ),
    "timed_out": ("tool_timed_out", "yt-dlp took too long over TikTok's list."),
    "missing": (
        "tool_missing",
        "The program that VIDEO_TOOL names could not be started. The operator should check it.",
    ),
}
_OTHER_FAILURE: Final = ("tool_failed", "yt-dlp could not list the videos.")


def find_unlistable_settings(tool: str) -> dict[str, Unavailability]:
    """Return the settings that can't be used because this instance has no tool to list their videos."""
    if tool and yt_dlp.is_installed(tool):
        return {}
    reason = _TOOL_GONE if tool else _NO_TOOL
    return {
        name: Unavailability(reason, _NO_TOOL_REMEDY, code="tool_missing", field=f"config.{name}")
        for name in _TOOL_SETTINGS
    }


def list_videos(config: Mapping[str, Any], *, tool: str, now: datetime) -> list[TikTokVideo]:
    """Return the newest videos, newest first. Raises `TryLater` if the tool is missing or fails."""
    if "hashtag" in config:
        address = f"{SITE}/tag/{quote(config['hashtag'], safe='')}"
    else:
        address = f"{SITE}/@{quote(config['username'], safe='')}"
    missing = next(iter(find_unlistable_settings(tool).values()), None)
    if missing is not None:
        raise TryLater(missing.sentence, code=missing.code, after=TOOL_MISSING_WAIT)
    try:
        answer = yt_dlp.ask(
            tool, "--flat-playlist", "--dump-single-json", "--playlist-end", str(MAX_VIDEOS), address=address
        )
    except yt_dlp.ToolFailed as error:
        code, message = _FAILURE_MESSAGES.get(error.kind, _OTHER_FAILURE)
        wait = {"blocked": BLOCKED_WAIT, "missing": TOOL_MISSING_WAIT}.get(error.kind)
        raise TryLater(message, code=code, after=wait) from None
    items = answer.get("entries")
    videos = [from_yt_dlp(each, now) for each in (items if isinstance(items, list) else [])[:MAX_VIDEOS]]
    return [video for video in videos if video is not None]


@dataclass
class AccountPoll:
    """The work of one poll of an account or hashtag; `run` may be called once."""

    state: TikTokPollState
    oembed: OEmbed
    now: datetime

    def run(self, videos: list[TikTokVideo]) -> Fetch:
        """Return the new and edited ones of the videos, and withdrawals of those that were taken back."""
        state = self.state
        entries: list[Entry] = []
        for video in videos:
            record = state.records.get(video.id)
            if record is None and 0 < _published_seconds(video) < state.floor:
                # An older video moved into the list because a newer one left it.
                continue
            if record is None or record.fate != "given" or record.fingerprint != video.fingerprint:
                entries.append(video.entry)
            state.records.pop(video.id, None)
            state.records[video.id] = TikTokRecord(
                video.id, video.url, video.fingerprint, "given", published=_published_seconds(video)
            )
        entries += self._withdrawn_entries(videos)
        if not state.begun:
            state.begun = int(self.now.timestamp())
            state.floor = min(map(_published_seconds, videos)) if len(videos) >= MAX_VIDEOS else 0
        return Fetch(entries=tuple(entries), state=state.as_state(), not_modified=not entries)

    def _withdrawn_entries(self, videos: list[TikTokVideo]) -> list[Entry]:
        """Return withdrawals of videos that are missing between others in the list.

        A video is withdrawn if oEmbed doesn't show it any more either, twice in a row. Only
        `MAX_CHECKS_PER_POLL` videos are checked.
        """
        listed_ids = {video.id for video in videos}
        oldest = min((_published_seconds(video) for video in videos if video.published_at), default=0)
        missing = [
            record
            for record in self.state.records.values()
            if record.fate == "given"
            and oldest
            and record.published > oldest
            and record.video_id not in listed_ids
        ]
        withdrawn = []
        for record in missing[:MAX_CHECKS_PER_POLL]:
            try:
                self.oembed.video(record.address)
            except NoVideo as error:
                record.missing += error.kind == "unavailable"
            else:
                record.missing = 0
            if record.missing >= MISSES_UNTIL_WITHDRAWN:
                record.fate = "withdrawn"
                withdrawn.append(
                    Entry(external_id=external_id(record.video_id), url=record.address, withdrawn=True)
                )
        return withdrawn


def _published_seconds(video: TikTokVideo) -> int:
    """Return the video's moment of publication in seconds since 1970, or 0 if it isn't known."""
    return int(video.published_at.timestamp()) if video.published_at else 0
