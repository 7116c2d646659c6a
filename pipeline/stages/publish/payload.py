"""What an outlet is handed: the words of a revision with the outlet's own laid over them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from config.ground import ids
from pipeline import payloads
from pipeline.models import Asset, GeneratedItem, Outlet, Publication, Revision
from pipeline.platforms.base import Payload, PayloadAsset

if TYPE_CHECKING:
    from collections.abc import Mapping


def payload_of(
    item: GeneratedItem | Revision, overrides: Mapping[str, Any], of: GeneratedItem | None = None
) -> Payload:
    """The words of a revision, or an item's newest, with one outlet's overrides laid over them."""
    owner = of or item
    assert isinstance(owner, GeneratedItem)  # noqa: S101  a revision comes with its item
    assets = Asset.everywhere.filter(item=owner, revoked_at=None).order_by("position", "id")
    return Payload(
        item=ids.encode("gen", owner.pk),
        revision=item.number if isinstance(item, Revision) else item.revision,
        bucket=owner.bucket,  # type: ignore[arg-type]
        title=overrides.get("title", item.title),
        body=overrides.get("body", item.body),
        body_format=item.body_format,
        language=owner.language,
        content=item.content,
        assets=tuple(
            PayloadAsset(
                url=payloads.asset(payloads.row_of(asset))["url"],
                mime_type=asset.mime_type,
                role=asset.role,
                alt_text=asset.alt_text,
                bytes=asset.bytes,
            )
            for asset in assets
        ),
        settings=overrides.get("settings", {}),
    )


def effective_overrides(
    words: GeneratedItem | Revision, outlet: Outlet, own: Mapping[str, Any]
) -> dict[str, Any]:
    """The item's overrides for the outlet, with those of the publication itself laid over them."""
    return {**words.overrides.get(ids.encode("out", outlet.pk), {}), **own}


def key_of(row: Publication) -> str:
    """The same for every try of a publication; a publication that was removed and made again is another one."""
    return ids.encode("pub", row.pk)


def payload_for(row: Publication) -> Payload:
    words = words_of(row)
    return payload_of(words, effective_overrides(words, row.outlet, row.overrides), of=row.item)


def words_of(row: Publication) -> GeneratedItem | Revision:
    """The revision that is to be sent, or was."""
    return Revision.everywhere.filter(item=row.item, number=row.revision).first() or row.item
