"""Completes the webhooks of the OpenAPI document: names, headers, and objects that were too long."""

from __future__ import annotations

from typing import Any, Final

from config.api_docs.document import resolve

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
_HEADERS: Final[dict[str, tuple[str, bool, str]]] = {
    "webhook-id": ("The event's id: the same for every attempt and every endpoint.", True, "^evt_"),
    "webhook-timestamp": ("The moment of this attempt, in seconds since 1970.", True, "^[0-9]+$"),
    "webhook-signature": (
        (
            "`v1,` and base64 of the HMAC-SHA256 of `id.timestamp.body`; several with spaces between while a secret "
            "is being rotated."
        ),
        True,
        "^v1,",
    ),
    "X-Request-Id": ("The id of the request that caused the event, where one did.", False, ".+"),
}


def with_events(result: dict[str, Any], **_kwargs: Any) -> dict[str, Any]:
    """Give each webhook its name and headers, and the form of an object that was too long."""
    for event_type, item in result.get("webhooks", {}).items():
        operation = item["post"]
        operation["operationId"] = f"webhook_{event_type.replace('.', '_')}"
        # The signature is the permission; no token of ours is sent.
        operation["security"] = []
        operation["parameters"] = [
            {"$ref": f"#/components/parameters/{_parameter_name(name)}"} for name in _HEADERS
        ]
        content = operation["requestBody"]["content"]["application/json"]
        members = resolve(result, resolve(result, content["schema"])["properties"]["data"])["properties"]
        for name, schema in members.items():
            if "$ref" in schema:
                members[name] = {"anyOf": [schema, {"$ref": "#/components/schemas/TruncatedObject"}]}
    result["components"]["schemas"]["TruncatedObject"] = _TRUNCATED_OBJECT
    result["components"]["parameters"] |= {
        _parameter_name(name): {
            "in": "header",
            "name": name,
            "required": is_required,
            "description": description,
            "schema": {"type": "string", "pattern": pattern},
        }
        for name, (description, is_required, pattern) in _HEADERS.items()
    }
    return result


def _parameter_name(header: str) -> str:
    return "".join(part.title() for part in header.split("-"))
