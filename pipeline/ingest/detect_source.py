"""What kind of source an address is that somebody pasted, found by its host, by what it answers, by what its page says."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from django.utils.translation import gettext as _

from config.core.errors import Invalid
from config.core.http_client import shared
from pipeline.plugins import PluginError
from pipeline.sources.base import host_in
from pipeline.sources.feeds.discovery import discover
from pipeline.sources.youtube.address import HOSTS, place_in

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from pipeline.sources.feeds.discovery import Candidate

MOST: Final = 10
_TIKTOK: Final = frozenset({"tiktok.com", "www.tiktok.com", "m.tiktok.com", "vm.tiktok.com"})
_HANDLE: Final = re.compile(r"/@([\w.\-]{1,60})(/.*)?")


@dataclass(frozen=True)
class Found:
    """One way to read the address: `label` says in words what it is, `config` is that of a source of `type`."""

    type: str
    config: Mapping[str, Any]
    label: str
    about: str


def find(url: str, *, now: datetime) -> list[Found]:
    """The ways to read an address, the likeliest first.

    Asks it, and where it is a page the feeds that it may have; writes nothing. Raises `Invalid` at `address` where it
    can't be read at all.
    """
    host = host_in(url)
    if host in HOSTS:
        return [_youtube(url)]
    if host in _TIKTOK:
        return [_tiktok(url)]
    try:
        feeds = discover(url, shared.client(), now=now)
    except PluginError as failure:
        raise Invalid.one("address", failure.code, failure.message) from failure
    found = [_feed(one, url) for one in feeds[:MOST]]
    if not any(one.config["url"] == url for one in found):
        about = _("Read as it is, and again when its words change.")
        found.append(Found("scraper", {"url": url}, _("The web page itself"), about))
    return found


def _feed(candidate: Candidate, url: str) -> Found:
    name = {"atom": "Atom", "json": "JSON Feed"}.get(candidate.kind, "RSS")
    if candidate.url == url:
        return Found("rss", {"url": url}, _("A feed (%(form)s)") % {"form": name}, candidate.title or url)
    title = candidate.title or name
    return Found(
        "rss", {"url": candidate.url}, _("A feed of this page: %(title)s") % {"title": title}, candidate.url
    )


def _youtube(url: str) -> Found:
    place = place_in(url)
    if place is None:
        message = _(
            "This is YouTube, but no channel, playlist or video that everybody can see. Paste the address of a channel, such "
            "as https://www.youtube.com/@name, of a playlist or of a video."
        )
        raise Invalid.one("address", "not_a_place", message)
    kind, name = place
    label = {"playlist": _("A playlist on YouTube"), "video": _("One video on YouTube")}.get(kind)
    return Found("youtube", {kind: name}, label or _("A channel on YouTube"), name)


def _tiktok(url: str) -> Found:
    handle = _HANDLE.fullmatch(urlsplit(url).path)
    if handle and not (handle[2] or "").strip("/"):
        return Found("tiktok", {"username": handle[1]}, _("An account on TikTok"), f"@{handle[1]}")
    return Found("tiktok", {"links": [url]}, _("One video on TikTok"), url)
