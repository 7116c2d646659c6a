"""Bodies about sources: one that is registered, and its changes."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

from config.core import limits as core_limits
from config.core.api.fields import (
    StrictBooleanField,
    StrictCharField,
    StrictChoiceField,
    StrictSerializer,
    unknown_names,
)
from config.core.api.nearest import nearest
from pipeline import limits, plugins
from pipeline.api.inputs.fields import (
    SOURCE_TYPES,
    EngineNamesField,
    FirstPollField,
    OpenObjectField,
    outlet_ids_field,
    persona_id_field,
    whole_number_field,
)
from pipeline.ingest import collect
from pipeline.sources.base import Source as SourceKind

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from config.core.errors import Detail


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
    name = StrictCharField(max_length=core_limits.NAME_CHARACTERS, required=False)
    config = OpenObjectField(most_bytes=limits.METADATA_BYTES, required=False, help_text="By type.")
    engines = EngineNamesField(
        required=False,
        help_text="Default: the workspace's; a brand lane takes those of them that say one thing.",
    )
    variants = whole_number_field(limits.VARIANTS, required=False)
    persona = persona_id_field(allow_null=True, help_text="Who speaks; null: the workspace's.")
    outlets = outlet_ids_field(
        required=False, help_text="Where its items go by default, in order; empty: the workspace's."
    )
    poll_interval_minutes = whole_number_field(
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
        return unknown_names(data, known, what="field", advice=config_advice(data, known))


def _settings_beside(data: Mapping[str, Any], known: Collection[str]) -> dict[str, Any]:
    """What stands beside `config` of a source and means one of its settings, as it was sent."""
    strays = [name for name in data if name not in known][: core_limits.UNKNOWN_NAMES_TOLD]
    meant = _type_meant(data)
    types = [meant] if meant else SOURCE_TYPES
    settings = {name for each in types for name in _config_schema(each)["properties"]}
    return {
        name: data[name] for name in strays if nearest(name, {*known, *settings}) in settings - set(known)
    }


def config_advice(
    data: Mapping[str, Any], known: Collection[str], stored: Mapping[str, Any] = MappingProxyType({})
) -> dict[str, str]:
    """What to say of each setting that stands beside `config`; a source that is changed has its type and settings."""
    beside = _settings_beside(data, known)
    if not beside:
        return {}
    meant = source_as_meant(data, known, stored)
    config = meant.pop("config")
    # Of a change only this part: the rest may be wrong as well, and is told.
    beside_it = collect.written(meant)[1:-1] if "type" in known else ""
    form = ", ".join([*filter(None, [beside_it]), f'"config": {collect.written(config)}'])
    return dict.fromkeys(beside, f"Put it into config: {{{form}}}.")


def _type_meant(data: Mapping[str, Any]) -> str:
    """The type of source that a body names, in whatever letters; empty where it names none."""
    said = next((data[name] for name in ("type", "kind", "source_type") if name in data), None)
    word = said.strip().lower() if isinstance(said, str) else ""
    return word if word in SOURCE_TYPES else ""


def source_as_meant(
    data: Mapping[str, Any], known: Collection[str], stored: Mapping[str, Any] = MappingProxyType({})
) -> dict[str, Any]:
    """The body of a source with what stands beside `config` in it, in the words and forms of the type's settings.

    Where something stands there, settings that aren't given are those that are `stored`.
    """
    beside = _settings_beside(data, known)
    rest = {name: value for name, value in data.items() if name in known and name not in {"type", "config"}}
    meant = _type_meant(data)
    if "type" in known and meant:
        rest = {"type": meant, **rest}
    given = data.get("config")
    config = {**beside, **(given if isinstance(given, dict) else {})}
    if beside and meant:
        config = collect.as_meant(collect.kind_of(meant), {**stored, **config})
    return {**rest, "config": config} if config else rest


class SourceChanges(StrictSerializer):
    name = StrictCharField(max_length=core_limits.NAME_CHARACTERS, required=False)
    status = StrictChoiceField(choices=("active", "paused"), required=False)
    config = OpenObjectField(
        most_bytes=limits.METADATA_BYTES, required=False, help_text="That of the source's type."
    )
    engines = EngineNamesField(
        required=False,
        help_text="Default: the workspace's; a brand lane takes those of them that say one thing.",
    )
    variants = whole_number_field(limits.VARIANTS, required=False)
    persona = persona_id_field(allow_null=True, help_text="Who speaks; null: the workspace's.")
    outlets = outlet_ids_field(
        required=False, help_text="Where its items go by default, in order; empty: the workspace's."
    )
    poll_interval_minutes = whole_number_field(
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
