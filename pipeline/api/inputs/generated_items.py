"""Bodies about generated items: edit, reject, regenerate, publish."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, ClassVar, Final

from rest_framework import serializers

from config.core import limits as core_limits
from config.core.api.fields import (
    BoundedListField,
    MomentField,
    PublicIdField,
    StrictBooleanField,
    StrictCharField,
    StrictChoiceField,
    StrictSerializer,
    unknown_names,
)
from pipeline import limits
from pipeline.api.inputs.fields import (
    ContentChangesField,
    OpenObjectField,
    PatternField,
    WebAddressField,
    outlet_ids_field,
    whole_number_field,
)
from pipeline.models import GapChoice, LatePolicy, OverlapChoice
from pipeline.models.publication import DEFAULT_LATENESS_MINUTES, MAX_LATENESS_MINUTES
from pipeline.text.local_time import UnknownZone, WallClock, is_skipped, moment_of, zone_named

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from config.core.errors import Detail


MAX_REVISION: Final = 2**31 - 1
"""The largest number that the column holds."""


class AssetChanges(StrictSerializer):
    id = PublicIdField("ast")
    alt_text = StrictCharField(max_length=2000, allow_blank=True)


class OutletOverride(StrictSerializer):
    title = StrictCharField(max_length=limits.TITLE_CHARACTERS, required=False, allow_blank=True)
    body = StrictCharField(max_length=limits.BODY_CHARACTERS, required=False, allow_blank=True)
    settings = OpenObjectField(most_bytes=limits.METADATA_BYTES, required=False)


class OutletOverrideNow(OutletOverride):
    publish_at = MomentField(required=False)


class OverridesField(serializers.DictField):
    """By public id of an outlet."""

    schema_rules: ClassVar[Mapping[str, Any]] = {
        "propertyNames": {"pattern": "^out_[0-7][0-9a-hjkmnp-tv-z]{25}$"},
        "maxProperties": limits.OUTLETS_PER_ITEM,
    }
    default_error_messages: ClassVar = {
        "invalid_id": "Name outlets by their ids, out_ and 26 characters.",
        "too_many": "Name at most {most} outlets.",
    }

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        if isinstance(data, dict) and len(data) > limits.OUTLETS_PER_ITEM:
            self.fail("too_many", most=limits.OUTLETS_PER_ITEM)
        values: dict[str, Any] = super().to_internal_value(data)
        for key in values:
            try:
                PublicIdField("out").to_internal_value(key)
            except serializers.ValidationError:
                self.fail("invalid_id")
        return {key: dict(value) for key, value in values.items()}


class GeneratedItemChanges(StrictSerializer):
    title = StrictCharField(max_length=limits.TITLE_CHARACTERS, required=False, allow_blank=True)
    body = StrictCharField(max_length=limits.BODY_CHARACTERS, required=False)
    content = ContentChangesField(most_bytes=core_limits.BODY_BYTES, required=False)
    outlets = outlet_ids_field(required=False)
    overrides = OverridesField(child=OutletOverride(), required=False)
    assets = BoundedListField(child=AssetChanges(), max_length=50, required=False)


class RevisionInput(StrictSerializer):
    """May name the revision that was read; 412 if there is a newer one."""

    revision = whole_number_field(MAX_REVISION, 0, required=False, help_text="412 unless it is the newest.")


class RejectInput(RevisionInput):
    reason = StrictCharField(max_length=500, required=False, allow_blank=True)


class RegenerateInput(RevisionInput):
    hint = StrictCharField(
        max_length=limits.HINT_CHARACTERS,
        required=False,
        allow_blank=True,
        help_text="What is asked of the new variant, such as `shorter, for beginners`.",
    )


class SettleInput(StrictSerializer):
    """What a person found: whether it is published, and where."""

    published = StrictBooleanField()
    url = WebAddressField(required=False)


_PUBLISH_NOW_ADVICE: Final = "To publish now leave publish_at out."
_WORDS_FOR_NOW: Final = frozenset(
    {"now", "publish_now", "immediate", "immediately", "mode", "action", "publish", "instant", "delay"}
)


class PublishInput(RevisionInput):
    """Empty publishes now; a time schedules or re-times."""

    schema_rules: ClassVar[Mapping[str, Any]] = {
        "not": {
            "anyOf": [
                {"required": list(pair)}
                for pair in (("publish_at", "local_time"), ("publish_at", "queue"), ("local_time", "queue"))
            ]
        },
        "dependentRequired": {name: ["local_time"] for name in ("timezone", "on_gap", "on_overlap")},
        "dependentSchemas": {
            "max_lateness_minutes": {
                "properties": {"late_policy": {"enum": ["next_slot", "hold"]}},
                "required": ["late_policy"],
            }
        },
    }

    outlets = outlet_ids_field(required=False, allow_empty=False, help_text="Instead of the item's.")
    publish_at = MomentField(
        required=False,
        error_messages={
            "invalid": "Write the moment as RFC 3339 with an offset, such as 2026-11-20T09:30:00Z; for a "
            "local time, give local_time and timezone instead. " + _PUBLISH_NOW_ADVICE,
            "null": _PUBLISH_NOW_ADVICE,
        },
    )
    local_time = PatternField(
        r"^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])T([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9])?$",
        required=False,
        error_messages={"pattern": "Give a date and time without an offset, such as 2027-03-28T02:30."},
        help_text="Wall-clock time in `timezone`, no offset.",
    )
    timezone = StrictCharField(
        max_length=64, required=False, help_text="IANA name; default: the workspace's."
    )
    on_gap = StrictChoiceField(choices=GapChoice.values, required=False)
    on_overlap = StrictChoiceField(choices=OverlapChoice.values, required=False)
    queue = StrictChoiceField(
        choices=("next",), required=False, help_text="Each outlet's next free slot of its queue."
    )
    overrides = OverridesField(child=OutletOverrideNow(), required=False)
    keep_siblings = StrictBooleanField(
        required=False,
        help_text="Leave the other variants of the group ready; by default they are rejected as superseded.",
    )
    late_policy = StrictChoiceField(
        choices=LatePolicy.values, required=False, help_text="Default: the workspace's, with its minutes."
    )
    max_lateness_minutes = whole_number_field(
        MAX_LATENESS_MINUTES, required=False, help_text=f"Default: {DEFAULT_LATENESS_MINUTES}."
    )
    dry_run = StrictBooleanField(required=False, help_text="Run every outlet's rules and store nothing.")

    def unknown_fields(self, data: Mapping[str, Any], known: Sequence[str]) -> list[Detail]:
        advice = dict.fromkeys(_WORDS_FOR_NOW.intersection(data), _PUBLISH_NOW_ADVICE)
        return unknown_names(data, known, noun="field", advice=advice)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if "publish_at" in attrs and "local_time" in attrs:
            raise serializers.ValidationError(
                {"local_time": "Give publish_at or local_time, not both."}, code="both"
            )
        if "queue" in attrs and {"publish_at", "local_time"} & set(attrs):
            raise serializers.ValidationError({"queue": "Give a time or queue, not both."}, code="both")
        for name in ("timezone", "on_gap", "on_overlap"):
            if name in attrs and "local_time" not in attrs:
                raise serializers.ValidationError({name: f"{name} goes with local_time."}, code="alone")
        has_limit = attrs.get("late_policy", "publish") != "publish"
        if "max_lateness_minutes" in attrs and not has_limit:
            message = "max_lateness_minutes goes with late_policy next_slot or hold."
            raise serializers.ValidationError({"max_lateness_minutes": message}, code="alone")
        if has_limit and "max_lateness_minutes" not in attrs:
            attrs["max_lateness_minutes"] = DEFAULT_LATENESS_MINUTES
        return attrs


def read_moment(
    values: dict[str, Any], *, workspace_zone: str, now: datetime
) -> tuple[datetime | None, WallClock | None]:
    """Return the moment of `publish_at` or `local_time`, and the local time.

    The moment is `None` if neither is given, and the local time is `None` without `local_time`. Raises
    `ValidationError` if the time doesn't exist, is past or is too far ahead.
    """
    moment: datetime | None = values.get("publish_at")
    clock = None
    field = "publish_at"
    if "local_time" in values:
        field = "local_time"
        moment, clock = _from_wall_clock(values, workspace_zone)
    if moment is not None:
        refuse_unless_schedulable(moment, now, field)
    return moment, clock


def refuse_unless_schedulable(moment: datetime, now: datetime, field: str) -> None:
    """Raise `ValidationError` if the moment is over a second ago, or further ahead than `PUBLISH_AHEAD`."""
    if moment < now - timedelta(seconds=1):
        raise serializers.ValidationError(
            {field: "This time is past; leave it out to publish now."}, code="past"
        )
    if moment > now + limits.PUBLISH_AHEAD:
        message = f"Schedule at most {limits.PUBLISH_AHEAD.days} days ahead."
        raise serializers.ValidationError({field: message}, code="too_far")


def _from_wall_clock(values: dict[str, Any], workspace_zone: str) -> tuple[datetime, WallClock]:
    """Return the moment of a local time, and the local time.

    Raises `ValidationError` if the zone is unknown, there is no such date, or the clocks skip the time and
    `on_gap` is `reject`.
    """
    name = values.get("timezone", workspace_zone)
    try:
        zone = zone_named(name)
    except UnknownZone as error:
        message = f"There is no time zone {name!r}; give an IANA name such as Europe/Berlin."
        raise serializers.ValidationError({"timezone": message}, code="unknown_timezone") from error
    try:
        naive = datetime.fromisoformat(values["local_time"])
        on_gap = values.get("on_gap", "shift")
        clock = WallClock(naive, name, on_gap=on_gap, on_overlap=values.get("on_overlap", "first"))
        moment, is_gap = moment_of(clock), is_skipped(naive, zone)
    # On the first and last day of the calendar the time in UTC may be outside of it.
    except (ValueError, OverflowError) as error:
        raise serializers.ValidationError({"local_time": "There is no such date and time."}) from error
    if is_gap and on_gap == "reject":
        message = f"The clocks of {name} skip this time; give another, or on_gap: shift."
        raise serializers.ValidationError({"local_time": message}, code="gap")
    return moment, clock
