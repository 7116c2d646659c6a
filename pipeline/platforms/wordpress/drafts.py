"""Makes a draft on a WordPress site, one step at a time, and finds an article again there."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from html import escape, unescape
from typing import TYPE_CHECKING, Any, Final

from pipeline.platforms.article_html import ArticleElement, article_elements, unique_tags
from pipeline.platforms.base import Prepared
from pipeline.platforms.upload_bodies import UploadFile, build_multipart, file_of
from pipeline.platforms.wordpress.calls import GONE_CODES, WordPressSite, read_object
from pipeline.plugins import Refused

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from config.core.http_client import Response
    from pipeline.platforms.base import Account
    from pipeline.platforms.payload_types import Adapted, Payload

POST_FIELDS: Final = "id,status,slug,link"
MAX_TERM_CHARACTERS: Final = 200
"""The length to which a tag's name is cut: that of `wp_terms.name` in WordPress 6.1."""
PUBLIC_STATUSES: Final = frozenset({"publish", "private", "future"})


@dataclass(frozen=True)
class SiteImage:
    """An image that the site has: `asset_url` is its address in the body, `url` its address on the site."""

    id: int
    url: str
    asset_url: str
    alt_text: str


def shows_image(html: str, asset_url: str) -> bool:
    """Return whether the body shows this image."""
    return f'src="{escape(asset_url)}"' in html


def convert_to_blocks(html: str, pictures: Sequence[SiteImage], *, key: str) -> str:
    """Return the body in blocks, with images served by the site; those that it doesn't show are appended.

    The last block has the publication's key: WordPress keeps a block's attributes in the stored text, where its
    search finds them, and leaves them out of the page.
    """
    appended = [picture for picture in pictures if not shows_image(html, picture.asset_url)]
    for picture in pictures:
        html = html.replace(f'src="{escape(picture.asset_url)}"', f'src="{escape(picture.url)}"')
    blocks = [_build_block(element) for element in article_elements(html)]
    blocks += [_build_image_block(picture) for picture in appended]
    if not blocks:
        blocks = [("html", {}, "")]
    name, attributes, inside = blocks[-1]
    blocks[-1] = (name, {**attributes, "metadata": {"name": key}}, inside)
    return "\n\n".join(_render_block(*block) for block in blocks)


def _build_block(element: ArticleElement) -> tuple[str, dict[str, Any], str]:
    """Return an element as a block: its name, attributes and HTML."""
    # The editor accepts paragraphs and headings only in the form that it writes; other elements stay HTML.
    if element.is_bare and element.tag == "p":
        return "paragraph", {}, element.html
    if element.is_bare and element.tag in {"h1", "h2", "h3", "h4", "h5", "h6"}:
        level = int(element.tag[1])
        return "heading", {} if level == 2 else {"level": level}, element.html
    return "html", {}, element.html


def _build_image_block(image: SiteImage) -> tuple[str, dict[str, Any], str]:
    """Return an image as a block."""
    element = f'<img src="{escape(image.url)}" alt="{escape(image.alt_text)}" class="wp-image-{image.id}"/>'
    attributes = {"id": image.id, "sizeSlug": "full", "linkDestination": "none"}
    return "image", attributes, f'<figure class="wp-block-image size-full">{element}</figure>'


def _render_block(name: str, attributes: dict[str, Any], inside: str) -> str:
    """Return a block as WordPress stores it, between comments."""
    attributes_json = f"{json.dumps(attributes, separators=(',', ':'))} " if attributes else ""
    return f"<!-- wp:{name} {attributes_json}-->\n{inside}\n<!-- /wp:{name} -->"


def advance_draft(site: WordPressSite, post: Adapted, state: Mapping[str, Any], key: str) -> Prepared:
    """Take one step towards the draft: an image, a term, the search for a public article, the draft itself.

    A draft that is known already is only looked up. The state of another site is dropped.
    """
    # The ids of another site mean nothing on this one.
    known_state = state if state.get("root") == site.root else {}
    new_state = {"media": {}, "terms": {}, **known_state, "root": site.root}
    if "post" in new_state:
        return _reuse_draft(site, new_state)
    for asset in post.payload.assets:
        if asset.url not in new_state["media"]:
            index = len(new_state["media"])
            media = _upload_once(site, file_of("file", asset, index), asset.alt_text, key)
            return Prepared({**new_state, "media": {**new_state["media"], asset.url: media}}, is_done=False)
    for taxonomy, name in _needed_terms(site.account, post.payload):
        if f"{taxonomy}:{name}" not in new_state["terms"]:
            terms = {**new_state["terms"], f"{taxonomy}:{name}": _find_or_create_term(site, taxonomy, name)}
            return Prepared({**new_state, "terms": terms}, is_done=False)
    if not new_state.get("is_searched"):
        return _search_public_post(site, new_state, key)
    return _save_draft(site, post, new_state, key)


def is_id(value: object) -> bool:
    """Return whether a value can be an id in WordPress."""
    # In Python a bool is an int, but it is no id.
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _needed_terms(account: Account, payload: Payload) -> list[tuple[str, str]]:
    """Return the outlet's category and the article's tags as pairs of taxonomy and name, each tag once."""
    category = str(account.config.get("category") or "").strip()
    tags = [("tags", name[:MAX_TERM_CHARACTERS]) for name in unique_tags(payload.content.get("tags"))]
    return [("categories", category), *tags] if category else tags


def _find_or_create_term(site: WordPressSite, taxonomy: str, name: str) -> int:
    """Return the id of a term, which is created if the site has none of that name.

    Raises `Refused` if the user may not create it, and as `raise_for_response` for other failures.
    """
    if taxonomy == "categories":
        # Authors may not add a category, but may use an existing one. Names are stored, and searched for, as HTML.
        escaped_name = escape(name, quote=False)
        rows = site.get_list(taxonomy, {"search": escaped_name, "per_page": 100, "_fields": "id,name"})
        for row in rows:
            if unescape(str(row.get("name", ""))).casefold() == name.casefold() and is_id(row.get("id")):
                return int(row["id"])
    response = site.post(taxonomy, {"name": name})
    answer = read_object(response)
    if response.status in {200, 201} and is_id(answer.get("id")):
        return int(answer["id"])
    data = answer.get("data")
    existing_id = (
        data.get("term_id") if isinstance(data, dict) and answer.get("code") == "term_exists" else None
    )
    if response.status == 403 and answer.get("code") == "rest_cannot_create":
        term_type = "category" if taxonomy == "categories" else "tag"
        message = f"The site has no {term_type} “{name}”, and the user may not add it."
        action = f"Add the {term_type} on the site, or give the user the role Editor, then retry."
        raise Refused(message, code="no_such_term", action=action, platform_status=403)
    if not is_id(existing_id):
        site.raise_for_response(response)
    return int(str(existing_id))


def _upload_once(site: WordPressSite, file: UploadFile, alt_text: str, key: str) -> dict[str, Any]:
    """Upload a file unless the site has it, and return its id and address.

    The file is found by its slug, which follows from the key and the file's content.
    """
    slug = f"{key}-{hashlib.sha256(file.content).hexdigest()[:12]}"
    existing = site.get_list("media", {"slug": slug, "_fields": "id,source_url"})
    if existing and is_id(existing[0].get("id")) and existing[0].get("source_url"):
        return {"id": existing[0]["id"], "url": str(existing[0]["source_url"])}
    fields = {"slug": slug, "title": alt_text[:100] or file.name, "alt_text": alt_text}
    response = site.upload("media", *build_multipart(fields, [file]))
    answer = read_object(response)
    if response.status not in {200, 201} or not is_id(answer.get("id")) or not answer.get("source_url"):
        site.raise_for_response(response)
    return {"id": answer["id"], "url": str(answer["source_url"])}


def _reuse_draft(site: WordPressSite, state: Mapping[str, Any]) -> Prepared:
    """Go on with the draft, or prepare the article again if a person deleted the draft."""
    draft = read_post(site, state["post"])
    if draft is None or draft.get("status") == "trash":
        return Prepared({name: state[name] for name in ("root", "media", "terms")}, is_done=False)
    return Prepared(dict(state))


def _search_public_post(site: WordPressSite, state: Mapping[str, Any], key: str) -> Prepared:
    """Go on with an article that an earlier call made public but whose id was lost, so that it isn't made again."""
    article = _find_by_key_in_text(site, key)
    if article is None or article.get("slug") == key:
        return Prepared({**state, "is_searched": True}, is_done=False)
    return Prepared({**state, "is_searched": True, "post": article["id"]})


def _save_draft(site: WordPressSite, post: Adapted, state: Mapping[str, Any], key: str) -> Prepared:
    """Create the draft or update the existing one; an article with the key that isn't a draft stays untouched."""
    existing = _find_by_slug(site, key)
    if existing is not None and existing.get("status") != "draft":
        return Prepared({**state, "post": existing["id"]})
    values = _post_fields(post, state, key)
    response = site.post(f"posts/{existing['id']}" if existing else "posts", values)
    answer = read_object(response)
    if response.status not in {200, 201} or not is_id(answer.get("id")):
        site.raise_for_response(response)
    return Prepared({**state, "post": answer["id"]})


def _post_fields(post: Adapted, state: Mapping[str, Any], key: str) -> dict[str, Any]:
    """Return the article's fields as the API takes them."""
    payload, media, terms = post.payload, state["media"], state["terms"]
    html = post.parts[0]
    pictures = [
        SiteImage(media[asset.url]["id"], media[asset.url]["url"], asset.url, asset.alt_text)
        for asset in payload.assets
    ]
    featured = pictures[0] if pictures and not shows_image(html, pictures[0].asset_url) else None
    by_taxonomy: dict[str, list[int]] = {"categories": [], "tags": []}
    for name, term_id in terms.items():
        by_taxonomy[name.partition(":")[0]].append(term_id)
    return {
        "status": "draft",
        "slug": key,
        # Title and excerpt are HTML to WordPress, which would take text in angle brackets for elements.
        "title": escape(payload.title, quote=False),
        "content": convert_to_blocks(html, [image for image in pictures if image is not featured], key=key),
        "excerpt": escape(str(payload.content.get("meta_description") or ""), quote=False),
        "featured_media": featured.id if featured else 0,
        "tags": by_taxonomy["tags"],
        **({"categories": by_taxonomy["categories"]} if by_taxonomy["categories"] else {}),
    }


def read_post(site: WordPressSite, post_id: int) -> dict[str, Any] | None:
    """Return the article as its editors see it, or `None` if the site has none of this id.

    Raises as `raise_for_response` if the answer can't be read.
    """
    response = site.get(f"posts/{post_id}", {"context": "edit", "_fields": POST_FIELDS})
    if is_gone(response):
        return None
    answer = read_object(response) if response.status == 200 else {}
    if not is_id(answer.get("id")) or not answer.get("status"):
        site.raise_for_response(response)
    return answer


def find_post(site: WordPressSite, key: str) -> dict[str, Any] | None:
    """Return the article by its slug or the key in its text, or `None` if there is none."""
    return _find_by_slug(site, key) or _find_by_key_in_text(site, key)


def _find_by_slug(site: WordPressSite, key: str) -> dict[str, Any] | None:
    """Return the article whose slug is the key, or `None` if there is none."""
    rows = site.get_list("posts", {"slug": key, "status": "any", "context": "edit", "_fields": POST_FIELDS})
    return rows[0] if rows else None


def _find_by_key_in_text(site: WordPressSite, key: str) -> dict[str, Any] | None:
    """Return the article whose last block has the key, a public one first, or `None` if there is none.

    Articles that merely mention the key are skipped.
    """
    query = {"search": key, "status": "any", "context": "edit", "_fields": f"{POST_FIELDS},content"}
    rows = [row for row in site.get_list("posts", query) if f'"name":"{key}"' in _raw_content(row)]
    rows.sort(key=lambda row: row.get("status") not in PUBLIC_STATUSES)
    return rows[0] if rows else None


def _raw_content(row: Mapping[str, Any]) -> str:
    """Return the stored text of an article, or an empty string if the row has none."""
    content = row.get("content")
    return str(content.get("raw", "")) if isinstance(content, dict) else ""


def is_gone(response: Response) -> bool:
    """Return whether the response says that the article is gone or in the trash."""
    return response.status in {404, 410} and read_object(response).get("code") in GONE_CODES
