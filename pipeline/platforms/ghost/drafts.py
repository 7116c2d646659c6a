"""Makes a draft on a Ghost site, one step at a time, and finds a post again there."""

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

PUBLIC_STATUSES: Final = frozenset({"published", "sent", "scheduled"})

# The limits of Ghost's database schema (core/server/data/schema/schema.js of Ghost 6, read 2026-11-20).
MAX_TITLE_CHARACTERS: Final = 255
MAX_EXCERPT_CHARACTERS: Final = 300
MAX_SUBJECT_CHARACTERS: Final = 300
MAX_ALT_TEXT_CHARACTERS: Final = 191
MAX_TAG_CHARACTERS: Final = 191
MAX_SLUG_CHARACTERS: Final = 185
"""The schema's 191 characters less the digits that the site adds if a slug is taken."""

# The elements that Ghost's editor supports; it would drop the others when it converts HTML.
_EDITOR_TAGS: Final = frozenset(
    {"p", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "blockquote", "hr", "pre", "figure"}
)
_UNSAFE_SLUG_CHARACTERS: Final = re.compile(r"[^a-z0-9]+")


def draft_slug(key: str) -> str:
    """Return the slug of the draft: the publication's key."""
    return _UNSAFE_SLUG_CHARACTERS.sub("-", key.lower())


def own_slug(post: Adapted, key: str) -> str:
    """Return the slug that the post has once it is public: its own, its title's, or the draft's if both are empty."""
    text = str(post.payload.content.get("slug") or post.payload.title)
    ascii_only = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode("ascii").lower()
    slug = _UNSAFE_SLUG_CHARACTERS.sub("-", ascii_only).strip("-")[:MAX_SLUG_CHARACTERS].strip("-")
    return slug or draft_slug(key)


def key_comment(key: str) -> str:
    """Return the key as a comment for the head of the post's page, which the API returns and readers don't see."""
    return f"<!-- {key} -->"


def advance_draft(site: GhostSite, post: Adapted, state: Mapping[str, Any], key: str) -> Prepared:
    """Take one step towards the draft: an image, the search for a public post, the draft itself.

    A draft that is known already is only read again. The state of another site is dropped.
    """
    # The ids of another site mean nothing on this one.
    known_state = state if state.get("root") == site.root else {}
    new_state = {"media": {}, **known_state, "root": site.root}
    if "post" in new_state:
        return _reuse_draft(site, new_state)
    for asset in post.payload.assets:
        if asset.url not in new_state["media"]:
            media = {
                **new_state["media"],
                asset.url: _upload_image(site, asset, len(new_state["media"]), key),
            }
            return Prepared({**new_state, "media": media}, is_done=False)
    if not new_state.get("is_searched"):
        public_post = find_public_post(site, post, key)
        if public_post is None:
            return Prepared({**new_state, "is_searched": True}, is_done=False)
        return _to_prepared({**new_state, "is_searched": True}, public_post)
    return _save_draft(site, post, new_state, key)


def find_public_post(site: GhostSite, post: Adapted, key: str) -> dict[str, Any] | None:
    """Return the post with the key's comment under its intended slug or title, or `None` if there is none."""
    # In Ghost's filters, strings escape backslashes and quotes, and `~^` means "starts with": the site adds digits
    # to a slug that is taken.
    title = post.payload.title.replace("\\", "\\\\").replace("'", "\\'")
    rows = site.find(f"slug:~^'{own_slug(post, key)}',title:'{title}'")
    return next((row for row in rows if key_comment(key) in str(row.get("codeinjection_head") or "")), None)


def find_draft(site: GhostSite, key: str) -> dict[str, Any] | None:
    """Return the draft with the key as slug, or `None` if there is none."""
    rows = site.find(f"slug:'{draft_slug(key)}'")
    return rows[0] if rows else None


def _reuse_draft(site: GhostSite, state: Mapping[str, Any]) -> Prepared:
    """Go on with the draft as it is now, or prepare the post again if a person deleted it."""
    draft = site.read_post(state["post"])
    if draft is None:
        return Prepared({name: state[name] for name in ("root", "media")}, is_done=False)
    return _to_prepared(state, draft)


def _upload_image(site: GhostSite, asset: PayloadAsset, index: int, key: str) -> str:
    """Upload an image and return its address on the site. Raises the plug-in error if the site refuses it."""
    file = file_of("file", asset, index)
    fields = {"purpose": "image", "ref": f"{draft_slug(key)}-{index}"}
    response = site.upload("images/upload/", *build_multipart(fields, [file]))
    images = (json_object(response.body) or {}).get("images")
    url = (
        images[0].get("url") if isinstance(images, list) and images and isinstance(images[0], dict) else None
    )
    if response.status != 201 or not isinstance(url, str) or not url:
        site.raise_for_response(response)
    return str(url)


def _save_draft(site: GhostSite, post: Adapted, state: Mapping[str, Any], key: str) -> Prepared:
    """Create the draft or update the existing one; a post with the key that is public already stays untouched."""
    existing = find_draft(site, key)
    if existing is not None and existing["status"] != "draft":
        return _to_prepared(state, existing)
    values = _post_fields(post, state["media"], key)
    if existing is None:
        response = site.send("POST", "posts/", values, {"source": "html"})
    else:
        updated_values = {**values, "updated_at": existing["updated_at"]}
        response = site.send("PUT", f"posts/{existing['id']}/", updated_values, {"source": "html"})
    saved = post_of(response) if response.status in {200, 201} else None
    if saved is None:
        site.raise_for_response(response)
    return _to_prepared(state, saved)


def _to_prepared(state: Mapping[str, Any], post: Mapping[str, Any]) -> Prepared:
    """Return the final state of `prepare`, with `is_public` if the post is public already."""
    final_state = {**state, "is_searched": True, "post": post["id"], "updated_at": post["updated_at"]}
    return Prepared({**final_state, "is_public": post["status"] in PUBLIC_STATUSES})


def read_after_collision(site: GhostSite, post_id: str) -> dict[str, Any]:
    """Return a public post that has changed since it was read, by an earlier call of ours or by a person.

    Raises `OutcomeUnknown` if the site doesn't answer, and `TryLater` if the post is a draft or was deleted.
    """
    try:
        ghost_post = site.read_post(post_id)
    except PluginError as error:
        message = f"The post has changed on the site, which couldn't be asked how: {error.message}"
        raise OutcomeUnknown(message, platform_status=409) from error
    if ghost_post is None or ghost_post["status"] not in PUBLIC_STATUSES:
        message = "The draft was changed on the site. It is read again."
        raise TryLater(message, code="draft_changed", platform_status=409)
    return ghost_post


def _post_fields(post: Adapted, media: Mapping[str, str], key: str) -> dict[str, Any]:
    """Return the post's fields as the API takes them."""
    payload, content = post.payload, post.payload.content
    feature_image, article_images = _split_feature_image(post)
    is_newsletter = payload.bucket == "newsletter"
    summary_field = "preheader" if is_newsletter else "meta_description"
    summary = remove_half_characters(str(content.get(summary_field) or ""))
    values: dict[str, Any] = {
        "status": "draft",
        "slug": draft_slug(key),
        "title": payload.title,
        "html": _render_for_editor(post.parts[0], article_images, media),
        "codeinjection_head": key_comment(key),
        "custom_excerpt": summary or None,
        "tags": [{"name": name[:MAX_TAG_CHARACTERS]} for name in unique_tags(content.get("tags"))],
        "feature_image": None,
        "feature_image_alt": None,
        "canonical_url": str(content.get("canonical_url") or "") or None,
    }
    if feature_image is not None:
        values["feature_image"] = media[feature_image.url]
        values["feature_image_alt"] = remove_half_characters(feature_image.alt_text)[:MAX_ALT_TEXT_CHARACTERS]
    if is_newsletter:
        values["email_subject"] = remove_half_characters(str(content.get("subject") or "")) or None
    else:
        values["meta_description"] = summary or None
    return values


def _split_feature_image(post: Adapted) -> tuple[PayloadAsset | None, list[PayloadAsset]]:
    """Return the image above the article, which is the first if the text doesn't show it, and the other images."""
    assets = list(post.payload.assets)
    if assets and f'src="{escape(assets[0].url)}"' not in post.parts[0]:
        return assets[0], assets[1:]
    return None, assets


def _render_for_editor(html: str, assets: list[PayloadAsset], media: Mapping[str, str]) -> str:
    """Return the article for Ghost's editor, with the addresses of uploaded images.

    Elements that the editor doesn't support become HTML cards. Images that the article doesn't show are added at
    its end.
    """
    parts = []
    for url, site_url in media.items():
        html = html.replace(f'src="{escape(url)}"', f'src="{escape(site_url)}"')
    for element in article_elements(html):
        if element.tag in _EDITOR_TAGS:
            parts.append(element.html)
        else:
            parts.append(f"<!--kg-card-begin: html-->\n{element.html}\n<!--kg-card-end: html-->")
    for asset in assets:
        if f'src="{escape(media[asset.url])}"' not in html:
            alt_text = escape(remove_half_characters(asset.alt_text))
            image = f'<img src="{escape(media[asset.url])}" alt="{alt_text}">'
            parts.append(f"<figure>{image}</figure>")
    return "\n".join(parts)
