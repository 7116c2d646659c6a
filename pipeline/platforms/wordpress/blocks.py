"""Writes a sanitised body as WordPress's blocks, so that the site's editor opens it as an article of its own."""

from __future__ import annotations

import json
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

from pipeline.platforms.html_pieces import Piece, pieces

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True)
class Picture:
    """An image that the site has: `asset_url` is where the body names it, `url` where the site serves it."""

    id: int
    url: str
    asset_url: str
    alt_text: str


def is_named(html: str, asset_url: str) -> bool:
    """Whether the body shows this image itself."""
    return f'src="{escape(asset_url)}"' in html


def in_blocks(html: str, pictures: Sequence[Picture], *, key: str) -> str:
    """The body in blocks, its images served by the site, those that it doesn't name at its end.

    The last block carries the publication's key: WordPress keeps a block's attributes in the stored text, where its
    search finds them, and leaves them out of the page.
    """
    appended = [one for one in pictures if not is_named(html, one.asset_url)]
    for one in pictures:
        html = html.replace(f'src="{escape(one.asset_url)}"', f'src="{escape(one.url)}"')
    blocks = [_block_of(piece) for piece in pieces(html)]
    blocks += [_picture(one) for one in appended]
    if not blocks:
        blocks = [("html", {}, "")]
    name, attributes, inside = blocks[-1]
    blocks[-1] = (name, {**attributes, "metadata": {"name": key}}, inside)
    return "\n\n".join(_written(*block) for block in blocks)


def _block_of(piece: Piece) -> tuple[str, dict[str, Any], str]:
    # The editor takes a paragraph or heading only as it writes them itself; the rest stays HTML.
    if piece.is_bare and piece.tag == "p":
        return "paragraph", {}, piece.html
    if piece.is_bare and piece.tag in {"h1", "h2", "h3", "h4", "h5", "h6"}:
        level = int(piece.tag[1])
        return "heading", {} if level == 2 else {"level": level}, piece.html
    return "html", {}, piece.html


def _picture(one: Picture) -> tuple[str, dict[str, Any], str]:
    image = f'<img src="{escape(one.url)}" alt="{escape(one.alt_text)}" class="wp-image-{one.id}"/>'
    attributes = {"id": one.id, "sizeSlug": "full", "linkDestination": "none"}
    return "image", attributes, f'<figure class="wp-block-image size-full">{image}</figure>'


def _written(name: str, attributes: dict[str, Any], inside: str) -> str:
    given = f"{json.dumps(attributes, separators=(',', ':'))} " if attributes else ""
    return f"<!-- wp:{name} {given}-->\n{inside}\n<!-- /wp:{name} -->"
