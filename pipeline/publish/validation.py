"""Validates a person's request to publish against the rules of each outlet."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from accounts import audit
from config.core import ids
from config.core.errors import Conflict, Detail, Invalid
from config.core.ids import encode
from pipeline.models import GeneratedItem, HoldReason, Outlet, OutletStatus, Publication, PublicationStatus
from pipeline.outlets.outlet_client import account_of, buckets_of, platform_of
from pipeline.outlets.outlets_by_id import check_outlets
from pipeline.platforms.payload_types import Adapted
from pipeline.plugins import NeedsReconnect, Refused
from pipeline.publish.blockers import HOLD_MESSAGES
from pipeline.publish.payload import effective_overrides, fit_payload, payload_of, read_sent_assets
from pipeline.publish.timing.queue_slots import choose_next_slot, lock_outlets
from pipeline.states import PUBLICATIONS_IN_FLIGHT, PUBLISHABLE_ITEMS
from pipeline.switches import availability

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from pipeline.models import Asset, PublishQueue
    from pipeline.platforms.payload_types import Payload
    from pipeline.text.local_time import Slot, WallClock

OVERRULED_ACTION: Final = "checks.overruled"


@dataclass(frozen=True)
class PublishWish:
    """A request to publish an item."""

    outlets: Sequence[str] | None = None
    """The outlets' public ids; `None` takes the item's own outlets."""
    publish_at: datetime | None = None
    """The time for all outlets; `None` publishes now."""
    overrides: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """The overrides by the outlet's public id; a `publish_at` among them is that outlet's time."""
    keep_siblings: bool = False
    """`True` keeps the item's other variants from being rejected."""
    late_policy: str | None = None
    """`None` takes the workspace's default policy, with its minutes."""
    max_lateness_minutes: int | None = None
    clock: WallClock | None = None
    """The local time that `publish_at` was computed from."""
    is_queued: bool = False
    """`True` schedules for each outlet's next free slot instead of one time for all."""
    slots: Mapping[str, tuple[Slot, PublishQueue]] = field(default_factory=dict)
    """The slot and queue to use, by the outlet's public id; the caller holds the outlets' locks."""


@dataclass(frozen=True)
class OutletVerdict:
    """One outlet and what its rules say of the item; `problems` is empty if it can be published there."""

    outlet: Outlet
    post: Adapted
    due_at: datetime
    overrides: Mapping[str, Any]
    problems: tuple[Detail, ...]
    clock: WallClock | None = None
    queue: PublishQueue | None = None


class CannotPublish(Invalid):
    """Raised if no outlet is left, or an outlet that was named can't take the content."""


def dry_run(item: GeneratedItem, wish: PublishWish, *, now: datetime) -> list[OutletVerdict]:
    """Return every outlet's verdict without storing anything; an outlet that can't take the item has problems.

    Raises `Conflict` if the item's state doesn't allow publishing, `CannotPublish` if it has no outlet, and
    `Invalid` if an outlet's id or the overrides name no outlet.
    """
    refuse_unless_publishable(item)
    return validate_outlets(item, wish, now=now, refuse=False)


def validate_outlets(
    item: GeneratedItem, wish: PublishWish, *, now: datetime, refuse: bool = True
) -> list[OutletVerdict]:
    """Return a verdict for each outlet.

    With `refuse`, outlets that can't take the item or have it already are left out if the request names none.
    Raises `CannotPublish` if a named outlet can't take the item, or `Conflict` if it has it already, and
    either one if no outlet is left. Raises `Invalid` if overrides name another outlet.
    """
    is_named = wish.outlets is not None
    outlets = _outlets_for(item, wish)
    _check_override_keys(wish, outlets)
    publications = {row.outlet_id: row for row in Publication.everywhere.standing().filter(item=item)}
    if wish.is_queued and refuse:
        lock_outlets(outlets)
    assets = read_sent_assets(item) if outlets else []
    verdicts, problems, conflicts = [], [], []
    for index, outlet in enumerate(outlets):
        existing = publications.get(outlet.pk)
        overrides, due_at = _outlet_request(ids.encode("out", outlet.pk), wish, existing)
        post = _adapted_post(
            outlet, payload_of(item, effective_overrides(item, outlet, overrides), assets=assets)
        )
        field_path = f"outlets[{index}]" if is_named else None
        outlet_problems = _find_problems(outlet, post, field_path)
        conflict = _conflict_at(outlet, existing)
        if conflict is not None and refuse:
            conflicts.append(conflict)
            continue
        if conflict is not None:
            outlet_problems = [conflict, *outlet_problems]
        if not outlet_problems or not refuse:
            outlet_due_at, clock, queue = _choose_time(
                item, outlet, wish, own_time=due_at, existing=existing, now=now
            )
            verdicts.append(
                OutletVerdict(outlet, post, outlet_due_at, overrides, tuple(outlet_problems), clock, queue)
            )
        elif is_named:
            problems += outlet_problems
        else:
            problems += [
                Detail(None, problem.code, f"{outlet.name}: {problem.message}") for problem in outlet_problems
            ]
    if refuse or not verdicts:
        _refuse_unless_any(item, verdicts, problems, conflicts, is_named=is_named)
    return verdicts


def _refuse_unless_any(
    item: GeneratedItem,
    verdicts: Sequence[OutletVerdict],
    problems: Sequence[Detail],
    conflicts: Sequence[Detail],
    *,
    is_named: bool,
) -> None:
    """Raise `CannotPublish` or `Conflict` if a named outlet can't take the item, or none is left."""
    if is_named and problems:
        raise CannotPublish(*problems)
    if conflicts and (is_named or not verdicts):
        raise Conflict(*conflicts)
    if verdicts:
        return
    if problems:
        raise CannotPublish(*problems)
    message = f"None of the item's outlets takes {item.bucket} items; name one in outlets."
    raise CannotPublish.one(field="outlets", code="no_outlet", message=message)


def _outlet_request(
    outlet: str, wish: PublishWish, existing: Publication | None
) -> tuple[dict[str, Any], datetime | None]:
    """Return one outlet's own overrides and time.

    A request without overrides keeps those of the existing publication.
    """
    overrides = dict(wish.overrides.get(outlet, {}))
    due_at: datetime | None = overrides.pop("publish_at", None)
    if existing is not None and not overrides:
        overrides = dict(existing.overrides)
    return overrides, due_at


def _choose_time(
    item: GeneratedItem,
    outlet: Outlet,
    wish: PublishWish,
    *,
    own_time: datetime | None,
    existing: Publication | None,
    now: datetime,
) -> tuple[datetime, WallClock | None, PublishQueue | None]:
    """Return when the outlet's publication is due, its local time and its queue.

    The outlet's own time goes first, then a slot that the caller reserved, then the queue's next free slot.
    """
    if own_time is not None:
        return own_time, None, None
    reserved = wish.slots.get(ids.encode("out", outlet.pk))
    if reserved is not None:
        return reserved[0].moment, reserved[0].clock, reserved[1]
    if wish.is_queued:
        slot, queue = choose_next_slot(outlet, item.workspace, after=now, own=existing)
        return slot.moment, slot.clock, queue
    return wish.publish_at or now, wish.clock, None


def _conflict_at(outlet: Outlet, existing: Publication | None) -> Detail | None:
    """Return why nothing more can be scheduled there, if the outlet has or may have the item, or `None`."""
    extra = {"outlet": ids.encode("out", outlet.pk)}
    if existing is not None and existing.status == PublicationStatus.PUBLISHED:
        message = f"It is already published there: {outlet.name}."
        return Detail("outlets", "already_published", message, extra)
    if existing is not None and existing.status in PUBLICATIONS_IN_FLIGHT:
        message = (
            f"The publication to {outlet.name} is {existing.status}; wait for its outcome, or reconcile it."
        )
        return Detail("outlets", "in_flight", message, extra)
    return None


def _outlets_for(item: GeneratedItem, wish: PublishWish) -> list[Outlet]:
    """Return the outlets named, in that order, or the item's own that still exist and can take it.

    Raises `CannotPublish` if the list of names is empty, and `Invalid` if one names no outlet.
    """
    if wish.outlets is not None:
        if not wish.outlets:
            message = "Name at least one outlet, or leave outlets out."
            raise CannotPublish.one(field="outlets", code="no_outlet", message=message)
        return check_outlets(item.workspace, list(dict.fromkeys(wish.outlets)), test=item.test)
    keys = [ids.decode("out", text) for text in item.outlets]
    rows = {
        outlet.pk: outlet
        for outlet in Outlet.objects.of(item.workspace_id).filter(
            pk__in=[key for key in keys if key], deleted_at=None
        )
    }
    outlets = [rows[key] for key in keys if key in rows]
    return [
        outlet
        for outlet in outlets
        if item.bucket in buckets_of(outlet.platform) and (outlet.is_simulated or not item.test)
    ]


def _check_override_keys(wish: PublishWish, outlets: Sequence[Outlet]) -> None:
    """Raise `Invalid` if overrides name an outlet that the item isn't published to."""
    known = {ids.encode("out", outlet.pk) for outlet in outlets}
    unknown = [key for key in wish.overrides if key not in known]
    if unknown:
        raise Invalid(
            *(
                Detail(
                    f"overrides.{key}", "unknown_outlet", "This outlet is not among those it is published to."
                )
                for key in unknown
            )
        )


def _adapted_post(outlet: Outlet, payload: Payload) -> Adapted:
    """Return the payload adapted to the outlet, or as it is if the platform doesn't take its bucket."""
    platform = platform_of(outlet.platform)
    if payload.bucket not in platform.buckets:
        return Adapted(payload, (payload.body,))
    return fit_payload(payload, outlet, platform, account_of(outlet))


def problems_of(item: GeneratedItem, outlet: Outlet, assets: Sequence[Asset] | None = None) -> list[Detail]:
    """Return what keeps the item, as it is, from being published to the outlet; `assets` as in `payload_of`."""
    post = _adapted_post(outlet, payload_of(item, effective_overrides(item, outlet, {}), assets=assets))
    return _find_problems(outlet, post, None)


def _find_problems(outlet: Outlet, post: Adapted, prefix: str | None) -> list[Detail]:
    """Return why the outlet can't take the post; `prefix` is the request's field that the paths begin with."""
    platform = platform_of(outlet.platform)
    bucket = post.payload.bucket
    if bucket not in platform.buckets:
        accepted_buckets = ", ".join(platform.buckets)
        return [Detail(prefix, "bucket_not_taken", f"{outlet.name} takes {accepted_buckets}, not {bucket}.")]
    closed_error = why_closed(outlet)
    if closed_error is not None:
        return [Detail(prefix, closed_error.code, closed_error.message)]
    problems = platform.validate(account_of(outlet), post)
    return [
        Detail(
            ".".join(part for part in (prefix, problem.field) if part) or None, problem.code, problem.message
        )
        for problem in problems
    ]


def why_closed(outlet: Outlet) -> Refused | NeedsReconnect | None:
    """Return why nothing can be published through this account at present, or `None` if it is usable."""
    if outlet.deleted_at is not None:
        return Refused(f"{outlet.name} was deleted; publish to another outlet.", code="outlet_deleted")
    if outlet.status == OutletStatus.DISABLED:
        return Refused(f"{outlet.name} is switched off; switch it on and retry.", code="outlet_disabled")
    outage = availability.of_platform(platform_of(outlet.platform))
    if outage is not None:
        return Refused(outage.sentence, code="platform_unavailable")
    # Nobody can reconnect a simulated account: the next step of its script decides whether it works.
    if outlet.status == OutletStatus.NEEDS_RECONNECT and not outlet.is_simulated:
        return NeedsReconnect(f"{outlet.name} has to be reconnected before it can publish.")
    return None


def refuse_unless_publishable(item: GeneratedItem) -> None:
    """Raise `Conflict` if the item's state keeps it from being published."""
    reason = why_not_publishable(item)
    if reason is not None:
        raise Conflict(reason)


def why_not_publishable(item: GeneratedItem) -> Detail | None:
    """Return what keeps a person from publishing the item, or `None`."""
    if item.deleted_at is not None or item.status not in PUBLISHABLE_ITEMS:
        message = f"It is {item.status}; only a finished item that isn't rejected can be published."
        return Detail(
            "status",
            "not_publishable",
            message,
            {"status": item.status, "allowed": sorted(PUBLISHABLE_ITEMS)},
        )
    if item.held and item.held != HoldReason.APPROVAL_STALE:
        message = HOLD_MESSAGES.get(item.held, "It is on hold. Approve it to publish.")
        return Detail("held", "held", message)
    if item.lacks_approval(item.workspace):
        message = "The workspace asks for an approval first: approve it, then publish it."
        return Detail("approval", "approval_required", message)
    return None


def audit_overruled_checks(item: GeneratedItem, *, by: str) -> None:
    """Audit the warnings of an approved revision, if any, in the transaction of the approval.

    The entry holds the checks' codes without their messages, so that it can stay when the item's text is
    erased.
    """
    codes = [check["code"] for check in item.present_checks if check["outcome"] != "passed"]
    if codes:
        details = {"revision": item.revision, "checks": codes}
        audit.note(
            OVERRULED_ACTION,
            workspace=item.workspace,
            actor=by,
            subject=encode("gen", item.pk),
            details=details,
        )
