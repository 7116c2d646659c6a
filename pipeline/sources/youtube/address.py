"""Finds the channel, playlist or video that a YouTube address leads to, however it was copied."""

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
"""The id of a list that everybody sees. A mix (`RD…`) is made for one viewer, and `LL` and `WL` are private lists."""
HANDLE: Final = re.compile(r"""@[^\s@/\\?#%&<>"'\u0000-\u001f\u007f\ud800-\udfff]{3,30}""")
"""A handle has 3 to 30 characters of any script (support.google.com/youtube/answer/11585688)."""
NAME: Final = re.compile(r"""[^\s@/\\?#%&<>"'\u0000-\u001f\u007f\ud800-\udfff]{1,60}""")
"""The name in an old address, `/user/…` or `/c/…`."""
_VIDEO_PATHS: Final = frozenset({"shorts", "live", "embed", "v", "e"})
_KIND_BY_NAME_PATH: Final = {"user": "user", "c": "custom"}


def place_in(address: str) -> tuple[str, str] | None:
    """Return the kind and the name of the place that an address leads to, or `None` if it leads to none.

    The kinds are `channel` (`UC…`), `playlist` (`PL…`), `handle` (`@…`), `video` (11 characters), `user` and
    `custom` (the names of old addresses). The address of a video within a playlist leads to the playlist.
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
        return _place_if_valid("video", VIDEO_ID, path[0] if path else "")
    return _place_on_site(path, query)


def _place_on_site(path: list[str], query: dict[str, str]) -> tuple[str, str] | None:
    """Return the kind and the name of the place at an address of youtube.com, or `None` if it has none."""
    first, second = (*path, "", "")[:2]
    if first in {"watch", "feeds"}:
        return _place_if_valid("video", VIDEO_ID, query.get("v", "")) or _place_if_valid(
            "channel", CHANNEL_ID, query.get("channel_id", "")
        )
    if first in _VIDEO_PATHS:
        return _place_if_valid("video", VIDEO_ID, second)
    if first == "channel":
        return _place_if_valid("channel", CHANNEL_ID, second)
    if first in _KIND_BY_NAME_PATH:
        return _place_if_valid(_KIND_BY_NAME_PATH[first], NAME, second)
    return _place_if_valid("handle", HANDLE, first)


def _place_if_valid(kind: str, pattern: re.Pattern[str], name: str) -> tuple[str, str] | None:
    """Return the kind and the name if the name has the right form, else `None`."""
    return (kind, name) if pattern.fullmatch(name) else None
