"""An address that a person pasted: the words behind it, and which kind of source it is."""

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
from pipeline.text.article import find_headings
from pipeline.text.plain_text import seen_text, title_in

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from pipeline.sources.base import Entry
    from pipeline.sources.feeds.discovery import FeedCandidate

MOST: Final = 10
"""Feeds of a page that are offered."""
_TIKTOK: Final = frozenset({"tiktok.com", "www.tiktok.com", "m.tiktok.com", "vm.tiktok.com"})
_HANDLE: Final = re.compile(r"/@([\w.\-]{1,60})(/.*)?")


@dataclass(frozen=True)
class Read:
    """`entry` is None where nothing could be read; then `message` says why, and what to do."""

    entry: Entry | None
    message: str = ""


def headline_of(words: str) -> str:
    """What pasted words call themselves: their heading, as a push without a title reads it, or a first line that stands
    alone, short and without an end mark, over a paragraph; else empty.
    """
    body_format = raw_content.format_of(words)
    text = seen_text(words, body_format).strip()
    first = next(iter(find_headings(text)), (1, 1))
    found = title_in(words, body_format) or (text[slice(*first)] if first[0] == 0 else "")
    return found[: limits.TITLE_CHARACTERS]


def read_page(url: str, *, now: datetime) -> Read:
    """Fetch one page and its words, or say why there are none; robots.txt is heeded as by a source. Writes nothing."""
    instead = _("Paste its words instead.")
    kind = plugins.get("sources", "scraper", Source)
    if not kind.fetches:
        return Read(None, _("Pages can't be read here yet.") + f" {instead}")
    environment = environment_of_source(kind)
    try:
        config = kind.clean_config({"url": url})
        fetched = kind.fetch(config, {}, http=shared.client(), now=now, environment=environment)
    except ConfigInvalid as invalid:
        return Read(None, f"{invalid} {instead}")
    except PluginError as failure:
        return Read(None, f"{failure.message} {instead}")
    entry = next((entry for entry in fetched.entries if entry.body and entry.left_out is None), None)
    if entry is not None:
        return Read(entry)
    left_out = next((entry.left_out.message for entry in fetched.entries if entry.left_out), "")
    notes = " ".join(note.message for note in fetched.notes)
    return Read(None, f"{left_out or notes or _('No words were found on this page.')} {instead}")


@dataclass(frozen=True)
class AddressReading:
    """One way to read the address: `label` says in words what it is, `config` is that of a source of `type`.

    `about` names what is read: a title, an address, or a sentence.
    """

    type: str
    config: Mapping[str, Any]
    label: str
    about: str


def read_address(url: str, *, now: datetime) -> list[AddressReading]:
    """The ways to read an address, the likeliest first.

    Asks it, and where it is a page the feeds that it may have; writes nothing. Raises `Invalid` at `address` where it
    can't be read at all.
    """
    known = _of_platform(url)
    if known is not None:
        return [known]
    try:
        feeds = discover(url, shared.client(), now=now)
    except PluginError as failure:
        raise Invalid.one("address", failure.code, failure.message) from failure
    readings = [_feed(candidate, url) for candidate in feeds[:MOST]]
    if not any(reading.config["url"] == url for reading in readings):
        about = _("Read as it is, and again when its words change.")
        readings.append(AddressReading("scraper", {"url": url}, _("The web page itself"), about))
    return readings


def reading_by_host(url: str) -> AddressReading:
    """The likeliest way to read an address, told without asking it: anywhere but at YouTube and TikTok a feed.

    A source of feeds finds that of a page by itself. Raises `Invalid` at `address`.
    """
    return _of_platform(url) or AddressReading("rss", {"url": url}, _("A feed"), url)


def _of_platform(url: str) -> AddressReading | None:
    """The one way to read an address of YouTube or TikTok; None for any other. Raises `Invalid` at `address`."""
    host = host_in(url)
    if host in HOSTS:
        return _youtube(url)
    return _tiktok(url) if host in _TIKTOK else None


def _feed(candidate: FeedCandidate, url: str) -> AddressReading:
    name = {"atom": "Atom", "json": "JSON Feed"}.get(candidate.kind, "RSS")
    if candidate.url == url:
        return AddressReading(
            "rss", {"url": url}, _("A feed (%(form)s)") % {"form": name}, candidate.title or url
        )
    title = candidate.title or name
    return AddressReading(
        "rss", {"url": candidate.url}, _("A feed of this page: %(title)s") % {"title": title}, candidate.url
    )


def _youtube(url: str) -> AddressReading:
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


def _tiktok(url: str) -> AddressReading:
    handle = _HANDLE.fullmatch(urlsplit(url).path)
    if handle and not (handle[2] or "").strip("/"):
        return AddressReading("tiktok", {"username": handle[1]}, _("An account on TikTok"), f"@{handle[1]}")
    return AddressReading("tiktok", {"links": [url]}, _("One video on TikTok"), url)
