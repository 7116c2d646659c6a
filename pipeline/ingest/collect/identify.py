"""What the entries of one fetch are called: each one's key, and what is there under it already."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from config.core import limits
from pipeline.ingest import push
from pipeline.ingest.dedup_keys import key_of, second_key, twin_of
from pipeline.models import RawItem, RawPrint
from pipeline.text.normalization import content_hash

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime
    from uuid import UUID

    from pipeline.models import Source
    from pipeline.sources.base import Entry


@dataclass(frozen=True)
class Identified:
    """An entry with its names. `second` is None where it identifies nothing: a front page, a shared address."""

    entry: Entry
    content: push.RawContent
    key: str
    second: int | None
    body_hash: str
    by: str
    """By what the key is: `external_id`, `url` or `content`."""


@dataclass(frozen=True)
class There:
    """A raw item that the workspace has already."""

    id: UUID
    key: str
    source_id: UUID
    title: str
    published_at: datetime | None
    content_hash: str
    is_deleted: bool
    is_withdrawn: bool


@dataclass(frozen=True)
class Known:
    by_key: Mapping[str, There]
    by_second: Mapping[int, There]


def content_of(entry: Entry) -> push.RawContent:
    return push.RawContent(
        external_id=(entry.external_id or "")[: limits.EXTERNAL_ID_CHARACTERS],
        url=entry.url[: limits.URL_CHARACTERS],
        title=entry.title,
        body=entry.body,
        body_format=entry.body_format,
        language=entry.language[:35],
        author=entry.author,
        published_at=entry.published_at,
        media=[{"url": one.url, "type": one.type} for one in entry.media[: limits.MEDIA_PER_ITEM]],
        metadata=entry.metadata,
        is_fetched=True,
    )


def identify(source_id: UUID, entries: Sequence[Entry]) -> list[Identified]:
    """Names that hold within one document: an id that several entries share is told apart by address or content."""
    contents = [content_of(entry) for entry in entries]
    hashes = [content_hash(content.title, content.body) for content in contents]
    shared = _shared_ids(contents, hashes)
    found = []
    for entry, content, body_hash in zip(entries, contents, hashes, strict=True):
        external_id = content.external_id
        if external_id in shared:
            external_id = twin_of(external_id, content.url, body_hash)
        key = key_of(source_id, external_id=external_id, url=content.url, body_hash=body_hash)
        second = second_key(source_id, url=content.url, body_hash=body_hash)
        by = "external_id" if external_id else "url" if content.url else "content"
        found.append(
            Identified(entry, replace(content, key=key, body_hash=body_hash), key, second, body_hash, by)
        )
    # An address that leads to several entries is no entry's own.
    keys: defaultdict[int, set[str]] = defaultdict(set)
    for one in found:
        if one.second is not None:
            keys[one.second].add(one.key)
    return [one if len(keys[one.second or 0]) < 2 else replace(one, second=None) for one in found]


def _shared_ids(contents: Iterable[push.RawContent], hashes: Iterable[str]) -> set[str]:
    places = {
        (content.external_id, content.url or body_hash)
        for content, body_hash in zip(contents, hashes, strict=True)
        if content.external_id
    }
    counted = Counter(external_id for external_id, _ in places)
    return {external_id for external_id, count in counted.items() if count > 1}


def find_known(source: Source, found: Sequence[Identified]) -> Known:
    """What of it the workspace has, whichever source brought it; three statements, one where all is known by key."""
    mine = RawItem.everywhere.filter(workspace_id=source.workspace_id, test=source.test)
    by_key = {there.key: there for there in _read(mine.filter(dedup_key__in=[one.key for one in found]))}
    second = {one.second for one in found if one.key not in by_key and one.second is not None}
    if not second:
        return Known(by_key, {})
    prints = dict(
        RawPrint.everywhere.filter(
            workspace_id=source.workspace_id, test=source.test, second_key__in=second
        ).values_list("pk", "second_key")
    )
    rows = _read(mine.filter(pk__in=list(prints))) if prints else []
    return Known(by_key, {prints[there.id]: there for there in rows})


def _read(rows: Iterable[RawItem]) -> list[There]:
    read = rows.values_list(  # type: ignore[attr-defined]  # a queryset
        "id",
        "dedup_key",
        "source_id",
        "title",
        "published_at",
        "content_hash",
        "deleted_at",
        "withdrawn_at",
    )
    return [
        There(
            pk,
            key,
            source_id,
            title,
            published_at,
            body_hash,
            deleted_at is not None,
            withdrawn_at is not None,
        )
        for pk, key, source_id, title, published_at, body_hash, deleted_at, withdrawn_at in read
    ]
