"""Serializes generated items, with their entity tags, and what blocks their publishing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rest_framework.response import Response

from config.core import ids
from config.core.api.etags import strong_tag
from config.core.api.row_serializers import row_of
from config.core.clock import utc_now
from config.core.datetimes import format_utc
from pipeline import publish, resources
from pipeline.api.generated_items.rows import assets_by_item, publications_by_item, read_progress
from pipeline.generate import recoverable_failures
from pipeline.models import (
    GeneratedItem,
    GeneratedItemStatus,
    OutletStatus,
)
from pipeline.outlets.outlet_client import account_of, platform_of
from pipeline.text.local_time import shift_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipeline.publish import PublishWish
    from pipeline.review import explanation


def notes_on(wish: PublishWish) -> list[dict[str, str]]:
    """Return a note if the clocks skip the requested local time, so that it was moved; empty otherwise."""
    message = shift_of(wish.clock) if wish.clock is not None else ""
    return [{"code": "time_moved", "message": message}] if message else []


def item_response(item: GeneratedItem, status: int) -> Response:
    """Return a response with the whole item, which answers every call that changes it."""
    body = serialize_whole(item)
    return Response(body, status=status, headers={"ETag": item_tag(item, body)})


def serialize_whole(item: GeneratedItem) -> dict[str, Any]:
    """Return the whole item as the API shows it."""
    publications, assets = publications_by_item([item.pk]), assets_by_item([item.pk])
    (row,) = recoverable_failures.with_current_errors(item.workspace, [row_of(item)])
    progress = read_progress([item.pk] if item.status == GeneratedItemStatus.GENERATING else [])
    return resources.GeneratedItem.serialize(
        row,
        publications=publications.get(item.pk, ()),
        assets=assets.get(item.pk, ()),
        requires_approval=item.workspace.requires_approval,
        now=utc_now(),
        progress=progress.get(item.pk),
    )


def item_tag(item: GeneratedItem, body: Mapping[str, Any]) -> str:
    """Return the entity tag of an item as `body` shows it.

    Its version isn't enough: publications, the delay, a run's progress, whether a retry can help, and the
    workspace's setting of approvals change without it.
    """
    publication_versions = sum(publication["version"] for publication in body["publications"])
    overdue_seconds = body["overdue_seconds"]
    progress = body["progress"]
    is_final = body["error"] is not None and not body["error"]["retryable"]
    return strong_tag(
        item.version,
        *([publication_versions] if publication_versions else []),
        *([overdue_seconds] if overdue_seconds else []),
        *([progress["stage"], progress["percent"]] if progress else []),
        *(["final"] if is_final else []),
        *(["approval"] if body["approval"]["required"] else []),
    )


def serialize_explanation(item: GeneratedItem, explained: explanation.Explained) -> dict[str, Any]:
    """Return what blocks the item's publishing, for the item and for each publication."""
    blockers = [resources.Blocker.serialize(blocker) for blocker in explained.blockers]
    for row, own_blockers in explained.publications:
        blockers += [
            resources.Blocker.serialize(blocker, outlet=row.outlet_id, publication=row.pk)
            for blocker in own_blockers
        ]
    return {"generated_item": ids.encode("gen", item.pk), "status": item.status, "blockers": blockers}


def serialize_rehearsal(item: GeneratedItem, verdicts: Sequence[publish.OutletVerdict]) -> dict[str, Any]:
    """Return the post that each outlet would get, with the outlet's problems."""
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
                "length": resources.Length.serialize(length),
                **receipt,
                "content": verdict.post.payload.content,
            }
        )
    return {"dry_run": True, "generated_item": ids.encode("gen", item.pk), "outlets": outlets}
