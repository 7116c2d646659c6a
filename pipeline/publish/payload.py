"""What an outlet is handed: the words of a revision with the outlet's own laid over them."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from config.core import ids
from config.core.database.prepared_queries import Prepared
from pipeline import payloads
from pipeline.media import files, made_films
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


def assets_of(items: Iterable[GeneratedItem]) -> dict[UUID, list[Asset]]:
    """What goes out with each of these items, in order; of one that has none, nothing."""
    found: defaultdict[UUID, list[Asset]] = defaultdict(list)
    for asset in _sent_assets().filter(item__in=[item.pk for item in items]):
        found[asset.item_id].append(asset)
    return found


def assets_going_out(item: GeneratedItem) -> list[Asset]:
    """The same of one item."""
    return _ASSETS.ask(item=item.pk)


def _sent_assets() -> QuerySet[Asset]:
    rows = Asset.everywhere.filter(revoked_at=None).exclude(role__in=made_films.SIDE_ROLES)
    return rows.order_by("position", "id")


_ASSETS: Final[Prepared[Asset]] = Prepared(lambda item: _sent_assets().filter(item_id=item))


def payload_of(
    item: GeneratedItem | Revision,
    overrides: Mapping[str, Any],
    of: GeneratedItem | None = None,
    assets: Sequence[Asset] | None = None,
) -> Payload:
    """The words of a revision, or an item's newest, with one outlet's overrides laid over them.

    `assets` are those of `assets_of`, where many are judged at once; None: they are read.
    """
    owner = of or item
    assert isinstance(owner, GeneratedItem)  # noqa: S101  a revision comes with its item
    if assets is None:
        assets = assets_going_out(owner)
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
    """A model had its hand in it: what was only taken from the source, or drawn of that, isn't generated."""
    return bool(item.generator) and not item.generator.get("offline", False)


def _link_of(item: GeneratedItem) -> str:
    raw_item = item.raw_item
    return raw_item.url if raw_item is not None and raw_item.deleted_at is None else ""


def effective_overrides(
    words: GeneratedItem | Revision, outlet: Outlet, own: Mapping[str, Any]
) -> dict[str, Any]:
    """The item's overrides for the outlet, with those of the publication itself laid over them."""
    return {**words.overrides.get(ids.encode("out", outlet.pk), {}), **own}


def key_of(row: Publication) -> str:
    """The same for every try of a publication; a publication that was removed and made again is another one."""
    return ids.encode("pub", row.pk)


def post_for(row: Publication, connection: OutletConnection) -> Adapted:
    """What this publication's outlet is sent, fitted for it."""
    words = words_of(row)
    payload = payload_of(words, effective_overrides(words, row.outlet, row.overrides), of=row.item)
    return fit_payload(payload, row.outlet, connection.platform, connection.account)


def straight_post_for(row: Publication, connection: OutletConnection) -> Adapted:
    """The same with the addresses themselves, where a person may take them before a short one leads anywhere."""
    words = words_of(row)
    payload = payload_of(words, effective_overrides(words, row.outlet, row.overrides), of=row.item)
    return fit_payload(payload, row.outlet, connection.platform, connection.account, counts_clicks=False)


def keep_short_links(row: Publication) -> None:
    """In the transaction that commits the call: what `post_for` linked to leads on from now on."""
    words = words_of(row)
    short_links.store_links(
        row, payload_of(words, effective_overrides(words, row.outlet, row.overrides), of=row.item)
    )


def post_of_attempt(row: Publication, post: Adapted) -> Adapted:
    """What the newest call of this publication handed over, whatever became of settings and content since.

    `post` is what would be handed over now; it stands where there was no call.
    """
    made = Attempt.everywhere.filter(publication=row, receipt__isnull=False).order_by("-number").first()
    if made is None or made.receipt is None:
        return post
    kept = made.receipt
    payload = replace(
        post.payload,
        title=kept["title"],
        body=kept["body"],
        body_format=kept.get("body_format", post.payload.body_format),
        settings=kept["settings"],
    )
    return replace(post, payload=payload, parts=tuple(kept["parts"]), disclosure=kept["disclosure"])


def fit_payload(
    payload: Payload, outlet: Outlet, platform: Platform, account: Account, *, counts_clicks: bool = True
) -> Adapted:
    """A payload as its outlet gets it; where the outlet doesn't tell of generated content, the platform isn't told."""
    if not outlet.discloses_ai:
        payload = replace(payload, is_ai_generated=False)
    if counts_clicks:
        payload = short_links.in_post(payload, outlet)
    return platform.adapt(account, payload)


def receipt_of(post: Adapted) -> dict[str, Any]:
    """What is handed to a platform, as JSON, to be kept beside the attempt."""
    payload = post.payload
    return {
        "title": payload.title,
        "body": payload.body,
        "body_format": payload.body_format,
        "parts": list(post.parts),
        "steps": [{"code": step.code, "message": step.message} for step in post.steps],
        "disclosure": dict(post.disclosure),
        "media": [
            {"url": one.url, "mime_type": one.mime_type, "bytes": one.bytes, "alt_text": one.alt_text}
            for one in payload.assets
        ],
        "settings": dict(payload.settings),
    }


def words_of(row: Publication) -> GeneratedItem | Revision:
    """The revision that is to be sent, or was; what a task has read once stays, for a revision never changes."""
    kept = vars(row).get("_words")
    if kept is not None and kept.number == row.revision:
        return kept  # type: ignore[no-any-return]  # it was put there below
    rows = _REVISION.ask(item=row.item_id, number=row.revision)
    found = rows[0] if rows else None
    vars(row)["_words"] = found
    return found or row.item


_REVISION: Final[Prepared[Revision]] = Prepared(
    lambda item, number: Revision.everywhere.filter(item_id=item, number=number)
)
