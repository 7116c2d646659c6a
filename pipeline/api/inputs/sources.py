"""Bodies about sources: register and change."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from config.core import limits as core_limits
from config.core.api.fields import (
    Changes,
    StrictBooleanField,
    StrictCharField,
    StrictChoiceField,
    StrictSerializer,
    unknown_names,
)
from config.core.api.nearest import find_nearest
from pipeline import limits, plugins
from pipeline.api.inputs.fields import (
    ConfigChangesField,
    EngineNamesField,
    FirstPollField,
    OpenObjectField,
    outlet_ids_field,
    persona_id_field,
    whole_number_field,
)
from pipeline.ingest import collect
from pipeline.resources import SOURCE_TYPES
from pipeline.sources.base import Source as SourceKind

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from config.core.errors import Detail


def _config_schema(source_type: str) -> Mapping[str, Any]:
    return plugins.get("sources", source_type, SourceKind).config_schema


def _schema_of_type(source_type: str) -> dict[str, Any]:
    """Return what a source of one type adds to the schema; `config` is optional if nothing in it is required."""
    config = _config_schema(source_type)
    is_config_required = "required" in config or "oneOf" in config
    return {
        "properties": {"config": config},
        "required": ["type", "config"] if is_config_required else ["type"],
    }


class SourceInput(StrictSerializer):
    variants_by: ClassVar[str] = "type"
    schema_variants: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        source_type: _schema_of_type(source_type) for source_type in SOURCE_TYPES
    }

    type = StrictChoiceField(
        choices=SOURCE_TYPES, error_messages={"required": f"Give one of: {', '.join(SOURCE_TYPES)}."}
    )
    name = StrictCharField(max_length=core_limits.NAME_CHARACTERS, required=False)
    config = OpenObjectField(most_bytes=limits.METADATA_BYTES, required=False, help_text="By type.")
    engines = EngineNamesField(
        required=False,
        help_text="Default: the workspace's; a brand lane takes those of them that say one thing.",
    )
    variants = whole_number_field(limits.VARIANTS, required=False)
    persona = persona_id_field(allow_null=True, help_text="Its persona; null: the workspace's.")
    outlets = outlet_ids_field(
        required=False, help_text="Where its items go by default, in order; empty: the workspace's."
    )
    poll_interval_minutes = whole_number_field(
        60 * 24 * 7,
        required=False,
        allow_null=True,
        help_text="Null: adapts to how often new entries appear.",
    )
    autopilot = StrictBooleanField(
        required=False,
        help_text="Publish the best variant of each group without a review if it passes autopilot's checks.",
    )
    first_poll = FirstPollField(
        required=False,
        allow_null=True,
        help_text=f"How many entries of the first poll are worked on; null: the newest {limits.FIRST_POLL_NEWEST}.",
    )
    max_age_days = whole_number_field(
        3650, required=False, allow_null=True, help_text="Older entries are kept as skipped."
    )
    max_burst = whole_number_field(
        limits.FEED_ENTRIES,
        required=False,
        allow_null=True,
        help_text="New entries of one poll that are worked on, the rest is kept as skipped; "
        f"null: {limits.MAX_BURST_DEFAULT}.",
    )

    def unknown_fields(self, data: Mapping[str, Any], known: Sequence[str]) -> list[Detail]:
        return unknown_names(data, known, noun="field", advice=config_advice(data, known))


def _misplaced_settings(data: Mapping[str, Any], known: Collection[str]) -> dict[str, Any]:
    """Return the unknown fields next to `config` that look like settings of the source's type, as sent.

    Without a known type, the settings of all types count.
    """
    unknown = [name for name in data if name not in known][: core_limits.UNKNOWN_NAMES_TOLD]
    intended_type = _intended_type(data)
    types = [intended_type] if intended_type else SOURCE_TYPES
    settings = {name for source_type in types for name in _config_schema(source_type)["properties"]}
    return {
        name: data[name]
        for name in unknown
        if find_nearest(name, {*known, *settings}) in settings - set(known)
    }


def config_advice(
    data: Mapping[str, Any],
    known: Collection[str],
    stored: Mapping[str, Any] = MappingProxyType({}),
    *,
    instruction: str = "Put it into config",
) -> dict[str, str]:
    """Return the advice for each setting that stands next to `config`: the instruction and a corrected body.

    `stored` are the present settings of a source that is changed.
    """
    misplaced = _misplaced_settings(data, known)
    if not misplaced:
        return {}
    corrected = source_as_meant(data, known, stored)
    config = corrected.pop("config")
    # For a change only `config` is shown, because the other fields may be wrong too and have separate errors.
    other_fields = collect.settings_as_text(corrected)[1:-1] if "type" in known else ""
    example = ", ".join([*filter(None, [other_fields]), f'"config": {collect.settings_as_text(config)}'])
    return dict.fromkeys(misplaced, f"{instruction}: {{{example}}}.")


def _intended_type(data: Mapping[str, Any]) -> str:
    """Return the type of source that a body names in any case, or an empty text if it names no known type."""
    value = next((data[name] for name in ("type", "kind", "source_type") if name in data), None)
    normalized = value.strip().lower() if isinstance(value, str) else ""
    return normalized if normalized in SOURCE_TYPES else ""


def source_as_meant(
    data: Mapping[str, Any], known: Collection[str], stored: Mapping[str, Any] = MappingProxyType({})
) -> dict[str, Any]:
    """Return the known fields of a source's body, with misplaced settings moved into `config`.

    If any were moved, and the type is known, `config` has the type's names and forms, and the `stored`
    settings that aren't given.
    """
    misplaced = _misplaced_settings(data, known)
    other_fields = {
        name: value for name, value in data.items() if name in known and name not in {"type", "config"}
    }
    intended_type = _intended_type(data)
    if "type" in known and intended_type:
        other_fields = {"type": intended_type, **other_fields}
    sent_config = data.get("config")
    config = {**misplaced, **(sent_config if isinstance(sent_config, dict) else {})}
    if misplaced and intended_type:
        config = collect.guess_settings(collect.kind_of(intended_type), {**stored, **config})
    return {**other_fields, "config": config} if config else other_fields


class SourceChanges(Changes, SourceInput):
    schema_variants: ClassVar[Mapping[str, Mapping[str, Any]]] = {}

    type = None  # type: ignore[assignment]  # left out
    status = StrictChoiceField(choices=("active", "paused"), required=False)
    config = ConfigChangesField(most_bytes=limits.METADATA_BYTES, required=False)

    # What stands beside `config` is advised on with the stored settings, which the view knows.
    unknown_fields = StrictSerializer.unknown_fields
