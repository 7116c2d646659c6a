"""Turns the payload of a request into an entry: by the source's mapping, a preset, or the names of its fields.

Each bridge sends another form. Usable values are used, the others are left out with a note. A payload makes no
entry if it gives neither title nor text nor file, or is an event that is ignored.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Final

from config.core.api.nearest import find_nearest
from pipeline import limits
from pipeline.sources.base import Entry, EntryMedia, Note
from pipeline.sources.config_fields import WebAddress
from pipeline.sources.webhook.expressions import Budget, ExpressionFailed, TooCostly, compile_expression
from pipeline.sources.webhook.presets import GITHUB_EVENT, preset_for, why_ignored
from pipeline.text.body_html import BODY_FORMATS

if TYPE_CHECKING:
    from collections.abc import Mapping

TARGETS: Final = (
    "external_id",
    "url",
    "title",
    "body",
    "body_format",
    "author",
    "language",
    "published_at",
    "media",
    "tags",
    "metadata",
)
"""The fields of a raw item that a payload can fill; `tags` are stored in its `metadata`."""
_CONTENT_FIELDS: Final = ("body", "media", "title", "url")
_OWN_NAMES: Final = frozenset(TARGETS)
_MAX_NAMED_FIELDS: Final = 10
"""The most names of unread fields that a note lists."""
MAX_AUTHOR_CHARACTERS: Final = 200
MAX_TAGS: Final = 30
MAX_TAG_CHARACTERS: Final = 100
_LANGUAGE_TAG: Final = re.compile(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{2,8})*")
_TIMESTAMP: Final = re.compile(r"[0-9]{9,13}(\.[0-9]{1,9})?")
_ADDRESS_FIELD: Final = WebAddress("an absolute http:// or https:// address")
_NUL: Final = "\\u0000"
"""How JSON writes the character that databases can't store."""
_LAST_TIMESTAMP: Final = 253_402_300_799
"""The last second of the year 9999, in seconds since 1970; Python has no later moment."""


@dataclass(frozen=True)
class MappedPayload:
    """The result of mapping a payload.

    Without an entry, `ignored` or `failed` gives the reason; `by` is the name of the preset that was used.
    """

    entry: Entry | None = None
    notes: tuple[Note, ...] = ()
    by: str = ""
    ignored: Note | None = None
    failed: Note | None = None


def map_payload(
    payload: Mapping[str, Any], headers: Mapping[str, str], config: Mapping[str, Any]
) -> MappedPayload:
    """Map a payload to an entry; `headers` has lower-case names. Raises nothing, whatever was sent."""
    budget = Budget()
    try:
        return _map_payload(payload, headers, config, budget)
    except TooCostly as error:
        return MappedPayload(failed=Note("mapping_too_costly", str(error)))


def _map_payload(
    payload: Mapping[str, Any], headers: Mapping[str, str], config: Mapping[str, Any], budget: Budget
) -> MappedPayload:
    """Map a payload by mapping, preset or names. Raises `TooCostly` if an expression exceeds the budget."""
    if headers.get(GITHUB_EVENT) == "ping":
        return MappedPayload(ignored=Note("ping", "GitHub sent a ping to test the address."))
    mapping, defaults, by = config.get("mapping", {}), dict(config.get("defaults", {})), ""
    notes: list[Note] = []
    if mapping:
        values = _apply_mapping(payload, mapping, budget, notes)
    else:
        preset = preset_for(payload, headers, budget)
        if preset is not None:
            values, by = _apply_mapping(payload, preset.mapping, budget, notes), preset.name
            defaults = {**preset.defaults, **defaults}
        else:
            ignored = None if _OWN_NAMES.intersection(payload) else why_ignored(payload, headers)
            if ignored:
                return MappedPayload(ignored=ignored)
            values = _read_by_names(payload, notes)
    fields = {**defaults, **{name: value for name, value in values.items() if has_content(value)}}
    entry = entry_of(fields, notes)
    # Defaults alone make no item: every payload that gave nothing would make the same one.
    if not any(has_content(values.get(name)) for name in _CONTENT_FIELDS) or not (
        entry.title or entry.body or entry.url or entry.media
    ):
        message = "It gives none of title, body, url and media; check what was sent and the mapping."
        if not mapping and not by:
            message += _suggest_mapping(payload)
        return MappedPayload(notes=tuple(notes), by=by, failed=Note("nothing_found", message))
    if not (entry.title or entry.body or entry.media):
        message = (
            "An address alone isn't fetched here. Send the page's text as body, or read the address with "
            "a source of type scraper."
        )
        return MappedPayload(notes=tuple(notes), by=by, failed=Note("address_alone", message))
    return MappedPayload(entry, tuple(notes), by)


def _read_by_names(payload: Mapping[str, Any], notes: list[Note]) -> dict[str, Any]:
    """Return the fields under their own or similar names, with notes on the others."""
    fields = {name: payload[name] for name in TARGETS if payload.get(name) is not None}
    similar = {
        our_name: sent_name
        for our_name, sent_name in _similar_names(payload).items()
        if our_name not in fields
    }
    fields |= {our_name: payload[sent_name] for our_name, sent_name in similar.items()}
    notes += [
        Note("read_as", f"{sent_name} is read as {our_name}.") for our_name, sent_name in similar.items()
    ]
    unread = [name for name in payload if name not in _OWN_NAMES and name not in similar.values()]
    if unread:
        names = ", ".join(name[:40] for name in unread[:_MAX_NAMED_FIELDS])
        others = f" and {len(unread) - _MAX_NAMED_FIELDS} more" if len(unread) > _MAX_NAMED_FIELDS else ""
        notes.append(Note("not_read", f"Not read: {names}{others}. A mapping can read them."))
    return fields


def _similar_names(payload: Mapping[str, Any]) -> dict[str, str]:
    """Return for each content field the name of the longest text in `payload` with a similar name."""
    similar: dict[str, str] = {}
    for name, value in payload.items():
        if name in _OWN_NAMES or not re.fullmatch(r"[A-Za-z_]{1,40}", name):
            continue
        if not isinstance(value, str) or not value.strip():
            continue
        our_name = find_nearest(name, _CONTENT_FIELDS)
        if our_name is None:
            continue
        if our_name not in similar or len(value) > len(payload[similar[our_name]]):
            similar[our_name] = name
    return similar


def _suggest_mapping(payload: Mapping[str, Any]) -> str:
    """Return a sentence with a mapping for fields within an object or list, or "" if there are none."""
    for name, value in payload.items():
        inner = value[0] if isinstance(value, list) and value else value
        if not isinstance(inner, dict) or not re.fullmatch(r"[A-Za-z_]{1,40}", name):
            continue
        exact = {our_name: our_name for our_name in _CONTENT_FIELDS if has_content(inner.get(our_name))}
        names = {**_similar_names(inner), **exact}
        if names:
            prefix = f"{name}[0]" if isinstance(value, list) else name
            mapping = {our_name: f"{prefix}.{sent_name}" for our_name, sent_name in names.items()}
            return f" Give the source {json.dumps({'config': {'mapping': mapping}})}."
    return ""


def _apply_mapping(
    payload: Mapping[str, Any], mapping: Mapping[str, str], budget: Budget, notes: list[Note]
) -> dict[str, Any]:
    """Return the mapped values, and add notes on failures. Raises `TooCostly` beyond the budget."""
    values = {}
    for name, expression in mapping.items():
        try:
            values[name] = compile_expression(expression.strip()).evaluate(payload, budget)
        except ExpressionFailed as error:
            notes.append(Note("mapping_does_not_fit", f"{name}: {error}"))
    return values


def has_content(value: Any) -> bool:
    """Return whether a value is neither `None` nor an empty text, list or object."""
    return value is not None and value not in ("", [], {})


def entry_of(fields: Mapping[str, Any], notes: list[Note]) -> Entry:
    """Return the fields as an entry; values that can't be stored are left out or cut, with a note."""
    text = {
        name: _to_text(fields.get(name), name, notes)
        for name in ("external_id", "url", "title", "body", "body_format", "author", "language")
    }
    metadata = _to_metadata(fields.get("metadata"), notes)
    tags = _to_tags(fields.get("tags"), notes)
    if tags:
        metadata = {**metadata, "tags": tags}
    return Entry(
        external_id=_clip(text["external_id"].strip(), "external_id", limits.EXTERNAL_ID_CHARACTERS, notes),
        url=_valid_address(text["url"], "url", notes),
        title=_clip(text["title"], "title", limits.TITLE_CHARACTERS, notes),
        body=text["body"],
        body_format=_valid_format(text["body_format"], notes),
        author=_clip(text["author"], "author", MAX_AUTHOR_CHARACTERS, notes),
        language=_valid_language(text["language"], notes),
        published_at=_to_datetime(fields.get("published_at"), notes),
        media=_to_media(fields.get("media"), notes),
        metadata=_storable_metadata(metadata, notes),
    )


def _note_left_out(notes: list[Note], name: str, reason: str) -> None:
    """Add a note that a field is left out, with the reason."""
    notes.append(Note("left_out", f"{name} is left out: {reason}"))


def _to_text(value: Any, name: str, notes: list[Note]) -> str:
    """Return a text or a number as text, or an empty string for any other value, with a note."""
    if value is None:
        return ""
    if isinstance(value, str):
        # Databases can't store NUL or lone surrogates; these may come from a function that cuts texts.
        return value.replace("\x00", "").encode(errors="replace").decode()
    if isinstance(value, bool) or not isinstance(value, int | float) or not _is_finite(value):
        _note_left_out(notes, name, "it isn't text.")
        return ""
    return str(value)


def _is_finite(number: float) -> bool:
    """Return whether a number is finite, and not too long for a float."""
    try:
        return math.isfinite(number)
    except OverflowError:
        # An integer with more digits than a float can hold.
        return False


def _clip(value: str, name: str, max_characters: int, notes: list[Note]) -> str:
    """Return the value cut to a length, with a note if it was longer."""
    if len(value) > max_characters:
        notes.append(Note("cut", f"{name} is cut to {max_characters} characters."))
    return value[:max_characters]


def _valid_address(value: str, name: str, notes: list[Note]) -> str:
    """Return an http(s) address, or an empty string for any other value, with a note."""
    if not value.strip():
        return ""
    stored, problems = _ADDRESS_FIELD.read(value, name)
    if problems:
        _note_left_out(notes, name, problems[0].message)
        return ""
    return str(stored)


def _valid_format(value: str, notes: list[Note]) -> str:
    """Return a known body format, or an empty string for any other value, with a note."""
    if value and value not in BODY_FORMATS:
        _note_left_out(notes, "body_format", f"it is one of {', '.join(BODY_FORMATS)}.")
        return ""
    return value


def _valid_language(value: str, notes: list[Note]) -> str:
    """Return a language tag, or an empty string for any other value, with a note."""
    value = value.strip().replace("_", "-")
    if value and (len(value) > 35 or not _LANGUAGE_TAG.fullmatch(value)):
        _note_left_out(notes, "language", "it is a BCP 47 tag, such as en or pt-BR.")
        return ""
    return value


def _to_datetime(value: Any, notes: list[Note]) -> datetime | None:
    """Return the moment of a value, or `None` for a value that can't be read, with a note.

    It may be a date as in RFC 3339 or in a mail (RFC 5322), or seconds or milliseconds since 1970.
    """
    if not has_content(value):
        return None
    moment = None
    if isinstance(value, int | float) and not isinstance(value, bool):
        moment = _from_timestamp(float(value)) if _is_finite(value) else None
    elif isinstance(value, str):
        moment = _from_text(value.strip())
    if moment is None:
        _note_left_out(notes, "published_at", "write it as 2026-11-20T09:30:00Z, or as seconds since 1970.")
    return moment


def _from_text(text: str) -> datetime | None:
    """Return the moment of a text that holds a timestamp or a date, or `None` for another text."""
    if _TIMESTAMP.fullmatch(text):
        return _from_timestamp(float(text))
    return _from_iso(text) or _from_mail_date(text)


def _from_timestamp(number: float) -> datetime | None:
    """Return the moment of a timestamp in seconds or milliseconds, or `None` for an impossible one."""
    # Timestamps of today have ten digits in seconds, thirteen in milliseconds.
    seconds = number / 1000 if number >= 100_000_000_000 else number
    return datetime.fromtimestamp(seconds, UTC) if 0 < seconds < _LAST_TIMESTAMP else None


def _from_iso(text: str) -> datetime | None:
    """Return the moment of an ISO date with a zone, or `None` for another text."""
    try:
        moment = datetime.fromisoformat(text[:40])
        return moment.astimezone(UTC) if moment.tzinfo is not None else None
    except (ValueError, OverflowError):
        return None


def _from_mail_date(text: str) -> datetime | None:
    """Return the moment of a mail's date with a zone, or `None` for another text."""
    try:
        moment = parsedate_to_datetime(text[:100])
        return moment.astimezone(UTC) if moment.tzinfo is not None else None
    except (ValueError, OverflowError):
        return None


def _to_media(value: Any, notes: list[Note]) -> tuple[EntryMedia, ...]:
    """Return the files in an address, an object or a list; notes say which are left out or cut."""
    if not has_content(value):
        return ()
    items = value if isinstance(value, list) else [value]
    media: list[EntryMedia] = []
    for item in items[: limits.MEDIA_PER_ITEM]:
        fields = item if isinstance(item, dict) else {"url": item}
        address, mime_type = fields.get("url"), fields.get("type")
        stored = _valid_address(address, "media", notes) if isinstance(address, str) else ""
        if not isinstance(address, str):
            _note_left_out(notes, "media", "each is an address, or an object with url and type.")
        if stored and stored not in [file.url for file in media]:
            media.append(EntryMedia(stored, mime_type[:100] if isinstance(mime_type, str) else ""))
    if len(items) > limits.MEDIA_PER_ITEM:
        notes.append(Note("cut", f"media is cut to {limits.MEDIA_PER_ITEM} files."))
    return tuple(media)


def _to_tags(value: Any, notes: list[Note]) -> list[str]:
    """Return the tags in a list of texts or one text with commas; notes say which are left out or cut."""
    if not has_content(value):
        return []
    items = value if isinstance(value, list) else str(value).split(",")
    texts = [_to_text(item, "tags", notes).strip() for item in items if isinstance(item, str)]
    texts = [text for text in texts if text]
    if not texts:
        _note_left_out(notes, "tags", "they are a list of texts, or one text with commas.")
        return []
    not_texts = sum(1 for item in items if has_content(item) and not isinstance(item, str))
    if not_texts:
        notes.append(Note("left_out", f"tags that aren't text are left out: {not_texts}."))
    if any(len(text) > MAX_TAG_CHARACTERS for text in texts):
        notes.append(Note("cut", f"tags are cut to {MAX_TAG_CHARACTERS} characters each."))
    tags = list(dict.fromkeys(text[:MAX_TAG_CHARACTERS] for text in texts))
    if len(tags) > MAX_TAGS:
        notes.append(Note("cut", f"tags are cut to the first {MAX_TAGS}."))
    return tags[:MAX_TAGS]


def _to_metadata(value: Any, notes: list[Note]) -> dict[str, Any]:
    """Return metadata that is an object, or an empty mapping for any other value, with a note."""
    if not has_content(value):
        return {}
    if not isinstance(value, dict):
        _note_left_out(notes, "metadata", "it is an object.")
        return {}
    return value


def _storable_metadata(metadata: dict[str, Any], notes: list[Note]) -> dict[str, Any]:
    """Return metadata that can be stored, or an empty mapping and a note if it can't or is too large."""
    json_text = ""
    try:
        json_text = json.dumps(metadata, allow_nan=False)
        json.dumps(metadata, ensure_ascii=False).encode()
        is_storable = _NUL not in json_text
    except (ValueError, RecursionError):
        # An expression can produce an infinite number or a lone surrogate.
        is_storable = False
    if not is_storable:
        _note_left_out(notes, "metadata", "it holds something that can't be kept.")
        return {}
    if len(json_text) > limits.METADATA_BYTES:
        _note_left_out(notes, "metadata", f"it may have {limits.METADATA_BYTES} bytes of JSON at most.")
        return {}
    return metadata
