"""Describes operations and inputs for the OpenAPI document: what is in it, strict bodies, scopes, links.

The settings name this module's hooks; importing the module for them registers its extensions.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from drf_spectacular.extensions import OpenApiSerializerExtension, OpenApiSerializerFieldExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.plumbing import ResolvedComponent, get_lib_doc_excludes
from rest_framework import serializers

from config.api_docs.document import operations, resolve
from config.core.api.row_serializers import Answer, RowSerializer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    Endpoints = Iterable[tuple[str, str, str, Any]]

# --- What is documented ----------------------------------------------------------------------------------------------


def only_v1(endpoints: Endpoints, **_kwargs: Any) -> list[tuple[str, str, str, Any]]:
    """Return only the API's endpoints, because pages aren't documented."""
    return [endpoint for endpoint in endpoints if endpoint[0].startswith("/v1/")]


def without_trailing_slashes(result: dict[str, Any], **_kwargs: Any) -> dict[str, Any]:
    """Document each path without its trailing slash; both forms answer the same."""
    result["paths"] = {path.rstrip("/"): item for path, item in result["paths"].items()}
    return result


class OperationSchema(AutoSchema):
    """Describes an operation by its action's docstring, or its summary, and by the scope that it needs."""

    def get_description(self) -> str:  # type: ignore[override]  # as in the base class
        action = getattr(self.view, getattr(self.view, "action", "") or "", None)
        text = (action.__doc__ or "").strip() if action is not None else ""
        summary = (self.get_summary() or "").rstrip(".")
        return f"{text or f'{summary}.'}\n\n{self._scope_sentence()}"

    def get_operation(self, *args: Any, **kwargs: Any) -> dict[str, Any] | None:
        operation: dict[str, Any] | None = super().get_operation(*args, **kwargs)
        if operation is not None and (scope := self._scope()):
            operation["x-required-scope"] = scope
        return operation

    def _scope(self) -> str | None:
        scopes: Mapping[str, str | None] = getattr(self.view, "scopes")  # noqa: B009  not known of every view
        return scopes[getattr(self.view, "action")]  # noqa: B009

    def _scope_sentence(self) -> str:
        scope = self._scope()
        return f"Needs the scope `{scope}`." if scope else "Any token may call it."


def undescribed_bases() -> list[type]:
    """Return the bases whose docstrings describe no object of the API."""
    return [*get_lib_doc_excludes(), RowSerializer, Answer]  # type: ignore[no-untyped-call]


# --- Strict input ----------------------------------------------------------------------------------------------------


class StrictObject(OpenApiSerializerExtension):  # type: ignore[no-untyped-call]
    """Documents that unknown fields are refused, and lists that mustn't be empty.

    A field's `schema_rules` describe what its type doesn't say. A serializer's are the rules between its fields that
    its `validate` holds: they are kept under `x-rules` (see `plain_schemas`). A serializer with `variants` is one of
    several: each is a schema of its own, named for the value of the field that tells them apart.
    """

    target_class = "config.core.api.fields.StrictSerializer"
    match_subclasses = True

    def map_serializer(self, auto_schema: AutoSchema, direction: Any) -> dict[str, Any]:
        # As the documentation of drf-spectacular's extensions shows.
        schema: dict[str, Any] = auto_schema._map_serializer(self.target, direction, bypass_extensions=True)  # type: ignore[no-untyped-call]  # noqa: SLF001
        # A serializer without a docstring would be described by that of its base class.
        own_docstring = type(self.target).__dict__.get("__doc__")
        if own_docstring is None:
            schema.pop("description", None)
        for name, field in self.target.fields.items():
            if isinstance(field, serializers.ListField) and not field.allow_empty:
                schema["properties"][name].setdefault("minItems", 1)
            schema["properties"][name].update(getattr(field, "schema_rules", {}))
        schema["additionalProperties"] = False
        if rules := getattr(self.target, "schema_rules", {}):
            schema["x-rules"] = dict(rules)
        if variants := getattr(self.target, "schema_variants", None):
            return self._one_of(auto_schema, schema, variants)
        return schema

    def _one_of(
        self, auto_schema: AutoSchema, schema: dict[str, Any], variants: Mapping[str, Mapping[str, Any]]
    ) -> dict[str, Any]:
        """Return the choice between the variants, each of which is registered as a component."""
        field = self.target.variants_by
        mapping = {}
        for value, rules in variants.items():
            properties = {
                **schema["properties"],
                **rules["properties"],
                field: {"type": "string", "const": value},
            }
            component = ResolvedComponent(  # type: ignore[no-untyped-call]
                name=f"{value.title()}{type(self.target).__name__}",
                type=ResolvedComponent.SCHEMA,
                object=f"{type(self.target).__name__} {value}",
                schema={**schema, "properties": properties, "required": list(rules["required"])},
            )
            auto_schema.registry.register_on_missing(component)
            mapping[value] = component.ref["$ref"]
        return {
            "oneOf": [{"$ref": reference} for reference in mapping.values()],
            "discriminator": {"propertyName": field, "mapping": mapping},
        }


class PublicIdExtension(OpenApiSerializerFieldExtension):  # type: ignore[no-untyped-call]
    """Documents the form of public ids."""

    target_class = "config.core.api.fields.PublicIdField"
    match_subclasses = True

    def map_serializer_field(self, auto_schema: AutoSchema, direction: Any) -> dict[str, Any]:
        del auto_schema, direction
        return {"type": "string", "pattern": f"^{self.target.prefix}_[0-7][0-9a-hjkmnp-tv-z]{{25}}$"}


class StrictText(OpenApiSerializerFieldExtension):  # type: ignore[no-untyped-call]
    """Documents that a text mustn't be empty, unless it may be blank, and its pattern."""

    target_class = "config.core.api.fields.StrictCharField"
    match_subclasses = True

    def map_serializer_field(self, auto_schema: AutoSchema, direction: Any) -> dict[str, Any]:
        del auto_schema, direction
        schema: dict[str, Any] = {"type": "string"}
        if not self.target.allow_blank:
            schema["minLength"] = 1
        if pattern := getattr(self.target, "pattern", None):
            schema["pattern"] = pattern
        return schema


def with_required_bodies(result: dict[str, Any], **_kwargs: Any) -> dict[str, Any]:
    """Mark a body as optional if `{}` would be valid, because an empty body counts as `{}`."""
    for _, _, operation in operations(result):
        for content in operation.get("requestBody", {}).get("content", {}).values():
            schema = resolve(result, content["schema"])
            operation["requestBody"]["required"] = any(
                rule in part
                for part in (schema, schema.get("x-rules", {}))
                for rule in ("required", "anyOf", "oneOf")
            )
    return result


# --- Links -----------------------------------------------------------------------------------------------------------


def with_links(result: dict[str, Any], **_kwargs: Any) -> dict[str, Any]:
    """Link each response that has an object's id to every operation on that object, unless the path has the id."""
    by_id: dict[str, list[str]] = {}
    for _, path, operation in operations(result):
        if "{id}" in path:
            by_id.setdefault(_prefix_of(operation), []).append(operation["operationId"])
    for _, path, operation in operations(result):
        if "{id}" in path:
            continue
        for status, answer in operation["responses"].items():
            links = dict(_links(result, operation, status, by_id))
            if links:
                answer["links"] = links
    return result


def _links(
    result: dict[str, Any], operation: dict[str, Any], status: str, by_id: dict[str, list[str]]
) -> Iterator[tuple[str, dict[str, Any]]]:
    properties = answered_properties(result, operation, status)
    pointer, holder = "/id", properties
    if "next_cursor" in properties:
        pointer, holder = "/data/0/id", resolve(result, properties["data"]["items"]).get("properties", {})
    prefix = _prefix(holder.get("id", {}))
    for target in by_id.get(prefix, ()):
        yield target, {"operationId": target, "parameters": {"id": f"$response.body#{pointer}"}}


def answered_properties(result: dict[str, Any], operation: dict[str, Any], status: str) -> dict[str, Any]:
    """Return the properties of the JSON object that an operation answers, or none if it answers no object."""
    content = operation["responses"].get(status, {}).get("content", {})
    properties: dict[str, Any] = resolve(result, content.get("application/json", {}).get("schema", {})).get(
        "properties", {}
    )
    return properties


def _prefix_of(operation: dict[str, Any]) -> str:
    """Return the id prefix of the operation's path parameter."""
    return next(
        _prefix(parameter["schema"]) for parameter in operation["parameters"] if parameter["name"] == "id"
    )


def _prefix(schema: dict[str, Any]) -> str:
    """Return the prefix that an id's pattern begins with, or an empty text for another pattern."""
    match = re.match(r"\^([a-z]+)_", schema.get("pattern", ""))
    return match[1] if match else ""
