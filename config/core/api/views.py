"""DRF ground rules: strict input, keyset pages, entity tags, the base of every view.

What is about tokens, rates and idempotency stands in `accounts.api.base`, one floor up.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol
from urllib.parse import urlencode
from uuid import UUID

from django.conf import settings
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.response import Response
from rest_framework.viewsets import ViewSet

from config.core import ids, limits
from config.core.api.jsonio import Dumped, dump, raw_body, refuse_unless_json
from config.core.api.nearest import hint, nearest
from config.core.datetimes import as_z, read_date_or_moment, read_moment, why_no_moment
from config.core.errors import AppError, Detail, Invalid

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from django.db.models import QuerySet
    from rest_framework.request import Request

# --- Strict input ----------------------------------------------------------------------------------------------------


def unknown_names(
    given: Iterable[str],
    known: Iterable[str],
    *,
    what: str,
    advice: Mapping[str, str] | None = None,
) -> list[Detail]:
    """A detail for each name that isn't known, with the nearest that is: a mistyped filter must not return all.

    `advice` has, by name, what to say in place of that.
    """
    names = sorted(known)
    # Somebody who sends half a million names gets the first few told, at the price of a few.
    return [
        Detail(
            name,
            f"unknown_{what}",
            f"There is no {what} {name}. {(advice or {}).get(name) or hint(name, names)}",
        )
        for name in map(_short, sorted(set(given) - set(names))[: limits.UNKNOWN_NAMES_TOLD])
    ]


def _short(name: str) -> str:
    """A name of half a megabyte isn't told whole, nor compared with those that are known."""
    return name if len(name) <= limits.NAME_CHARACTERS else f"{name[: limits.NAME_CHARACTERS]}…"


class StrictSerializer(serializers.Serializer[Any]):
    """Refuses fields that it doesn't know."""

    default_error_messages: ClassVar = {"invalid": "Give a JSON object."}

    def to_internal_value(self, data: Any) -> Any:
        problems: dict[str, Any] = {}
        if isinstance(data, dict):
            known = [name for name, field in self.fields.items() if not field.read_only]
            problems = {
                detail.field or "": [serializers.ErrorDetail(detail.message, detail.code)]
                for detail in self.unknown_fields(data, known)
            }
        try:
            value = super().to_internal_value(data)
        except serializers.ValidationError as error:
            if isinstance(error.detail, dict):
                raise serializers.ValidationError({**problems, **error.detail}) from error
            raise
        if problems:
            raise serializers.ValidationError(problems)
        return value

    def unknown_fields(self, data: Mapping[str, Any], known: Sequence[str]) -> list[Detail]:
        return unknown_names(data, known, what="field")


class NoFields(StrictSerializer):
    """An empty body or `{}`."""


class BoundedListField(serializers.ListField):
    """Counts before it looks: DRF's own checks every member of a list that is too long to be taken anyway."""

    default_error_messages: ClassVar = {
        "not_a_list": "Give a list.",
        "empty": "Give one entry at least.",
        "max_length": "Give {max_length} entries at most.",
        "min_length": "Give {min_length} entries at least.",
    }

    def to_internal_value(self, data: Any) -> list[Any]:
        if isinstance(data, list) and self.max_length is not None and len(data) > self.max_length:
            self.fail("max_length", max_length=self.max_length)
        return list(super().to_internal_value(data))


class PublicIdField(serializers.CharField):
    """A typed public id; the value is a UUID. An id of another kind can't exist, so it is refused in words."""

    default_error_messages: ClassVar = {
        "invalid_id": "This is not an id of the form {prefix}_ and 26 characters."
    }

    def __init__(self, prefix: str, **kwargs: Any) -> None:
        self.prefix = prefix
        super().__init__(**kwargs)

    def to_internal_value(self, data: Any) -> UUID:  # type: ignore[override]
        value = ids.decode(self.prefix, data) if isinstance(data, str) else None
        if value is None:
            self.fail("invalid_id", prefix=self.prefix)
        return value

    def to_representation(self, value: Any) -> str:
        return value if isinstance(value, str) else ids.encode(self.prefix, value)


class StrictCharField(serializers.CharField):
    """Text as it was sent: a number is not text, and white space is the sender's."""

    default_error_messages: ClassVar = {
        "invalid": "Give text.",
        "blank": "Give at least one character, or leave the field out.",
        "max_length": "Give {max_length} characters at most.",
        "min_length": "Give {min_length} characters at least.",
    }

    def __init__(self, **kwargs: Any) -> None:
        kwargs.setdefault("trim_whitespace", False)
        super().__init__(**kwargs)

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        return str(super().to_internal_value(data))


class StrictIntegerField(serializers.IntegerField):
    """A whole number, never text or a boolean; to JSON Schema 3.0 is one too."""

    default_error_messages: ClassVar = {
        "invalid": "Give a whole number.",
        "max_value": "Give {max_value} at most.",
        "min_value": "Give {min_value} at least.",
    }

    def to_internal_value(self, data: Any) -> int:
        if isinstance(data, float) and data.is_integer():
            data = int(data)
        if isinstance(data, bool) or not isinstance(data, int):
            self.fail("invalid")
        return super().to_internal_value(data)


class StrictChoiceField(serializers.ChoiceField):
    """One of a few words; the refusal lists them."""

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str) or data not in self.choices:
            words = ", ".join(str(word) for word in self.choices)
            message = f"Give one of: {words}."
            raise serializers.ValidationError(message, code="invalid_choice")
        return data


class StrictBooleanField(serializers.BooleanField):
    default_error_messages: ClassVar = {"invalid": "Give true or false."}

    def to_internal_value(self, data: Any) -> bool:
        if not isinstance(data, bool):
            self.fail("invalid", input=data)
        return data


@extend_schema_field({"type": "string", "format": "date-time"})
class MomentField(serializers.Field[datetime, str, str, Any]):
    """A moment with its offset (RFC 3339); a naive one is refused."""

    default_error_messages: ClassVar = {
        "invalid": "Write the moment as RFC 3339 with an offset, such as 2026-11-20T09:30:00Z.",
        "no_such_moment": "{reason}",
    }

    def to_internal_value(self, data: Any) -> datetime:
        moment = read_moment(data) if isinstance(data, str) else None
        if moment is None:
            reason = why_no_moment(data) if isinstance(data, str) else None
            if reason:
                self.fail("no_such_moment", reason=reason)
            self.fail("invalid")
        return moment

    def to_representation(self, value: datetime) -> str:
        return as_z(value)


# --- Query parameters ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Parameter:
    """One query parameter: `read` turns text into a value or raises ValueError with the sentence to answer."""

    read: Callable[[str], Any]
    is_repeatable: bool = False
    description: str = ""
    schema: Any = OpenApiTypes.STR


def read_query(request: Request, parameters: Mapping[str, Parameter]) -> dict[str, Any]:
    """The parameters that were given, read; refuses unknown ones and repeated ones that may not be."""
    if not request.META.get("QUERY_STRING"):
        return {}
    given = request.query_params
    unknown = {name: texts[-1] for name, texts in given.lists() if name not in parameters}
    advice = {name: told for name, text in unknown.items() if (told := _advice(name, text, parameters))}
    details = unknown_names(unknown, parameters, what="parameter", advice=advice)
    values: dict[str, Any] = {}
    for name, texts in given.lists():
        parameter = parameters.get(name)
        if parameter is None:
            continue
        if len(texts) > 1 and not parameter.is_repeatable:
            details.append(Detail(name, "repeated", f"{name} may be given once."))
            continue
        read = []
        for text in texts:
            try:
                if "\x00" in text:
                    details.append(Detail(name, "nul_character", "Text may not hold the NUL character."))
                    continue
                read.append(parameter.read(text))
            except ValueError as error:
                details.append(Detail(name, "invalid", str(error)))
        if len(read) == len(texts):
            values[name] = read if parameter.is_repeatable else read[0]
    if details:
        raise Invalid(*details)
    return values


_DATED: Final = re.compile(r"\d{4}-\d\d")
_AFTER: Final = frozenset({"after", "date", "day", "min_date"})
_BEFORE: Final = frozenset({"before", "max_date"})
_NUMBERED: Final = frozenset({"page", "offset", "skip", "page_number"})


def _advice(name: str, text: str, parameters: Mapping[str, Parameter]) -> str:
    """What is meant by a parameter that isn't known, where its value says more than its name; else empty."""
    if name in _NUMBERED:
        if "cursor" in parameters:
            return "Pages have no numbers: give cursor, with the next_cursor of the page before."
        return "This answer has no pages: it holds everything that is asked for."
    if _DATED.match(text) and name in _AFTER | _BEFORE:
        wanted = ("from", "created_after") if name in _AFTER else ("to", "created_before")
        own = next((one for one in wanted if one in parameters), None)
        return f"Did you mean {own}?" if own else ""
    words = {one: _words_of(parameter) for one, parameter in parameters.items()}
    taking = [one for one, its in words.items() if text in its]
    if len(taking) == 1:
        return f"Did you mean {taking[0]}={text}?"
    near = nearest(name, parameters)
    return f"Did you mean {near}? It is one of: {', '.join(words[near])}." if near and words[near] else ""


def _words_of(parameter: Parameter) -> Sequence[str]:
    """The words of which it takes one; none where it takes others too."""
    schema = parameter.schema if isinstance(parameter.schema, dict) else {}
    words: Sequence[str] = schema.get("items", schema).get("enum", ())
    return words


def choice(*allowed: str) -> Parameter:
    def read(text: str) -> str:
        if text not in allowed:
            message = f"Give one of: {', '.join(allowed)}."
            raise ValueError(message)
        return text

    return Parameter(read, schema={"type": "string", "enum": list(allowed)})


def choices(*allowed: str) -> Parameter:
    one = choice(*allowed)
    return Parameter(one.read, is_repeatable=True, schema={"type": "array", "items": one.schema})


def public_id(prefix: str) -> Parameter:
    def read(text: str) -> UUID:
        value = ids.decode(prefix, text)
        if value is None:
            message = f"Give an id of the form {prefix}_ and 26 characters."
            raise ValueError(message)
        return value

    return Parameter(read, schema={"type": "string", "pattern": f"^{prefix}_[0-7][0-9a-hjkmnp-tv-z]{{25}}$"})


DATE_OR_MOMENT: Final = {
    "description": "A date, or an RFC 3339 time with an offset.",
    "anyOf": [{"type": "string", "format": "date"}, {"type": "string", "format": "date-time"}],
}


LEAVES_DAY_OUT: Final = (
    "The first date or time that is no longer in the range: a date leaves that whole day out."
)


def moment_or_date(description: str = "") -> Parameter:
    def read(text: str) -> datetime:
        moment = read_date_or_moment(text)
        if moment is None:
            message = "Give a date (2026-11-20) or a time with an offset (2026-11-20T09:30:00Z)."
            raise ValueError(why_no_moment(text) or message)
        return moment

    return Parameter(read, description=description, schema=DATE_OR_MOMENT)


def plain_text(most: int = 200) -> Parameter:
    def read(text: str) -> str:
        if not 1 <= len(text) <= most:
            message = f"Give 1 to {most} characters."
            raise ValueError(message)
        return text

    return Parameter(read, schema={"type": "string", "minLength": 1, "maxLength": most})


def _page_size() -> Parameter:
    def read(text: str) -> int:
        if not re.fullmatch(r"[0-9]{1,3}", text) or not 1 <= int(text) <= limits.PAGE_ROWS:
            message = f"Give a number from 1 to {limits.PAGE_ROWS}."
            raise ValueError(message)
        return int(text)

    schema = {
        "type": "integer",
        "minimum": 1,
        "maximum": limits.PAGE_ROWS,
        "default": limits.PAGE_ROWS_DEFAULT,
    }
    return Parameter(read, schema=schema)


PAGING: Final[Mapping[str, Parameter]] = {
    "limit": _page_size(),
    "cursor": Parameter(str, description="The `next_cursor` of the page before."),
    "order": choice("asc", "desc"),
}

# --- Pages -----------------------------------------------------------------------------------------------------------


class InvalidCursor(AppError):
    code = "invalid_cursor"


@dataclass(frozen=True)
class Page:
    rows: Sequence[Any]
    has_more: bool
    next_cursor: str | None
    next_link: str | None

    def respond(self, request: Request, data: list[Any]) -> Response:
        headers = {"Link": f'<{self.next_link}>; rel="next"'} if self.next_link else {}
        body = Dumped(dump({"data": data, "has_more": self.has_more, "next_cursor": self.next_cursor}))
        return respond_with_tag(request, body, tag=weak_tag(body), headers=headers)


def page(
    request: Request,
    rows: QuerySet[Any],
    query: Mapping[str, Any],
    *,
    key: str = "id",
    key_of: Callable[[Any], Any] | None = None,
) -> Page:
    """One page of `rows` by keyset on `key`, newest first; costs the same however deep it is.

    `query` is what `read_query` gave. `rows` may give dicts or instances. `key` is a UUID or a whole number.
    """

    def ask(after: UUID | int | None, most: int, *, is_ascending: bool) -> list[Any]:
        rest = rows if after is None else rows.filter(**{f"{key}__{'gt' if is_ascending else 'lt'}": after})
        return list(rest.order_by(key if is_ascending else f"-{key}")[:most])

    def own_key(row: Any) -> UUID | int:
        found: UUID | int = row[key] if isinstance(row, dict) else getattr(row, key)
        return found

    return page_by(request, ask, query, key_of=key_of or own_key)


class Ask(Protocol):
    """The rows beyond a key, in the order of keys, at most so many."""

    def __call__(self, after: UUID | int | None, most: int, *, is_ascending: bool) -> Sequence[Any]: ...


def page_by(
    request: Request, ask: Ask, query: Mapping[str, Any], *, key_of: Callable[[Any], UUID | int]
) -> Page:
    """As `page`, for a list that asks in its own way."""
    size = query.get("limit", limits.PAGE_ROWS_DEFAULT)
    binding = _binding(request)
    after = _open_cursor(query["cursor"], binding) if "cursor" in query else None
    found = ask(after, size + 1, is_ascending=query.get("order") == "asc")
    has_more = len(found) > size
    found = found[:size]
    cursor = link = None
    if has_more:
        cursor = _seal_cursor(key_of(found[-1]), binding)
        parameters = [
            (name, text) for name, texts in request.query_params.lists() for text in texts if name != "cursor"
        ]
        link = f"{settings.PUBLIC_URL}{request.path}?{urlencode([*parameters, ('cursor', cursor)])}"
    return Page(found, has_more, cursor, link)


def _binding(request: Request) -> bytes:
    """A digest of the list, its filters and whose it is: a cursor of one list means nothing in another."""
    filters = sorted(
        (name, text)
        for name, texts in request.query_params.lists()
        for text in texts
        if name not in {"cursor", "limit"}
    )
    return _digest(request, request.path.rstrip("/"), filters)


def _digest(request: Request, *also: object) -> bytes:
    """Eight bytes that stand for a place in one workspace's live or test rows."""
    caller: Any = request.auth
    return hashlib.sha256(repr((caller.workspace.pk.hex, caller.test, *also)).encode()).digest()[:8]


def _cursor_mac(content: bytes) -> bytes:
    return hmac.digest(settings.SECRET_KEY.encode(), b"cursor" + content, "sha256")[:12]


def _seal_cursor(key: UUID | int, binding: bytes) -> str:
    position = key.bytes if isinstance(key, UUID) else b"n" + key.to_bytes(8, "big")
    content = binding + position
    return base64.urlsafe_b64encode(_cursor_mac(content) + content).rstrip(b"=").decode()


def _open_cursor(cursor: str, binding: bytes) -> UUID | int:
    try:
        sealed = base64.b64decode(
            cursor.encode("ascii") + b"=" * (-len(cursor) % 4), altchars=b"-_", validate=True
        )
    except ValueError as error:
        raise InvalidCursor from error
    mac, content = sealed[:12], sealed[12:]
    if not hmac.compare_digest(mac, _cursor_mac(content)) or content[: len(binding)] != binding:
        raise InvalidCursor
    position = content[len(binding) :]
    return UUID(bytes=position) if len(position) == 16 else int.from_bytes(position[1:], "big")


def seal_position(request: Request, position: int, kind: str) -> str:
    """A place in the caller's feed of that kind, as an opaque cursor."""
    return _seal_cursor(position, _digest(request, kind))


def open_position(request: Request, cursor: str, kind: str) -> int:
    """Raises `InvalidCursor` for everything that `seal_position` didn't make for this caller."""
    position = _open_cursor(cursor, _digest(request, kind))
    if not isinstance(position, int):
        raise InvalidCursor
    return position


# --- Entity tags -----------------------------------------------------------------------------------------------------


class VersionConflict(AppError):
    code = "version_conflict"


def strong_tag(version: int, *also: object) -> str:
    return '"' + "-".join(str(part) for part in (f"v{version}", *also)) + '"'


def weak_tag(body: Any) -> str:
    content = body if isinstance(body, Dumped) else dump(body)
    return f'W/"{hashlib.sha256(content).hexdigest()[:24]}"'


def _tags(header: str) -> list[str]:
    return [tag.strip() for tag in header.split(",") if tag.strip()]


def respond_with_tag(
    request: Request, body: Any, *, tag: str, headers: Mapping[str, str] | None = None, status: int = 200
) -> Response:
    """304 where `If-None-Match` names the tag, compared weakly as RFC 9110 says."""
    all_headers = {"ETag": tag, "Cache-Control": "private, no-cache", **(headers or {})}
    wanted = _tags(request.META.get("HTTP_IF_NONE_MATCH", ""))
    if "*" in wanted or tag.removeprefix("W/") in [one.removeprefix("W/") for one in wanted]:
        return Response(status=304, headers=all_headers)
    return Response(body, status=status, headers=all_headers)


def refuse_unless_match(request: Request, version: int) -> bool:
    """412 where `If-Match` names other versions; True where it names this one, False where it doesn't bind.

    Only the version is compared: what else a strong tag holds (the last poll, how late it is) changes by itself, and
    a person's change must not fail for it. Weak tags never match.
    """
    header = request.META.get("HTTP_IF_MATCH", "").strip()
    tags = _tags(header)
    if not header or "*" in tags:
        return False
    mine = f'"v{version}'
    if not any(tag == f'{mine}"' or tag.startswith(f"{mine}-") for tag in tags):
        raise VersionConflict
    return True


# --- Views -----------------------------------------------------------------------------------------------------------


@cache
def _shared(serializer: type[serializers.Serializer[Any]]) -> serializers.Serializer[Any]:
    """One for all requests: making a serializer copies all its fields, and validating keeps nothing in it."""
    return serializer()


class Resource(ViewSet):
    """The base of every view under `/v1`. A view translates, makes one call, translates back."""

    body_limit: ClassVar[int] = limits.BODY_BYTES
    http_method_names: ClassVar[list[str]] = ["get", "post", "patch", "delete", "head"]  # type: ignore[misc]

    def read_body(self, request: Request, serializer: type[serializers.Serializer[Any]]) -> Any:
        """The validated body; an empty one counts as `{}`. Call it after the object was found: 404 comes first.

        No address that takes a body takes query parameters. The order is the contract's: 413, 415, 400.
        """
        body = raw_body(request, most=self.body_limit)
        refuse_unless_json(request)
        read_query(request, {})
        data = request.data if body else {}
        if not isinstance(data, dict):
            raise Invalid.one(None, "not_an_object", "Send a JSON object.")
        return _shared(serializer).run_validation(data)

    def read_nothing(self, request: Request) -> None:
        """For an act without any field: a body or a parameter would be a wish that nobody hears."""
        self.read_body(request, NoFields)
