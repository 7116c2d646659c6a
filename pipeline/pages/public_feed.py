"""Serves a workspace's own public feed at an unguessable address: as Atom, RSS, JSON Feed, and as a page."""

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
from pipeline import resources
from pipeline.limits import FEED_PUBLISHED, SANDBOX_FEED_PUBLISHED
from pipeline.models import Asset, Outlet, Publication, Revision
from pipeline.outlets import hit_counts
from pipeline.outlets.outlet_client import platform_if_known
from pipeline.pages.items.preview import OTHER_SIZE, sanitize_html
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
from pipeline.resources import feed_addresses, feed_page_address
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
"""The forms for which a browser's window is redirected to the page for people."""
MAX_AGE_SECONDS: Final = 60
"""How many seconds caches may keep the feed."""


def feed(request: HttpRequest, secret: str, form: str) -> HttpResponse:
    """Return the newest published items in the form `atom`, `rss` or `json`.

    The response is a 304 if the reader has this version already, a 303 to the page for people if a browser opens Atom
    or RSS, and a 405 for methods other than GET and HEAD. Fetches by feed readers are counted. Raises `NotFound` if
    there is no feed at the address, or its workspace was deleted.
    """
    if request.method not in {"GET", "HEAD"}:
        return error_response("method_not_allowed", headers={"Allow": "GET, HEAD"})
    outlet = _find_feed_outlet(secret)
    if outlet is None:
        raise NotFound
    if form in SHOWN_AS_PAGE and request.headers.get("Sec-Fetch-Dest") == "document":
        # Only browsers send this header value, and only for a window: a person followed a link. Browsers keep the
        # fragment, which names an entry.
        redirect_headers = {"Location": feed_page_address(secret), "Cache-Control": "no-store"}
        return HttpResponse(status=303, headers=redirect_headers)
    if request.method == "GET" and hit_counts.is_counted_fetch(request.headers):
        hit_counts.count_fetch(outlet, utc_now())
    entries = _load_entries(outlet)
    updated = max((entry.updated_at for entry in entries), default=outlet.created_at)
    render_feed, media_type = FORMS[form]
    feed_meta = FeedMeta(
        id=f"tag:{ids.encode('out', outlet.pk)},2026:feed",
        title=_feed_title(outlet),
        self_url=feed_addresses(secret)[form],
        home_url=settings.PUBLIC_URL,
        updated=updated,
        author=outlet.workspace.name,
        hubs=settings.WEBSUB_HUBS,
    )
    body = render_feed(feed_meta, entries)
    etag = f'"{hashlib.sha256(body).hexdigest()[:24]}"'
    headers = _feed_headers(outlet, feed_meta, etag)
    if _is_not_modified(request, etag, updated.timestamp()):
        return HttpResponse(status=304, headers=headers)
    return HttpResponse(body, content_type=media_type, headers=headers)


def _feed_headers(outlet: Outlet, feed_meta: FeedMeta, etag: str) -> dict[str, str]:
    """Return the headers of a feed, for caches, search engines and the subscribers of its hubs."""
    headers = {
        "ETag": etag,
        "Last-Modified": http_date(feed_meta.updated.timestamp()),
        "Cache-Control": f"public, max-age={MAX_AGE_SECONDS}",
    }
    if not outlet.workspace.is_whitelisted:
        # Nobody has reviewed what the workspace publishes, so search engines shouldn't list it.
        headers["X-Robots-Tag"] = "noindex"
    if settings.WEBSUB_HUBS:
        links = [
            f'<{feed_meta.self_url}>; rel="self"',
            *(f'<{hub}>; rel="hub"' for hub in settings.WEBSUB_HUBS),
        ]
        headers["Link"] = ", ".join(links)
    return headers


@require_safe
def feed_page(request: HttpRequest, secret: str) -> HttpResponse:
    """Show the entries of the feed as a page, because browsers show a feed as bare XML.

    Raises `Http404` if there is no feed at the address, or its workspace was deleted.
    """
    outlet = _find_feed_outlet(secret)
    if outlet is None:
        raise Http404
    context = {
        "title": _feed_title(outlet),
        "posts": [_post_context(entry) for entry in _load_entries(outlet, with_other_sizes=False)],
        "feeds": feed_addresses(secret),
        "types": {form: media_type for form, (_render, media_type) in FORMS.items()},
        "zone": outlet.workspace.timezone,
    }
    response = render(request, "pages/feed.html", context)
    # Only people who know the secret address may see the page, so search engines mustn't list it.
    response["X-Robots-Tag"] = "noindex, nofollow"
    return response


def _post_context(entry: FeedEntry) -> dict[str, Any]:
    """Return what the page shows of an entry; its files are grouped by kind, with paths on this site."""
    files: dict[str, list[tuple[str, str]]] = {"image": [], "video": [], "audio": [], "other": []}
    for enclosure in entry.enclosures:
        kind = enclosure.mime_type.partition("/")[0]
        address = enclosure.url.removeprefix(settings.PUBLIC_URL)
        files[kind if kind in files else "other"].append((address, address.rpartition("/")[2]))
    return {
        "id": entry.id,
        "title": entry.title,
        "body": sanitize_html(entry.content_html, top=3),
        "published_at": entry.published_at,
        "language": entry.language,
        "files": files,
    }


def _find_feed_outlet(secret: str) -> Outlet | None:
    """Return the feed outlet with this secret, or `None` if there is none or its workspace was deleted."""
    outlets = Outlet.everywhere.filter(secret=secret, deleted_at=None)
    # A deleted workspace's feed is gone at once, however long it takes to purge it.
    outlet: Outlet | None = outlets.filter(workspace__deleted_at=None).select_related("workspace").first()
    platform = platform_if_known(outlet.platform) if outlet is not None else None
    return outlet if platform is not None and platform.is_own_feed else None


def _feed_title(outlet: Outlet) -> str:
    """Return the outlet's configured title, or the name of its workspace."""
    return str(outlet.config.get("title") or outlet.workspace.name)


def _is_not_modified(request: HttpRequest, etag: str, updated: float) -> bool:
    """Return whether the reader has this version already; `updated` is in seconds since 1970."""
    if_none_match = request.META.get("HTTP_IF_NONE_MATCH")
    if if_none_match is not None:
        # If a tag is sent, it decides alone (RFC 9110, 13.2.2).
        return etag in {value.strip().removeprefix("W/") for value in if_none_match.split(",")}
    modified_since = parse_http_date_safe(request.META.get("HTTP_IF_MODIFIED_SINCE", ""))
    return modified_since is not None and int(updated) <= modified_since


def _load_entries(outlet: Outlet, *, with_other_sizes: bool = True) -> list[FeedEntry]:
    """Return the newest published entries with their files; a workspace that isn't approved has fewer.

    `with_other_sizes=False` leaves out the other sizes of a picture.
    """
    max_entries = FEED_PUBLISHED if outlet.workspace.is_whitelisted else SANDBOX_FEED_PUBLISHED
    rows = list(
        Publication.everywhere.published()
        .filter(outlet=outlet, item__deleted_at=None)
        .select_related("item")
        .order_by("-published_at", "-id")[:max_entries]
    )
    revisions = {
        (revision.item_id, revision.number): revision
        for revision in Revision.everywhere.filter(item_id__in=[row.item_id for row in rows])
    }
    files: dict[UUID, list[Enclosure]] = {}
    assets = Asset.everywhere.filter(item_id__in=[row.item_id for row in rows], revoked_at=None)
    if not with_other_sizes:
        # The page shows a picture once; other sizes are for platforms.
        assets = assets.exclude(role=OTHER_SIZE)
    for asset in assets.order_by("position", "id"):
        url = resources.Asset.serialize(asset)["url"]
        files.setdefault(asset.item_id, []).append(Enclosure(url, asset.mime_type, asset.bytes))
    # An item that is being purged at this moment has no revision any more, so it is left out.
    rows_with_revision = [(row, revisions.get((row.item_id, row.revision))) for row in rows]
    return [
        _build_entry(row, sent, files.get(row.item_id, ()))
        for row, sent in rows_with_revision
        if sent is not None
    ]


def _build_entry(publication: Publication, revision: Revision, files: Sequence[Enclosure]) -> FeedEntry:
    """Return the entry with the revision that was sent, whatever has become of the item since."""
    body = publication.overrides.get("body", revision.body)
    published_at = publication.published_at or publication.updated_at
    title = publication.overrides.get("title", revision.title)
    is_article = publication.item.bucket == "blog"
    image = ""
    if is_article:
        image = next((enclosure.url for enclosure in files if enclosure.mime_type.startswith("image/")), "")
    return FeedEntry(
        id=entry_id(ids.encode("pub", publication.pk)),
        title=title,
        url=publication.url,
        content_html=to_html(body, revision.body_format),
        content_text=body if revision.body_format == "text" else "",
        published_at=published_at,
        updated_at=published_at,
        language=publication.item.language,
        enclosures=files,
        summary=str(revision.content.get("meta_description") or "") if is_article else "",
        image=image,
        tags=[str(tag) for tag in revision.content.get("tags") or ()] if is_article else (),
        json_ld=article_metadata.published_json_ld(
            revision.content, title=title, image=image, published_at=published_at
        ),
    )
