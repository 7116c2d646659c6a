"""Reads an address that a person pasted: its page's text, and the kinds of source that can poll it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from django.utils.translation import gettext as _

from config.core.errors import Invalid
from config.core.http_client import shared
from pipeline import limits, plugins
from pipeline.ingest import raw_content
from pipeline.plugins import ConfigInvalid, PluginError
from pipeline.sources.base import Source, host_in
from pipeline.sources.feeds.discovery import discover
from pipeline.sources.youtube.address import HOSTS, place_in
from pipeline.switches.availability import environment_of_source
from pipeline.text.article_metadata import find_headings
from pipeline.text.plain_text import seen_text, title_in

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from pipeline.sources.base import Entry
    from pipeline.sources.feeds.discovery import FeedCandidate

MAX_FEEDS_OFFERED: Final = 10
"""The most feeds of one page that are offered to choose from."""
_TIKTOK_HOSTS: Final = frozenset({"tiktok.com", "www.tiktok.com", "m.tiktok.com", "vm.tiktok.com"})
_TIKTOK_HANDLE_PATH: Final = re.compile(r"/@([\w.\-]{1,60})(/.*)?")


@dataclass(frozen=True)
class PageReading:
    """The result of reading a page: an `entry`, or a `message` with the reason why there is none and advice."""

    entry: Entry | None
    message: str = ""


def headline_of(text: str) -> str:
    """Return the headline of a pasted text, or an empty string if it has none.

    It is the text's heading, as a push without a title reads it, or a first line that stands alone over a
    paragraph, short and without an end mark.
    """
    body_format = raw_content.format_of(text)
    plain = seen_text(text, body_format).strip()
    first = next(iter(find_headings(plain)), (1, 1))
    headline = title_in(text, body_format) or (plain[slice(*first)] if first[0] == 0 else "")
    return headline[: limits.TITLE_CHARACTERS]


def read_page(url: str, *, now: datetime) -> PageReading:
    """Fetch one page as robots.txt allows, and return its text or the reason why there is none. Writes nothing."""
    advice = _("Paste its words instead.")
    kind = plugins.get("sources", "scraper", Source)
    if not kind.fetches:
        return PageReading(None, _("Pages can't be read here yet.") + f" {advice}")
    environment = environment_of_source(kind)
    try:
        config = kind.clean_config({"url": url})
        fetched = kind.fetch(config, {}, http=shared.client(), now=now, environment=environment)
    except ConfigInvalid as invalid:
        return PageReading(None, f"{invalid} {advice}")
    except PluginError as failure:
        return PageReading(None, f"{failure.message} {advice}")
    entry = next((entry for entry in fetched.entries if entry.body and entry.left_out is None), None)
    if entry is not None:
        return PageReading(entry)
    left_out = next((entry.left_out.message for entry in fetched.entries if entry.left_out), "")
    notes = " ".join(note.message for note in fetched.notes)
    return PageReading(None, f"{left_out or notes or _('No words were found on this page.')} {advice}")


@dataclass(frozen=True)
class AddressReading:
    """One way to read an address.

    `config` is that of a source of `type`; `label` names the way for people. `about` is a title, an address, a
    name or a sentence about the content that is read.
    """

    type: str
    config: Mapping[str, Any]
    label: str
    about: str


def read_address(url: str, *, now: datetime) -> list[AddressReading]:
    """Return the ways to read an address, the likeliest first. Writes nothing.

    Fetches the address and, if it is a page, the feeds that it may have; for YouTube and TikTok fetches
    nothing. Raises `Invalid` at `address` if it can't be read at all.
    """
    known = _platform_reading(url)
    if known is not None:
        return [known]
    try:
        feeds = discover(url, shared.client(), now=now)
    except PluginError as failure:
        raise Invalid.one("address", failure.code, failure.message) from failure
    readings = [_feed_reading(candidate, url) for candidate in feeds[:MAX_FEEDS_OFFERED]]
    if not any(reading.config["url"] == url for reading in readings):
        note = _("Read as it is, and again when its words change.")
        readings.append(AddressReading("scraper", {"url": url}, _("The web page itself"), note))
    return readings


def reading_by_host(url: str) -> AddressReading:
    """Return the likeliest way to read an address, without fetching it: as a feed, but at YouTube and TikTok.

    A source of feeds finds the feed of a page automatically. Raises `Invalid` at `address` for an address of
    YouTube that leads to no public place.
    """
    return _platform_reading(url) or AddressReading("rss", {"url": url}, _("A feed"), url)


def _platform_reading(url: str) -> AddressReading | None:
    """Return the one way to read an address of YouTube or TikTok, or `None` for any other address.

    Raises `Invalid` at `address` for an address of YouTube that leads to no public place.
    """
    host = host_in(url)
    if host in HOSTS:
        return _youtube_reading(url)
    return _tiktok_reading(url) if host in _TIKTOK_HOSTS else None


def _feed_reading(candidate: FeedCandidate, url: str) -> AddressReading:
    """Return the reading of a feed that the page at `url` is or names."""
    format_name = {"atom": "Atom", "json": "JSON Feed"}.get(candidate.kind, "RSS")
    if candidate.url == url:
        return AddressReading(
            "rss", {"url": url}, _("A feed (%(form)s)") % {"form": format_name}, candidate.title or url
        )
    title = candidate.title or format_name
    return AddressReading(
        "rss", {"url": candidate.url}, _("A feed of this page: %(title)s") % {"title": title}, candidate.url
    )


def _youtube_reading(url: str) -> AddressReading:
    """Return the reading of a YouTube address. Raises `Invalid` if it leads to no public place."""
    place = place_in(url)
    if place is None:
        message = _(
            "This is YouTube, but no channel, playlist or video that everybody can see. Paste the address of a channel, such "
            "as https://www.youtube.com/@name, of a playlist or of a video."
        )
        raise Invalid.one("address", "not_a_place", message)
    kind, name = place
    label = {"playlist": _("A playlist on YouTube"), "video": _("One video on YouTube")}.get(kind)
    return AddressReading("youtube", {kind: name}, label or _("A channel on YouTube"), name)


def _tiktok_reading(url: str) -> AddressReading:
    """Return the reading of a TikTok address: an account by its handle, else one video."""
    handle = _TIKTOK_HANDLE_PATH.fullmatch(urlsplit(url).path)
    if handle and not (handle[2] or "").strip("/"):
        return AddressReading("tiktok", {"username": handle[1]}, _("An account on TikTok"), f"@{handle[1]}")
    return AddressReading("tiktok", {"links": [url]}, _("One video on TikTok"), url)
