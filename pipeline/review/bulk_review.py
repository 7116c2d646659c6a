"""What reviewers decide, on one item or many, each decision with what takes it back."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from django.db import transaction

from config.core import states
from config.core.datetimes import as_z
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
"""Of what failed or is late: tried again, given another time or cancelled."""
AT_ONCE: Final = 100
"""Items that one call decides on; the others are told that they still wait."""

Former = dict[str, Any]
"""What `review.undo.undo` needs, as JSON: the act, the version that it left, and what was there before."""


@dataclass(frozen=True)
class BulkReviewInput:
    """Who acts and when, and what they said with it: why, where and when, what a further variant should do."""

    workspace: Workspace
    by: str
    now: datetime
    reason: str = ""
    wish: publish.PublishWish = field(default_factory=publish.PublishWish)
    hint: str = ""
    shown: Mapping[UUID, int] = field(default_factory=dict)
    """The versions of the other variants that were looked at."""


@dataclass(frozen=True)
class Decided:
    """One item and what came of it: `former` takes it back, or `error` says why it stays as it was."""

    item: GeneratedItem
    former: Former | None = None
    error: AppError | None = None


def decide(act: str, looked_at: Sequence[tuple[GeneratedItem, int]], given: BulkReviewInput) -> list[Decided]:
    """Each item by itself, with the version that was looked at: one that has changed since hinders no other.

    The items come with their workspace. Of several variants of one group the first alone is published. What is more
    than `AT_ONCE` stays as it was, with that as its error.
    """
    found: list[Decided] = []
    promised: set[UUID] = set()
    for item, version in looked_at[:AT_ONCE]:
        try:
            if act == PUBLISH and item.variant_group in promised:
                message = "Another variant of it was chosen in the same breath; a group is published once."
                raise Conflict.because(code="superseded", message=message)
            with transaction.atomic():
                found.append(_ACTS[act](item, version, given))
            promised.add(item.variant_group)
        except AppError as error:
            found.append(Decided(item, error=error))
    return found + [Decided(item, error=_too_many()) for item, _version in looked_at[AT_ONCE:]]


def _too_many() -> Conflict:
    message = (
        f"At most {AT_ONCE} items are decided on at once; the others wait as they were. Decide on them again."
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
    """Words, alt texts, and the order of its pictures in one; `order` is None where that stays.

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
    """Every promise is taken back, and with them the approval that publishing itself was. Raises what `publish.cancel`
    does.
    """
    with transaction.atomic():
        stood = {
            name: promise
            for name, promise in publish.take_snapshot(item).items()
            if promise["status"] == PublicationStatus.SCHEDULED
        }
        before = approval_of(item)
        row = publish.cancel(item, now=now, expected_version=expected_version)
        publications = Publication.everywhere.filter(item=row)
        if (
            row.status == GeneratedItemStatus.READY
            and row.is_approved
            and publications.filter(created_at=row.approved_at).exists()
        ):
            update_locked(row, now, **NO_APPROVAL)
    former = {"act": CLEAR, "version": row.version, "stood": stood, "is_cancelled": True, **before}
    return Decided(row, former)


def _approve(item: GeneratedItem, version: int, given: BulkReviewInput) -> Decided:
    """With other variants `shown` it is the choice among them too: those that wait are set aside."""
    others: list[GeneratedItem] = []
    if given.shown:
        others = variants.choose(item, by=given.by, now=given.now, expected_versions=given.shown)
    row = decisions.approve(item, by=given.by, now=given.now, expected_version=version)
    return Decided(row, {"act": APPROVE, "version": row.version, **approval_of(item), **_set_aside(others)})


def _reject(item: GeneratedItem, version: int, given: BulkReviewInput) -> Decided:
    row = decisions.reject(item, reason=given.reason, by=given.by, now=given.now, expected_version=version)
    return Decided(row, {"act": REJECT, "version": row.version})


def _publish(item: GeneratedItem, version: int, given: BulkReviewInput) -> Decided:
    """A promise that was there before, and one that had failed, is told as it stood: the undo writes it back."""
    stood = publish.take_snapshot(item)
    row, made = publish.request(item, given.wish, by=given.by, now=given.now, expected_version=version)
    aside = GeneratedItem.everywhere.filter(
        variant_group=row.variant_group, status=GeneratedItemStatus.REJECTED, rejection__at=as_z(given.now)
    ).values_list("pk", flat=True)
    names = [encode("pub", publication.pk) for publication in made]
    former = {
        "act": PUBLISH,
        "version": row.version,
        "made": [name for name in names if name not in stood],
        "stood": {name: stood[name] for name in names if name in stood},
        "aside": [key.hex for key in aside],
        "at": as_z(given.now),
        **approval_of(item),
    }
    return Decided(row, former)


def _choose(item: GeneratedItem, version: int, given: BulkReviewInput) -> Decided:
    expected = {**given.shown, item.pk: version}
    others = variants.choose(item, by=given.by, now=given.now, expected_versions=expected)
    return Decided(item, {"act": CHOOSE, **_set_aside(others)})


def _another(item: GeneratedItem, version: int, given: BulkReviewInput) -> Decided:
    """The item that is told is the further variant, which the undo erases."""
    states.refuse_other_version(item.version, version)
    made = regenerate.regenerate(item, workspace=given.workspace, now=given.now, hint=given.hint)
    return Decided(made, {"act": ANOTHER, "outlets": made.outlets})


def _set_aside(others: Sequence[GeneratedItem]) -> Former:
    """The siblings that a choice rejected, and the moment that stands in them, as the undo needs them."""
    at = str((others[0].rejection or {}).get("at", "")) if others else ""
    return {"aside": [sibling.pk.hex for sibling in others], "at": at}


def approval_of(item: GeneratedItem) -> Former:
    """As it was read; whoever decides names that version, so it was so until the act."""
    return {
        "approved_by": item.approved_by,
        "approved_at": item.approved_at.isoformat() if item.approved_at else None,
        "approved_revision": item.approved_revision,
        "held": item.held,
        "flagged": item.flagged,
    }


_ACTS: Final[Mapping[str, Callable[..., Decided]]] = {
    APPROVE: _approve,
    REJECT: _reject,
    PUBLISH: _publish,
    CHOOSE: _choose,
    ANOTHER: _another,
}
ACTS: Final = frozenset(_ACTS)
