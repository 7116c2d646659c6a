"""Replaces the links of a post by short links of ours, if its outlet counts clicks.

A code follows from outlet, item and address, so that every try and every preview has the same. A short link
leads nowhere until its row is written, in the transaction that commits the call.
"""

from __future__ import annotations

import html
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from django.utils.crypto import salted_hmac

from config.core import ids
from pipeline.models import ShortLink
from pipeline.outlets.outlet_client import platform_of
from pipeline.text.bucket_traits import TRAITS
from pipeline.text.links import ascii_url, find_links

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipeline.models import Outlet, Publication
    from pipeline.platforms.base import Platform
    from pipeline.platforms.payload_types import Payload

_SALT: Final = "pipeline.short_links"
_ALPHABET: Final = "0123456789abcdefghjkmnpqrstvwxyz"
_CODE_CHARACTERS: Final = 12
_HREF: Final = re.compile(r'href="(https?://[^"]+)"')


def counted_types(platform: Platform) -> frozenset[str]:
    """Return the content types whose clicks can be counted there; articles and a feed's entries link directly."""
    if platform.is_own_feed:
        return frozenset()
    if platform.mails_subscribers:
        return frozenset(platform.buckets)
    return frozenset(bucket for bucket in platform.buckets if TRAITS[bucket].is_posted)


class _LinkShortener:
    """Shortens the addresses of one item on one outlet, and keeps the codes that it made."""

    def __init__(self, outlet: Outlet, item: str) -> None:
        self.owner = f"{ids.encode('out', outlet.pk)}:{item}"
        self.targets: dict[str, str] = {}
        """The addresses by their codes."""

    def shorten(self, target: str) -> str:
        """Return the short address, or the address itself if it isn't one of the web or is this site's own."""
        if not target.lower().startswith(("https://", "http://")) or target.startswith(settings.PUBLIC_URL):
            return target
        # Two spellings of one address have the same code: a post must not link to one page twice.
        normalized = ascii_url(target) or target
        digest = salted_hmac(_SALT, f"{self.owner}:{normalized}", algorithm="sha256").digest()
        number = int.from_bytes(digest[:8], "big")
        # Each letter holds five bits: the alphabet has 32.
        code = "".join(_ALPHABET[number >> (5 * index) & 31] for index in range(_CODE_CHARACTERS))
        self.targets.setdefault(code, target)
        return address_of(code)

    def shorten_text(self, text: str) -> str:
        """Return the text with its addresses shortened; those without a scheme stay as written."""
        parts, copied_to = [], 0
        for link in find_links(text):
            if link.has_scheme:
                parts += [text[copied_to : link.start], self.shorten(link.url)]
                copied_to = link.end
        return "".join([*parts, text[copied_to:]])

    def shorten_html(self, markup: str) -> str:
        return _HREF.sub(lambda match: f'href="{html.escape(self.shorten(html.unescape(match[1])))}"', markup)


def address_of(code: str) -> str:
    """Return the short address of a code."""
    return f"{settings.PUBLIC_URL}/l/{code}"


def shorten_post(payload: Payload, outlet: Outlet) -> Payload:
    """Return the post with short links, or unchanged if clicks aren't counted for it."""
    return _shorten_payload(payload, outlet)[0]


def store_links(publication: Publication, payload: Payload) -> None:
    """Store the links of a post, in the transaction that commits its call."""
    _store(publication, _shorten_payload(payload, publication.outlet)[1])


def short_url_for(address: str, publication: Publication) -> str:
    """Return the stored short address for one that a post links to, or the address itself if none is stored."""
    shortener = _LinkShortener(publication.outlet, ids.encode("gen", publication.item_id))
    short = shortener.shorten(address)
    return short if ShortLink.everywhere.filter(code__in=list(shortener.targets)).exists() else address


def shorten_mail(publication: Publication, markup: str, text: str) -> tuple[str, str]:
    """Return an issue's HTML and plain text with short links, which are stored in this transaction.

    They are unchanged if the outlet doesn't count clicks.
    """
    if publication.outlet.clicks_since is None:
        return markup, text
    shortener = _LinkShortener(publication.outlet, ids.encode("gen", publication.item_id))
    shortened = shortener.shorten_html(markup), shortener.shorten_text(text)
    _store(publication, shortener.targets)
    return shortened


def find(code: str) -> ShortLink | None:
    """Return the link with its publication, or `None` if the code is unknown or its workspace is deleted."""
    link: ShortLink | None = (
        ShortLink.everywhere.select_related("publication")
        .filter(code=code, workspace__deleted_at=None)
        .first()
    )
    return link


def _shorten_payload(payload: Payload, outlet: Outlet) -> tuple[Payload, Mapping[str, str]]:
    """Return the post with short links, and the address of each code; unchanged if its clicks aren't counted."""
    # Articles keep their links; newsletters are shortened by `shorten_mail`.
    is_post = TRAITS[payload.bucket].is_posted and payload.body_format == "text"
    if outlet.clicks_since is None or not is_post or platform_of(outlet.platform).mails_subscribers:
        return payload, {}
    shortener = _LinkShortener(outlet, payload.item)
    content: dict[str, Any] = dict(payload.content)
    if isinstance(content.get("parts"), list):
        content["parts"] = [shortener.shorten_text(str(part)) for part in content["parts"]]
    changed = replace(
        payload,
        body=shortener.shorten_text(payload.body),
        link=shortener.shorten(payload.link) if payload.link else "",
        content=content,
    )
    return changed, shortener.targets


def _store(publication: Publication, targets: Mapping[str, str]) -> None:
    rows = [
        ShortLink(workspace_id=publication.workspace_id, publication=publication, code=code, target=target)
        for code, target in targets.items()
    ]
    if rows:
        # A later try finds its links stored already.
        ShortLink.everywhere.bulk_create(rows, ignore_conflicts=True)
