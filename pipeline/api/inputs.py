"""The bodies that the API takes: strict, and every limit named."""

from __future__ import annotations

import json
import re
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast
from urllib.parse import urlsplit

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from config.core import limits
from config.core.api.fields import (
    BoundedListField,
    MomentField,
    PublicIdField,
    StrictBooleanField,
    StrictCharField,
    StrictChoiceField,
    StrictIntegerField,
    StrictSerializer,
    unknown_names,
)
from config.core.api.nearest import hint, nearest
from pipeline import plugins
from pipeline.engines.base import Engine
from pipeline.ingest import collect
from pipeline.models import BodyFormat, GapChoice, LatePolicy, OverlapChoice
from pipeline.models.publication import LATENESS_MINUTES, LATENESS_MINUTES_MOST
from pipeline.sources.base import Source as SourceKind
from pipeline.text.wall_clock import UnknownZone, WallClock, is_skipped, moment_of, zone_named

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from config.core.errors import Detail

SOURCE_TYPES: Final = plugins.kinds("sources")


def _whole(most: int, least: int = 1, **kwargs: Any) -> StrictIntegerField:
    return StrictIntegerField(min_value=least, max_value=most, **kwargs)


_GROUP: Final = "[0-9A-Fa-f]{1,4}"
_IP_6: Final = "|".join(
    [
        f"({_GROUP}:){{7}}{_GROUP}",
        f"({_GROUP}:){{1,7}}:",
        f":((:{_GROUP}){{1,7}}|:)",
        *(f"({_GROUP}:){{1,{left}}}(:{_GROUP}){{1,{7 - left}}}" for left in range(1, 7)),
    ]
)
# Both Python and ECMA-262 read it alike, so that the document says exactly what is taken.
_WEB_ADDRESS: Final = (
    r"^[hH][tT][tT][pP][sS]?://"
    r"([^\s/?#@\[\]\\\u0000-\u0020\u007f]*@)?"
    rf"([^\s/?#@:\[\]\\<>\"^`{{|}}%\u0000-\u0020\u007f]+|\[({_IP_6})\])"
    r"(:(6553[0-5]|655[0-2][0-9]|65[0-4][0-9]{2}|6[0-4][0-9]{3}|[1-5][0-9]{4}|[1-9][0-9]{0,3}))?"
    r"([/?#][^\s\u0000-\u0020\u007f]*)?$"
)


@extend_schema_field({"type": "string", "pattern": _WEB_ADDRESS, "maxLength": limits.URL_CHARACTERS})
class WebAddressField(StrictCharField):
    """An absolute http(s) address."""

    default_error_messages: ClassVar = {"invalid_address": "Give an absolute http:// or https:// address."}

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(max_length=limits.URL_CHARACTERS, **kwargs)

    def to_internal_value(self, data: Any) -> str:
        text = super().to_internal_value(data)
        if not text and self.allow_blank:
            return text
        if not re.fullmatch(_WEB_ADDRESS, text) or not _is_splittable(text):
            self.fail("invalid_address")
        return text


def _is_splittable(address: str) -> bool:
    """A host's normal form may hold what ends a host; a pattern can't see that."""
    try:
        return bool(urlsplit(address).hostname)
    except ValueError:
        return False


def _known_engines() -> list[str]:
    return [engine.name for engine in plugins.every("engines", Engine)]


@extend_schema_field(
    {
        "type": "array",
        "items": {"type": "string", "enum": _known_engines()},
        "minItems": 1,
        "maxItems": limits.ENGINES_PER_ITEM,
    }
)
class EngineNamesField(BoundedListField):
    """Names of engine outputs, such as `Short Post`."""

    default_error_messages: ClassVar = {"unknown_engine": "There is no engine output {name}. {hint}"}

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(
            child=StrictCharField(max_length=60),
            max_length=limits.ENGINES_PER_ITEM,
            allow_empty=False,
            **kwargs,
        )

    def to_internal_value(self, data: Any) -> list[str]:
        names = cast("list[str]", super().to_internal_value(data))
        # Of the list as it was sent, before each name stands in it once.
        self.run_validators(names)
        known = _known_engines()
        for name in names:
            if name not in known:
                self.fail("unknown_engine", name=name, hint=hint(name, known))
        return list(dict.fromkeys(names))


@extend_schema_field(
    {
        "oneOf": [
            {"type": "string", "enum": ["none", "all"]},
            {
                "type": "object",
                "properties": {"newest": {"type": "integer", "minimum": 1, "maximum": limits.FEED_ENTRIES}},
                "required": ["newest"],
                "additionalProperties": False,
            },
        ]
    }
)
class FirstPollField(serializers.Field[Any, Any, Any, Any]):
    default_error_messages: ClassVar = {
        "invalid": 'Give {{"newest": n}} with n from 1 to {most}, "none" or "all".',
    }

    def to_internal_value(self, data: Any) -> Any:
        if data in ("none", "all"):
            return data
        if isinstance(data, dict) and set(data) == {"newest"}:
            newest = data["newest"]
            # To JSON Schema 3.0 is a whole number and true is none.
            is_number = isinstance(newest, int | float) and not isinstance(newest, bool)
            if is_number and newest == int(newest) and 1 <= newest <= limits.FEED_ENTRIES:
                return {"newest": int(newest)}
        return self.fail("invalid", most=limits.FEED_ENTRIES)

    def to_representation(self, value: Any) -> Any:
        return value


class JsonObjectField(serializers.Field[Any, Any, Any, Any]):
    """Any JSON object, up to a number of bytes."""

    default_error_messages: ClassVar = {
        "not_an_object": "Give a JSON object.",
        "too_large": "It may have {most} bytes of JSON at most.",
    }

    def __init__(self, *, most_bytes: int, **kwargs: Any) -> None:
        self.most_bytes = most_bytes
        super().__init__(**kwargs)

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        if not isinstance(data, dict):
            self.fail("not_an_object")
        if len(json.dumps(data).encode()) > self.most_bytes:
            self.fail("too_large", most=self.most_bytes)
        return data

    def to_representation(self, value: Any) -> Any:
        return value


OpenObjectField = extend_schema_field({"type": "object", "additionalProperties": True})(JsonObjectField)


def _outlets(**kwargs: Any) -> BoundedListField:
    return BoundedListField(
        child=PublicIdTextField("out"),
        max_length=limits.OUTLETS_PER_ITEM,
        allow_empty=kwargs.pop("allow_empty", True),
        **kwargs,
    )


def _persona(**kwargs: Any) -> PublicIdField:
    message = "Give the id of a persona, per_ and 26 characters: GET /v1/personas lists them, POST /v1/personas makes one."
    return PublicIdField("per", required=False, error_messages={"invalid_id": message}, **kwargs)


class PublicIdTextField(PublicIdField):
    """A public id, checked and kept as its text."""

    def to_internal_value(self, data: Any) -> str:  # type: ignore[override]
        super().to_internal_value(data)
        return str(data)


class PatternField(StrictCharField):
    """Text that matches a pattern from end to end: Python's `$` alone lets a line break pass."""

    default_error_messages: ClassVar = {"pattern": "Give text of the form {pattern}."}

    def __init__(self, pattern: str, **kwargs: Any) -> None:
        self.pattern = pattern
        super().__init__(**kwargs)

    def to_internal_value(self, data: Any) -> str:
        text = super().to_internal_value(data)
        if not re.fullmatch(self.pattern, text):
            self.fail("pattern", pattern=self.pattern)
        return text


def _config_schema(source_type: str) -> Mapping[str, Any]:
    return plugins.get("sources", source_type, SourceKind).config_schema


def _of_type(source_type: str) -> dict[str, Any]:
    """What a source of one type looks like; `config` may be left out where nothing in it is required."""
    config = _config_schema(source_type)
    is_needed = "required" in config or "oneOf" in config
    return {
        "properties": {"type": {"const": source_type}, "config": config},
        "required": ["type", "config"] if is_needed else ["type"],
    }


class SourceInput(StrictSerializer):
    schema_rules: ClassVar[Mapping[str, Any]] = {"oneOf": [_of_type(each) for each in SOURCE_TYPES]}

    type = StrictChoiceField(
        choices=SOURCE_TYPES, error_messages={"required": f"Give one of: {', '.join(SOURCE_TYPES)}."}
    )
    name = StrictCharField(max_length=limits.NAME_CHARACTERS, required=False)
    config = OpenObjectField(most_bytes=limits.METADATA_BYTES, required=False, help_text="By type.")
    engines = EngineNamesField(
        required=False,
        help_text="Default: the workspace's; a brand lane takes those of them that say one thing.",
    )
    variants = _whole(limits.VARIANTS, required=False)
    persona = _persona(allow_null=True, help_text="Who speaks; null: the workspace's.")
    outlets = _outlets(
        required=False, help_text="Where its items go by default, in order; empty: the workspace's."
    )
    poll_interval_minutes = _whole(
        60 * 24 * 7, required=False, allow_null=True, help_text="Null: as often as it brings something."
    )
    autopilot = StrictBooleanField(
        required=False,
        help_text="Publish the best variant of each group without a person, where it passes the gates.",
    )
    first_poll = FirstPollField(
        required=False,
        allow_null=True,
        help_text=f"How many entries of the first poll are worked on; null: the newest {limits.FIRST_POLL_NEWEST}.",
    )
    max_age_days = _whole(
        3650, required=False, allow_null=True, help_text="Older entries are kept as skipped."
    )
    max_burst = _whole(
        limits.FEED_ENTRIES,
        required=False,
        allow_null=True,
        help_text="New entries of one poll that are worked on, the rest is kept as skipped; "
        f"null: {limits.MAX_BURST_DEFAULT}.",
    )

    def unknown_fields(self, data: Mapping[str, Any], known: Sequence[str]) -> list[Detail]:
        return unknown_names(data, known, what="field", advice=_advice_of(data, known))


def _settings_beside(data: Mapping[str, Any], known: Collection[str]) -> dict[str, Any]:
    """What stands beside `config` of a source and means one of its settings, as it was sent."""
    strays = [name for name in data if name not in known][: limits.UNKNOWN_NAMES_TOLD]
    types = [data["type"]] if data.get("type") in SOURCE_TYPES else SOURCE_TYPES
    settings = {name for each in types for name in _config_schema(each)["properties"]}
    return {
        name: data[name] for name in strays if nearest(name, {*known, *settings}) in settings - set(known)
    }


def _advice_of(data: Mapping[str, Any], known: Collection[str]) -> dict[str, str]:
    beside = _settings_beside(data, known)
    if not beside:
        return {}
    config = source_as_meant(data, known)["config"]
    named = {"type": data["type"]} if data.get("type") in SOURCE_TYPES else {}
    form = ", ".join(
        [*(f'"type": "{one}"' for one in named.values()), f'"config": {collect.written(config)}']
    )
    return dict.fromkeys(beside, f"Put it into config: {{{form}}}.")


def source_as_meant(data: Mapping[str, Any], known: Collection[str]) -> dict[str, Any]:
    """The body of a source with what stands beside `config` in it, in the words and forms of the type's settings."""
    beside = _settings_beside(data, known)
    rest = {name: value for name, value in data.items() if name in known}
    given = data.get("config")
    config = {**beside, **(given if isinstance(given, dict) else {})}
    if beside and data.get("type") in SOURCE_TYPES:
        config = collect.as_meant(collect.kind_of(data["type"]), config)
    return {**rest, "config": config} if config else rest


class SourceChanges(StrictSerializer):
    name = StrictCharField(max_length=limits.NAME_CHARACTERS, required=False)
    status = StrictChoiceField(choices=("active", "paused"), required=False)
    config = OpenObjectField(
        most_bytes=limits.METADATA_BYTES, required=False, help_text="That of the source's type."
    )
    engines = EngineNamesField(
        required=False,
        help_text="Default: the workspace's; a brand lane takes those of them that say one thing.",
    )
    variants = _whole(limits.VARIANTS, required=False)
    persona = _persona(allow_null=True, help_text="Who speaks; null: the workspace's.")
    outlets = _outlets(
        required=False, help_text="Where its items go by default, in order; empty: the workspace's."
    )
    poll_interval_minutes = _whole(
        60 * 24 * 7, required=False, allow_null=True, help_text="Null: as often as it brings something."
    )
    autopilot = StrictBooleanField(
        required=False,
        help_text="Publish the best variant of each group without a person, where it passes the gates.",
    )
    first_poll = FirstPollField(
        required=False,
        allow_null=True,
        help_text=f"How many entries of the first poll are worked on; null: the newest {limits.FIRST_POLL_NEWEST}.",
    )
    max_age_days = _whole(
        3650, required=False, allow_null=True, help_text="Older entries are kept as skipped."
    )
    max_burst = _whole(
        limits.FEED_ENTRIES,
        required=False,
        allow_null=True,
        help_text="New entries of one poll that are worked on, the rest is kept as skipped; "
        f"null: {limits.MAX_BURST_DEFAULT}.",
    )


class MediaInput(StrictSerializer):
    schema_rules: ClassVar[Mapping[str, Any]] = {"oneOf": [{"required": ["url"]}, {"required": ["upload"]}]}

    url = WebAddressField(required=False)
    upload = PublicIdTextField(
        "upl", required=False, help_text="What POST /uploads answered; its type is known."
    )
    type = StrictCharField(max_length=100, required=False, allow_blank=True, help_text="A MIME type.")
    author = StrictCharField(
        max_length=limits.CREDIT_CHARACTERS,
        required=False,
        allow_blank=True,
        help_text="Whose it is; stands on the film while it is shown.",
    )
    licence = StrictCharField(
        max_length=limits.CREDIT_CHARACTERS,
        required=False,
        allow_blank=True,
        help_text="Stands beside the author.",
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if len({"url", "upload"} & set(attrs)) != 1:
            raise serializers.ValidationError("Give url or upload, one of them.", code="one_of")
        return attrs


def _something_in(*names: str) -> dict[str, Any]:
    """The rule that at least one of these isn't empty."""
    least = {
        "title": {"minLength": 1},
        "body": {"minLength": 1},
        "media": {"minItems": 1},
        "source": {},
    }
    return {"anyOf": [{"properties": {name: least[name]}, "required": [name]} for name in names]}


class RawItemInput(StrictSerializer):
    schema_rules: ClassVar[Mapping[str, Any]] = _something_in("title", "body", "media")

    source = PublicIdField(  # type: ignore[assignment]  # the contract's name
        "src", required=False, help_text="Default: the workspace's own push source."
    )
    external_id = StrictCharField(
        max_length=limits.EXTERNAL_ID_CHARACTERS, required=False, help_text="Your own id of it."
    )
    url = WebAddressField(required=False, help_text="Where it stands. Nothing is fetched from there.")
    title = StrictCharField(
        max_length=limits.TITLE_CHARACTERS,
        required=False,
        allow_blank=True,
        help_text="Default: the heading that a Markdown body begins with, or the <h1> or <title> of an HTML one.",
    )
    body = StrictCharField(required=False, allow_blank=True, help_text="Text, Markdown or HTML.")
    body_format = StrictChoiceField(
        choices=BodyFormat.values,
        required=False,
        help_text="Default: html where the body has tags, else markdown.",
    )
    language = PatternField(
        r"^[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*$",
        max_length=35,
        required=False,
        error_messages={"pattern": "Give a BCP 47 language tag, such as en or pt-BR."},
        help_text="BCP 47, such as en or pt-BR; default: guessed from the words. What the service adds is in it.",
    )
    author = StrictCharField(max_length=200, required=False, allow_blank=True)
    published_at = MomentField(required=False, allow_null=True)
    media = BoundedListField(
        child=MediaInput(),
        max_length=limits.MEDIA_PER_ITEM,
        required=False,
        help_text="After a video its transcript.",
    )
    metadata = OpenObjectField(
        most_bytes=limits.METADATA_BYTES,
        required=False,
        help_text="Labels, not documents; comes back as it was.",
    )
    engines = EngineNamesField(required=False, help_text="Default: the source's, else the workspace's.")
    variants = _whole(limits.VARIANTS, required=False, help_text="Default: the source's.")
    persona = _persona()

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if any(attrs.get(name) for name in ("title", "body", "media")):
            return attrs
        if attrs.get("url"):
            # A call that may wait for a stranger's server would hold its transaction, and a batch a hundred of them.
            message = (
                "An address alone isn't fetched here. Send the page's words as body; or let a source of the type scraper "
                "read the address: POST /v1/sources."
            )
            raise serializers.ValidationError({"url": [serializers.ErrorDetail(message, "address_alone")]})
        message = "Give at least one of title, body, media."
        raise serializers.ValidationError(message, code="empty")


class UncheckedField(serializers.JSONField):
    """Any JSON, null too."""

    def run_validation(self, data: Any = serializers.empty) -> Any:
        return data


class RawBatchInput(StrictSerializer):
    items = BoundedListField(
        child=UncheckedField(),
        min_length=1,
        max_length=limits.BATCH_ITEMS,
        help_text="Bodies of POST /raw. Each stands alone: one that can't be used is refused in its own entry.",
    )


class EstimateInput(RawItemInput):
    """A raw item's body; or a source alone, for what one item of it would cost."""

    schema_rules: ClassVar[Mapping[str, Any]] = _something_in("title", "body", "media", "source")

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if attrs.get("source") and not any(attrs.get(name) for name in ("title", "body", "url", "media")):
            return attrs
        return super().validate(attrs)


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
    content = OpenObjectField(most_bytes=limits.BODY_BYTES, required=False, help_text="Typed by bucket.")
    outlets = _outlets(required=False)
    overrides = OverridesField(child=OutletOverride(), required=False)
    assets = BoundedListField(child=AssetChanges(), max_length=50, required=False)


class RejectInput(StrictSerializer):
    reason = StrictCharField(max_length=500, required=False, allow_blank=True)


class RegenerateInput(StrictSerializer):
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


class PublishInput(StrictSerializer):
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

    outlets = _outlets(required=False, allow_empty=False, help_text="Instead of the item's.")
    publish_at = MomentField(
        required=False,
        error_messages={
            "invalid": "Write the moment as RFC 3339 with an offset, such as 2026-11-20T09:30:00Z; "
            "for a time of somebody's clock give local_time and timezone in its place."
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
    max_lateness_minutes = _whole(
        LATENESS_MINUTES_MOST, required=False, help_text=f"Default: {LATENESS_MINUTES}."
    )
    dry_run = StrictBooleanField(required=False, help_text="Run every outlet's rules and store nothing.")

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
            attrs["max_lateness_minutes"] = LATENESS_MINUTES
        return attrs


def moment_asked_for(
    given: dict[str, Any], *, workspace_zone: str, now: datetime
) -> tuple[datetime | None, WallClock | None]:
    """The moment of `publish_at` or `local_time`, and its clock; None for now. Raises `ValidationError` on the field."""
    moment: datetime | None = given.get("publish_at")
    clock = None
    field = "publish_at"
    if "local_time" in given:
        field = "local_time"
        moment, clock = _from_wall_clock(given, workspace_zone)
    if moment is not None:
        refuse_unless_schedulable(moment, now, field)
    return moment, clock


def refuse_unless_schedulable(moment: datetime, now: datetime, field: str) -> None:
    if moment < now - timedelta(seconds=1):
        raise serializers.ValidationError(
            {field: "This time is past; leave it out to publish now."}, code="past"
        )
    if moment > now + limits.PUBLISH_AHEAD:
        message = f"Schedule at most {limits.PUBLISH_AHEAD.days} days ahead."
        raise serializers.ValidationError({field: message}, code="too_far")


def _from_wall_clock(given: dict[str, Any], workspace_zone: str) -> tuple[datetime, WallClock]:
    name = given.get("timezone", workspace_zone)
    try:
        zone = zone_named(name)
    except UnknownZone as error:
        message = f"There is no time zone {name!r}; give an IANA name such as Europe/Berlin."
        raise serializers.ValidationError({"timezone": message}, code="unknown_timezone") from error
    try:
        naive = datetime.fromisoformat(given["local_time"])
        on_gap = given.get("on_gap", "shift")
        clock = WallClock(naive, name, on_gap=on_gap, on_overlap=given.get("on_overlap", "first"))
        moment, is_gap = moment_of(clock), is_skipped(naive, zone)
    # On the first and last day of the calendar another zone's time has no year.
    except (ValueError, OverflowError) as error:
        raise serializers.ValidationError({"local_time": "There is no such date and time."}) from error
    if is_gap and on_gap == "reject":
        message = f"The clocks of {name} skip this time; give another, or on_gap: shift."
        raise serializers.ValidationError({"local_time": message}, code="gap")
    return moment, clock
