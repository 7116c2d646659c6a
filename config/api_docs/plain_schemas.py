"""Says in words what code generators can't read: rules between fields, long patterns, lists that may grow.

The document that is published is the plain one. The strict one, which says the same by JSON Schema alone, is what
tests invent requests from.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings

from config.api_docs.document import operations, schemas_in
from pipeline.resources.contents import COMPONENTS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_MAX_PATTERN: Final = 110
"""Characters of a pattern that still says something to a reader; generators write longer ones into broken code."""
_RENAMED: Final = {
    "Error": "ErrorAnswer",
    "Event": "FeedEvent",
    "Generator": "MadeBy",
    "Media": "RawItemMedia",
    "Range": "DateRange",
}
"""The names that Python or TypeScript has already, and those that stand in their place."""
_SAID_BY_TYPES: Final = frozenset({"additionalProperties", "enum", "items", "properties"})
"""The rules that the strict document has in place of what the plain one tells more of, or describes."""
_MIN_SHARED: Final = 8
"""Fields; fewer in common may be chance."""
_OPEN_PARAMETERS: Final = frozenset({"decision", "type"})
"""The query parameters with values of a list that may grow."""


def with_plain_names(result: dict[str, Any], **_kwargs: Any) -> dict[str, Any]:
    """Rename the schemas that are called like a word of a programming language."""
    schemas = result["components"]["schemas"]
    for old_name, name in _RENAMED.items():
        schemas[name] = schemas.pop(old_name)
    references = {
        f"#/components/schemas/{old_name}": f"#/components/schemas/{name}"
        for old_name, name in _RENAMED.items()
    }
    for node in schemas_in(result):
        if "$ref" in node:
            node["$ref"] = references.get(node["$ref"], node["$ref"])
    result["components"]["schemas"] = dict(sorted(schemas.items()))
    return result


def with_typed_fields(result: dict[str, Any], **_kwargs: Any) -> dict[str, Any]:
    """Add the schemas of fields whose form another field tells; a form that isn't known is an object too."""
    schemas = result["components"]["schemas"]
    schemas.update(copy.deepcopy(COMPONENTS))
    # An item that isn't made yet has no content.
    schemas["Content"] = {
        "anyOf": [*schemas["Content"]["oneOf"], {"$ref": "#/components/schemas/OtherContent"}]
    }
    schemas["OtherContent"] = {
        "type": "object",
        "additionalProperties": True,
        "description": "Content in no form above, such as none while the item is being made.",
    }
    return result


def as_strict(document: dict[str, Any]) -> dict[str, Any]:
    """Return the document with every rule as JSON Schema, as the server holds it."""
    strict = copy.deepcopy(document)
    for node in schemas_in(strict):
        if (rules := node.pop("x-rules", None)) is not None:
            node.update(rules)
        if "pattern" in node:
            # The pattern says more, and nothing satisfies both by chance.
            node.pop("format", None)
    return strict


def as_plain(document: dict[str, Any]) -> dict[str, Any]:
    """Return the document for people and code generators."""
    plain = copy.deepcopy(document)
    _open_enums(plain)
    _extend_schemas(plain)
    for _, _, operation in operations(plain):
        for answer in operation["responses"].values():
            # They lead tests from answer to answer; no code generator reads them.
            answer.pop("links", None)
    for node in schemas_in(plain):
        rules = node.pop("x-rules", {})
        if "properties" in node:
            rules = {**rules, **_take_rules(node)}
        if sentences := list(_in_words(rules)):
            node["description"] = " ".join(filter(None, [node.get("description"), *sentences]))
        if len(str(node.get("pattern", ""))) > _MAX_PATTERN:
            del node["pattern"]
    return plain


# --- Lists that may grow ---------------------------------------------------------------------------------------------


def _open_enums(document: dict[str, Any]) -> None:
    """Turn each enum into a string with examples, except those that the settings name: they never grow."""
    schemas = document["components"]["schemas"]
    closed = settings.SPECTACULAR_SETTINGS["ENUM_NAME_OVERRIDES"]
    opened = {
        f"#/components/schemas/{name}": _open_string(schemas.pop(name))
        for name in [name for name, schema in schemas.items() if "enum" in schema and name not in closed]
    }
    for node in schemas_in(document):
        if node.get("$ref") in opened:
            node.update(opened[node.pop("$ref")])
        for member in node.get("allOf", ())[:]:
            if member.get("$ref") in opened:
                node.pop("allOf")
                open_schema = opened[member["$ref"]]
                texts = [node.get("description"), open_schema["description"]]
                node.update(open_schema, description=" ".join(filter(None, texts)))
    for item in document["paths"].values():
        for operation in item.values():
            for parameter in operation.get("parameters", ()):
                if parameter.get("name") in _OPEN_PARAMETERS:
                    schema = parameter["schema"]
                    values = schema.get("items", schema)
                    open_schema = _open_string(values)
                    values.clear()
                    values.update(open_schema)


def _open_string(enum: dict[str, Any]) -> dict[str, Any]:
    values = enum["enum"]
    known = ", ".join(f"`{value}`" for value in values)
    return {
        "type": "string",
        "description": f"One of {known}; there may be more.",
        "examples": values[:1],
    }


# --- Schemas that have all of another --------------------------------------------------------------------------------


def _extend_schemas(document: dict[str, Any]) -> None:
    """Let an answer's schema that has all fields of another refer to it, so that code has one type for both."""
    schemas: dict[str, dict[str, Any]] = document["components"]["schemas"]
    # An input refuses unknown fields, so no other can have all of its.
    answers = {
        name: schema
        for name, schema in schemas.items()
        if len(schema.get("properties", ())) >= _MIN_SHARED and "additionalProperties" not in schema
    }
    bases = {}
    for name, schema in answers.items():
        parts = [part for part, other in answers.items() if part != name and _has_all_of(schema, other)]
        if parts:
            bases[name] = max(parts, key=lambda part: len(answers[part]["properties"]))
    own = {
        name: {
            "type": "object",
            "properties": {
                field: member
                for field, member in schemas[name]["properties"].items()
                if field not in schemas[base]["properties"]
            },
            "required": [
                field
                for field in schemas[name].get("required", ())
                if field not in schemas[base]["properties"]
            ],
        }
        for name, base in bases.items()
    }
    for name, base in bases.items():
        description = schemas[name].get("description")
        schemas[name] = {
            **({"description": description} if description else {}),
            "allOf": [{"$ref": f"#/components/schemas/{base}"}, own[name]],
        }


def _has_all_of(schema: dict[str, Any], other: dict[str, Any]) -> bool:
    """Return whether a schema has more fields than another, and all of the other's."""
    is_longer = len(schema["properties"]) > len(other["properties"])
    is_as_required = all(
        (field in schema.get("required", ())) == (field in other.get("required", ()))
        for field in other["properties"]
    )
    has_fields = all(
        schema["properties"].get(field) == member for field, member in other["properties"].items()
    )
    return is_longer and is_as_required and has_fields


# --- Rules between fields --------------------------------------------------------------------------------------------


def _take_rules(node: dict[str, Any]) -> dict[str, Any]:
    """Remove and return the rules between its fields that an object of a source's settings has."""
    return {
        name: node.pop(name)
        for name in ("oneOf", "anyOf", "not")
        if name in node and (name == "not" or all("required" in member for member in node[name]))
    }


def _in_words(rules: dict[str, Any]) -> Iterator[str]:
    """Yield a sentence for each rule. Raises `ValueError` for one that it has no words for."""
    for name, rule in rules.items():
        if name == "oneOf":
            yield f"Give exactly one of {_names(_required(rule))}."
        elif name == "anyOf":
            yield f"Give at least one of {_names(_required(rule))}."
        elif name == "not":
            yield f"Give at most one of {_names(_required(rule['anyOf']))}."
        elif name == "dependentRequired":
            for field, needed in rule.items():
                yield f"`{field}` goes with {_names(needed)}."
        elif name == "dependentSchemas":
            for field, needed in rule.items():
                yield from _conditions_in_words(field, needed["properties"])
        elif name not in _SAID_BY_TYPES:
            message = f"There are no words for {name}."
            raise ValueError(message)


def _conditions_in_words(field: str, properties: dict[str, Any]) -> Iterator[str]:
    if refused := [name for name, condition in properties.items() if condition is False]:
        yield f"`{field}` goes without {_names(refused)}."
    for name, condition in properties.items():
        if condition is not False:
            yield f"`{field}` goes with `{name}` {' or '.join(condition['enum'])}."


def _required(members: Sequence[dict[str, Any]]) -> list[str]:
    return list(dict.fromkeys(name for member in members for name in member["required"]))


def _names(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
