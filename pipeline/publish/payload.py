"""Builds the post for an outlet: a revision's content with the outlet's overrides laid over it."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from config.core import ids
from config.core.database.prepared_queries import Prepared
from pipeline import resources
from pipeline.media import files, make_film
from pipeline.models import Asset, Attempt, GeneratedItem, Outlet, Publication, Revision
from pipeline.outlets import short_links
from pipeline.platforms.payload_types import Payload, PayloadAsset

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from uuid import UUID

    from django.db.models import QuerySet

    from pipeline.outlets.outlet_client import OutletConnection
    from pipeline.platforms.base import Account, Platform
    from pipeline.platforms.payload_types import Adapted


def read_assets_by_item(items: Iterable[GeneratedItem]) -> dict[UUID, list[Asset]]:
    """Return the assets that are sent with each of these items, in order; an item without any has no entry."""
    assets: defaultdict[UUID, list[Asset]] = defaultdict(list)
    for asset in _sent_assets().filter(item__in=[item.pk for item in items]):
        assets[asset.item_id].append(asset)
    return assets


def read_sent_assets(item: GeneratedItem) -> list[Asset]:
    """Return the assets that are sent with this item, in order."""
    return _SENT_ASSETS_QUERY.ask(item=item.pk)


def _sent_assets() -> QuerySet[Asset]:
    rows = Asset.everywhere.filter(revoked_at=None).exclude(role__in=make_film.SIDE_ROLES)
    return rows.order_by("position", "id")


_SENT_ASSETS_QUERY: Final[Prepared[Asset]] = Prepared(lambda item: _sent_assets().filter(item_id=item))


def payload_of(
    item: GeneratedItem | Revision,
    overrides: Mapping[str, Any],
    parent_item: GeneratedItem | None = None,
    assets: Sequence[Asset] | None = None,
) -> Payload:
    """Return the payload of a revision, or an item's newest content, with one outlet's overrides.

    `parent_item` is the revision's item. `assets` are those of the item, from `read_assets_by_item` if many
    items are handled at once; without them they are read.
    """
    owner = parent_item or item
    assert isinstance(owner, GeneratedItem)  # noqa: S101  a revision comes with its item
    if assets is None:
        assets = read_sent_assets(owner)
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
                url=resources.Asset.serialize(asset)["url"],
                mime_type=asset.mime_type,
                role=asset.role,
                alt_text=asset.alt_text,
                bytes=asset.bytes,
                name=asset.name,
                width=asset.width,
                height=asset.height,
                duration=asset.duration,
                open=partial(files.open_file, asset.path),
            )
            for asset in assets
        ),
        settings=overrides.get("settings", {}),
        link=_link_of(owner),
        is_ai_generated=is_ai_generated(owner),
    )


def is_ai_generated(item: GeneratedItem) -> bool:
    """Return whether a model had part in the item, unlike text taken or drawn from the source alone."""
    return bool(item.generator) and not item.generator.get("offline", False)


def _link_of(item: GeneratedItem) -> str:
    """Return the address of the item's source entry, or an empty string if it has none or it was deleted."""
    raw_item = item.raw_item
    return raw_item.url if raw_item is not None and raw_item.deleted_at is None else ""


def effective_overrides(
    content: GeneratedItem | Revision, outlet: Outlet, own_overrides: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the item's overrides for the outlet, with the publication's own laid over them."""
    return {**content.overrides.get(ids.encode("out", outlet.pk), {}), **own_overrides}


def key_of(row: Publication) -> str:
    """Return the idempotency key of a publication, which is the same for every try.

    A post that was removed and is published again is another publication, with another key.
    """
    return ids.encode("pub", row.pk)


def payload_for(row: Publication) -> Payload:
    """Return the payload of this publication's revision, with its overrides, before it is adapted."""
    content = read_content(row)
    overrides = effective_overrides(content, row.outlet, row.overrides)
    return payload_of(content, overrides, parent_item=row.item)


def post_for(row: Publication, connection: OutletConnection, *, counts_clicks: bool = True) -> Adapted:
    """Return what this publication's outlet is sent, adapted to it.

    `counts_clicks=False` leaves its links direct, because a person may copy them before a short link works.
    """
    return fit_payload(
        payload_for(row), row.outlet, connection.platform, connection.account, counts_clicks=counts_clicks
    )


def keep_short_links(row: Publication) -> None:
    """Store the short links that `post_for` put into the post, in the transaction that commits the call."""
    short_links.store_links(row, payload_for(row))


def post_of_attempt(row: Publication, post: Adapted) -> Adapted:
    """Return what the newest call of this publication sent, even if settings and content have changed since.

    `post` is what would be sent now; it is returned if no call has a receipt.
    """
    attempt = Attempt.everywhere.filter(publication=row, receipt__isnull=False).order_by("-number").first()
    if attempt is None or attempt.receipt is None:
        return post
    receipt = attempt.receipt
    payload = replace(
        post.payload,
        title=receipt["title"],
        body=receipt["body"],
        body_format=receipt.get("body_format", post.payload.body_format),
        settings=receipt["settings"],
    )
    return replace(post, payload=payload, parts=tuple(receipt["parts"]), disclosure=receipt["disclosure"])


def fit_payload(
    payload: Payload, outlet: Outlet, platform: Platform, account: Account, *, counts_clicks: bool = True
) -> Adapted:
    """Return the payload adapted to its outlet, with short links if the outlet counts clicks.

    `counts_clicks=False` leaves the links direct. The platform isn't told that a model took part if the outlet
    doesn't disclose that.
    """
    if not outlet.discloses_ai:
        payload = replace(payload, is_ai_generated=False)
    if counts_clicks:
        payload = short_links.shorten_post(payload, outlet)
    return platform.adapt(account, payload)


def receipt_of(post: Adapted) -> dict[str, Any]:
    """Return the post as JSON that is stored with its attempt."""
    payload = post.payload
    return {
        "title": payload.title,
        "body": payload.body,
        "body_format": payload.body_format,
        "parts": list(post.parts),
        "steps": [{"code": step.code, "message": step.message} for step in post.steps],
        "disclosure": dict(post.disclosure),
        "media": [
            {"url": asset.url, "mime_type": asset.mime_type, "bytes": asset.bytes, "alt_text": asset.alt_text}
            for asset in payload.assets
        ],
        "settings": dict(payload.settings),
    }


def read_content(row: Publication) -> GeneratedItem | Revision:
    """Return the publication's revision, or the item itself if that revision isn't stored.

    The revision is cached on the row, because it never changes.
    """
    cached = vars(row).get("_content")
    if cached is not None and cached.number == row.revision:
        return cached  # type: ignore[no-any-return]  # stored below
    rows = _REVISION_QUERY.ask(item=row.item_id, number=row.revision)
    revision = rows[0] if rows else None
    vars(row)["_content"] = revision
    return revision or row.item


_REVISION_QUERY: Final[Prepared[Revision]] = Prepared(
    lambda item, number: Revision.everywhere.filter(item_id=item, number=number)
)
