"""Walks the OpenAPI document, for the modules that complete it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator


def operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield method, path and operation of everything that can be called."""
    for path, item in document["paths"].items():
        for method, operation in item.items():
            yield method, path, operation


def resolve(document: dict[str, Any], node: dict[str, Any]) -> dict[str, Any]:
    """Return the component that a reference names, or the node itself if it is no reference."""
    while "$ref" in node:
        _, _, kind, name = node["$ref"].split("/")
        node = document["components"][kind][name]
    return node


def schemas_in(node: Any) -> Iterator[dict[str, Any]]:
    """Yield every object below a node, itself included, except the values of examples; inner ones come first."""
    if isinstance(node, dict):
        for name, member in node.items():
            # `examples` is also a list of values in a schema, and `example` may be a property's name.
            if name not in {"example", "examples", "x-rules"} or "type" in (
                member if isinstance(member, dict) else {}
            ):
                yield from schemas_in(member)
        yield node
    elif isinstance(node, list):
        for member in node:
            yield from schemas_in(member)
