"""What a client may rely on in an OpenAPI document, and what of it another document has no more."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from config.api_docs.document import resolve

if TYPE_CHECKING:
    from collections.abc import Iterator

_METHODS = ("get", "post", "patch", "put", "delete")


@dataclass
class Shape:
    """The fields of a body by their paths: which values each takes (`None`: any), and which must be there."""

    values: dict[str, set[Any] | None] = field(default_factory=dict)
    required: set[str] = field(default_factory=set)

    def add(self, other: Shape) -> None:
        """Add what one form of a body has; only what all forms require stays required."""
        for path, values in other.values.items():
            known = self.values.get(path, set())
            self.values[path] = None if known is None or values is None else known | values


def _shape(document: dict[str, Any], schema: dict[str, Any], path: str, above: tuple[int, ...]) -> Shape:
    node = resolve(document, schema)
    shape = Shape()
    if id(node) in above:
        return shape
    above = (*above, id(node))
    options = [*node.get("oneOf", ()), *node.get("anyOf", ()), *node.get("allOf", ())]
    shapes = [_shape(document, option, path, above) for option in options]
    for option in shapes:
        shape.add(option)
    if shapes:
        shape.required = set.intersection(*(option.required for option in shapes))
    if not shapes or any(name in node for name in ("enum", "const")):
        values = node.get("enum", [node["const"]] if "const" in node else None)
        shape.values[path] = None if values is None else set(values)
    if "items" in node:
        shape.add(_shape(document, node["items"], f"{path}[]", above))
    if isinstance(node.get("additionalProperties"), dict):
        shape.add(_shape(document, node["additionalProperties"], f"{path}{{}}", above))
    for name, member in node.get("properties", {}).items():
        inner = _shape(document, member, f"{path}.{name}", above)
        shape.add(inner)
        shape.required |= inner.required if name in node.get("required", ()) else set()
    shape.required |= {f"{path}.{name}" for name in node.get("required", ())}
    return shape


def _bodies(document: dict[str, Any], holder: dict[str, Any]) -> Iterator[tuple[str, Shape]]:
    for media_type, content in resolve(document, holder).get("content", {}).items():
        yield media_type, _shape(document, content.get("schema", {}), "", ())


def _parameters(document: dict[str, Any], operation: dict[str, Any]) -> dict[str, Any]:
    return {
        each["name"]: each for each in (resolve(document, one) for one in operation.get("parameters", ()))
    }


def removals(old: dict[str, Any], new: dict[str, Any]) -> Iterator[str]:
    """Yield a line for each thing that a client of the old document may name and the new one has no more."""
    for area in ("paths", "webhooks"):
        for path, item in old.get(area, {}).items():
            for method in _METHODS:
                if method not in item:
                    continue
                there = new.get(area, {}).get(path, {}).get(method)
                if there is None:
                    yield f"{method.upper()} {path}"
                    continue
                for line in _removals_of(old, item[method], new, there, is_sent=area == "webhooks"):
                    yield f"{method.upper()} {path} {line}"


def _removals_of(
    old: dict[str, Any], before: dict[str, Any], new: dict[str, Any], after: dict[str, Any], *, is_sent: bool
) -> Iterator[str]:
    if not is_sent:
        yield from _refused_parameters(_parameters(old, before), _parameters(new, after), old, new)
    bodies = dict(_bodies(new, after.get("requestBody", {})))
    for media_type, shape in _bodies(old, before.get("requestBody", {})):
        if media_type not in bodies:
            yield f"takes {media_type}"
        elif is_sent:
            yield from _missing_fields(shape, bodies[media_type], "sends")
        else:
            yield from _refused_values(shape, bodies[media_type], "takes")
    for status, answer in before["responses"].items():
        if status not in after["responses"]:
            yield f"answers {status}"
            continue
        bodies = dict(_bodies(new, after["responses"][status]))
        for media_type, shape in _bodies(old, answer):
            if media_type not in bodies:
                yield f"answers {status} {media_type}"
            else:
                yield from _missing_fields(shape, bodies[media_type], f"answers {status}")


def _refused_parameters(
    before: dict[str, Any], after: dict[str, Any], old: dict[str, Any], new: dict[str, Any]
) -> Iterator[str]:
    for name, parameter in before.items():
        if name not in after:
            yield f"parameter {name}"
            continue
        known, there = (
            _shape(document, each["schema"], name, ())
            for document, each in ((old, parameter), (new, after[name]))
        )
        yield from _refused_values(known, there, "parameter")
    for name, parameter in after.items():
        if parameter.get("required") and not before.get(name, {}).get("required"):
            yield f"parameter {name} is required"


def _missing_fields(before: Shape, after: Shape, verb: str) -> Iterator[str]:
    yield from (f"{verb} {path}" for path in before.values if path not in after.values)


def _refused_values(before: Shape, after: Shape, verb: str) -> Iterator[str]:
    """Yield what an input took, and takes no more or only with something else."""
    for path, values in before.values.items():
        if path not in after.values:
            yield f"{verb} {path}"
            continue
        allowed = after.values[path]
        if allowed is not None:
            gone = sorted(map(str, (values or {"any value"}) - allowed))
            yield from (f"{verb} {path}={value}" for value in gone)
    yield from (f"{verb} {path} is required" for path in sorted(after.required - before.required))
