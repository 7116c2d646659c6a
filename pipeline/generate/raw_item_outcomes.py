"""Reports the outcome of each engine and variant of a raw item: pending, made, skipped or failed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from config.core.api.row_serializers import row_of
from config.core.ids import encode
from pipeline import resources
from pipeline.generate import recoverable_failures
from pipeline.models import GeneratedItem, GeneratedItemStatus, RawItemStatus
from pipeline.states import ITEMS_IN_MAKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from uuid import UUID

    from accounts.models import Workspace
    from pipeline.models import RawItem

PENDING, MADE, SKIPPED, FAILED = "pending", "made", "skipped", "failed"
COLUMNS: Final = (*resources.RawItem.columns(), "skipped")
"""The columns of a raw item that `serialize_raw_items` needs."""
_RAW_FIELDS: Final = ("id", "engines", "variants", "skipped", "status", "reason", "deleted_at")
_OPEN: Final = frozenset({"queued", "processing", "waiting_quota"})
_FIELDS: Final = (
    "id",
    "raw_item_id",
    "engine_output",
    "variant_index",
    "status",
    "revision",
    "error",
    "deleted_at",
)
_DELETED: Final = {"code": "deleted", "message": "It was deleted before it was generated.", "stage": "push"}
_UNKNOWN: Final = {
    "code": "not_kept",
    "message": "It was left out when this was pushed; an earlier release didn't store the reason.",
    "stage": "push",
}


def read_outcomes(
    workspace: Workspace, rows: Sequence[Mapping[str, Any]]
) -> dict[UUID, list[dict[str, Any]]]:
    """Return the outcomes of raw items of one workspace, by id; `rows` are their columns.

    One statement reads all items. Others follow only if an item failed for good, since the reason may be gone.
    """
    item_rows = GeneratedItem.objects.of(workspace).filter(raw_item__in=[row["id"] for row in rows])
    items = list(item_rows.order_by("id").values(*_FIELDS)) if rows else []
    failed = {item["id"]: item["error"] for item in items if item["status"] == GeneratedItemStatus.FAILED}
    errors = recoverable_failures.current_errors(workspace, failed)
    items_by_raw_item: dict[UUID, list[Mapping[str, Any]]] = {}
    for item in items:
        item["error"] = errors.get(item["id"], item["error"])
        items_by_raw_item.setdefault(item["raw_item_id"], []).append(item)
    return {row["id"]: outcomes_of(row, items_by_raw_item.get(row["id"], ())) for row in rows}


def read_outcomes_of(raw: RawItem) -> list[dict[str, Any]]:
    """Return the outcomes of one raw item, as `read_outcomes` does for many."""
    return read_outcomes(raw.workspace, [row_of(raw)])[raw.pk]


def serialize_raw_item(raw: RawItem) -> dict[str, Any]:
    """Return a raw item as the API and its events show it."""
    return serialize_raw_items(raw.workspace, [row_of(raw)])[0]


def serialize_raw_items(workspace: Workspace, rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return raw items of one workspace as the API shows them; `rows` are their columns."""
    outcomes = read_outcomes(workspace, rows)
    return [
        resources.RawItem.serialize(
            {**row, "reason": current_reason(row["reason"], outcomes[row["id"]])},
            outcomes=outcomes[row["id"]],
        )
        for row in rows
    ]


def current_reasons(workspace: Workspace, raws: Sequence[RawItem]) -> dict[UUID, Any]:
    """Return the current `reason` of raw items of one workspace, by id.

    Nothing is queried unless one of them says that no try helps.
    """
    final_rows = [
        {name: getattr(raw, name) for name in _RAW_FIELDS}
        for raw in raws
        if recoverable_failures.is_final(raw.reason)
    ]
    outcomes = read_outcomes(workspace, final_rows)
    return {
        raw.pk: current_reason(raw.reason, outcomes[raw.pk]) if raw.pk in outcomes else raw.reason
        for raw in raws
    }


def current_reason(
    reason: Mapping[str, Any] | None, outcomes: Sequence[Mapping[str, Any]]
) -> Mapping[str, Any] | None:
    """Return the current reason why a raw item failed: it can be tried again if one of its items can."""
    if recoverable_failures.is_final(reason) and any(
        outcome["outcome"] == FAILED and outcome["retryable"] for outcome in outcomes
    ):
        return {**(reason or {}), "retryable": True, "action": recoverable_failures.TRY_AGAIN}
    return reason


def serialize_new_raw_item(raw: RawItem, items: Iterable[GeneratedItem]) -> dict[str, Any]:
    """Return a raw item that was just planned, from rows in memory; nothing is queried."""
    row = row_of(raw)
    made = [{name: getattr(item, name) for name in _FIELDS} for item in items]
    return resources.RawItem.serialize(row, outcomes=outcomes_of(row, made))


def outcomes_of(row: Mapping[str, Any], items: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return one outcome for each engine and variant asked for, in their order.

    `row` has the raw item's columns, and `items` those of its items, oldest first.
    """
    newest = {(item["engine_output"], item["variant_index"]): item for item in items}
    skipped = {(skip["engine_output"], skip["variant"]): skip for skip in row["skipped"]}
    outcomes = []
    for name in row["engines"]:
        for variant in range(row["variants"]):
            key = (name, variant)
            # A variant that the last plan skipped isn't made, even if an earlier plan made it.
            outcome = (
                _outcome_of_skipped(skipped[key])
                if key in skipped
                else _outcome_of_item(row, newest.get(key))
            )
            outcomes.append({"engine_output": name, "variant": variant, **outcome})
    return outcomes


def _outcome(
    outcome: str,
    *,
    reason: Mapping[str, Any] | None = None,
    retryable: bool | None = None,
    item: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return an outcome as the API shows it; the id of a deleted item is left out."""
    item_id = encode("gen", item["id"]) if item is not None and item["deleted_at"] is None else None
    return {
        "outcome": outcome,
        "reason": None if reason is None else {name: reason.get(name, "") for name in _REASON},
        "retryable": retryable,
        "generated_item": item_id,
    }


_REASON: Final = ("code", "message", "stage")


def _outcome_of_skipped(skipped: Mapping[str, Any]) -> dict[str, Any]:
    return _outcome(SKIPPED, reason={**skipped, "stage": "push"}, retryable=False)


def _outcome_of_item(row: Mapping[str, Any], item: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the outcome for one engine and variant; `item` is the newest that was made for it, if any."""
    if item is None:
        if row["deleted_at"] is None and row["status"] in _OPEN:
            return _outcome(PENDING)
        # The raw item as a whole was skipped; a retry makes it.
        reason = row["reason"] if row["status"] == RawItemStatus.SKIPPED else None
        is_retryable = reason is not None and row["deleted_at"] is None
        return _outcome(SKIPPED, reason=reason or _UNKNOWN, retryable=is_retryable)
    if item["status"] == GeneratedItemStatus.FAILED:
        is_final = recoverable_failures.is_final(item["error"]) or item["deleted_at"] is not None
        return _outcome(FAILED, reason=item["error"] or {}, retryable=not is_final, item=item)
    if item["revision"] or item["status"] not in ITEMS_IN_MAKING:
        return _outcome(MADE, item=item)
    if item["deleted_at"] is not None:
        return _outcome(SKIPPED, reason=_DELETED, retryable=False)
    return _outcome(PENDING, item=item)
