"""Reviewers' decisions on one item or many, each with what an undo needs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from django.db import transaction

from config.core import states
from config.core.datetimes import format_utc
from config.core.errors import AppError, Conflict
from config.core.ids import encode
from pipeline import publish
from pipeline.models import GeneratedItem, GeneratedItemStatus, Publication, PublicationStatus
from pipeline.models.generated_item import NO_APPROVAL
from pipeline.review import asset_order, decisions, regenerate, variants
from pipeline.review.rerender import update_locked

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime
    from uuid import UUID

    from accounts.models import Workspace

APPROVE, REJECT, PUBLISH, CHOOSE, ANOTHER = "approve", "reject", "publish", "choose", "another"
EDIT: Final = "edit"
CLEAR: Final = "clear"
"""The act of `schedule.recovery`: what failed or is late is retried, rescheduled or cancelled."""
AT_ONCE: Final = 100
"""The most items that one call decides on; the others are returned with an error."""

Former = dict[str, Any]
"""What `review.undo.undo` needs, as JSON: the act, the version after it, and the state before it."""


@dataclass(frozen=True)
class BulkReviewInput:
    """Who acts and when, with the reason, where and when to publish, or the hint for a variant."""

    workspace: Workspace
    by: str
    now: datetime
    reason: str = ""
    wish: publish.PublishWish = field(default_factory=publish.PublishWish)
    hint: str = ""
    shown: Mapping[UUID, int] = field(default_factory=dict)
    """The versions of the other variants that the person saw."""


@dataclass(frozen=True)
class Decided:
    """One item and the outcome: `former` is what undoes it, or `error` says why nothing changed."""

    item: GeneratedItem
    former: Former | None = None
    error: AppError | None = None


def decide(act: str, looked_at: Sequence[tuple[GeneratedItem, int]], given: BulkReviewInput) -> list[Decided]:
    """Decide on each item by itself, at the version seen: a changed one doesn't stop the others.

    The items come with their workspace. Of several variants of one group only the first is published. Items
    beyond `AT_ONCE` stay as they were, with that as their error.
    """
    outcomes: list[Decided] = []
    published_groups: set[UUID] = set()
    for item, version in looked_at[:AT_ONCE]:
        try:
            if act == PUBLISH and item.variant_group in published_groups:
                message = "Another variant of it was chosen in the same request. A group is published once."
                raise Conflict.because(code="superseded", message=message)
            with transaction.atomic():
                outcomes.append(_ACT_FUNCTIONS[act](item, version, given))
            published_groups.add(item.variant_group)
        except AppError as error:
            outcomes.append(Decided(item, error=error))
    return outcomes + [Decided(item, error=_too_many()) for item, _version in looked_at[AT_ONCE:]]


def _too_many() -> Conflict:
    message = (
        f"At most {AT_ONCE} items are decided on at once. The others are unchanged; decide on them again."
    )
    return Conflict.because(code="too_many", message=message, field="items")


def edit(
    item: GeneratedItem,
    changes: Mapping[str, Any],
    order: Sequence[UUID] | None,
    *,
    by: str,
    now: datetime,
    expected_version: int,
) -> Decided:
    """Change text, alt texts and the order of pictures together; `order` is None to keep it.

    Raises what `decisions.edit` and `asset_order.arrange` do.
    """
    with transaction.atomic():
        former: Former = {
            "act": EDIT,
            "revision": item.revision,
            "alt_texts": {},
            "order": None,
            **approval_of(item),
        }
        if order is not None:
            former["order"] = [key.hex for key in asset_order.order_of(item)]
            item = asset_order.arrange(item, order, now=now, expected_version=expected_version)
            expected_version = item.version
        if changes:
            former["alt_texts"] = asset_order.alt_texts_of(item, changes.get("alt_texts", {}))
            item = decisions.edit(item, changes, by=by, now=now, expected_version=expected_version)
    return Decided(item, {**former, "version": item.version})


def unschedule(item: GeneratedItem, *, now: datetime, expected_version: int | None) -> Decided:
    """Cancel every publication, and with them the approval that publishing itself was.

    Raises what `publish.cancel` does.
    """
    with transaction.atomic():
        snapshots = {
            name: snapshot
            for name, snapshot in publish.take_snapshot(item).items()
            if snapshot["status"] == PublicationStatus.SCHEDULED
        }
        approval = approval_of(item)
        row = publish.cancel(item, now=now, expected_version=expected_version)
        publications = Publication.everywhere.filter(item=row)
        if (
            row.status == GeneratedItemStatus.READY
            and row.is_approved
            and publications.filter(created_at=row.approved_at).exists()
        ):
            update_locked(row, now, **NO_APPROVAL)
    former = {"act": CLEAR, "version": row.version, "stood": snapshots, "is_cancelled": True, **approval}
    return Decided(row, former)


def _approve_item(item: GeneratedItem, version: int, review: BulkReviewInput) -> Decided:
    """Approve the item; with other variants `shown` it is also chosen, and the waiting ones rejected."""
    others: list[GeneratedItem] = []
    if review.shown:
        others = variants.choose(item, by=review.by, now=review.now, expected_versions=review.shown)
    row = decisions.approve(item, by=review.by, now=review.now, expected_version=version)
    return Decided(
        row, {"act": APPROVE, "version": row.version, **approval_of(item), **_describe_rejected(others)}
    )


def _reject_item(item: GeneratedItem, version: int, review: BulkReviewInput) -> Decided:
    row = decisions.reject(item, reason=review.reason, by=review.by, now=review.now, expected_version=version)
    return Decided(row, {"act": REJECT, "version": row.version})


def _publish_item(item: GeneratedItem, version: int, review: BulkReviewInput) -> Decided:
    """Publish the item; snapshots of scheduled or failed publications are kept for the undo."""
    snapshots = publish.take_snapshot(item)
    row, publications = publish.request(
        item, review.wish, by=review.by, now=review.now, expected_version=version
    )
    rejected_siblings = GeneratedItem.everywhere.filter(
        variant_group=row.variant_group,
        status=GeneratedItemStatus.REJECTED,
        rejection__at=format_utc(review.now),
    ).values_list("pk", flat=True)
    names = [encode("pub", publication.pk) for publication in publications]
    former = {
        "act": PUBLISH,
        "version": row.version,
        "made": [name for name in names if name not in snapshots],
        "stood": {name: snapshots[name] for name in names if name in snapshots},
        "aside": [key.hex for key in rejected_siblings],
        "at": format_utc(review.now),
        **approval_of(item),
    }
    return Decided(row, former)


def _choose_variant(item: GeneratedItem, version: int, review: BulkReviewInput) -> Decided:
    expected = {**review.shown, item.pk: version}
    others = variants.choose(item, by=review.by, now=review.now, expected_versions=expected)
    return Decided(item, {"act": CHOOSE, **_describe_rejected(others)})


def _regenerate(item: GeneratedItem, version: int, review: BulkReviewInput) -> Decided:
    """Request a further variant, which is the item returned and which the undo erases."""
    states.refuse_other_version(item.version, version)
    variant = regenerate.regenerate(item, workspace=review.workspace, now=review.now, hint=review.hint)
    return Decided(variant, {"act": ANOTHER, "outlets": variant.outlets})


def _describe_rejected(others: Sequence[GeneratedItem]) -> Former:
    """Return the siblings that a choice rejected, and their rejection's time, as the undo needs them."""
    at = str((others[0].rejection or {}).get("at", "")) if others else ""
    return {"aside": [sibling.pk.hex for sibling in others], "at": at}


def approval_of(item: GeneratedItem) -> Former:
    """Return the item's approval, hold and flag.

    The decision names its version, so they are those before the act.
    """
    return {**item.approval_state(), "held": item.held, "flagged": item.flagged}


_ACT_FUNCTIONS: Final[Mapping[str, Callable[..., Decided]]] = {
    APPROVE: _approve_item,
    REJECT: _reject_item,
    PUBLISH: _publish_item,
    CHOOSE: _choose_variant,
    ANOTHER: _regenerate,
}
ACTS: Final = frozenset(_ACT_FUNCTIONS)
