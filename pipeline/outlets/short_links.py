"""Short links of ours in the place of what a post links to, where its outlet counts clicks.

A code follows from outlet, item and address, so that every try and every preview has the same. A link leads where its
row says and nowhere else; the row is written in the transaction that commits the call.
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
from pipeline.text.content_buckets import TRAITS
from pipeline.text.links import ascii_url, find_links

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipeline.models import Outlet, Publication
    from pipeline.platforms.base import Platform
    from pipeline.platforms.payload_types import Payload

_SALT: Final = "pipeline.short_links"
_ALPHABET: Final = "0123456789abcdefghjkmnpqrstvwxyz"
_LETTERS: Final = 12
_HREF: Final = re.compile(r'href="(https?://[^"]+)"')


def counted_types(platform: Platform) -> frozenset[str]:
    """Types of content on whose links clicks can be counted there; a feed's entries link straight, as articles do."""
    if platform.is_own_feed:
        return frozenset()
    if platform.mails_subscribers:
        return frozenset(platform.buckets)
    return frozenset(bucket for bucket in platform.buckets if TRAITS[bucket].is_posted)


class _Codes:
    """Gives the addresses of one item on one outlet their short ones, and remembers which it gave."""

    def __init__(self, outlet: Outlet, item: str) -> None:
        self.owner = f"{ids.encode('out', outlet.pk)}:{item}"
        self.targets: dict[str, str] = {}
        """What was given a code, by the code."""

    def __call__(self, target: str) -> str:
        if not target.lower().startswith(("https://", "http://")) or target.startswith(settings.PUBLIC_URL):
            return target
        # Two spellings of one address have one code: a post must not link to the same place twice.
        same = ascii_url(target) or target
        digest = salted_hmac(_SALT, f"{self.owner}:{same}", algorithm="sha256").digest()
        number = int.from_bytes(digest[:8], "big")
        code = "".join(_ALPHABET[number >> (5 * place) & 31] for place in range(_LETTERS))
        self.targets.setdefault(code, target)
        return address_of(code)

    def in_text(self, text: str) -> str:
        """Addresses with a scheme; a bare one stays as it was written."""
        parts, position = [], 0
        for link in find_links(text):
            if link.has_scheme:
                parts += [text[position : link.start], self(link.url)]
                position = link.end
        return "".join([*parts, text[position:]])

    def in_html(self, words: str) -> str:
        return _HREF.sub(lambda found: f'href="{html.escape(self(html.unescape(found[1])))}"', words)


def address_of(code: str) -> str:
    """The short address of a code."""
    return f"{settings.PUBLIC_URL}/l/{code}"


def in_post(payload: Payload, outlet: Outlet) -> Payload:
    """The words of a post as they go out; the same words where its outlet doesn't count clicks."""
    return _shortened(payload, outlet)[0]


def store_links(publication: Publication, payload: Payload) -> None:
    """Write the links of a post down, in the transaction that commits its call."""
    _keep(publication, _shortened(payload, publication.outlet)[1])


def short_url_for(address: str, publication: Publication) -> str:
    """The short address that was written down for one that a post links to; else the address itself."""
    codes = _Codes(publication.outlet, ids.encode("gen", publication.item_id))
    short = codes(address)
    return short if ShortLink.everywhere.filter(code__in=list(codes.targets)).exists() else address


def in_mail(publication: Publication, words: str, text: str) -> tuple[str, str]:
    """HTML and plain text of an issue, whose links are written down in this transaction."""
    if publication.outlet.clicks_since is None:
        return words, text
    codes = _Codes(publication.outlet, ids.encode("gen", publication.item_id))
    shortened = codes.in_html(words), codes.in_text(text)
    _keep(publication, codes.targets)
    return shortened


def find(code: str) -> ShortLink | None:
    """The link with its publication; None for a code that was never given out, or whose workspace is deleted."""
    found: ShortLink | None = (
        ShortLink.everywhere.select_related("publication")
        .filter(code=code, workspace__deleted_at=None)
        .first()
    )
    return found


def _shortened(payload: Payload, outlet: Outlet) -> tuple[Payload, Mapping[str, str]]:
    """The post with short links, and what each code leads to; the post as it is where nothing is counted."""
    # An article keeps its links; a newsletter has its own way (`in_mail`).
    is_post = TRAITS[payload.bucket].is_posted and payload.body_format == "text"
    if outlet.clicks_since is None or not is_post or platform_of(outlet.platform).mails_subscribers:
        return payload, {}
    codes = _Codes(outlet, payload.item)
    content: dict[str, Any] = dict(payload.content)
    if isinstance(content.get("parts"), list):
        content["parts"] = [codes.in_text(str(part)) for part in content["parts"]]
    changed = replace(
        payload,
        body=codes.in_text(payload.body),
        link=codes(payload.link) if payload.link else "",
        content=content,
    )
    return changed, codes.targets


def _keep(publication: Publication, targets: Mapping[str, str]) -> None:
    rows = [
        ShortLink(workspace_id=publication.workspace_id, publication=publication, code=code, target=target)
        for code, target in targets.items()
    ]
    if rows:
        # A later try meets its own.
        ShortLink.everywhere.bulk_create(rows, ignore_conflicts=True)
