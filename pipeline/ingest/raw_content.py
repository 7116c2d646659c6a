"""Defines content that was pushed or fetched, and makes the raw item and body of it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, Literal

from config.core.ids import uuid7
from config.core.middleware import request_id
from pipeline import limits
from pipeline.engines.base import SourceText
from pipeline.generate.eligible_formats import engine_named
from pipeline.ingest.raw_item_identity import dedup_key, second_key
from pipeline.media import source_media
from pipeline.models import (
    RawBody,
    RawItem,
    WorkspaceDefaults,
)
from pipeline.text.language_detection import MAX_DETECTION_CHARACTERS, guess_language
from pipeline.text.plain_text import bare_title, content_hash, seen_text, title_in

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime
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
    """Pushed or fetched content.

    `engines`, `variants` and `persona_id` are `None` where the source's values apply.
    """

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
    """The `dedup_key` where the caller knows the stored one; empty: it is made of the content."""
    body_hash: str = ""
    """The `content_hash` of title and body where the caller has computed it; else empty."""
    is_fetched: bool = False
    """Whether it is matched by its second key too: another source may have brought the same page.

    Pushed content is matched by its key only.
    """
    has_second_key: bool = True
    """False where other entries of the source share the address, so that it identifies nothing."""


@dataclass(frozen=True)
class Skip:
    """The reason why an entry is kept but not worked on."""

    code: str
    message: str


@dataclass(frozen=True)
class Wanted:
    """One of several contents that are pushed together."""

    content: RawContent
    skip: Skip | None = None


def format_of(body: str) -> str:
    """Return "html" where the body has tags, else "markdown"; for a sender that doesn't name the format."""
    return "html" if _HTML_TAG.search(body) else "markdown"


def rows_of(
    workspace: Workspace, source: Source, content: RawContent, defaults: WorkspaceDefaults, now: datetime
) -> tuple[RawItem, RawBody]:
    """Return the raw item and its first body, neither saved; unset fields come from the source."""
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
        dedup_key=dedup_key_of(source.pk, content, body_hash),
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
    """Return the language guessed of the content's beginning; empty where it can't be told.

    Markup that is cut off there does no harm.
    """
    beginning = seen_text(content.body[: 4 * MAX_DETECTION_CHARACTERS], body_format)
    return guess_language(f"{content.title}\n{beginning}")


def dedup_key_of(source_id: UUID, content: RawContent, body_hash: str) -> str:
    """Return the key that the content is known by: the source's own id, else the address, else the content.

    The address is canonical.
    """
    return content.key or dedup_key(
        source_id, external_id=content.external_id, url=content.url, body_hash=body_hash
    )


def second_key_of(source: Source, content: RawContent, row: RawItem) -> int | None:
    """Return the key that matches it beside its `dedup_key`; `None` where nothing else identifies it."""
    # Only fetched content is matched by its words: a client pushing them under two ids means two items.
    if not content.has_second_key or not (content.url or content.is_fetched):
        return None
    return second_key(source.pk, url=content.url, body_hash=row.content_hash)


def body_of(row: RawItem) -> RawBody:
    """Return the current body of a raw item; earlier versions stay stored beside it."""
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
    """Return whether it has files and one of its engines shows videos."""
    return bool(row.media) and any("video" in engine_named(name).made_from for name in row.engines)
