"""A workspace's own public feed at an unguessable address: Atom, RSS and JSON Feed, and a page for people."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.utils.http import http_date, parse_http_date_safe
from django.views.decorators.http import require_safe

from config.core import ids
from config.core.clock import utc_now
from config.core.errors import NotFound
from config.core.middleware import error_response
from pipeline import payloads
from pipeline.limits import FEED_PUBLISHED, SANDBOX_FEED_PUBLISHED
from pipeline.models import Asset, Outlet, Publication, Revision
from pipeline.outlets import hit_counts
from pipeline.outlets.outlet_client import platform_if_known
from pipeline.pages.items.preview import OTHER_SIZE, shown_html
from pipeline.payloads import feed_addresses, feed_page_address
from pipeline.platforms.feed import entry_id
from pipeline.platforms.feed.documents import (
    ATOM_TYPE,
    JSON_TYPE,
    RSS_TYPE,
    Enclosure,
    FeedEntry,
    FeedMeta,
    render_atom,
    render_json_feed,
    render_rss,
)
from pipeline.text import article_metadata
from pipeline.text.body_html import to_html

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from django.http import HttpRequest

FORMS: Final = {
    "atom": (render_atom, ATOM_TYPE),
    "rss": (render_rss, RSS_TYPE),
    "json": (render_json_feed, JSON_TYPE),
}
SHOWN_AS_PAGE: Final = frozenset({"atom", "rss"})
"""In place of these a browser's window is led to the page."""
MAX_AGE_SECONDS: Final = 60


def feed(request: HttpRequest, secret: str, form: str) -> HttpResponse:
    """The newest published items; 304 where the reader has them, 404 for an address that was never given out."""
    if request.method not in {"GET", "HEAD"}:
        return error_response("method_not_allowed", headers={"Allow": "GET, HEAD"})
    outlet = _outlet(secret)
    if outlet is None:
        raise NotFound
    if form in SHOWN_AS_PAGE and request.headers.get("Sec-Fetch-Dest") == "document":
        # A person follows a link: only a browser says so, and only of a window. The fragment comes along.
        leads_to = {"Location": feed_page_address(secret), "Cache-Control": "no-store"}
        return HttpResponse(status=303, headers=leads_to)
    if request.method == "GET" and hit_counts.is_reader(request.headers):
        hit_counts.count_fetch(outlet, utc_now())
    entries = _entries(outlet)
    updated = max((entry.updated_at for entry in entries), default=outlet.created_at)
    render, media_type = FORMS[form]
    body = render(
        FeedMeta(
            id=f"tag:{ids.encode('out', outlet.pk)},2026:feed",
            title=_title(outlet),
            self_url=feed_addresses(secret)[form],
            home_url=settings.PUBLIC_URL,
            updated=updated,
            author=outlet.workspace.name,
            hubs=settings.WEBSUB_HUBS,
        ),
        entries,
    )
    tag = f'"{hashlib.sha256(body).hexdigest()[:24]}"'
    headers = {
        "ETag": tag,
        "Last-Modified": http_date(updated.timestamp()),
        "Cache-Control": f"public, max-age={MAX_AGE_SECONDS}",
    }
    if not outlet.workspace.is_whitelisted:
        # Nobody has looked at what it publishes.
        headers["X-Robots-Tag"] = "noindex"
    if settings.WEBSUB_HUBS:
        links = [
            f'<{feed_addresses(secret)[form]}>; rel="self"',
            *(f'<{hub}>; rel="hub"' for hub in settings.WEBSUB_HUBS),
        ]
        headers["Link"] = ", ".join(links)
    if _is_known(request, tag, updated.timestamp()):
        return HttpResponse(status=304, headers=headers)
    return HttpResponse(body, content_type=media_type, headers=headers)


@require_safe
def feed_page(request: HttpRequest, secret: str) -> HttpResponse:
    """The same entries as a page: browsers show a feed as bare XML."""
    outlet = _outlet(secret)
    if outlet is None:
        raise Http404
    context = {
        "title": _title(outlet),
        "posts": [_post(entry) for entry in _entries(outlet, with_other_sizes=False)],
        "feeds": feed_addresses(secret),
        "types": {form: media_type for form, (_render, media_type) in FORMS.items()},
        "zone": outlet.workspace.timezone,
    }
    answer = render(request, "pages/feed.html", context)
    # What is public by its secret address alone is nothing for a search engine.
    answer["X-Robots-Tag"] = "noindex, nofollow"
    return answer


def _post(entry: FeedEntry) -> dict[str, Any]:
    """What the page shows of an entry: its files by how a browser shows them, at addresses of this site."""
    files: dict[str, list[tuple[str, str]]] = {"image": [], "video": [], "audio": [], "other": []}
    for one in entry.enclosures:
        kind = one.mime_type.partition("/")[0]
        address = one.url.removeprefix(settings.PUBLIC_URL)
        files[kind if kind in files else "other"].append((address, address.rpartition("/")[2]))
    return {
        "id": entry.id,
        "title": entry.title,
        "body": shown_html(entry.content_html, top=3),
        "published_at": entry.published_at,
        "language": entry.language,
        "files": files,
    }


def _outlet(secret: str) -> Outlet | None:
    """The feed with this secret; None where there is none, or its workspace was deleted."""
    there = Outlet.everywhere.filter(secret=secret, deleted_at=None)
    # A workspace that was deleted is gone at once, however long its erasing takes.
    outlet: Outlet | None = there.filter(workspace__deleted_at=None).select_related("workspace").first()
    platform = platform_if_known(outlet.platform) if outlet is not None else None
    return outlet if platform is not None and platform.is_own_feed else None


def _title(outlet: Outlet) -> str:
    return str(outlet.config.get("title") or outlet.workspace.name)


def _is_known(request: HttpRequest, tag: str, updated: float) -> bool:
    wanted = request.META.get("HTTP_IF_NONE_MATCH")
    if wanted is not None:
        # The tag decides alone where it is given (RFC 9110, 13.2.2).
        return tag in {one.strip().removeprefix("W/") for one in wanted.split(",")}
    since = parse_http_date_safe(request.META.get("HTTP_IF_MODIFIED_SINCE", ""))
    return since is not None and int(updated) <= since


def _entries(outlet: Outlet, *, with_other_sizes: bool = True) -> list[FeedEntry]:
    most = FEED_PUBLISHED if outlet.workspace.is_whitelisted else SANDBOX_FEED_PUBLISHED
    rows = list(
        Publication.everywhere.published()
        .filter(outlet=outlet, item__deleted_at=None)
        .select_related("item")
        .order_by("-published_at", "-id")[:most]
    )
    revisions = {
        (revision.item_id, revision.number): revision
        for revision in Revision.everywhere.filter(item_id__in=[row.item_id for row in rows])
    }
    files: dict[UUID, list[Enclosure]] = {}
    assets = Asset.everywhere.filter(item_id__in=[row.item_id for row in rows], revoked_at=None)
    if not with_other_sizes:
        # Of a picture that a page shows once.
        assets = assets.exclude(role=OTHER_SIZE)
    for asset in assets.order_by("position", "id"):
        url = payloads.asset(payloads.row_of(asset))["url"]
        files.setdefault(asset.item_id, []).append(Enclosure(url, asset.mime_type, asset.bytes))
    # An item that is erased at this moment has no words any more.
    known = [(row, revisions.get((row.item_id, row.revision))) for row in rows]
    return [_entry(row, sent, files.get(row.item_id, ())) for row, sent in known if sent is not None]


def _entry(row: Publication, sent: Revision, files: Sequence[Enclosure]) -> FeedEntry:
    """The revision that was sent, whatever has become of the item since."""
    body = row.overrides.get("body", sent.body)
    published_at = row.published_at or row.updated_at
    title = row.overrides.get("title", sent.title)
    is_article = row.item.bucket == "blog"
    image = next((one.url for one in files if one.mime_type.startswith("image/")), "") if is_article else ""
    return FeedEntry(
        id=entry_id(ids.encode("pub", row.pk)),
        title=title,
        url=row.url,
        content_html=to_html(body, sent.body_format),
        content_text=body if sent.body_format == "text" else "",
        published_at=published_at,
        updated_at=published_at,
        language=row.item.language,
        enclosures=files,
        summary=str(sent.content.get("meta_description") or "") if is_article else "",
        image=image,
        tags=[str(tag) for tag in sent.content.get("tags") or ()] if is_article else (),
        json_ld=article_metadata.published_json_ld(
            sent.content, title=title, image=image, published_at=published_at
        ),
    )
