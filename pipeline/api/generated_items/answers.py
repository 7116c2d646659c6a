"""How generated items are answered: one whole, a page of them, and what stands in their way."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

from django.db.models import Exists, OuterRef, Value
from rest_framework.response import Response

from config.core import ids
from config.core.api.etags import strong_tag
from config.core.clock import utc_now
from config.core.database.prepared_queries import Prepared
from config.core.datetimes import as_z, as_z_or_none
from config.core.errors import Detail, Invalid
from pipeline import payloads, publish
from pipeline.generate import retry_rules
from pipeline.models import (
    Asset,
    GeneratedItem,
    GeneratedItemStatus,
    OutletStatus,
    Publication,
    made_of,
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
    """What became of the wish on its way, such as a time that the clocks skip."""
    moved = shift_of(wish.clock) if wish.clock is not None else ""
    return [{"code": "time_moved", "message": moved}] if moved else []


def answered(item: GeneratedItem, status: int) -> Response:
    """The whole item, as every call answers that changed it."""
    shown = serialize_whole(item)
    return Response(shown, status=status, headers={"ETag": item_tag(item, shown)})


def serialize_whole(item: GeneratedItem) -> dict[str, Any]:
    publications, assets = publications_by_item([item.pk]), assets_by_item([item.pk])
    (row,) = retry_rules.with_current_errors(item.workspace, [payloads.row_of(item)])
    return payloads.generated_item(
        row,
        publications=publications.get(item.pk, ()),
        assets=assets.get(item.pk, ()),
        now=utc_now(),
        progress=progress_of([item.pk] if item.status == GeneratedItemStatus.GENERATING else []).get(item.pk),
    )


def progress_of(keys: Sequence[UUID]) -> dict[UUID, tuple[str, int]]:
    """Stage and percent of the runs of these items; nothing is asked where none is being made."""
    if not keys:
        return {}
    rows = GeneratedItem.everywhere.filter(pk__in=keys)
    found = rows.values_list("pk", "generation__stage", "generation__progress")
    return {key: (stage, percent) for key, stage, percent in found}


def item_tag(item: GeneratedItem, shown: Mapping[str, Any]) -> str:
    """A publication's numbers change its version and not the item's; how late and how far it is changes by itself."""
    there = sum(one["version"] for one in shown["publications"])
    late = shown["overdue_seconds"]
    far = shown["progress"]
    is_final = shown["error"] is not None and not shown["error"]["retryable"]
    return strong_tag(
        item.version,
        *([there] if there else []),
        *([late] if late else []),
        *([far["stage"], far["percent"]] if far else []),
        # Whether trying again helps depends on what else has changed.
        *(["final"] if is_final else []),
    )


def alt_texts_of(item: GeneratedItem, given: Sequence[Mapping[str, Any]]) -> dict[UUID, str]:
    """By asset; raises `Invalid` for one that isn't this item's."""
    own = set(Asset.everywhere.filter(item=item, revoked_at=None).values_list("pk", flat=True))
    details = [
        Detail(
            f"assets[{index}].id", "unknown_asset", "This item has no such asset; its `assets` lists them."
        )
        for index, one in enumerate(given)
        if one["id"] not in own
    ]
    if details:
        raise Invalid(*details)
    return {one["id"]: one["alt_text"] for one in given}


def item_rows(
    *,
    workspace: UUID,
    test: bool,
    outlet: UUID | None = None,
    raw_item: UUID | None = None,
    runs: Sequence[UUID] = (),
    **filters: Any,
) -> Any:
    # As `test = false`; Django's `NOT test` keeps SQLite from seeking in the index of the list.
    rows = GeneratedItem.objects.of(workspace).filter(test=Value(test), deleted_at=None)
    rows = rows.filter(**{COLUMNS[name]: value for name, value in filters.items()})
    if raw_item is not None:
        rows = rows.filter(made_of(raw_item, runs=runs))
    if outlet is not None:
        rows = rows.filter(Exists(Publication.everywhere.filter(item=OuterRef("pk"), outlet_id=outlet)))
    return rows


def _page(
    *, after: UUID | int | None, most: int, is_ascending: bool, include: tuple[str, ...], **narrowed: Any
) -> Any:
    rows = item_rows(**narrowed)
    if after is not None:
        rows = rows.filter(id__gt=after) if is_ascending else rows.filter(id__lt=after)
    return _shown(rows.order_by("id" if is_ascending else "-id"), include)[:most]


def items_by_key(rows: Any, keys: Sequence[UUID], *, include: tuple[str, ...]) -> list[Any]:
    """In the order of the keys."""
    found = {row["id"]: row for row in _shown(rows.filter(pk__in=keys), include)}
    return [found[key] for key in keys if key in found]


def _shown(rows: Any, include: tuple[str, ...]) -> Any:
    columns = [name for long in include for name in payloads.GENERATED_ITEM_LONG_FIELDS[long]]
    return rows.values(*payloads.GENERATED_ITEM_LEAN_FIELDS, *columns)


_PAGE: Final[Prepared[dict[str, Any]]] = Prepared(_page, keeps_plan=False)
_PUBLICATIONS: Final[Prepared[dict[str, Any]]] = Prepared(
    lambda keys: (
        Publication.everywhere.filter(item_id__in=keys).order_by("id").values(*payloads.PUBLICATION_FIELDS)
    ),
    keeps_plan=False,
)
_ASSETS: Final[Prepared[dict[str, Any]]] = Prepared(
    lambda keys: (
        Asset.everywhere.filter(item_id__in=keys, revoked_at=None)
        .order_by("position", "id")
        .values(*payloads.ASSET_FIELDS)
    ),
    keeps_plan=False,
)


def item_page(after: UUID | int | None, most: int, **asked: Any) -> list[dict[str, Any]]:
    """The rows of a page of items, one more than it shows."""
    return _PAGE.ask(after=after, most=most, **asked)


def publications_by_item(keys: Sequence[UUID]) -> dict[UUID, list[dict[str, Any]]]:
    return _by_item(_PUBLICATIONS.ask(keys=list(keys)))


def assets_by_item(keys: Sequence[UUID]) -> dict[UUID, list[dict[str, Any]]]:
    return _by_item(_ASSETS.ask(keys=list(keys)))


def _by_item(rows: Iterable[dict[str, Any]]) -> dict[UUID, list[dict[str, Any]]]:
    grouped: dict[UUID, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        grouped[row["item_id"]].append(row)
    return grouped


def serialize_explanation(item: GeneratedItem, found: explanation.Explained) -> dict[str, Any]:
    blockers = [_blocker(one) for one in found.blockers]
    for row, own in found.publications:
        names = {"outlet": ids.encode("out", row.outlet_id), "publication": ids.encode("pub", row.pk)}
        blockers += [_blocker(one) | names for one in own]
    return {"generated_item": ids.encode("gen", item.pk), "status": item.status, "blockers": blockers}


def _blocker(one: publish.Blocker) -> dict[str, Any]:
    call = one.clears
    return {
        "code": one.code,
        "message": one.message,
        "since": as_z_or_none(one.since),
        "until": as_z_or_none(one.until),
        "outlet": None,
        "publication": None,
        "clears": call and {"method": call.method, "path": call.path, "body": call.body},
    }


def serialize_rehearsal(item: GeneratedItem, judged: Sequence[publish.OutletVerdict]) -> dict[str, Any]:
    outlets = []
    for one in judged:
        length = platform_of(one.outlet.platform).length(account_of(one.outlet), one.post)
        receipt = publish.receipt_of(one.post)
        outlets.append(
            {
                "outlet": ids.encode("out", one.outlet.pk),
                "platform": one.outlet.platform,
                "publish_at": as_z(one.due_at),
                "ok": not one.problems and one.outlet.status == OutletStatus.OK,
                "credentials": one.outlet.status,
                "problems": [problem.as_json() for problem in one.problems],
                "length": {"count": length.count, "limit": length.limit, "unit": length.unit},
                **receipt,
                "content": one.post.payload.content,
            }
        )
    return {"dry_run": True, "generated_item": ids.encode("gen", item.pk), "outlets": outlets}
