"""Defines a source's settings as data: one declaration gives both the validator and the JSON Schema."""

from __future__ import annotations

import copy
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, Final, cast

from config.core import limits as core_limits
from config.core.api.nearest import find_nearest
from pipeline import limits
from pipeline.plugins import ConfigInvalid, Problem

# Neither control characters nor lone surrogates: PostgreSQL's jsonb can't store NUL or a surrogate.
_PRINTABLE: Final = r"[^\u0000-\u001f\u007f\ud800-\udfff]*"
# The characters that `\s` matches in Python. ECMA-262 differs (next line, separators, byte order mark), so
# the document spells it out.
_SPACE_CHARACTERS: Final = (
    r" \t\n\r\f\v\u001c-\u001f\u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
)
_LINE_PATTERN: Final = rf"^{_PRINTABLE}[^\s\u0000-\u001f\u007f\ud800-\udfff]{_PRINTABLE}$"
_LINES: Final = r"[^\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f\ud800-\udfff]*"
PARAGRAPHS: Final = rf"^{_LINES}[^\s\u0000-\u001f\u007f\ud800-\udfff]{_LINES}$"
"""The pattern of a text of several lines that isn't blank."""
_PORT: Final = "(6553[0-5]|655[0-2][0-9]|65[0-4][0-9]{2}|6[0-4][0-9]{3}|[1-5][0-9]{4}|[1-9][0-9]{0,3})"
_HOST: Final = r"""(\[[0-9A-Fa-f:.]+\]|[^\s/?#@:\[\]\\<>"^`{|}%\u0000-\u0020\u007f\ud800-\udfff]+)"""
_PATH_AND_QUERY: Final = r"([/?#][^\s\\\u0000-\u0020\u007f\ud800-\udfff]*)?"
_WEB_ADDRESS: Final = rf"^\s*[hH][tT][tT][pP][sS]?://{_HOST}(:{_PORT})?{_PATH_AND_QUERY}\s*$"

MAX_UNKNOWN_NAMED: Final = 20
"""A body of one MiB can name 100,000 unknown keys, and each near match costs about 50 µs."""
MAX_KEY_CHARACTERS: Final = 60
"""The length at which a message cuts an unknown key."""


class Field(ABC):
    """One setting: the values that it accepts, and how they are stored."""

    @abstractmethod
    def schema(self) -> dict[str, Any]:
        """Return the JSON Schema that accepts exactly what `read` accepts."""

    @abstractmethod
    def read(self, value: object, path: str) -> tuple[Any, list[Problem]]:
        """Return the value as it will be stored, and its problems. The value has no meaning if there are problems."""


def _spell_out_spaces(pattern: str) -> str:
    r"""Return the pattern with `\s` replaced by the characters that it matches in Python."""
    return pattern.replace(r"[^\s", f"[^{_SPACE_CHARACTERS}").replace(r"\s*", f"[{_SPACE_CHARACTERS}]*")


@dataclass(frozen=True)
class Text(Field):
    """A text, by default of one line, stored without the space around it.

    `pattern` is a regular expression that both Python and ECMA-262 read alike, and that no blank text
    matches; `hint` describes the text, as the end of "Give …"; `max_length` is in characters.
    """

    hint: str
    max_length: int
    pattern: str = _LINE_PATTERN
    description: str = ""

    def schema(self) -> dict[str, Any]:
        return {
            "type": "string",
            "minLength": 1,
            "maxLength": self.max_length,
            "description": self.description or f"{self.hint[:1].upper()}{self.hint[1:]}.",
            # Valid JSON holds no lone surrogate, and not every regular expression engine can name one.
            "pattern": _spell_out_spaces(self.pattern.replace(r"\ud800-\udfff", "")),
        }

    def read(self, value: object, path: str) -> tuple[Any, list[Problem]]:
        if not isinstance(value, str):
            return None, [Problem(path, "invalid_type", f"Give {self.hint}, as a string.")]
        if not value.strip():
            return None, [Problem(path, "required", f"Give {self.hint}.")]
        if len(value) > self.max_length:
            message = f"Give {self.hint}, of at most {self.max_length} characters."
            return None, [Problem(path, "too_long", message)]
        if re.search(self.pattern, value) is None:
            return None, [Problem(path, "invalid", self.explain(value))]
        return self.store(value.strip()), []

    def explain(self, value: str) -> str:
        """Return the message for a text that the pattern refuses."""
        del value
        return f"Give {self.hint}."

    def store(self, value: str) -> str:
        """Return the text as it is stored."""
        return value


@dataclass(frozen=True)
class WebAddress(Text):
    """An http(s) address with a host and without credentials."""

    max_length: int = core_limits.URL_CHARACTERS
    pattern: str = _WEB_ADDRESS

    def explain(self, value: str) -> str:
        stripped = value.strip()
        scheme, separator, rest = stripped.partition("://")
        if not separator or scheme.lower() not in {"http", "https"}:
            return f"Give {self.hint}, starting with http:// or https://."
        if "@" in re.split(r"[/?#]", rest, maxsplit=1)[0]:
            return f"Give {self.hint}, without a user name or password in it."
        if re.search(r"\s", stripped):
            return f"Give {self.hint}, with each space in it written as %20."
        return f"Give {self.hint}, with a valid host name, such as https://example.com/."


@dataclass(frozen=True)
class Count(Field):
    """A whole number within bounds, ends included."""

    hint: str
    minimum: int
    maximum: int

    def schema(self) -> dict[str, Any]:
        return {
            "type": "integer",
            "minimum": self.minimum,
            "maximum": self.maximum,
            "description": f"{self.hint[:1].upper()}{self.hint[1:]}.",
        }

    def read(self, value: object, path: str) -> tuple[Any, list[Problem]]:
        # In JSON Schema 3.0 is an integer, and true isn't one.
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool):
            return None, [Problem(path, "invalid_type", f"Give {self.hint}, as a whole number.")]
        if not self.minimum <= value <= self.maximum:
            message = f"Give {self.hint}, from {self.minimum} to {self.maximum}."
            return None, [Problem(path, "out_of_range", message)]
        return value, []


@dataclass(frozen=True)
class Flag(Field):
    """A setting that is true or false."""

    hint: str

    def schema(self) -> dict[str, Any]:
        return {"type": "boolean", "description": f"{self.hint[:1].upper()}{self.hint[1:]}."}

    def read(self, value: object, path: str) -> tuple[Any, list[Problem]]:
        if not isinstance(value, bool):
            return None, [Problem(path, "invalid_type", f"Say {self.hint}: true or false.")]
        return value, []


@dataclass(frozen=True)
class Choice(Field):
    """A setting that is one of several words."""

    hint: str
    options: tuple[str, ...]

    def schema(self) -> dict[str, Any]:
        description = f"{self.hint[:1].upper()}{self.hint[1:]}."
        return {"type": "string", "enum": list(self.options), "description": description}

    def read(self, value: object, path: str) -> tuple[Any, list[Problem]]:
        if not isinstance(value, str):
            return None, [Problem(path, "invalid_type", f"Give {self.hint}, as a string.")]
        if value not in self.options:
            return None, [Problem(path, "invalid", f"Give {self.hint}: one of {', '.join(self.options)}.")]
        return value, []


@dataclass(frozen=True)
class TextOr(Field):
    """A line of text, or an object with further keys."""

    text: Text
    group: Group

    def schema(self) -> dict[str, Any]:
        return {"oneOf": [self.text.schema(), self.group.schema()]}

    def read(self, value: object, path: str) -> tuple[Any, list[Problem]]:
        return (self.group if isinstance(value, Mapping) else self.text).read(value, path)


@dataclass(frozen=True)
class Many(Field):
    """A list of at least one and at most `maximum` items; repeated items are stored once."""

    hint: str
    item: Field
    maximum: int

    def schema(self) -> dict[str, Any]:
        return {
            "type": "array",
            "items": self.item.schema(),
            "minItems": 1,
            "maxItems": self.maximum,
            "description": f"{self.hint[:1].upper()}{self.hint[1:]}.",
        }

    def read(self, value: object, path: str) -> tuple[Any, list[Problem]]:
        if not isinstance(value, list):
            return None, [Problem(path, "invalid_type", f"Give {self.hint}, as a list.")]
        if not value:
            return None, [Problem(path, "required", f"Give {self.hint}, at least one.")]
        if len(value) > self.maximum:
            message = f"Give {self.hint}, at most {self.maximum} of them."
            return None, [Problem(path, "too_many", message)]
        cleaned, problems = [], []
        for index, item in enumerate(value):
            stored, item_problems = self.item.read(item, f"{path}[{index}]")
            problems += item_problems
            if not item_problems and stored not in cleaned:
                cleaned.append(stored)
        return cleaned, problems


@dataclass(frozen=True)
class Group(Field):
    """An object with known keys.

    Exactly one key of `exactly_one_of` must be given, and at most one of `at_most_one_of`; a group has only one
    of the two rules. `defaults` are stored for keys that aren't given.
    """

    hint: str
    fields: Mapping[str, Field]
    required: tuple[str, ...] = ()
    exactly_one_of: tuple[str, ...] = ()
    at_most_one_of: tuple[str, ...] = ()
    defaults: Mapping[str, Any] = field(default_factory=dict)
    is_empty_allowed: bool = True

    def schema(self) -> dict[str, Any]:
        properties = {name: each_field.schema() for name, each_field in self.fields.items()}
        for name, default in self.defaults.items():
            properties[name]["default"] = default
        schema: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
        if self.required:
            schema["required"] = list(self.required)
        if self.exactly_one_of:
            schema["oneOf"] = [{"required": [name]} for name in self.exactly_one_of]
        if self.at_most_one_of:
            pairs = combinations(self.at_most_one_of, 2)
            schema["not"] = {"anyOf": [{"required": list(pair)} for pair in pairs]}
        if not self.is_empty_allowed:
            schema["minProperties"] = 1
        return schema

    def read(self, value: object, path: str) -> tuple[Any, list[Problem]]:
        if not isinstance(value, Mapping):
            return None, [Problem(path, "invalid_type", f"Give {self.hint}, as an object.")]
        unknown = [key for key in value if key not in self.fields]
        problems = [self._name_unknown(str(key), path) for key in unknown[:MAX_UNKNOWN_NAMED]]
        problems += [self._name_missing(name, path) for name in self.required if name not in value]
        problems += self._check_alternatives(value, path)
        if not value and not self.is_empty_allowed:
            problems.append(Problem(path, "required", f"Give {self.hint}, or leave the key out."))
        cleaned = copy.deepcopy(dict(self.defaults))
        for name, each_field in self.fields.items():
            if name in value:
                cleaned[name], field_problems = each_field.read(value[name], f"{path}.{name}")
                problems += field_problems
        return cleaned, problems

    def _name_unknown(self, key: str, path: str) -> Problem:
        """Return the problem of an unknown key, with the nearest known one."""
        short_key = key[:MAX_KEY_CHARACTERS]
        near = find_nearest(short_key, self.fields)
        known = ", ".join(f"`{name}`" for name in self.fields)
        advice = f"Did you mean `{near}`?" if near else f"Known are: {known}."
        message = f"There is no setting `{short_key}` here. {advice}"
        return Problem(f"{path}.{short_key}", "unknown_field", message)

    def _name_missing(self, name: str, path: str) -> Problem:
        """Return the problem of a required key that isn't given."""
        _, problems = self.fields[name].read("", f"{path}.{name}")
        return Problem(f"{path}.{name}", "required", problems[0].message)

    def _check_alternatives(self, value: Mapping[str, Any], path: str) -> list[Problem]:
        """Return the problems with keys of which only one may be given."""
        known = self.exactly_one_of or self.at_most_one_of
        present = [name for name in known if name in value]
        names = ", ".join(f"`{name}`" for name in known[:-1])
        choice = f"{names} or `{known[-1]}`" if known else ""
        if self.exactly_one_of and not present:
            return [Problem(f"{path}.{self.exactly_one_of[0]}", "required", f"Give one of {choice}.")]
        message = f"Give only one of {choice}; `{present[0]}` is there already." if present else ""
        return [Problem(f"{path}.{name}", "conflict", message) for name in present[1:]]


BATCH_HOURS: Final = Count(
    "the hours that its runs may wait for the model's answers, which then cost half",
    minimum=1,
    maximum=limits.BATCH_HOURS,
)
"""The setting of every kind of source that runs automatically, where no person waits for the items."""


def clean(settings: Group, config: object) -> dict[str, Any]:
    """Return the settings as they will be stored. Raises `ConfigInvalid` with all problems if there are any."""
    cleaned, problems = settings.read(config, "config")
    if problems:
        raise ConfigInvalid(problems)
    return cast("dict[str, Any]", cleaned)
