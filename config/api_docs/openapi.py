"""Completes the OpenAPI document: paths without trailing slashes, strict input, headers, links, webhooks.

The settings name this module's hooks; importing the module for them registers its extensions.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from drf_spectacular.extensions import OpenApiSerializerExtension, OpenApiSerializerFieldExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.plumbing import get_lib_doc_excludes
from rest_framework import serializers

from config.core.api.row_serializers import Answer, RowSerializer

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

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
    """Describes an operation by its action's docstring; the docstrings of classes are for maintainers."""

    def get_description(self) -> str:  # type: ignore[override]  # as in the base class
        action = getattr(self.view, getattr(self.view, "action", "") or "", None)
        return (action.__doc__ or "").strip() if action is not None else ""


def undescribed_bases() -> list[type]:
    """Return the bases whose docstrings describe no object of the API."""
    return [*get_lib_doc_excludes(), RowSerializer, Answer]  # type: ignore[no-untyped-call]


# --- Strict input ----------------------------------------------------------------------------------------------------


class StrictObject(OpenApiSerializerExtension):  # type: ignore[no-untyped-call]
    """Documents that unknown fields are refused, and lists that mustn't be empty.

    A serializer's `schema_rules` describe what its `validate` requires, a field's what its type doesn't say.
    """

    target_class = "config.core.api.fields.StrictSerializer"
    match_subclasses = True

    def map_serializer(self, auto_schema: AutoSchema, direction: Any) -> dict[str, Any]:
        # As the documentation of drf-spectacular's extensions shows.
        schema = auto_schema._map_serializer(self.target, direction, bypass_extensions=True)  # type: ignore[no-untyped-call]  # noqa: SLF001
        # A serializer without a docstring would be described by that of its base class.
        own_docstring = type(self.target).__dict__.get("__doc__")
        if own_docstring is None:
            schema.pop("description", None)
        for name, field in self.target.fields.items():
            if isinstance(field, serializers.ListField) and not field.allow_empty:
                schema["properties"][name].setdefault("minItems", 1)
            schema["properties"][name].update(getattr(field, "schema_rules", {}))
        return {**schema, "additionalProperties": False, **getattr(self.target, "schema_rules", {})}


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
    for _, _, operation in _operations(result):
        for content in operation.get("requestBody", {}).get("content", {}).values():
            schema = _resolve(result, content["schema"])
            operation["requestBody"]["required"] = any(
                rule in schema for rule in ("required", "anyOf", "oneOf")
            )
    return result


# --- Headers ---------------------------------------------------------------------------------------------------------

_HEADERS: Final[dict[str, tuple[str, str]]] = {
    "X-Request-Id": ("Names this request in the logs, on the work that it queued and on its webhooks.", ".+"),
    "RateLimit-Policy": ("The workspace's limit.", r'^"workspace";q=[0-9]+;w=[0-9]+$'),
    "RateLimit": (
        "What remains of it, and in how many seconds it is full again.",
        r'^"workspace";r=[0-9]+;t=[0-9]+$',
    ),
    "Retry-After": ("Seconds to wait before asking again.", "^[0-9]+$"),
    "WWW-Authenticate": ("How to send the token.", "^Bearer"),
    "Location": ("The address of the created object.", "^/v1/"),
    "ETag": ("For If-None-Match; that of an object also for If-Match.", '^(W/)?".+"$'),
    "Link": ("The next page, where there is one.", '^<.+>; rel="next"$'),
    "Idempotency-Replayed": ("The answer is the first one to this Idempotency-Key.", "^true$"),
}
# Responses with these statuses are sent before the limiter has counted the request.
_STATUSES_BEFORE_LIMITER: Final = frozenset({"401", "403", "503"})


def with_headers(result: dict[str, Any], **_kwargs: Any) -> dict[str, Any]:
    """Document the headers of every response; those that it always has are required."""
    for method, _, operation in _operations(result):
        is_list = "next_cursor" in _properties(result, operation, "200")
        for status, answer in operation["responses"].items():
            headers = _headers_of(method, status, is_list=is_list)
            name = operation["operationId"]
            # An upload can't be read again, so it has no address.
            is_created = status == "201" and name != "uploads_create"
            if is_created or (status == "202" and name == "raw_push"):
                headers["Location"] = True
            answer["headers"] = {
                name: {
                    "description": _HEADERS[name][0],
                    "required": is_required,
                    "schema": {"type": "string", "pattern": _HEADERS[name][1]},
                }
                for name, is_required in headers.items()
            }
    return result


def _headers_of(method: str, status: str, *, is_list: bool) -> dict[str, bool]:
    """Return the headers of a response, and whether each is always there."""
    headers = {"X-Request-Id": True}
    if status not in _STATUSES_BEFORE_LIMITER:
        # An IP address that sends many bad tokens gets its 429 before any workspace is known.
        headers |= dict.fromkeys(("RateLimit-Policy", "RateLimit"), status != "429")
    if status == "401":
        headers["WWW-Authenticate"] = True
    if status in {"429", "503"}:
        headers["Retry-After"] = True
    if method == "get" and status in {"200", "304"}:
        headers["ETag"] = True
    if method == "get" and status == "200" and is_list:
        headers["Link"] = False
    if method == "post" and status.startswith("2"):
        headers["Idempotency-Replayed"] = False
    return headers


# --- Links -----------------------------------------------------------------------------------------------------------


def with_links(result: dict[str, Any], **_kwargs: Any) -> dict[str, Any]:
    """Link each response that has an object's id to every operation on that object, unless the path has the id."""
    by_id: dict[str, list[str]] = {}
    for _, path, operation in _operations(result):
        if "{id}" in path:
            by_id.setdefault(_prefix_of(operation), []).append(operation["operationId"])
    for _, path, operation in _operations(result):
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
    properties = _properties(result, operation, status)
    pointer, holder = "/id", properties
    if "next_cursor" in properties:
        pointer, holder = "/data/0/id", _resolve(result, properties["data"]["items"]).get("properties", {})
    prefix = _prefix(holder.get("id", {}))
    for target in by_id.get(prefix, ()):
        yield target, {"operationId": target, "parameters": {"id": f"$response.body#{pointer}"}}


# --- Webhooks --------------------------------------------------------------------------------------------------------

_EXAMPLES: Final = settings.BASE_DIR / "docs" / "examples"
_TRUNCATED_OBJECT: Final = {
    "type": "object",
    "description": "An object that was too long for its event: read it by its id.",
    "properties": {
        "id": {"type": "string"},
        "truncated": {
            "type": "array",
            "items": {"type": "string"},
            "description": "The fields that were left out.",
        },
    },
    "required": ["id", "truncated"],
}


def with_events(result: dict[str, Any], **_kwargs: Any) -> dict[str, Any]:
    """Give each webhook its headers, an example, and the form of an object that was too long."""
    schemas = result["components"]["schemas"]
    for event_type, item in result.get("webhooks", {}).items():
        operation = item["post"]
        operation["parameters"] = [
            {
                "in": "header",
                "name": name,
                "required": True,
                "description": description,
                "schema": {"type": "string", "pattern": pattern},
            }
            for name, description, pattern in _SIGNATURE_HEADERS
        ]
        content = operation["requestBody"]["content"]["application/json"]
        content["example"] = json.loads((_EXAMPLES / f"event-{event_type}.json").read_text())
        members = _resolve(result, _resolve(result, content["schema"])["properties"]["data"])["properties"]
        for name, schema in members.items():
            if "$ref" in schema:
                members[name] = {"anyOf": [schema, {"$ref": "#/components/schemas/TruncatedObject"}]}
    schemas["TruncatedObject"] = _TRUNCATED_OBJECT
    result["components"]["schemas"] = dict(sorted(schemas.items()))
    return result


_SIGNATURE_HEADERS: Final = (
    ("webhook-id", "The event's id: the same for every attempt and every endpoint.", "^evt_"),
    ("webhook-timestamp", "The moment of this attempt, in seconds since 1970.", "^[0-9]+$"),
    (
        "webhook-signature",
        (
            "`v1,` and base64 of the HMAC-SHA256 of `id.timestamp.body`; several with spaces between while a secret is "
            "being rotated."
        ),
        "^v1,",
    ),
)


def _operations(result: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, item in result["paths"].items():
        for method, operation in item.items():
            yield method, path, operation


def _properties(result: dict[str, Any], operation: dict[str, Any], status: str) -> dict[str, Any]:
    """Return the properties of the JSON object that an operation answers, or none if it answers no object."""
    content = operation["responses"].get(status, {}).get("content", {})
    properties: dict[str, Any] = _resolve(result, content.get("application/json", {}).get("schema", {})).get(
        "properties", {}
    )
    return properties


def _resolve(result: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema that a reference names, or the schema itself if it is no reference."""
    name = schema.get("$ref", "").rpartition("/")[2]
    schema_or_target: dict[str, Any] = result["components"]["schemas"][name] if name else schema
    return schema_or_target


def _prefix_of(operation: dict[str, Any]) -> str:
    """Return the id prefix of the operation's path parameter."""
    return next(
        _prefix(parameter["schema"]) for parameter in operation["parameters"] if parameter["name"] == "id"
    )


def _prefix(schema: dict[str, Any]) -> str:
    """Return the prefix that an id's pattern begins with, or an empty text for another pattern."""
    match = re.match(r"\^([a-z]+)_", schema.get("pattern", ""))
    return match[1] if match else ""
