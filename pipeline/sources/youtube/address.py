"""What an address of YouTube's leads to: a channel, a playlist or a video, however it was copied."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import parse_qs, unquote, urlsplit

from pipeline.sources.youtube.video import VIDEO_ID

HOSTS: Final = frozenset(
    {
        "youtube.com",
        "www.youtube.com",
        "m.youtube.com",
        "music.youtube.com",
        "youtube-nocookie.com",
        "www.youtube-nocookie.com",
        "youtu.be",
        "www.youtu.be",
    }
)
CHANNEL_ID: Final = re.compile(r"UC[A-Za-z0-9_-]{22}")
PLAYLIST_ID: Final = re.compile(r"(?:PL|UU|FL|OL)[A-Za-z0-9_-]{8,62}")
"""Lists that everybody sees; a mix (`RD…`) is made for one viewer, and `LL` and `WL` are somebody's own."""
# Handles have 3 to 30 characters of any script (support.google.com/youtube/answer/11585688).
HANDLE: Final = re.compile(r"""@[^\s@/\\?#%&<>"'\u0000-\u001f\u007f\ud800-\udfff]{3,30}""")
NAME: Final = re.compile(r"""[^\s@/\\?#%&<>"'\u0000-\u001f\u007f\ud800-\udfff]{1,60}""")
"""Of an old address, `/user/…` or `/c/…`."""
_OF_VIDEOS: Final = frozenset({"shorts", "live", "embed", "v", "e"})
_OF_NAMES: Final = {"user": "user", "c": "custom"}


def place_in(address: str) -> tuple[str, str] | None:
    """What it leads to and its name there; None for what is no such address.

    `channel` (`UC…`), `playlist` (`PL…`), `handle` (`@…`), `video` (11 characters), `user` or `custom` (the names of old
    addresses). A video that was copied out of a playlist is the playlist.
    """
    text = address.strip()
    try:
        parts = urlsplit(text if "://" in text else f"https://{text}")
        host = (parts.hostname or "").lower()
    except ValueError:
        return None
    if parts.scheme not in {"http", "https"} or host not in HOSTS:
        return None
    query = {name: values[0] for name, values in parse_qs(parts.query).items()}
    path = [unquote(part) for part in parts.path.split("/") if part]
    playlist = query.get("list", query.get("playlist_id", ""))
    if PLAYLIST_ID.fullmatch(playlist):
        return "playlist", playlist
    if host.endswith("youtu.be"):
        return _as("video", VIDEO_ID, path[0] if path else "")
    return _of_site(path, query)


def _of_site(path: list[str], query: dict[str, str]) -> tuple[str, str] | None:
    first, second = (*path, "", "")[:2]
    if first in {"watch", "feeds"}:
        return _as("video", VIDEO_ID, query.get("v", "")) or _as(
            "channel", CHANNEL_ID, query.get("channel_id", "")
        )
    if first in _OF_VIDEOS:
        return _as("video", VIDEO_ID, second)
    if first == "channel":
        return _as("channel", CHANNEL_ID, second)
    if first in _OF_NAMES:
        return _as(_OF_NAMES[first], NAME, second)
    return _as("handle", HANDLE, first)


def _as(kind: str, form: re.Pattern[str], name: str) -> tuple[str, str] | None:
    return (kind, name) if form.fullmatch(name) else None
