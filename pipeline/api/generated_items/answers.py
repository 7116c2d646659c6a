"""Serializes generated items for the API: a whole item, a page of items, and what blocks their publishing."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

from django.db.models import Exists, OuterRef, Value
from rest_framework.response import Response

from config.core import ids
from config.core.api.etags import strong_tag
from config.core.clock import utc_now
from config.core.database.prepared_queries import Prepared
from config.core.datetimes import format_utc, format_utc_or_none
from config.core.errors import Detail, Invalid
from pipeline import payloads, publish
from pipeline.generate import recoverable_failures
from pipeline.models import (
    Asset,
    GeneratedItem,
    GeneratedItemStatus,
    OutletStatus,
    Publication,
    items_made_from,
)
from pipeline.outlets.outlet_client import account_of, platform_of
from pipeline.text.local_time import shift_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from uuid import UUID

    from pipeline.publish import PublishWish
    from pipeline.review import explanation


COLUMNS: Final[Mapping[str, str]] = {
    "source": "source_id",
    "status": "status__in",
    "bucket": "bucket",
    "engine_output": "engine_output",
    "persona": "persona_id",
    "variant_group": "variant_group",
    "created_after": "created_at__gte",
    "created_before": "created_at__lt",
    "updated_after": "updated_at__gte",
    "updated_before": "updated_at__lt",
    "publish_after": "publish_at__gte",
    "publish_before": "publish_at__lt",
}


def notes_on(wish: PublishWish) -> list[dict[str, str]]:
    """Return notes on the request to publish, such as that its local time was skipped by the clocks."""
    message = shift_of(wish.clock) if wish.clock is not None else ""
    return [{"code": "time_moved", "message": message}] if message else []


def answered(item: GeneratedItem, status: int) -> Response:
    """Return a response with the whole item, as every call does that changed it."""
    body = serialize_whole(item)
    return Response(body, status=status, headers={"ETag": item_tag(item, body)})


def serialize_whole(item: GeneratedItem) -> dict[str, Any]:
    """Return the whole item as the API shows it."""
    publications, assets = publications_by_item([item.pk]), assets_by_item([item.pk])
    (row,) = recoverable_failures.with_current_errors(item.workspace, [payloads.row_of(item)])
    return payloads.generated_item(
        row,
        publications=publications.get(item.pk, ()),
        assets=assets.get(item.pk, ()),
        requires_approval=item.workspace.requires_approval,
        now=utc_now(),
        progress=progress_of([item.pk] if item.status == GeneratedItemStatus.GENERATING else []).get(item.pk),
    )


def progress_of(keys: Sequence[UUID]) -> dict[UUID, tuple[str, int]]:
    """Return stage and percentage of these items' runs; makes no query without items."""
    if not keys:
        return {}
    rows = GeneratedItem.everywhere.filter(pk__in=keys)
    progress = rows.values_list("pk", "generation__stage", "generation__progress")
    return {key: (stage, percent) for key, stage, percent in progress}


def item_tag(item: GeneratedItem, body: Mapping[str, Any]) -> str:
    """Return the tag of an item, with what changes without its version: publications, delay, progress."""
    publication_versions = sum(publication["version"] for publication in body["publications"])
    overdue_seconds = body["overdue_seconds"]
    progress = body["progress"]
    is_final = body["error"] is not None and not body["error"]["retryable"]
    return strong_tag(
        item.version,
        *([publication_versions] if publication_versions else []),
        *([overdue_seconds] if overdue_seconds else []),
        *([progress["stage"], progress["percent"]] if progress else []),
        # Whether a retry can help may change without the item's version.
        *(["final"] if is_final else []),
        # So may the workspace's setting.
        *(["approval"] if body["approval"]["required"] else []),
    )


def alt_texts_of(item: GeneratedItem, given: Sequence[Mapping[str, Any]]) -> dict[UUID, str]:
    """Return the alternative texts by asset. Raises `Invalid` for an asset that isn't this item's."""
    own_assets = set(Asset.everywhere.filter(item=item, revoked_at=None).values_list("pk", flat=True))
    details = [
        Detail(
            f"assets[{index}].id", "unknown_asset", "This item has no such asset; its `assets` lists them."
        )
        for index, change in enumerate(given)
        if change["id"] not in own_assets
    ]
    if details:
        raise Invalid(*details)
    return {change["id"]: change["alt_text"] for change in given}


def item_rows(
    *,
    workspace: UUID,
    test: bool,
    outlet: UUID | None = None,
    raw_item: UUID | None = None,
    runs: Sequence[UUID] = (),
    **filters: Any,
) -> Any:
    """Return the items that the filters leave."""
    # Value() gives `test = false`; Django's `NOT test` would keep SQLite from using the index of the list.
    rows = GeneratedItem.objects.of(workspace).filter(test=Value(test), deleted_at=None)
    rows = rows.filter(**{COLUMNS[name]: value for name, value in filters.items()})
    if raw_item is not None:
        rows = rows.filter(items_made_from(raw_item, runs=runs))
    if outlet is not None:
        rows = rows.filter(Exists(Publication.everywhere.filter(item=OuterRef("pk"), outlet_id=outlet)))
    return rows


def _query_page(
    *, after: UUID | int | None, most: int, is_ascending: bool, include: tuple[str, ...], **narrowed: Any
) -> Any:
    rows = item_rows(**narrowed)
    if after is not None:
        rows = rows.filter(id__gt=after) if is_ascending else rows.filter(id__lt=after)
    return _select_values(rows.order_by("id" if is_ascending else "-id"), include)[:most]


def items_by_key(rows: Any, keys: Sequence[UUID], *, include: tuple[str, ...]) -> list[Any]:
    """Return the rows of these items, in the order of the keys."""
    rows_by_key = {row["id"]: row for row in _select_values(rows.filter(pk__in=keys), include)}
    return [rows_by_key[key] for key in keys if key in rows_by_key]


def _select_values(rows: Any, include: tuple[str, ...]) -> Any:
    """Return the rows with the lean columns and those of the included long fields."""
    columns = [name for field in include for name in payloads.GENERATED_ITEM_LONG_FIELDS[field]]
    return rows.values(*payloads.GENERATED_ITEM_LEAN_FIELDS, *columns)


_PAGE_QUERY: Final[Prepared[dict[str, Any]]] = Prepared(_query_page, keeps_plan=False)
_PUBLICATIONS_QUERY: Final[Prepared[dict[str, Any]]] = Prepared(
    lambda keys: (
        Publication.everywhere.filter(item_id__in=keys).order_by("id").values(*payloads.PUBLICATION_FIELDS)
    ),
    keeps_plan=False,
)
_ASSETS_QUERY: Final[Prepared[dict[str, Any]]] = Prepared(
    lambda keys: (
        Asset.everywhere.filter(item_id__in=keys, revoked_at=None)
        .order_by("position", "id")
        .values(*payloads.ASSET_FIELDS)
    ),
    keeps_plan=False,
)


def item_page(after: UUID | int | None, max_rows: int, **conditions: Any) -> list[dict[str, Any]]:
    """Return the rows of a page of items, at most `max_rows`."""
    return _PAGE_QUERY.ask(after=after, most=max_rows, **conditions)


def publications_by_item(keys: Sequence[UUID]) -> dict[UUID, list[dict[str, Any]]]:
    return _group_by_item(_PUBLICATIONS_QUERY.ask(keys=list(keys)))


def assets_by_item(keys: Sequence[UUID]) -> dict[UUID, list[dict[str, Any]]]:
    return _group_by_item(_ASSETS_QUERY.ask(keys=list(keys)))


def _group_by_item(rows: Iterable[dict[str, Any]]) -> dict[UUID, list[dict[str, Any]]]:
    grouped: dict[UUID, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        grouped[row["item_id"]].append(row)
    return grouped


def serialize_explanation(item: GeneratedItem, explained: explanation.Explained) -> dict[str, Any]:
    """Return what blocks the item's publishing, for the item and for each publication."""
    blockers = [_serialize_blocker(blocker) for blocker in explained.blockers]
    for row, own_blockers in explained.publications:
        names = {"outlet": ids.encode("out", row.outlet_id), "publication": ids.encode("pub", row.pk)}
        blockers += [_serialize_blocker(blocker) | names for blocker in own_blockers]
    return {"generated_item": ids.encode("gen", item.pk), "status": item.status, "blockers": blockers}


def _serialize_blocker(blocker: publish.Blocker) -> dict[str, Any]:
    call = blocker.clears
    return {
        "code": blocker.code,
        "message": blocker.message,
        "since": format_utc_or_none(blocker.since),
        "until": format_utc_or_none(blocker.until),
        "outlet": None,
        "publication": None,
        "clears": call and {"method": call.method, "path": call.path, "body": call.body},
    }


def serialize_rehearsal(item: GeneratedItem, verdicts: Sequence[publish.OutletVerdict]) -> dict[str, Any]:
    """Return what publishing would send to each outlet, and the problems."""
    outlets = []
    for verdict in verdicts:
        length = platform_of(verdict.outlet.platform).length(account_of(verdict.outlet), verdict.post)
        receipt = publish.receipt_of(verdict.post)
        outlets.append(
            {
                "outlet": ids.encode("out", verdict.outlet.pk),
                "platform": verdict.outlet.platform,
                "publish_at": format_utc(verdict.due_at),
                "ok": not verdict.problems and verdict.outlet.status == OutletStatus.OK,
                "credentials": verdict.outlet.status,
                "problems": [problem.as_json() for problem in verdict.problems],
                "length": {"count": length.count, "limit": length.limit, "unit": length.unit},
                **receipt,
                "content": verdict.post.payload.content,
            }
        )
    return {"dry_run": True, "generated_item": ids.encode("gen", item.pk), "outlets": outlets}
