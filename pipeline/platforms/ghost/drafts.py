"""The way to a draft on a Ghost site, one step at a time, and how a post is found again there."""

from __future__ import annotations

import re
import unicodedata
from html import escape
from typing import TYPE_CHECKING, Any, Final

from pipeline.platforms.article_html import article_elements, remove_half_characters, unique_tags
from pipeline.platforms.base import Prepared
from pipeline.platforms.ghost.site import post_of
from pipeline.platforms.http_calls import json_object
from pipeline.platforms.upload_bodies import build_multipart, file_of
from pipeline.plugins import OutcomeUnknown, PluginError, TryLater

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipeline.platforms.ghost.site import GhostSite
    from pipeline.platforms.payload_types import Adapted, PayloadAsset

PUBLIC: Final = frozenset({"published", "sent", "scheduled"})

# Of Ghost's own database schema (core/server/data/schema/schema.js of Ghost 6, read 2026-11-20).
TITLE_MOST: Final = 255
EXCERPT_MOST: Final = 300
SUBJECT_MOST: Final = 300
ALT_MOST: Final = 191
TAG_MOST: Final = 191
SLUG_MOST: Final = 185
"""Of 191, so that the site's own number for a clash still fits."""

# What Ghost's editor has a place for; it would lose the rest on the way from HTML.
_KEPT: Final = frozenset(
    {"p", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "blockquote", "hr", "pre", "figure"}
)
_UNSAFE: Final = re.compile(r"[^a-z0-9]+")


def draft_slug(key: str) -> str:
    return _UNSAFE.sub("-", key.lower())


def own_slug(post: Adapted, key: str) -> str:
    """The slug that the post has once it is public: its own, or its title's."""
    wanted = str(post.payload.content.get("slug") or post.payload.title)
    ascii_only = unicodedata.normalize("NFKD", wanted).encode("ascii", "ignore").decode("ascii").lower()
    return _UNSAFE.sub("-", ascii_only).strip("-")[:SLUG_MOST].strip("-") or draft_slug(key)


def key_comment(key: str) -> str:
    """Stands in the head of the post's page, where the API gives it back and readers don't see it."""
    return f"<!-- {key} -->"


def advance_draft(site: GhostSite, post: Adapted, state: Mapping[str, Any], key: str) -> Prepared:
    """One step towards the draft: an image, the search for what is public already, the draft itself."""
    # Ids of another site mean nothing here.
    former = state if state.get("root") == site.root else {}
    kept = {"media": {}, **former, "root": site.root}
    if "post" in kept:
        return _reuse_draft(site, kept)
    for asset in post.payload.assets:
        if asset.url not in kept["media"]:
            media = {**kept["media"], asset.url: _upload(site, asset, len(kept["media"]), key)}
            return Prepared({**kept, "media": media}, is_done=False)
    if not kept.get("is_searched"):
        found = find_public_post(site, post, key)
        if found is None:
            return Prepared({**kept, "is_searched": True}, is_done=False)
        return _done({**kept, "is_searched": True}, found)
    return _draft(site, post, kept, key)


def find_public_post(site: GhostSite, post: Adapted, key: str) -> dict[str, Any] | None:
    """The post that carries the key's mark under the slug or title that it was to have; None where there is none."""
    title = post.payload.title.replace("\\", "\\\\").replace("'", "\\'")
    rows = site.find(f"slug:~^'{own_slug(post, key)}',title:'{title}'")
    return next((row for row in rows if key_comment(key) in str(row.get("codeinjection_head") or "")), None)


def find_draft(site: GhostSite, key: str) -> dict[str, Any] | None:
    rows = site.find(f"slug:'{draft_slug(key)}'")
    return rows[0] if rows else None


def _reuse_draft(site: GhostSite, state: Mapping[str, Any]) -> Prepared:
    """A retry goes on with its draft as it is now; where somebody threw that away, the post is prepared anew."""
    found = site.read_post(state["post"])
    if found is None:
        return Prepared({name: state[name] for name in ("root", "media")}, is_done=False)
    return _done(state, found)


def _upload(site: GhostSite, asset: PayloadAsset, index: int, key: str) -> str:
    file = file_of("file", asset, index)
    fields = {"purpose": "image", "ref": f"{draft_slug(key)}-{index}"}
    response = site.upload("images/upload/", *build_multipart(fields, [file]))
    images = (json_object(response.body) or {}).get("images")
    url = (
        images[0].get("url") if isinstance(images, list) and images and isinstance(images[0], dict) else None
    )
    if response.status != 201 or not isinstance(url, str) or not url:
        site.fail(response)
    return str(url)


def _draft(site: GhostSite, post: Adapted, state: Mapping[str, Any], key: str) -> Prepared:
    """Make the draft, or bring the one that is there already to the newest words."""
    found = find_draft(site, key)
    if found is not None and found["status"] != "draft":
        return _done(state, found)
    values = _values(post, state["media"], key)
    if found is None:
        response = site.send("POST", "posts/", values, {"source": "html"})
    else:
        newer = {**values, "updated_at": found["updated_at"]}
        response = site.send("PUT", f"posts/{found['id']}/", newer, {"source": "html"})
    made = post_of(response) if response.status in {200, 201} else None
    if made is None:
        site.fail(response)
    return _done(state, made)


def _done(state: Mapping[str, Any], post: Mapping[str, Any]) -> Prepared:
    done = {**state, "is_searched": True, "post": post["id"], "updated_at": post["updated_at"]}
    return Prepared({**done, "is_public": post["status"] in PUBLIC})


def read_after_collision(site: GhostSite, number: str) -> dict[str, Any]:
    """The post that has changed since it was read, by an earlier call of ours or by a person; raises unless it is public."""
    try:
        found = site.read_post(number)
    except PluginError as error:
        message = f"The post has changed on the site, which couldn't be asked how: {error.message}"
        raise OutcomeUnknown(message, platform_status=409) from error
    if found is None or found["status"] not in PUBLIC:
        message = "Somebody has changed the draft on the site; it is read again."
        raise TryLater(message, code="draft_changed", platform_status=409)
    return found


def _values(post: Adapted, media: Mapping[str, str], key: str) -> dict[str, Any]:
    payload = post.payload
    html, assets = post.parts[0], list(payload.assets)
    first = assets.pop(0) if assets and f'src="{escape(assets[0].url)}"' not in html else None
    content = payload.content
    is_newsletter = payload.bucket == "newsletter"
    summary = remove_half_characters(
        str(content.get("preheader" if is_newsletter else "meta_description") or "")
    )
    values: dict[str, Any] = {
        "status": "draft",
        "slug": draft_slug(key),
        "title": payload.title,
        "html": _html(html, assets, media),
        "codeinjection_head": key_comment(key),
        "custom_excerpt": summary or None,
        "tags": [{"name": name[:TAG_MOST]} for name in unique_tags(content.get("tags"))],
        "feature_image": media[first.url] if first else None,
        "feature_image_alt": remove_half_characters(first.alt_text)[:ALT_MOST] if first else None,
        "canonical_url": str(content.get("canonical_url") or "") or None,
    }
    if is_newsletter:
        values["email_subject"] = remove_half_characters(str(content.get("subject") or "")) or None
    else:
        values["meta_description"] = summary or None
    return values


def _html(html: str, assets: list[PayloadAsset], media: Mapping[str, str]) -> str:
    parts = []
    for url, served in media.items():
        html = html.replace(f'src="{escape(url)}"', f'src="{escape(served)}"')
    for piece in article_elements(html):
        is_kept = piece.tag in _KEPT
        parts.append(
            piece.html if is_kept else f"<!--kg-card-begin: html-->\n{piece.html}\n<!--kg-card-end: html-->"
        )
    for one in assets:
        if f'src="{escape(media[one.url])}"' not in html:
            image = (
                f'<img src="{escape(media[one.url])}" alt="{escape(remove_half_characters(one.alt_text))}">'
            )
            parts.append(f"<figure>{image}</figure>")
    return "\n".join(parts)
