"""Defines content that was pushed or fetched, and builds its raw item and body, with the keys that identify it."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Literal
from urllib.parse import urlsplit

from config.core.ids import uuid7
from config.core.middleware import request_id
from pipeline import limits
from pipeline.engines.base import SourceText
from pipeline.generate.generation_plan import engine_named
from pipeline.media import source_media
from pipeline.models import (
    RawBody,
    RawItem,
    WorkspaceDefaults,
)
from pipeline.text.language_detection import MAX_DETECTION_CHARACTERS, guess_language
from pipeline.text.links import canonical_url
from pipeline.text.plain_text import bare_title, content_hash, seen_text, title_in

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime
    from urllib.parse import SplitResult
    from uuid import UUID

    from accounts.models import Workspace
    from pipeline.models import Source


Outcome = Literal["new", "duplicate", "revised"]


_HTML_TAG: Final = re.compile(
    r"<(?:p|div|br|a|h[1-6]|ul|ol|li|blockquote|article|section|table|img|span|b|i|em|strong)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class RawContent:
    """Pushed or fetched content. `engines`, `variants` and `persona_id` are `None` if the source's values apply."""

    external_id: str = ""
    url: str = ""
    title: str = ""
    body: str = ""
    body_format: str = ""
    language: str = ""
    author: str = ""
    published_at: datetime | None = None
    media: Sequence[Mapping[str, str]] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    engines: Sequence[str] | None = None
    variants: int | None = None
    persona_id: UUID | None = None
    key: str = ""
    """The `dedup_key` if the caller knows the stored one; if empty, it is made of the content."""
    body_hash: str = ""
    """The `content_hash` of title and body if the caller has computed it; else empty."""
    is_fetched: bool = False
    """Whether it is matched by its second key too, because another source may have brought the same page.

    Pushed content is matched by its key only.
    """
    has_second_key: bool = True
    """`False` if other entries of the source share the address, which then identifies nothing."""


@dataclass(frozen=True)
class Skip:
    """The reason why an entry is stored but nothing is made of it."""

    code: str
    message: str


@dataclass(frozen=True)
class ContentToStore:
    """One of several contents that are pushed together."""

    content: RawContent
    skip: Skip | None = None


def format_of(body: str) -> str:
    """Return "html" if the body has tags, else "markdown", for a sender that doesn't name the format."""
    return "html" if _HTML_TAG.search(body) else "markdown"


def build_rows(
    workspace: Workspace, source: Source, content: RawContent, defaults: WorkspaceDefaults, now: datetime
) -> tuple[RawItem, RawBody]:
    """Return the raw item and its first body, neither of them saved.

    Unset fields come from the source, else from the workspace's `defaults`. A transcript that the media names
    is appended to the body. Raises `Invalid` if the body with its transcript is too long.
    """
    transcript = source_media.body_with_transcript(
        workspace.pk, content.media, content.body, content.body_format
    )
    if transcript is not None:
        content = replace(content, body=transcript, body_format="text", body_hash="")
    body_format = content.body_format or format_of(content.body)
    body_hash = content.body_hash or content_hash(content.title, content.body)
    # A fetched entry's title is the source's own; a heading in the page may be the site's name.
    title = content.title or ("" if content.is_fetched else title_in(content.body, body_format))
    persona_id = content.persona_id or source.persona_id or defaults.persona_id
    language = content.language or _guess_content_language(content, body_format)
    engines = content.engines if content.engines is not None else (source.engines or defaults.engines)
    row = RawItem(
        id=uuid7(),
        workspace=workspace,
        test=source.test,
        source=source,
        dedup_key=content.key
        or dedup_key(source.pk, external_id=content.external_id, url=content.url, body_hash=body_hash),
        external_id=content.external_id,
        url=content.url,
        title=title[: limits.TITLE_CHARACTERS],
        language=language,
        language_guessed=bool(language) and not content.language,
        author=content.author[:200],
        published_at=content.published_at,
        media=[dict(file) for file in content.media],
        metadata=dict(content.metadata),
        engines=list(dict.fromkeys(engines)),
        variants=content.variants or source.variants,
        persona_id=persona_id,
        content_hash=body_hash,
        request_id=request_id(),
        created_at=now,
        updated_at=now,
    )
    body = RawBody(
        workspace=workspace,
        raw_item=row,
        number=1,
        title=row.title,
        body=content.body,
        body_format=body_format,
        content_hash=body_hash,
        created_at=now,
    )
    return row, body


def _guess_content_language(content: RawContent, body_format: str) -> str:
    """Return the language guessed of the content's beginning, or an empty string if it can't be guessed.

    The cut may go through a tag, which does no harm.
    """
    beginning = seen_text(content.body[: 4 * MAX_DETECTION_CHARACTERS], body_format)
    return guess_language(f"{content.title}\n{beginning}")


def body_of(row: RawItem) -> RawBody:
    """Return the current body of a raw item; earlier versions stay stored too."""
    body: RawBody = RawBody.everywhere.get(raw_item=row, number=row.content_version)
    return body


def source_text(row: RawItem, body: RawBody) -> SourceText:
    """Return the raw item as the text that engines work on."""
    return SourceText(
        title=bare_title(body.title),
        text=seen_text(body.body, body.body_format),
        url=row.url,
        author=row.author,
        language=row.language,
        published_at=row.published_at,
        material=source_media.material_of(row) if _needs_media(row) else None,
    )


def _needs_media(row: RawItem) -> bool:
    """Return whether the raw item has media and one of its engines uses videos."""
    return bool(row.media) and any("video" in engine_named(name).made_from for name in row.engines)


# --- The keys that an entry is known by ------------------------------------------------------------------------------


def dedup_key(source_id: UUID, *, external_id: str, url: str, body_hash: str) -> str:
    """Return the key by the first known identity: the source's own id, the canonical address, the content."""
    if external_id:
        return f"x:{source_id.hex}:{external_id}"
    if url:
        address = canonical_url(url)
        if len(address) <= limits.EXTERNAL_ID_CHARACTERS:
            return f"u:{address}"
        return f"u:sha256:{content_hash(address, '')}"
    return f"h:{body_hash}"


def second_key_of(source: Source, content: RawContent, row: RawItem) -> int | None:
    """Return the key that identifies content next to its `dedup_key`, or `None` if nothing else does."""
    # Only fetched content is matched by its words, because a client that pushes them under two ids means two items.
    if not content.has_second_key or not (content.url or content.is_fetched):
        return None
    return second_key(source.pk, url=content.url, body_hash=row.content_hash)


def id_of_twin(external_id: str, url: str, body_hash: str) -> str:
    """Return an id for an entry whose `external_id` another entry of the same document has too."""
    twin = f"{external_id}|{url or body_hash}"
    if len(twin) <= limits.EXTERNAL_ID_CHARACTERS:
        return twin
    return "sha256:" + hashlib.sha256(twin.encode(errors="surrogatepass")).hexdigest()


def second_key(source_id: UUID, *, url: str, body_hash: str) -> int | None:
    """Return 64 bits that are equal for the same page in any source, or the same content in this one.

    This key recognizes an entry whose id has changed, or that another source brought, because their dedup keys
    differ. It is `None` for the front page of a host, whose address many entries have, and for an address that
    isn't http(s).
    """
    if not url:
        return _hash_to_int64(f"h:{source_id.hex}:{body_hash}")
    address = canonical_url(url)
    try:
        parts = urlsplit(address)
    except ValueError:
        return None
    if parts.scheme not in {"http", "https"} or _is_front_page(parts):
        return None
    return _hash_to_int64(f"u:{address}")


def _is_front_page(parts: SplitResult) -> bool:
    """Return whether the address is a host's front page."""
    return parts.path in {"", "/"} and not parts.query and not parts.fragment


def _hash_to_int64(text: str) -> int:
    """Return 64 bits of the text's hash, as the signed number that a database column takes."""
    digest = hashlib.sha256(text.encode(errors="surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big", signed=True)


def have_same_title_words(first: str, second: str) -> bool:
    """Return whether two titles have the same words."""
    return plain_title(first) == plain_title(second)


def plain_title(title: str) -> str:
    """Return a title's words in lower case, without punctuation."""
    normalized = unicodedata.normalize("NFKC", title[: limits.TITLE_CHARACTERS]).lower()
    return " ".join(re.findall(r"\w+", normalized))


def are_published_close(first: datetime | None, second: datetime | None) -> bool:
    """Return whether both dates lie within `limits.SAME_WITHIN` of each other, or one of them isn't known."""
    return first is None or second is None or abs(first - second) <= limits.SAME_WITHIN
