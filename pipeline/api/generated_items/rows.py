"""Reads the rows of generated items, and those of their publications, assets and runs."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

from django.db.models import Exists, OuterRef, Value

from config.core.api.query_params import filter_rows
from config.core.database.prepared_queries import Prepared
from config.core.errors import Detail, Invalid
from pipeline import resources
from pipeline.api.generated_items.filters import FILTERS
from pipeline.models import Asset, GeneratedItem, Publication, items_made_from

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from uuid import UUID

    from django.db.models import QuerySet


def validate_alt_texts(item: GeneratedItem, changes: Sequence[Mapping[str, Any]]) -> dict[UUID, str]:
    """Return the alternative texts by asset. Raises `Invalid` if the item has no such asset."""
    own_assets = set(Asset.everywhere.filter(item=item, revoked_at=None).values_list("pk", flat=True))
    details = [
        Detail(
            f"assets[{index}].id", "unknown_asset", "This item has no such asset; its `assets` lists them."
        )
        for index, change in enumerate(changes)
        if change["id"] not in own_assets
    ]
    if details:
        raise Invalid(*details)
    return {change["id"]: change["alt_text"] for change in changes}


def filter_items(
    *,
    workspace: UUID,
    test: bool,
    outlet: UUID | None = None,
    raw_item: UUID | None = None,
    runs: Sequence[UUID] = (),
    **filters: Any,
) -> QuerySet[Any]:
    """Return the items of the workspace that match the filters, which are values of `FILTERS`.

    `runs` are the runs that were made from `raw_item` together with others.
    """
    # Value() gives `test = false`; Django's `NOT test` would keep SQLite from using the index of the list.
    rows: QuerySet[Any] = GeneratedItem.objects.of(workspace).filter(test=Value(test), deleted_at=None)
    rows = filter_rows(rows, filters, FILTERS)
    if raw_item is not None:
        rows = rows.filter(items_made_from(raw_item, runs=runs))
    if outlet is not None:
        rows = rows.filter(Exists(Publication.everywhere.filter(item=OuterRef("pk"), outlet_id=outlet)))
    return rows


def _query_page(
    *, after: UUID | int | None, most: int, is_ascending: bool, include: tuple[str, ...], **conditions: Any
) -> QuerySet[Any]:
    """Return the query of a page: at most `most` rows that come after the key `after`."""
    rows = filter_items(**conditions)
    if after is not None:
        rows = rows.filter(id__gt=after) if is_ascending else rows.filter(id__lt=after)
    return _select_values(rows.order_by("id" if is_ascending else "-id"), include)[:most]


def items_by_key(rows: QuerySet[Any], keys: Sequence[UUID], *, include: tuple[str, ...]) -> list[Any]:
    """Return those of the rows that have these keys, in the order of the keys."""
    rows_by_key = {row["id"]: row for row in _select_values(rows.filter(pk__in=keys), include)}
    return [rows_by_key[key] for key in keys if key in rows_by_key]


def _select_values(rows: QuerySet[Any], include: tuple[str, ...]) -> QuerySet[Any, Any]:
    """Return the rows with the lean columns and those of the included long fields."""
    return rows.values(*resources.GeneratedItem.columns(include))


# The best plan of a list depends on the values of its filters.
_PAGE_QUERY: Final[Prepared[dict[str, Any]]] = Prepared(_query_page, keeps_plan=False)
# Each number of items is a separate statement: kept, their plans would push out the others.
_PUBLICATIONS_QUERY: Final[Prepared[dict[str, Any]]] = Prepared(
    lambda keys: (
        Publication.everywhere.filter(item_id__in=keys)
        .order_by("id")
        .values(*resources.Publication.columns())
    ),
    keeps_plan=False,
)
_ASSETS_QUERY: Final[Prepared[dict[str, Any]]] = Prepared(
    lambda keys: (
        Asset.everywhere.filter(item_id__in=keys, revoked_at=None)
        .order_by("position", "id")
        .values("item_id", *resources.Asset.columns())
    ),
    keeps_plan=False,
)


def read_item_page(after: UUID | int | None, max_rows: int, **conditions: Any) -> list[dict[str, Any]]:
    """Return at most `max_rows` rows that come after the key `after`; `conditions` are of `filter_items`."""
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


def read_progress(keys: Sequence[UUID]) -> dict[UUID, tuple[str, int]]:
    """Return the stage and percentage of these items' runs, by item; make no query if there are no items."""
    if not keys:
        return {}
    rows = GeneratedItem.everywhere.filter(pk__in=keys)
    progress = rows.values_list("pk", "generation__stage", "generation__progress")
    return {key: (stage, percent) for key, stage, percent in progress}
