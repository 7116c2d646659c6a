"""Describes what `content` of a generated item and `config` of a source hold, by bucket and by type."""

from __future__ import annotations

from typing import Any, Final

from drf_spectacular.utils import PolymorphicProxySerializer, extend_schema_field
from rest_framework import serializers

from pipeline import plugins
from pipeline.resources.fields import SOURCE_TYPES
from pipeline.sources.base import Source as SourceKind
from pipeline.text.bucket_traits import NUMBER, OBJECT, OBJECTS, TEXT, TEXTS, TRAITS


class TextContent(serializers.Serializer[Any]):
    parts = serializers.ListField(
        child=serializers.CharField(allow_blank=True),
        help_text="The posts of a thread; one where it is none.",
    )


class Slide(serializers.Serializer[Any]):
    kind = serializers.CharField(required=False, help_text="What it is in the carousel, such as `hook`.")
    title = serializers.CharField(required=False, allow_blank=True)
    text = serializers.CharField(required=False, allow_blank=True)


class ImageContent(serializers.Serializer[Any]):
    caption = serializers.CharField(allow_blank=True)
    slides = Slide(many=True, help_text="Of a carousel; empty for a single picture.")


class FilmClip(serializers.Serializer[Any]):
    upload = serializers.CharField(required=False, help_text="The id of the upload that it is cut from.")
    start = serializers.FloatField(required=False, help_text="Seconds from the beginning of that file.")
    end = serializers.FloatField(required=False)
    author = serializers.CharField(required=False, allow_blank=True)
    licence = serializers.CharField(required=False, allow_blank=True)


class VideoContent(serializers.Serializer[Any]):
    caption = serializers.CharField(allow_blank=True)
    tags = serializers.ListField(child=serializers.CharField())
    script = serializers.CharField(allow_blank=True, help_text="What is said or shown.")
    clips = FilmClip(many=True, required=False, help_text="What the film is cut from, in order.")


class BlogContent(serializers.Serializer[Any]):
    slug = serializers.CharField(allow_blank=True)
    meta_description = serializers.CharField(allow_blank=True)
    tags = serializers.ListField(child=serializers.CharField())
    canonical_url = serializers.CharField(allow_blank=True)
    form = serializers.CharField(required=False, help_text="`article` or `excerpt`; there may be more.")
    reading_minutes = serializers.IntegerField(required=False)
    json_ld = serializers.DictField(required=False, help_text="An Article of schema.org.")


class NewsletterStory(serializers.Serializer[Any]):
    headline = serializers.CharField(allow_blank=True)
    text = serializers.CharField(allow_blank=True, help_text="Markdown.")
    link = serializers.CharField(allow_blank=True, help_text="Leads to the full story; may be empty.")


class NewsletterContent(serializers.Serializer[Any]):
    subject = serializers.CharField(allow_blank=True)
    preheader = serializers.CharField(allow_blank=True)
    sections = NewsletterStory(many=True)


CONTENTS: Final[dict[str, type[serializers.Serializer[Any]]]] = {
    "text": TextContent,
    "image": ImageContent,
    "video": VideoContent,
    "blog": BlogContent,
    "newsletter": NewsletterContent,
}
"""The form of `content` by bucket."""


@extend_schema_field(
    PolymorphicProxySerializer(
        component_name="Content", serializers=list(CONTENTS.values()), resource_type_field_name=None
    )
)
class ContentField(serializers.JSONField):
    """The content of a generated item, in the form of its bucket."""


_KINDS: Final[dict[str, dict[str, Any]]] = {
    TEXT: {"type": "string"},
    TEXTS: {"type": "array", "items": {"type": "string"}},
    OBJECTS: {"type": "array", "items": {"type": "object", "additionalProperties": True}},
    OBJECT: {"type": "object", "additionalProperties": True},
    NUMBER: {"type": "integer"},
}


def _content_changes() -> dict[str, Any]:
    """Return the schema of a change of `content`: the fields of all buckets, none of them required."""
    fields = {name: _KINDS[kind] for traits in TRAITS.values() for name, kind in traits.content.items()}
    buckets = "; ".join(
        f"{bucket}: {', '.join(f'`{name}`' for name in traits.content)}" for bucket, traits in TRAITS.items()
    )
    return {
        "type": "object",
        "properties": fields,
        "additionalProperties": False,
        "description": f"Fields of the item's bucket ({buckets}); what is left out stays.",
        "x-rules": {"additionalProperties": True, "properties": {}},
    }


def _config_of_any_type() -> dict[str, Any]:
    """Return the schema of a `config` whose type stands beside it: the settings of all types, none required."""
    known: dict[str, dict[str, Any]] = {}
    types: dict[str, list[str]] = {}
    for source_type in SOURCE_TYPES:
        schema = plugins.get("sources", source_type, SourceKind).config_schema
        for name, setting in schema["properties"].items():
            known[name] = _as_answered(setting)
            types.setdefault(name, []).append(source_type)
    for name, setting in known.items():
        own = f"Of {', '.join(types[name])}."
        setting["description"] = f"{own} {setting.get('description', '')}".strip()
    return {
        "type": "object",
        "properties": known,
        "additionalProperties": True,
        "description": "The settings of the source's type.",
        "x-rules": {"properties": {}},
    }


def _as_answered(schema: Any) -> Any:
    """Return a schema without what only an input is refused for: an answer may get further fields."""
    if isinstance(schema, list):
        return [_as_answered(member) for member in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        name: _as_answered(member)
        for name, member in schema.items()
        if name not in {"additionalProperties", "default", "not", "pattern"}
        and not (name == "oneOf" and all("required" in option for option in member))
    }


COMPONENTS: Final = {"ContentChanges": _content_changes(), "SourceConfig": _config_of_any_type()}
"""The schemas that no serializer has, by name."""


@extend_schema_field({"$ref": "#/components/schemas/SourceConfig"})
class ConfigField(serializers.JSONField):
    """The settings of a source."""
