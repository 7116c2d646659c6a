"""The way to a draft on a WordPress site, one step at a time, and how an article is found again there."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from html import escape, unescape
from typing import TYPE_CHECKING, Any, Final

from pipeline.platforms.article_html import ArticleElement, article_elements, unique_tags
from pipeline.platforms.base import Prepared
from pipeline.platforms.upload_bodies import UploadFile, build_multipart, file_of
from pipeline.platforms.wordpress.site import GONE, WordPressSite, read_object
from pipeline.plugins import Refused

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from config.core.http_client import Response
    from pipeline.platforms.base import Account
    from pipeline.platforms.payload_types import Adapted, Payload

SHOWN: Final = "id,status,slug,link"
LONGEST_TERM: Final = 200
"""Characters of a term's name (wp_terms.name, WordPress 6.1)."""
PUBLIC: Final = frozenset({"publish", "private", "future"})


@dataclass(frozen=True)
class SiteImage:
    """An image that the site has: `asset_url` is where the body names it, `url` where the site serves it."""

    id: int
    url: str
    asset_url: str
    alt_text: str


def is_named(html: str, asset_url: str) -> bool:
    """Whether the body shows this image itself."""
    return f'src="{escape(asset_url)}"' in html


def convert_to_blocks(html: str, pictures: Sequence[SiteImage], *, key: str) -> str:
    """The body in blocks, its images served by the site, those that it doesn't name at its end.

    The last block carries the publication's key: WordPress keeps a block's attributes in the stored text, where its
    search finds them, and leaves them out of the page.
    """
    appended = [one for one in pictures if not is_named(html, one.asset_url)]
    for one in pictures:
        html = html.replace(f'src="{escape(one.asset_url)}"', f'src="{escape(one.url)}"')
    blocks = [_block_of(piece) for piece in article_elements(html)]
    blocks += [_picture(one) for one in appended]
    if not blocks:
        blocks = [("html", {}, "")]
    name, attributes, inside = blocks[-1]
    blocks[-1] = (name, {**attributes, "metadata": {"name": key}}, inside)
    return "\n\n".join(_written(*block) for block in blocks)


def _block_of(piece: ArticleElement) -> tuple[str, dict[str, Any], str]:
    # The editor takes a paragraph or heading only as it writes them itself; the rest stays HTML.
    if piece.is_bare and piece.tag == "p":
        return "paragraph", {}, piece.html
    if piece.is_bare and piece.tag in {"h1", "h2", "h3", "h4", "h5", "h6"}:
        level = int(piece.tag[1])
        return "heading", {} if level == 2 else {"level": level}, piece.html
    return "html", {}, piece.html


def _picture(one: SiteImage) -> tuple[str, dict[str, Any], str]:
    image = f'<img src="{escape(one.url)}" alt="{escape(one.alt_text)}" class="wp-image-{one.id}"/>'
    attributes = {"id": one.id, "sizeSlug": "full", "linkDestination": "none"}
    return "image", attributes, f'<figure class="wp-block-image size-full">{image}</figure>'


def _written(name: str, attributes: dict[str, Any], inside: str) -> str:
    given = f"{json.dumps(attributes, separators=(',', ':'))} " if attributes else ""
    return f"<!-- wp:{name} {given}-->\n{inside}\n<!-- /wp:{name} -->"


def advance_draft(site: WordPressSite, post: Adapted, state: Mapping[str, Any], key: str) -> Prepared:
    """One step towards the draft: an image, a term, the search for what is public already, the draft itself."""
    # Ids of another site mean nothing here.
    former = state if state.get("root") == site.root else {}
    kept = {"media": {}, "terms": {}, **former, "root": site.root}
    if "post" in kept:
        return _still_there(site, kept)
    for asset in post.payload.assets:
        if asset.url not in kept["media"]:
            index = len(kept["media"])
            media = _upload(site, file_of("file", asset, index), asset.alt_text, key)
            return Prepared({**kept, "media": {**kept["media"], asset.url: media}}, is_done=False)
    for taxonomy, name in _terms(site.account, post.payload):
        if f"{taxonomy}:{name}" not in kept["terms"]:
            terms = {**kept["terms"], f"{taxonomy}:{name}": _term(site, taxonomy, name)}
            return Prepared({**kept, "terms": terms}, is_done=False)
    if not kept.get("is_searched"):
        return _search(site, kept, key)
    return _draft(site, post, kept, key)


def is_id(value: object) -> bool:
    # A bool is an int to Python, and no id.
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _terms(account: Account, payload: Payload) -> list[tuple[str, str]]:
    """The terms that the article needs, by taxonomy; each name once, however it is written."""
    category = str(account.config.get("category") or "").strip()
    tags = [("tags", name[:LONGEST_TERM]) for name in unique_tags(payload.content.get("tags"))]
    return [("categories", category), *tags] if category else tags


def _term(site: WordPressSite, taxonomy: str, name: str) -> int:
    """The id of a term, which is made where the site has none of that name."""
    if taxonomy == "categories":
        # Authors may not add one, but may use one that is there.
        # Names are stored, and searched for, as HTML.
        words = escape(name, quote=False)
        rows = site.get_list(taxonomy, {"search": words, "per_page": 100, "_fields": "id,name"})
        for row in rows:
            if unescape(str(row.get("name", ""))).casefold() == name.casefold() and is_id(row.get("id")):
                return int(row["id"])
    response = site.post(taxonomy, {"name": name})
    answer = read_object(response)
    if response.status in {200, 201} and is_id(answer.get("id")):
        return int(answer["id"])
    data = answer.get("data")
    there = data.get("term_id") if isinstance(data, dict) and answer.get("code") == "term_exists" else None
    if response.status == 403 and answer.get("code") == "rest_cannot_create":
        kind = "category" if taxonomy == "categories" else "tag"
        message = f"The site has no {kind} “{name}”, and the user may not add it."
        action = f"Add the {kind} on the site, or give the user the role Editor, then retry."
        raise Refused(message, code="no_such_term", action=action, platform_status=403)
    if not is_id(there):
        site.fail(response)
    return int(str(there))


def _upload(site: WordPressSite, file: UploadFile, alt_text: str, key: str) -> dict[str, Any]:
    """Upload a file once: its slug follows from the key and from what is in it."""
    slug = f"{key}-{hashlib.sha256(file.content).hexdigest()[:12]}"
    there = site.get_list("media", {"slug": slug, "_fields": "id,source_url"})
    if there and is_id(there[0].get("id")) and there[0].get("source_url"):
        return {"id": there[0]["id"], "url": str(there[0]["source_url"])}
    fields = {"slug": slug, "title": alt_text[:100] or file.name, "alt_text": alt_text}
    response = site.upload("media", *build_multipart(fields, [file]))
    answer = read_object(response)
    if response.status not in {200, 201} or not is_id(answer.get("id")) or not answer.get("source_url"):
        site.fail(response)
    return {"id": answer["id"], "url": str(answer["source_url"])}


def _still_there(site: WordPressSite, state: Mapping[str, Any]) -> Prepared:
    """A retry goes on with its draft; where somebody threw that away, the article is prepared anew."""
    found = read_post(site, state["post"])
    if found is None or found.get("status") == "trash":
        return Prepared({name: state[name] for name in ("root", "media", "terms")}, is_done=False)
    return Prepared(dict(state))


def _search(site: WordPressSite, state: Mapping[str, Any], key: str) -> Prepared:
    """An article that is public already, from a call whose trace is lost, is never made again."""
    found = _marked(site, key)
    if found is None or found.get("slug") == key:
        return Prepared({**state, "is_searched": True}, is_done=False)
    return Prepared({**state, "is_searched": True, "post": found["id"]})


def _draft(site: WordPressSite, post: Adapted, state: Mapping[str, Any], key: str) -> Prepared:
    """Make the draft, or bring the one that is there already to the newest words."""
    found = _with_slug(site, key)
    if found is not None and found.get("status") != "draft":
        return Prepared({**state, "post": found["id"]})
    values = _values(post, state, key)
    response = site.post(f"posts/{found['id']}" if found else "posts", values)
    answer = read_object(response)
    if response.status not in {200, 201} or not is_id(answer.get("id")):
        site.fail(response)
    return Prepared({**state, "post": answer["id"]})


def _values(post: Adapted, state: Mapping[str, Any], key: str) -> dict[str, Any]:
    payload, media, terms = post.payload, state["media"], state["terms"]
    html = post.parts[0]
    pictures = [
        SiteImage(media[one.url]["id"], media[one.url]["url"], one.url, one.alt_text)
        for one in payload.assets
    ]
    first = pictures[0] if pictures and not is_named(html, pictures[0].asset_url) else None
    by_taxonomy: dict[str, list[int]] = {"categories": [], "tags": []}
    for name, number in terms.items():
        by_taxonomy[name.partition(":")[0]].append(number)
    return {
        "status": "draft",
        "slug": key,
        # Both are HTML to WordPress, which would take words in angle brackets for elements.
        "title": escape(payload.title, quote=False),
        "content": convert_to_blocks(html, [one for one in pictures if one is not first], key=key),
        "excerpt": escape(str(payload.content.get("meta_description") or ""), quote=False),
        "featured_media": first.id if first else 0,
        "tags": by_taxonomy["tags"],
        **({"categories": by_taxonomy["categories"]} if by_taxonomy["categories"] else {}),
    }


def read_post(site: WordPressSite, number: int) -> dict[str, Any] | None:
    """The article as its editors see it; None where the site says that there is none of this id."""
    response = site.get(f"posts/{number}", {"context": "edit", "_fields": SHOWN})
    if is_gone(response):
        return None
    answer = read_object(response) if response.status == 200 else {}
    if not is_id(answer.get("id")) or not answer.get("status"):
        site.fail(response)
    return answer


def find_post(site: WordPressSite, key: str) -> dict[str, Any] | None:
    return _with_slug(site, key) or _marked(site, key)


def _with_slug(site: WordPressSite, key: str) -> dict[str, Any] | None:
    rows = site.get_list("posts", {"slug": key, "status": "any", "context": "edit", "_fields": SHOWN})
    return rows[0] if rows else None


def _marked(site: WordPressSite, key: str) -> dict[str, Any] | None:
    """The article whose text carries the key, published first; others that only speak of it are passed over."""
    query = {"search": key, "status": "any", "context": "edit", "_fields": f"{SHOWN},content"}
    rows = [row for row in site.get_list("posts", query) if f'"name":"{key}"' in _raw(row)]
    rows.sort(key=lambda row: row.get("status") not in PUBLIC)
    return rows[0] if rows else None


def _raw(row: Mapping[str, Any]) -> str:
    content = row.get("content")
    return str(content.get("raw", "")) if isinstance(content, dict) else ""


def is_gone(response: Response) -> bool:
    return response.status in {404, 410} and read_object(response).get("code") in GONE
