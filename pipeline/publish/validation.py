"""What a person wishes, and what the rules of each outlet say of it."""

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
from pipeline.publish.blockers import WHY_HELD
from pipeline.publish.payload import assets_going_out, effective_overrides, fit_payload, payload_of
from pipeline.publish.timing.queue_slots import lock_outlets, next_slot_or_refuse
from pipeline.states import PUBLICATIONS_IN_FLIGHT, PUBLISHABLE_ITEMS
from pipeline.switches import availability

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from pipeline.models import Asset, PublishQueue
    from pipeline.platforms.payload_types import Payload
    from pipeline.text.local_time import Slot, WallClock

ACTION: Final = "checks.overruled"


@dataclass(frozen=True)
class PublishWish:
    """What a person asked for. `outlets` are public ids, None for the item's; `publish_at` None for now."""

    outlets: Sequence[str] | None = None
    publish_at: datetime | None = None
    overrides: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    keep_siblings: bool = False
    late_policy: str | None = None
    """None for the workspace's own, with its minutes."""
    max_lateness_minutes: int | None = None
    clock: WallClock | None = None
    """The time on a clock that `publish_at` stands for."""
    is_queued: bool = False
    """Each outlet's next free slot, in place of one moment."""
    slots: Mapping[str, tuple[Slot, PublishQueue]] = field(default_factory=dict)
    """By public id of an outlet: the slot of its queue that it takes; whoever says so holds the outlet's lock."""


@dataclass(frozen=True)
class OutletVerdict:
    """One outlet and what its rules say of the item; `problems` empty where it can go."""

    outlet: Outlet
    post: Adapted
    due_at: datetime
    overrides: Mapping[str, Any]
    problems: tuple[Detail, ...]
    clock: WallClock | None = None
    queue: PublishQueue | None = None


class CannotPublish(Invalid):
    """No outlet is left, or one that was named can't take the content."""


def dry_run(item: GeneratedItem, wish: PublishWish, *, now: datetime) -> list[OutletVerdict]:
    """Every outlet's rules run, nothing stored; an outlet that can't take it is in the list with its problems.

    Raises what `request` does where the item's state doesn't allow it or no outlet is left.
    """
    refuse_unless_publishable(item)
    return validate_outlets(item, wish, now=now, refuse=False)


def validate_outlets(
    item: GeneratedItem, wish: PublishWish, *, now: datetime, refuse: bool = True
) -> list[OutletVerdict]:
    """What would be sent where. With `refuse`, outlets that weren't named and can't take it, or have it already, are
    left out; one that was named, or none left, raises `CannotPublish` or `Conflict`.
    """
    is_named = wish.outlets is not None
    outlets = _outlets_for(item, wish)
    _check_override_keys(wish, outlets)
    there = {row.outlet_id: row for row in Publication.everywhere.standing().filter(item=item)}
    if wish.is_queued and refuse:
        lock_outlets(outlets)
    assets = assets_going_out(item) if outlets else []
    judged, problems, taken = [], [], []
    for index, outlet in enumerate(outlets):
        kept = there.get(outlet.pk)
        own, due_at = _asked_of(ids.encode("out", outlet.pk), wish, kept)
        post = _post(outlet, payload_of(item, effective_overrides(item, outlet, own), assets=assets))
        found = _problems(outlet, post, f"outlets[{index}]" if is_named else None)
        already = _already(outlet, kept)
        if already is not None and refuse:
            taken.append(already)
            continue
        if already is not None:
            found = [already, *found]
        if not found or not refuse:
            moment, clock, queue = _promised_for(item, outlet, wish, own=due_at, kept=kept, now=now)
            judged.append(OutletVerdict(outlet, post, moment, own, tuple(found), clock, queue))
        elif is_named:
            problems += found
        else:
            problems += [Detail(None, one.code, f"{outlet.name}: {one.message}") for one in found]
    if refuse or not judged:
        _refuse_unless_any(item, judged, problems, taken, is_named=is_named)
    return judged


def _refuse_unless_any(
    item: GeneratedItem,
    judged: Sequence[OutletVerdict],
    problems: Sequence[Detail],
    taken: Sequence[Detail],
    *,
    is_named: bool,
) -> None:
    if is_named and problems:
        raise CannotPublish(*problems)
    if taken and (is_named or not judged):
        raise Conflict(*taken)
    if judged:
        return
    if problems:
        raise CannotPublish(*problems)
    message = f"None of the item's outlets takes {item.bucket} items; name one in outlets."
    raise CannotPublish.one(field="outlets", code="no_outlet", message=message)


def _asked_of(
    outlet: str, wish: PublishWish, kept: Publication | None
) -> tuple[dict[str, Any], datetime | None]:
    """One outlet's own overrides and moment; a re-time that doesn't speak of overrides keeps those there are."""
    asked = dict(wish.overrides.get(outlet, {}))
    due_at: datetime | None = asked.pop("publish_at", None)
    if kept is not None and not asked:
        asked = dict(kept.overrides)
    return asked, due_at


def _promised_for(
    item: GeneratedItem,
    outlet: Outlet,
    wish: PublishWish,
    *,
    own: datetime | None,
    kept: Publication | None,
    now: datetime,
) -> tuple[datetime, WallClock | None, PublishQueue | None]:
    """An outlet's own moment goes before the one for all."""
    if own is not None:
        return own, None, None
    chosen = wish.slots.get(ids.encode("out", outlet.pk))
    if chosen is not None:
        return chosen[0].moment, chosen[0].clock, chosen[1]
    if wish.is_queued:
        slot, queue = next_slot_or_refuse(outlet, item.workspace, after=now, own=kept)
        return slot.moment, slot.clock, queue
    return wish.publish_at or now, wish.clock, None


def _already(outlet: Outlet, kept: Publication | None) -> Detail | None:
    """Why nothing more can be promised there: it has the item, or may have it."""
    extra = {"outlet": ids.encode("out", outlet.pk)}
    if kept is not None and kept.status == PublicationStatus.PUBLISHED:
        message = f"It is already published there: {outlet.name}."
        return Detail("outlets", "already_published", message, extra)
    if kept is not None and kept.status in PUBLICATIONS_IN_FLIGHT:
        message = f"The publication to {outlet.name} is {kept.status}; wait for its outcome, or reconcile it."
        return Detail("outlets", "in_flight", message, extra)
    return None


def _outlets_for(item: GeneratedItem, wish: PublishWish) -> list[Outlet]:
    """Those named, in their order; else the item's own that still exist and take its bucket."""
    if wish.outlets is not None:
        if not wish.outlets:
            message = "Name at least one outlet, or leave outlets out."
            raise CannotPublish.one(field="outlets", code="no_outlet", message=message)
        return check_outlets(item.workspace, list(dict.fromkeys(wish.outlets)), test=item.test)
    wanted = [ids.decode("out", text) for text in item.outlets]
    rows = {
        outlet.pk: outlet
        for outlet in Outlet.objects.of(item.workspace_id).filter(
            pk__in=[one for one in wanted if one], deleted_at=None
        )
    }
    found = [rows[one] for one in wanted if one in rows]
    return [
        outlet
        for outlet in found
        if item.bucket in buckets_of(outlet.platform) and (outlet.is_simulated or not item.test)
    ]


def _check_override_keys(wish: PublishWish, outlets: Sequence[Outlet]) -> None:
    known = {ids.encode("out", outlet.pk) for outlet in outlets}
    strange = [key for key in wish.overrides if key not in known]
    if strange:
        raise Invalid(
            *(
                Detail(
                    f"overrides.{key}", "unknown_outlet", "This outlet is not among those it is published to."
                )
                for key in strange
            )
        )


def _post(outlet: Outlet, payload: Payload) -> Adapted:
    platform = platform_of(outlet.platform)
    if payload.bucket not in platform.buckets:
        return Adapted(payload, (payload.body,))
    return fit_payload(payload, outlet, platform, account_of(outlet))


def problems_of(item: GeneratedItem, outlet: Outlet, assets: Sequence[Asset] | None = None) -> list[Detail]:
    """What keeps the item, as it is, from being promised to the outlet; nothing is stored. `assets` as `payload_of`."""
    post = _post(outlet, payload_of(item, effective_overrides(item, outlet, {}), assets=assets))
    return _problems(outlet, post, None)


def _problems(outlet: Outlet, post: Adapted, where: str | None) -> list[Detail]:
    platform = platform_of(outlet.platform)
    bucket = post.payload.bucket
    if bucket not in platform.buckets:
        takes = ", ".join(platform.buckets)
        return [Detail(where, "bucket_not_taken", f"{outlet.name} takes {takes}, not {bucket}.")]
    closed = why_closed(outlet)
    if closed is not None:
        return [Detail(where, closed.code, closed.message)]
    found = platform.validate(account_of(outlet), post)
    return [
        Detail(
            ".".join(part for part in (where, problem.field) if part) or None, problem.code, problem.message
        )
        for problem in found
    ]


def why_closed(outlet: Outlet) -> Refused | NeedsReconnect | None:
    """Why nothing goes through this account at present; None where something does."""
    if outlet.deleted_at is not None:
        return Refused(f"{outlet.name} was deleted; publish to another outlet.", code="outlet_deleted")
    if outlet.status == OutletStatus.DISABLED:
        return Refused(f"{outlet.name} is switched off; switch it on and retry.", code="outlet_disabled")
    taken_out = availability.of_platform(platform_of(outlet.platform))
    if taken_out is not None:
        return Refused(taken_out.sentence, code="platform_unavailable")
    # A simulated account has nobody who could reconnect it: the next word of its script tells whether it works.
    if outlet.status == OutletStatus.NEEDS_RECONNECT and not outlet.is_simulated:
        return NeedsReconnect(f"{outlet.name} has to be connected again before anything goes through it.")
    return None


def refuse_unless_publishable(item: GeneratedItem) -> None:
    found = why_not_publishable(item)
    if found is not None:
        raise Conflict(found)


def why_not_publishable(item: GeneratedItem) -> Detail | None:
    """What keeps a person from promising it to an outlet; None where nothing does."""
    if item.deleted_at is not None or item.status not in PUBLISHABLE_ITEMS:
        message = f"It is {item.status}; only a finished item that isn't rejected can be published."
        return Detail(
            "status",
            "not_publishable",
            message,
            {"status": item.status, "allowed": sorted(PUBLISHABLE_ITEMS)},
        )
    if item.held and item.held != HoldReason.APPROVAL_STALE:
        message = WHY_HELD.get(item.held, "It is on hold. Approve it to publish.")
        return Detail("held", "held", message)
    if item.workspace.requires_approval and not item.is_approved_as_it_is:
        message = "The workspace asks for an approval first: POST …/approve."
        return Detail("approval", "approval_required", message)
    return None


def note_overruled(item: GeneratedItem, *, by: str) -> None:
    """Note the warnings of the revision that is approved, in the transaction of the approval; nothing without any.

    The entry names the checks and not what they say: it stays when the item's words are erased.
    """
    warned = [one["code"] for one in item.present_checks if one["outcome"] != "passed"]
    if warned:
        details = {"revision": item.revision, "checks": warned}
        audit.note(
            ACTION, workspace=item.workspace, actor=by, subject=encode("gen", item.pk), details=details
        )
