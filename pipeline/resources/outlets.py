"""Outlets, and the engine outputs and types of sources of this service."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.conf import settings
from rest_framework import serializers

from config.core.api.fields import MomentField, PublicIdField
from config.core.api.row_serializers import (
    Answer,
    ObjectField,
    RowSerializer,
    computed,
    given,
    text_list,
)
from config.core.ids import encode
from pipeline import plugins
from pipeline.models import Bucket, OutletStatus
from pipeline.platforms import rules
from pipeline.platforms.base import Account, Platform
from pipeline.resources.fields import Reason

if TYPE_CHECKING:
    from collections.abc import Mapping
    from uuid import UUID


class TextLimit(Answer):
    max = serializers.IntegerField(allow_null=True)
    unit = serializers.CharField()


class TitleLimit(Answer):
    max = serializers.IntegerField(allow_null=True)


class MediaLimit(Answer):
    max = serializers.IntegerField()
    mime_types = text_list()
    max_bytes = serializers.IntegerField()
    max_seconds = serializers.FloatField(allow_null=True)


class BucketLimits(Answer):
    text = TextLimit()
    title = TitleLimit()
    parts = serializers.IntegerField(help_text="Posts of a thread.")
    images = MediaLimit(allow_null=True)
    video = MediaLimit(allow_null=True)


class OutletLimits(Answer):
    text = TextLimit()
    buckets = serializers.DictField(child=BucketLimits(), help_text="By bucket.")
    per_day = serializers.IntegerField(allow_null=True, help_text="Posts in any 24 hours.")
    gap_minutes = serializers.FloatField(allow_null=True, help_text="The least time between two posts.")


def _platform(kind: str) -> Platform:
    return plugins.get("platforms", kind, Platform)


def outlet_limits(  # noqa: PLR0917  one for each column
    key: UUID,
    kind: str,
    config: dict[str, Any],
    profile: dict[str, Any],
    most_per_day: int | None,
    least_gap_minutes: float | None,
) -> dict[str, Any]:
    """Return the limits of text, of each bucket and of the pace.

    The workspace's own caps count where they are tighter.
    """
    platform = _platform(kind)
    account = Account(encode("out", key), config=config, profile=profile)
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
        "per_day": min((cap for cap in (pace.per_day, most_per_day) if cap is not None), default=None),
        "gap_minutes": max((gap for gap in (gap_minutes, least_gap_minutes) if gap), default=None),
    }


class OutletAccount(Answer):
    """Whose account it is, as the platform says."""

    external_id = serializers.CharField(allow_null=True)
    handle = serializers.CharField(allow_null=True)
    name = serializers.CharField(allow_null=True)
    url = serializers.CharField(allow_null=True)


def _account(profile: Mapping[str, Any]) -> dict[str, Any] | None:
    return {name: profile.get(name) or None for name in OutletAccount.declared()} if profile else None


class Feeds(Answer):
    atom = serializers.CharField()
    rss = serializers.CharField()
    json = serializers.CharField()


def feed_addresses(secret: str) -> dict[str, str]:
    """Return the addresses of a workspace feed by format."""
    return {name: f"{settings.PUBLIC_URL}/feeds/{secret}.{name}" for name in ("atom", "rss", "json")}


def feed_page_address(secret: str) -> str:
    """Return the address of the feed as a page for people; an entry's id is the fragment that leads to it."""
    return f"{settings.PUBLIC_URL}/posts/{secret}"


class Outlet(RowSerializer):
    id = PublicIdField("out")
    name = serializers.CharField()
    platform = serializers.ChoiceField(choices=plugins.kinds("platforms"))
    buckets = computed(
        serializers.ListField(child=serializers.ChoiceField(choices=Bucket.values)),
        lambda kind: list(_platform(kind).buckets),
        "platform",
    )
    status = serializers.ChoiceField(choices=OutletStatus.values)
    last_error = Reason(allow_null=True)
    limits = computed(
        OutletLimits(), outlet_limits, "id", "platform", "config", "profile", "per_day", "gap_minutes"
    )
    account = computed(OutletAccount(allow_null=True), _account, "profile")
    connected_at = MomentField(allow_null=True)
    checked_at = MomentField(allow_null=True)
    expires_at = MomentField(allow_null=True)
    rests_until = MomentField(allow_null=True)
    default = computed(serializers.BooleanField(), lambda *, is_default: is_default)
    simulated = serializers.BooleanField(source="is_simulated")
    feeds = computed(
        Feeds(allow_null=True),
        lambda kind, secret: feed_addresses(secret) if _platform(kind).is_own_feed else None,
        "platform",
        "secret",
    )
    version = serializers.IntegerField()
    created_at = MomentField()
    updated_at = MomentField()


class Restriction(RowSerializer):
    code = serializers.CharField()
    field = serializers.CharField(
        allow_null=True, help_text="The setting that can't be used, such as `config.username`."
    )
    reason = serializers.CharField()
    remedy = serializers.CharField()


def _standing() -> tuple[Any, ...]:
    """Return the fields that say whether something works here, and if not, why and what to do."""
    return (
        computed(
            serializers.BooleanField(help_text="Whether it can work on this service."),
            lambda *, unavailability: unavailability is None,
        ),
        computed(
            serializers.CharField(allow_null=True, help_text="Why it can't; null where it can."),
            lambda *, unavailability: unavailability and unavailability.reason,
        ),
        computed(
            serializers.CharField(allow_null=True, help_text="What to do about it."),
            lambda *, unavailability: unavailability and unavailability.remedy,
        ),
        given(Restriction(many=True, help_text="What of it can't work, where the rest can.")),
    )


class Engine(RowSerializer):
    name = serializers.CharField()
    bucket = serializers.ChoiceField(choices=Bucket.values)
    credits = serializers.IntegerField(help_text="Price of one variant.")
    made_from = computed(text_list(), list, "made_from")
    version = serializers.IntegerField()
    available, reason, remedy, restrictions = _standing()


class SourceType(RowSerializer):
    type = serializers.CharField(source="kind")
    label = serializers.CharField(  # type: ignore[assignment]  # the API's name
        help_text="As people read it."
    )
    fetches = serializers.BooleanField(
        help_text="Whether it is polled; otherwise it receives pushes or runs on a schedule."
    )
    available, reason, remedy, restrictions = _standing()
    config_schema = ObjectField(help_text="JSON Schema of a source's `config`.")
