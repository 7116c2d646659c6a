"""Serializes each resource to JSON, in one place for the API and the events.

Functions take a row as a dict of `.values(*FIELDS)` or an instance's dict, so that a list of a hundred items
creates no model instances.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from django.conf import settings

from config.core.datetimes import format_utc, format_utc_or_none
from config.core.ids import encode, encode_or_none
from pipeline.grounding import find_in_draft
from pipeline.models import GeneratedItemStatus
from pipeline.models.persona import SECTIONS
from pipeline.models.publication import Publication
from pipeline.states import POLLED_SOURCES, UNSENT_PUBLICATIONS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from django.db.models import Model

    from pipeline.models import BrandPick, BrandSlot, Recurrence, RecurrenceTurn, Series, SeriesIssue
    from pipeline.platforms.base import Platform


def row_of(instance: Model) -> dict[str, Any]:
    """Return an instance's columns as `.values()` would."""
    return {field.attname: getattr(instance, field.attname) for field in instance._meta.concrete_fields}


SOURCE_FIELDS: Final = (
    "id",
    "test",
    "name",
    "type",
    "config",
    "is_push",
    "engines",
    "variants",
    "persona_id",
    "outlets",
    "poll_interval_minutes",
    "autopilot",
    "first_poll",
    "max_age_days",
    "max_burst",
    "status",
    "last_error",
    "inbound_token",
    "last_polled_at",
    "last_new_at",
    "interval_seconds",
    "failures",
    "failing_since",
    "notes",
    "due_at",
    "wake_at",
    "version",
    "created_at",
    "updated_at",
)


def source(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return a source as the API shows it."""
    inbound = row["inbound_token"]
    is_polled = row["status"] in POLLED_SOURCES
    # A brand lane isn't polled; its next slot is shown instead.
    next_at = row["wake_at"] or (row["due_at"] if row["type"] == "brand" else None)
    next_poll_at = format_utc_or_none(next_at) if is_polled else None
    return {
        "id": encode("src", row["id"]),
        "name": row["name"],
        "type": row["type"],
        "config": row["config"],
        "status": row["status"],
        "last_error": row["last_error"],
        "engines": row["engines"],
        "variants": row["variants"],
        "persona": encode_or_none("per", row["persona_id"]),
        "outlets": row["outlets"],
        "poll_interval_minutes": row["poll_interval_minutes"],
        "autopilot": row["autopilot"],
        "first_poll": row["first_poll"],
        "max_age_days": row["max_age_days"],
        "max_burst": row["max_burst"],
        "inbound_url": f"{settings.PUBLIC_URL}/hooks/{inbound}" if inbound else None,
        "last_polled_at": format_utc_or_none(row["last_polled_at"]),
        "next_poll_at": next_poll_at,
        "health": {
            "last_success_at": format_utc_or_none(row["last_polled_at"]),
            "last_new_at": format_utc_or_none(row["last_new_at"]),
            "next_poll_at": next_poll_at,
            "interval_minutes": _interval_minutes(row),
            "consecutive_failures": row["failures"],
            "failing_since": format_utc_or_none(row["failing_since"]),
            "error": row["last_error"],
            "notes": row["notes"] or [],
        },
        "test": row["test"],
        "version": row["version"],
        "created_at": format_utc(row["created_at"]),
        "updated_at": format_utc(row["updated_at"]),
    }


def _interval_minutes(row: Mapping[str, Any]) -> int | None:
    """Return the present wait between two polls; None for a source never polled and without an interval."""
    seconds = row["interval_seconds"]
    minutes: int | None = row["poll_interval_minutes"]
    return minutes or (round(seconds / 60) if seconds else None)


SOURCE_ENTRY_FIELDS: Final = (
    "id",
    "source_id",
    "external_id",
    "url",
    "title",
    "published_at",
    "decision",
    "decided_by",
    "code",
    "message",
    "raw_item_id",
    "first_seen_at",
    "decided_at",
)


def source_entry(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "id": encode("ent", row["id"]),
        "source": encode("src", row["source_id"]),
        "external_id": row["external_id"] or None,
        "url": row["url"] or None,
        "title": row["title"],
        "published_at": format_utc_or_none(row["published_at"]),
        "decision": row["decision"],
        "decided_by": row["decided_by"],
        "code": row["code"],
        "message": row["message"],
        "raw_item": encode_or_none("raw", row["raw_item_id"]),
        "first_seen_at": format_utc(row["first_seen_at"]),
        "decided_at": format_utc(row["decided_at"]),
    }


def brand_slot(slot: BrandSlot, picks: Iterable[BrandPick]) -> dict[str, Any]:
    return {
        "id": encode("slt", slot.pk),
        "source": encode("src", slot.source_id),
        "status": slot.status,
        "due_at": format_utc_or_none(slot.due_at),
        "eligible": slot.eligible,
        "note": slot.note,
        "picks": [
            {
                "topic": encode_or_none("top", pick.topic_id),
                "title": pick.title,
                "angle": pick.angle or None,
                "decision": pick.decision,
                "reason": pick.reason,
                "discarded": pick.words or None,
                "generated_item": encode_or_none("gen", pick.item_id),
                "decided_at": format_utc_or_none(pick.decided_at),
            }
            for pick in picks
        ],
        "created_at": format_utc(slot.created_at),
        "ended_at": format_utc_or_none(slot.ended_at),
    }


RAW_ITEM_FIELDS: Final = (
    "id",
    "test",
    "source_id",
    "external_id",
    "url",
    "title",
    "language",
    "language_guessed",
    "author",
    "published_at",
    "media",
    "metadata",
    "engines",
    "variants",
    "persona_id",
    "version",
    "content_version",
    "status",
    "reason",
    "skipped",
    "near_duplicate",
    "withdrawn_at",
    "deleted_at",
    "created_at",
    "updated_at",
)


def raw_item(row: Mapping[str, Any], *, outcomes: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return a raw item as the API shows it.

    `outcomes` are from `generate.raw_item_outcomes`: one for each engine and variant that was asked for.
    """
    return {
        "id": encode("raw", row["id"]),
        "status": row["status"],
        "reason": row["reason"],
        "version": row["version"],
        "content_version": row["content_version"],
        "source": encode("src", row["source_id"]),
        "external_id": row["external_id"] or None,
        "url": row["url"] or None,
        "title": row["title"],
        "language": row["language"] or None,
        "language_guessed": row["language_guessed"],
        "author": row["author"] or None,
        "published_at": format_utc_or_none(row["published_at"]),
        "media": row["media"],
        "metadata": row["metadata"],
        "engines": row["engines"],
        "variants": row["variants"],
        "outcomes": list(outcomes),
        "persona": encode_or_none("per", row["persona_id"]),
        "near_duplicate": row["near_duplicate"],
        "withdrawn_at": format_utc_or_none(row["withdrawn_at"]),
        "test": row["test"],
        "deleted_at": format_utc_or_none(row["deleted_at"]),
        "created_at": format_utc(row["created_at"]),
        "updated_at": format_utc(row["updated_at"]),
    }


GENERATED_ITEM_LEAN_FIELDS: Final = (
    "id",
    "test",
    "bucket",
    "engine_output",
    "engine_version",
    "status",
    "held",
    "flagged",
    "revision",
    "version",
    "variant_group",
    "variant_index",
    "angle",
    "title",
    "body",
    "body_format",
    "excerpt",
    "language",
    "source_id",
    "raw_item_id",
    "raw_items",
    "topic_id",
    "persona_id",
    "outlets",
    "overrides",
    "approved_by",
    "approved_at",
    "approved_revision",
    "rejection",
    "generator",
    "checks_revision",
    "error",
    "publish_at",
    "created_at",
    "ready_at",
    "published_at",
    "updated_at",
)
GENERATED_ITEM_LONG_FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    "content": ("content",),
    "claims": ("claims",),
    "checks": ("checks",),
    "provenance": ("raw_version", "persona_version", "parent_id", "hint"),
}
"""The fields that lists leave out unless `include=` names them, with their columns."""
GENERATED_ITEM_FIELDS: Final = (
    *GENERATED_ITEM_LEAN_FIELDS,
    *(name for names in GENERATED_ITEM_LONG_FIELDS.values() for name in names),
)


def generated_item(
    row: Mapping[str, Any],
    *,
    publications: Iterable[Mapping[str, Any]] = (),
    assets: Iterable[Mapping[str, Any]] = (),
    requires_approval: bool,
    now: datetime,
    include: Iterable[str] = tuple(GENERATED_ITEM_LONG_FIELDS),
    progress: tuple[str, int] | None = None,
) -> dict[str, Any]:
    """Return an item as the API shows it.

    `publications` and `assets` are rows of this item; `requires_approval` is its workspace's setting;
    `progress` is its run's stage and percentage while it is generated.
    """
    publish_at = row["publish_at"]
    raw_item_id = row["raw_item_id"]
    inputs = [UUID(hex_id) for hex_id in row["raw_items"]] or ([raw_item_id] if raw_item_id else [])
    is_checked = row["checks_revision"] == row["revision"]
    is_overdue = (
        publish_at is not None
        and row["status"] in {GeneratedItemStatus.SCHEDULED, GeneratedItemStatus.PUBLISHING}
        and publish_at < now
    )
    result: dict[str, Any] = {
        "id": encode("gen", row["id"]),
        "bucket": row["bucket"],
        "engine_output": row["engine_output"],
        "status": row["status"],
        "revision": row["revision"],
        "version": row["version"],
        "variant": {
            "group": row["variant_group"].hex,
            "index": row["variant_index"],
            "angle": row["angle"] or None,
        },
        "title": row["title"],
        "body": row["body"],
        "body_format": row["body_format"],
        "excerpt": row["excerpt"],
        "language": row["language"] or None,
        "assets": [asset(row_of_asset) for row_of_asset in assets],
        "source": encode_or_none("src", row["source_id"]),
        "raw_item": encode_or_none("raw", raw_item_id),
        "raw_items": [encode("raw", input_id) for input_id in inputs],
        "topic": encode_or_none("top", row["topic_id"]),
        "persona": encode_or_none("per", row["persona_id"]),
        "outlets": row["outlets"],
        "overrides": row["overrides"],
        "approval": {
            "required": requires_approval,
            "by": row["approved_by"] or None,
            "at": format_utc_or_none(row["approved_at"]),
            "revision": row["approved_revision"],
        },
        "rejection": row["rejection"],
        "publications": [
            publication_in_item(row_of_publication, now=now) for row_of_publication in publications
        ],
        "publish_at": format_utc_or_none(publish_at),
        "overdue_seconds": int((now - publish_at).total_seconds()) if is_overdue else 0,
        "held": row["held"] or None,
        "flagged": row["flagged"] or None,
        "generator": row["generator"] or None,
        "checks_revision": row["checks_revision"] if is_checked else None,
        "error": _serialize_run_error(row["error"]),
        "progress": None if progress is None else {"stage": progress[0], "percent": progress[1]},
        "test": row["test"],
        "created_at": format_utc(row["created_at"]),
        "ready_at": format_utc_or_none(row["ready_at"]),
        "published_at": format_utc_or_none(row["published_at"]),
        "updated_at": format_utc(row["updated_at"]),
    }
    if "content" in include:
        result["content"] = row["content"]
    if "claims" in include:
        result["claims"] = claim_map(row["body"], row["claims"])
    if "checks" in include:
        result["checks"] = row["checks"] if is_checked else []
    if "provenance" in include:
        result["provenance"] = {
            "raw_version": row["raw_version"],
            "persona_version": row["persona_version"],
            "engine_version": row["engine_version"],
            "parent": encode_or_none("gen", row["parent_id"]),
            "hint": row["hint"] or None,
        }
    return result


def _serialize_run_error(error: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return the error of a run.

    One stored by an earlier release lacks `retryable`, and nothing speaks against a retry.
    """
    return None if error is None else {"retryable": True, "action": "Try it again.", **error}


ASSET_FIELDS: Final = (
    "id",
    "item_id",
    "role",
    "position",
    "kind",
    "name",
    "secret",
    "mime_type",
    "bytes",
    "width",
    "height",
    "duration",
    "alt_text",
)


def claim_map(body: str, claims: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return each claim with its places in the source and in the item's present text.

    `draft_start` and `draft_end` are null where the text no longer says it, or says it in other words.
    """
    located = []
    for claim in claims:
        span = find_in_draft(body, claim["text"])
        start, end = span if span is not None else (None, None)
        located.append(
            {"derived": "", **claim, "draft_start": start, "draft_end": end},
        )
    return located


def asset(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "id": encode("ast", row["id"]),
        "role": row["role"],
        "position": row["position"],
        "kind": row["kind"],
        "url": f"{settings.PUBLIC_URL}/media/{row['secret']}/{row['name']}",
        "mime_type": row["mime_type"],
        "bytes": row["bytes"],
        "width": row["width"],
        "height": row["height"],
        "duration": row["duration"],
        "alt_text": row["alt_text"],
    }


UPLOAD_FIELDS: Final = (
    "id",
    "kind",
    "mime_type",
    "name",
    "secret",
    "bytes",
    "sha256",
    "width",
    "height",
    "test",
    "expires_at",
    "created_at",
)


def upload(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "id": encode("upl", row["id"]),
        "kind": row["kind"],
        "type": row["mime_type"],
        "name": row["name"],
        "url": upload_address(row),
        "bytes": row["bytes"],
        "sha256": row["sha256"],
        "width": row["width"],
        "height": row["height"],
        "test": row["test"],
        "expires_at": format_utc_or_none(row["expires_at"]),
        "created_at": format_utc(row["created_at"]),
    }


def upload_address(row: Mapping[str, Any]) -> str | None:
    """Return the address of an upload; None for text, as somebody's HTML must not be shown as a page of ours."""
    if row["kind"] == "text":
        return None
    return f"{settings.PUBLIC_URL}/media/{row['secret']}/{row['kind']}"


PUBLICATION_FIELDS: Final = (
    "id",
    "test",
    "version",
    "item_id",
    "outlet_id",
    "platform",
    "status",
    "step",
    "revision",
    "external_id",
    "url",
    "attempt_count",
    "error",
    "due_at",
    "local_time",
    "zone",
    "late_policy",
    "max_lateness_minutes",
    "waits_for",
    "next_attempt_at",
    "published_at",
    "metrics",
    "created_at",
    "updated_at",
)


def publication(row: Mapping[str, Any], *, now: datetime) -> dict[str, Any]:
    return {
        **publication_in_item(row, now=now),
        "generated_item": encode("gen", row["item_id"]),
        "metrics": row["metrics"],
    }


def publication_in_item(row: Mapping[str, Any], *, now: datetime) -> dict[str, Any]:
    """Return a publication as its item lists it: without metrics, which change without the item changing."""
    due_at = row["due_at"]
    is_open = row["status"] in UNSENT_PUBLICATIONS and row["step"] != Publication.BY_HAND
    is_late = due_at is not None and is_open and due_at < now
    return {
        "id": encode("pub", row["id"]),
        "version": row["version"],
        "revision": row["revision"],
        "outlet": encode("out", row["outlet_id"]),
        "platform": row["platform"],
        "status": row["status"],
        "external_id": row["external_id"] or None,
        "url": row["url"] or None,
        "attempts": row["attempt_count"],
        "error": _serialize_error(row["error"]),
        "due_at": format_utc_or_none(row["due_at"]),
        "scheduled_for": (
            {"local_time": row["local_time"], "timezone": row["zone"]} if row["local_time"] else None
        ),
        "late_policy": row["late_policy"],
        "max_lateness_minutes": row["max_lateness_minutes"],
        "overdue_seconds": int((now - due_at).total_seconds()) if is_late else 0,
        "waits_for": row["waits_for"],
        "next_attempt_at": format_utc_or_none(row["next_attempt_at"]),
        "published_at": format_utc_or_none(row["published_at"]),
        "test": row["test"],
        "created_at": format_utc(row["created_at"]),
        "updated_at": format_utc(row["updated_at"]),
    }


_CLASSES_OF_OLD_ERRORS: Final = {
    "TryLater": "retry",
    "Refused": "content",
    "NeedsReconnect": "account",
    "OutcomeUnknown": "unknown",
}
"""Maps the class names in errors stored by earlier releases to today's classes."""


def _serialize_error(error: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if error is None:
        return None
    error_class = error.get("class", "")
    return {
        "action": "",
        "platform_message": None,
        **error,
        "class": _CLASSES_OF_OLD_ERRORS.get(error_class, error_class),
    }


ATTEMPT_FIELDS: Final = (
    "id",
    "publication_id",
    "number",
    "revision",
    "status",
    "error",
    "receipt",
    "late_answer",
    "started_at",
    "finished_at",
)


def attempt(row: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "id": encode("att", row["id"]),
        "publication": encode("pub", row["publication_id"]),
        "number": row["number"],
        "revision": row["revision"],
        "status": row["status"],
        "error": _serialize_error(row["error"]),
        "receipt": row["receipt"],
        "late_answer": _serialize_late_answer(row["late_answer"]),
        "started_at": format_utc(row["started_at"]),
        "finished_at": format_utc_or_none(row["finished_at"]),
    }


def _serialize_late_answer(answer: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if answer is None:
        return None
    return {"external_id": answer["external_id"] or None, "url": answer["url"] or None, "at": answer["at"]}


def publish_queue(row: Mapping[str, Any], *, outlets: Sequence[str]) -> dict[str, Any]:
    """Return a queue as the API shows it; `outlets` are the public ids of those that use it."""
    return {
        "id": encode("que", row["id"]),
        "name": row["name"],
        "timezone": row["timezone"],
        "slots": row["slots"],
        "blackouts": row["blackouts"],
        "on_gap": row["on_gap"],
        "on_overlap": row["on_overlap"],
        "default": row["is_default"],
        "paused": row["is_paused"],
        "outlets": list(outlets),
        "version": row["version"],
        "created_at": format_utc(row["created_at"]),
        "updated_at": format_utc(row["updated_at"]),
    }


OUTLET_FIELDS: Final = (
    "id",
    "name",
    "platform",
    "config",
    "secret",
    "status",
    "last_error",
    "is_default",
    "is_simulated",
    "profile",
    "connected_at",
    "checked_at",
    "expires_at",
    "rests_until",
    "per_day",
    "gap_minutes",
    "version",
    "created_at",
    "updated_at",
)


def outlet(row: Mapping[str, Any], *, is_default: bool) -> dict[str, Any]:
    from pipeline import plugins  # noqa: PLC0415  the registry imports every platform
    from pipeline.platforms.base import Platform  # noqa: PLC0415  as the registry

    platform = plugins.get("platforms", row["platform"], Platform)
    return {
        "id": encode("out", row["id"]),
        "name": row["name"],
        "platform": row["platform"],
        "buckets": list(platform.buckets),
        "status": row["status"],
        "last_error": row["last_error"],
        "limits": _serialize_limits(platform, row),
        "account": _serialize_account(row["profile"]),
        "connected_at": format_utc_or_none(row["connected_at"]),
        "checked_at": format_utc_or_none(row["checked_at"]),
        "expires_at": format_utc_or_none(row["expires_at"]),
        "rests_until": format_utc_or_none(row["rests_until"]),
        "default": is_default,
        "simulated": row["is_simulated"],
        "feeds": feed_addresses(row["secret"]) if platform.is_own_feed else None,
        "version": row["version"],
        "created_at": format_utc(row["created_at"]),
        "updated_at": format_utc(row["updated_at"]),
    }


def _serialize_limits(platform: Platform, row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the limits of text, of each bucket and of the pace.

    The workspace's own caps count where they are tighter.
    """
    from pipeline.platforms import rules  # noqa: PLC0415  as the registry
    from pipeline.platforms.base import Account  # noqa: PLC0415

    account = Account(encode("out", row["id"]), config=row["config"], profile=row["profile"])
    by_bucket = {bucket: platform.rules_for(account, bucket) for bucket in platform.buckets}
    text = by_bucket.get("text")
    pace = platform.pace
    gap_minutes = pace.gap.total_seconds() / 60 if pace.gap else None
    return {
        "text": {
            "max": text.text_max if text else platform.text_limit,
            "unit": text.unit if text else platform.text_unit,
        },
        "buckets": {bucket: rules.as_json(rule) for bucket, rule in by_bucket.items() if rule},
        "per_day": min((cap for cap in (pace.per_day, row["per_day"]) if cap is not None), default=None),
        "gap_minutes": max((gap for gap in (gap_minutes, row["gap_minutes"]) if gap), default=None),
    }


def _serialize_account(profile: Mapping[str, Any]) -> dict[str, Any] | None:
    if not profile:
        return None
    return {name: profile.get(name) or None for name in ("external_id", "handle", "name", "url")}


def feed_addresses(secret: str) -> dict[str, str]:
    """Return the addresses of a workspace feed by format."""
    return {
        "atom": f"{settings.PUBLIC_URL}/feeds/{secret}.atom",
        "rss": f"{settings.PUBLIC_URL}/feeds/{secret}.rss",
        "json": f"{settings.PUBLIC_URL}/feeds/{secret}.json",
    }


def feed_page_address(secret: str) -> str:
    """Return the address of the feed as a page for people; an entry's id is the fragment that leads to it."""
    return f"{settings.PUBLIC_URL}/posts/{secret}"


PERSONA_FIELDS: Final = (
    "id",
    "name",
    "handle",
    "language",
    "links",
    "brand",
    *SECTIONS,
    "approved_lines",
    "version",
    "created_at",
    "updated_at",
)


def persona(row: Mapping[str, Any], *, is_default: bool) -> dict[str, Any]:
    return {
        "id": encode("per", row["id"]),
        "name": row["name"],
        "handle": row["handle"] or None,
        "language": row["language"],
        "sections": {name: row[name] for name in SECTIONS},
        "approved_lines": row["approved_lines"],
        "links": row["links"],
        "brand": row["brand"],
        "default": is_default,
        "version": row["version"],
        "created_at": format_utc(row["created_at"]),
        "updated_at": format_utc(row["updated_at"]),
    }


TOPIC_FIELDS: Final = (
    "id",
    "test",
    "persona_id",
    "source_id",
    "title",
    "notes",
    "angles",
    "evidence",
    "weight",
    "cooldown_days",
    "max_per_month",
    "season_from",
    "season_to",
    "is_active",
    "last_used_at",
    "version",
    "created_at",
    "updated_at",
)


def topic(row: Mapping[str, Any]) -> dict[str, Any]:
    season = {"from": row["season_from"], "to": row["season_to"]} if row["season_from"] else None
    return {
        "id": encode("top", row["id"]),
        "title": row["title"],
        "notes": row["notes"],
        "angles": row["angles"],
        "evidence": row["evidence"],
        "weight": row["weight"],
        "cooldown_days": row["cooldown_days"],
        "max_per_month": row["max_per_month"],
        "season": season,
        "is_active": row["is_active"],
        "persona": encode_or_none("per", row["persona_id"]),
        "source": encode_or_none("src", row["source_id"]),
        "last_used_at": format_utc_or_none(row["last_used_at"]),
        "test": row["test"],
        "version": row["version"],
        "created_at": format_utc(row["created_at"]),
        "updated_at": format_utc(row["updated_at"]),
    }


def series(row: Series) -> dict[str, Any]:
    return {
        "id": encode("ser", row.pk),
        "name": row.name,
        "timezone": row.timezone,
        "slots": row.slots,
        "on_gap": row.on_gap,
        "on_overlap": row.on_overlap,
        "window_days": row.window_days,
        "items_least": row.items_least,
        "items_most": row.items_most,
        "sources": row.sources,
        "persona": encode_or_none("per", row.persona_id),
        "outlets": row.outlets,
        "paused": row.is_paused,
        "next_at": format_utc_or_none(row.due_at),
        "test": row.test,
        "version": row.version,
        "created_at": format_utc(row.created_at),
        "updated_at": format_utc(row.updated_at),
    }


def series_issue(row: SeriesIssue, generated_item: UUID | None) -> dict[str, Any]:
    """Return one time of a series; `generated_item` is its digest, if it still exists."""
    return {
        "id": encode("iss", row.pk),
        "due_at": format_utc(row.due_at),
        "decision": row.decision,
        "message": row.message or None,
        "found": row.found,
        "generated_item": encode_or_none("gen", generated_item),
        "by": row.by or None,
        "created_at": format_utc(row.created_at),
    }


def recurrence(row: Recurrence) -> dict[str, Any]:
    """Return a recurrence; `stopped` says why a stopped one ended."""
    reason = row.reason
    return {
        "id": encode("rec", row.pk),
        "generated_item": encode("gen", row.item_id),
        "every_days": row.every_days,
        "time": row.time,
        "status": row.status,
        "stopped": {**reason, "by": reason["by"] or None} if reason else None,
        "next_at": format_utc_or_none(row.due_at),
        "test": row.test,
        "version": row.version,
        "created_at": format_utc(row.created_at),
        "updated_at": format_utc(row.updated_at),
    }


def recurrence_turn(row: RecurrenceTurn) -> dict[str, Any]:
    """Return one time of a recurrence; `generated_item` is the item made, if it still exists."""
    return {
        "id": encode("rct", row.pk),
        "due_at": format_utc(row.due_at),
        "decision": row.decision,
        "message": row.message or None,
        "generated_item": encode_or_none("gen", row.item_id),
        "created_at": format_utc(row.created_at),
    }
